"""Imports go downward only: checked on the syntax tree, so lazy imports count too."""

import ast
from pathlib import Path

import pytest


pytestmark = pytest.mark.f32

PACKAGE = Path(__file__).parents[1] / "src" / "physax"

LAYERS = [
    {
        "units",
        "_auto_mesh",
        "_byte_text",
        "_checks",
        "_gather",
        "_known_number",
        "_loop",
        "_products",
        "_recorded",
        "_status",
        "_whole_file",
        "_written_for_jax",
    },
    {"grid", "runtime"},
    {"fit", "design", "graph"},
    {"em", "particles", "xpcs"},
    {"io", "plot"},
    {"cli"},
    {"__main__"},
]
LAYER = {unit: number for number, units in enumerate(LAYERS) for unit in units}

# Parts of one layer do not know each other, but for these.
SIDEWAYS = {
    ("_auto_mesh", "_checks"),
    ("_known_number", "_checks"),
    ("_loop", "_checks"),
    ("_loop", "_status"),
    ("_recorded", "_loop"),
    ("_status", "_checks"),
    ("_written_for_jax", "_checks"),
}

# The package itself offers the errors; its subpackages load when first used. The
# command line asks it for the version.
INIT = "__init__"


def unit_of(parts):
    """The part of physax, as in the table, that a file or module belongs to."""
    return Path(parts[0]).stem if parts else INIT


def imported_units(tree, parts):
    """Yields the line and the part of physax of each import in a file.

    Args:
        tree: The syntax tree of the file.
        parts: Where the file lies in the package.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head, *rest = alias.name.split(".")
                if head == "physax":
                    yield node.lineno, unit_of(rest)
        elif isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level == 0:
                if module[:1] != ["physax"]:
                    continue
                target = module[1:]
            else:
                # One dot is the folder of the file, each further dot its parent.
                target = [*parts[: len(parts) - node.level], *module]
            for alias in node.names:
                yield node.lineno, unit_of(target or part_named(alias.name))


def part_named(name):
    """What `from physax import name` reaches: a part, or something of the package."""
    return [name] if name in LAYER else []


def faults(source, parts):
    unit = unit_of(parts)
    if unit != INIT and unit not in LAYER:
        return [f"{unit} has no layer: add it to the table"]
    found = []
    for line, target in imported_units(ast.parse(source), parts):
        if target == unit:
            continue
        if unit == INIT:
            allowed = target == "_checks"
        elif target == INIT:
            allowed = unit == "cli"
        elif target not in LAYER:
            allowed = False
        else:
            below = LAYER[target] < LAYER[unit]
            allowed = below or (unit, target) in SIDEWAYS
        if not allowed:
            found.append(f"line {line}: {unit} must not import {target}")
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_downward(path):
    assert not faults(path.read_text(), path.relative_to(PACKAGE).parts)


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("grid/_a.py", "from ..runtime import mesh"),
        ("grid/_a.py", "from .. import em"),
        ("grid/deep/_a.py", "from ...em import simulate"),
        ("em/_a.py", "from physax.xpcs import fit"),
        ("em/_a.py", "import physax.particles._track"),
        ("em/_a.py", "def f():\n    from ..plot import field"),
        ("em/_a.py", "from physax import em, plot"),
        ("em/_a.py", "import physax"),
        ("io/_a.py", "from ..plot import field"),
        ("units.py", "from ._checks import check"),
        ("_checks.py", "from .grid import Grid"),
        ("__init__.py", "from .em import simulate"),
        ("helpers/_a.py", ""),
    ],
)
def test_an_import_upward_or_sideways_is_found(place, source):
    assert len(faults(source, Path(place).parts)) == 1


@pytest.mark.parametrize(
    ("place", "source"),
    [
        (
            "em/_a.py",
            "from ._b import c\nfrom ..grid import Grid\nfrom .. import units",
        ),
        ("em/__init__.py", "from ._a import b as b"),
        ("em/deep/_a.py", "from .._b import c\nfrom ...grid._grid import Grid"),
        ("cli/_a.py", "import physax\nfrom ..em import simulate\nimport numpy"),
        ("__init__.py", "from ._checks import PhysaxError"),
        ("_loop.py", "from ._checks import check"),
    ],
)
def test_an_import_downward_is_allowed(place, source):
    assert not faults(source, Path(place).parts)
