"""The table of features names tests that exist."""

import re
from pathlib import Path


ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "features.md").read_text().splitlines()


def test_each_yes_names_a_test_that_exists():
    rows = [line.split("|") for line in TABLE if line.startswith("| ")][1:]
    assert len(rows) > 30
    for row in rows:
        assert len(row) == 8, row[1]
        assert row[6].startswith(" yes"), row[1]
        named = re.findall(r"`(tests/[\w/]+\.py)`", row[6])
        assert named, row[1]
        for name in named:
            assert (ROOT / name).is_file(), name
