"""The Python blocks of the documentation run, each page as one script."""

import re
from pathlib import Path

import matplotlib
import pytest


ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

PAGES = [
    "README.md",
    "docs/getting-started.md",
    "docs/fdtd.md",
    "docs/coming-from-beamz.md",
]


def blocks(page: Path):
    """Returns code and first line of each Python block."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield found[1], text.count("\n", 0, found.start(1))


# One precision is enough to see that the pages are right.
@pytest.mark.f32
@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_page_runs_as_a_script(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHYSAX_PROGRESS", "0")
    matplotlib.use("Agg", force=True)
    scope = {"__name__": "page"}
    found = list(blocks(ROOT / name))
    assert found
    for code, line in found:
        # Empty lines in front make tracebacks point into the page.
        exec(compile("\n" * line + code, ROOT / name, "exec"), scope)
