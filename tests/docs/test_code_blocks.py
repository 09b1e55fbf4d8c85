"""The Python blocks of the documentation run, each page as one script.

A page is simulated at the size it shows, so pages show small things.
"""

import re
import runpy
from pathlib import Path

import jax
import matplotlib
import pytest


ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

QUICK = ["README.md", "docs/absorbers.md", "docs/particles.md", "docs/xpcs-data.md"]
SLOW = [
    "docs/clusters.md",
    "docs/coming-from-beamz.md",
    "docs/coming-from-fdtdx-ceviche.md",
    "docs/coming-from-meep.md",
    "docs/coming-from-tidy3d.md",
    "docs/cylindrical.md",
    "docs/far-fields.md",
    "docs/fdtd.md",
    "docs/fit.md",
    "docs/geometry.md",
    "docs/getting-started.md",
    "docs/gradients.md",
    "docs/graph.md",
    "docs/inverse-design.md",
    "docs/materials.md",
    "docs/modes.md",
    "docs/resonances.md",
    "docs/studies.md",
    "docs/xpcs.md",
]
# These are run in processes of their own by the `test_page.py` of `tests/plot` and of
# `tests/runtime`, which look at what they draw and print, too.
ELSEWHERE = ["docs/pictures-and-files.md", "docs/runtime.md"]
# These need eight devices.
MANY = ["docs/devices.md"]
# The last block of this page is a sketch, with names that it does not define.
SKETCHES = ["docs/grid.md"]


def blocks(page):
    """Yields code and first line of each Python block."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield found[1], text.count("\n", 0, found.start(1))


def write_layout(folder):
    """Writes the file that the page on geometry reads."""
    gdstk = pytest.importorskip("gdstk")
    library = gdstk.Library()
    library.new_cell("DEVICE").add(gdstk.rectangle((-1, -0.2), (1, 0.2), layer=1))
    library.write_gds(folder / "device.gds")


@pytest.fixture
def precision():
    """Puts back the precision that a page may switch on."""
    before = jax.config.read("jax_enable_x64")
    yield
    jax.config.update("jax_enable_x64", before)


# One precision is enough to see that a page is right.
@pytest.mark.f32
@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW),
        *(
            pytest.param(name, marks=[pytest.mark.devices, pytest.mark.slow])
            for name in MANY
        ),
    ],
)
@pytest.mark.usefixtures("precision")
def test_page_runs_as_a_script(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHYSAX_PROGRESS", "0")
    matplotlib.use("Agg", force=True)
    if name == "docs/geometry.md":
        write_layout(tmp_path)
    # Empty lines between the blocks make tracebacks name the lines of the page.
    script = ""
    for code, line in blocks(ROOT / name):
        script += "\n" * (line - script.count("\n")) + code
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"), run_name="page")


@pytest.mark.f32
def test_every_page_with_python_is_run():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = {str(page.relative_to(ROOT)) for page in pages if any(blocks(page))}
    assert found == {*QUICK, *SLOW, *MANY, *SKETCHES, *ELSEWHERE}


@pytest.mark.f32
def test_examples_of_the_first_page_stay_short():
    lengths = [
        sum(bool(line.strip()) for line in code.splitlines())
        for code, _ in blocks(ROOT / "README.md")
    ]
    assert len(lengths) == 3
    assert max(lengths) <= 15
