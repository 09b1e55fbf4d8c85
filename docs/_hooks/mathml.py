"""Turns equations into MathML while the pages are built.

Browsers show MathML by themselves, so pages need no script from elsewhere.
"""

import html
import re

from latex2mathml.converter import convert


# What the extension `pymdownx.arithmatex` leaves of $...$ and $$...$$.
_EQUATION = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)


def on_page_content(content, **kwargs):
    del kwargs
    return _EQUATION.sub(_mathml, content)


def _mathml(match):
    display = "block" if match["tag"] == "div" else "inline"
    return convert(html.unescape(match["latex"]).strip(), display=display)
