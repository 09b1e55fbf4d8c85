"""The first page of the documentation links to every other one."""

import re
from pathlib import Path

import pytest


pytestmark = pytest.mark.f32

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def links(page):
    """Returns the pages that a page links to, relative to `docs`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.findall(r"\]\(([\w/.-]+\.md)(?:#[\w-]+)?\)", text)
    return {(DOCS / page).parent.joinpath(name).resolve() for name in found}


def test_the_first_page_leads_to_every_page():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert len(listed) > 40
    linked = links("index.md") | links("api/index.md") | {DOCS / "index.md"}
    assert {DOCS / page for page in listed} <= linked
