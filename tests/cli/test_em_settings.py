"""Settings of `physax em`: what they build, and what is refused."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.cli import ExitCode, main
from physax.cli._em_build import build
from physax.cli._em_config import TEMPLATE
from physax.cli._em_settings import read_settings
from physax.design import Contours, SolidPart
from physax.io import PhysaxFileError, save_stl
from physax.units import MICRO

from .scenes import FLAT, LAMP, TEXT, settings


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lump: {type: Dipole, component: Ez, position: [0]}", "one of ['lump']"),
        ("lamp: {type: PlaneWave, direction: +x, component: Ez, centre: [0], "
         "size_um: [0.4]}", "which has none"),
    ],
)  # fmt: skip
def test_an_emission_of_no_dipole_is_refused(tmp_path, source, message):
    given = "lamp: {type: Dipole, component: Ez, position_um: [0.1]}"
    path = settings(tmp_path, LAMP.replace(given, source))
    text = f"name of a `Dipole` in `sources`, {message}, but is 'lamp'"
    with pytest.raises(PhysaxFileError, match=f"line 9: .*{re.escape(text)}"):
        build(*read_settings(path))


@pytest.mark.slow
def test_the_file_of_the_page_is_valid(tmp_path, capsys):
    page = Path(__file__).parents[2] / "docs" / "em-cli.md"
    text, _ = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    assert main(["em", "config", "--check", settings(tmp_path, text)]) == ExitCode.DONE
    assert "valid settings" in capsys.readouterr().out


def test_the_template_is_valid_and_runs_dry(tmp_path, capsys):
    path = tmp_path / "t.yaml"
    assert main(["em", "config"]) == ExitCode.DONE
    assert capsys.readouterr().out == TEMPLATE
    assert main(["em", "config", "-o", str(path)]) == ExitCode.DONE
    # Settings that someone may have changed are not written over.
    assert main(["em", "config", "-o", str(path)]) == ExitCode.REFUSED
    assert "must be a new file, but" in capsys.readouterr().err
    assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE
    assert "valid settings" in capsys.readouterr().out
    line = ["em", "run", str(path), "--output-dir", str(tmp_path / "out"), "--dry-run"]
    assert main(line) == ExitCode.DONE
    assert "124 x 74 cells" in capsys.readouterr().out
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["simulation.png"]


SHAPES = {
    "{type: Ellipsoid, centre_um: [0.1], radii_um: [0.3, 0.2, 0.1]}": lambda: (
        em.Ellipsoid(0.1 * MICRO, (0.3 * MICRO, 0.2 * MICRO, 0.1 * MICRO))
    ),
    "{type: Cone, centre: 0, radii_um: [0.3, 0], length_um: 1, axis: x}": lambda: (
        em.Cone(0.0, (0.3 * MICRO, 0.0), MICRO, "x")
    ),
    "{type: Ring, centre: 0, radius_um: 0.4, width_um: 0.1}": lambda: (
        em.Ring(0.0, 0.4 * MICRO, 0.1 * MICRO)
    ),
    "{type: Prism, vertices_um: [[0, 0], [1, 0], [0, 1]], low: 0, high_um: 0.2, "
    "sidewall_degrees: 8}": lambda: em.Prism(
        np.array([(0, 0), (1, 0), (0, 1)]) * MICRO,
        0.0,
        0.2 * MICRO,
        sidewall=np.radians(8),
    ),
    "{type: Path, points_um: [[-1, 0], [0, 0], [1, 1]], width_um: 0.2, low_um: -0.1, "
    "high_um: 0.1}": lambda: em.Path(
        np.array([(-1, 0), (0, 0), (1, 1)]) * MICRO,
        0.2 * MICRO,
        low=-0.1 * MICRO,
        high=0.1 * MICRO,
    ),
    "{type: Taper, start: [0, 0], stop_um: [1, 0], widths_um: [0.2, 0.4], axis: x}": (
        lambda: em.Taper(
            (0, 0), (MICRO, 0), (0.2 * MICRO, 0.4 * MICRO), axis="x"
        )
    ),
    "{type: Bend, centre: [0, 0], radius_um: 1, width_um: 0.2, start: 0, "
    "stop_degrees: 90, segments: 8}": lambda: em.Bend(
        (0, 0), MICRO, 0.2 * MICRO, 0, np.pi / 2, segments=8
    ),
    "{type: Bezier, points_um: [[0, 0], [1, 0], [1, 1]], width_um: 0.2}": lambda: (
        em.Bezier(np.array([(0, 0), (1, 0), (1, 1)]) * MICRO, 0.2 * MICRO)
    ),
    "{type: Spline, points_um: [[0, 0], [1, 0], [1, 1]], width_um: 0.2}": lambda: (
        em.Spline(np.array([(0, 0), (1, 0), (1, 1)]) * MICRO, 0.2 * MICRO)
    ),
}  # fmt: skip


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("text", SHAPES, ids=lambda text: text.split(",")[0][7:])
def test_shapes_are_those_of_python(tmp_path, text):
    box = "{type: Box, centre_um: [0.2], size_um: [0.25]}"
    read, _ = read_settings(settings(tmp_path, TEXT.replace(box, text)))
    found, expected = read.structures[0].shape, SHAPES[text]()
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=0)


def test_pec_is_perfect_metal(tmp_path):
    text = TEXT.replace("{permittivity: 4}", "PEC")
    text = text.replace("run:", "background: {permittivity: 2}\nrun:")
    text = text.replace("size_um: [1.2]}", "size_um: [1.2], permittivity: 2}")
    sim = build(*read_settings(settings(tmp_path, text)))
    assert sim.medium.metal is not None
    assert float(sim.medium.permittivity) == 2
    # The nodes in a plate of 0.25 um in cells of 25 nm.
    assert int(jnp.sum(sim.medium.metal.open["Ez"] == 0)) in (10, 11)


def test_strips_have_no_other_keys(tmp_path):
    box = "{type: Box, centre_um: [0.2], size_um: [0.25]}"
    path = "{type: Path, points_um: [[0, 0], [1, 0]], width_um: 1, hight: 1}"
    message = "unknown key `hight`; known are points, width, axis, low, high.*`high`"
    with pytest.raises(PhysaxFileError, match=message):
        read_settings(settings(tmp_path, TEXT.replace(box, path)))


def test_solids_and_layouts_come_from_files(tmp_path):
    gdstk = pytest.importorskip("gdstk")
    pytest.importorskip("trimesh")
    square = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * 0.3 * MICRO
    solid, layout = tmp_path / "block.stl", tmp_path / "chip.gds"
    part = Contours([SolidPart(square)])
    save_stl(str(solid), [(part, 0.0, 0.2 * MICRO)])
    library = gdstk.Library(unit=1e-6, precision=1e-9)
    library.new_cell("CHIP").add(gdstk.rectangle((0, 0), (2, 1), layer=3))
    library.write_gds(layout)
    text = f"""
size_um: [1, 1, 1]
wavelengths_um: [1.0]
sources: {{}}
structures:
  - {{shape: {{type: STL, path: {solid}, unit_um: 1}}, material: {{permittivity: 4}}}}
  - {{shape: {{type: GDS, path: {layout}, layer: [3, 0], low: 0, high_um: 0.22,
     centre_um: [1, 0.5]}}, material: {{permittivity: 4}}}}
  - {{shape: {{type: GDS, path: {layout}, layer: [3, 0], low: 0, high_um: 0.22,
     sidewall_degrees: -45}}, material: {{permittivity: 4}}}}
"""
    mesh, chip, etched = (
        one.shape for one in read_settings(settings(tmp_path, text))[0].structures
    )
    low, high = mesh.bounds()
    assert np.allclose(high - low, [0.6 * MICRO, 0.6 * MICRO, 0.2 * MICRO], atol=0)
    low, high = chip.bounds()
    assert np.allclose(low, [-MICRO, -0.5 * MICRO, 0], atol=1e-6 * MICRO)
    assert np.allclose(high, [MICRO, 0.5 * MICRO, 0.22 * MICRO], atol=0)
    low, high = etched.bounds()
    wanted = np.array([2.44, 1.44, 0.22]) * MICRO
    assert np.allclose(high - low, wanted, rtol=1e-5, atol=0)
    gone = settings(tmp_path, text.replace("layer: [3", "layer: [4"))
    with pytest.raises(PhysaxFileError, match="line 7: .*has no polygon on layer"):
        read_settings(gone)
    layout.unlink()
    with pytest.raises(PhysaxFileError, match=r"line 7: .*is no file '/.*chip\.gds'"):
        read_settings(settings(tmp_path, text))
    solid.write_bytes(b"solid")
    with pytest.raises(PhysaxFileError, match=r"line 6: .*block\.stl: "):
        read_settings(settings(tmp_path, text))


@pytest.mark.slow
def test_cells_are_averaged_as_asked(tmp_path):
    text = FLAT.replace("polarisation: Ez", "polarisation: Hz")
    text = text[: text.index("  - {shape: {type: Sphere")].replace("Au", "SiO2")
    text += "sources: {}\naveraging: polarised\n"
    sharp = build(*read_settings(settings(tmp_path, text)))
    assert sharp.medium.off_diagonals
    text = text.replace("averaging: polarised", "averaging: volume")
    assert not build(*read_settings(settings(tmp_path, text))).medium.off_diagonals


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("structures:", "structurs:", "line 5: .*unknown key `structurs`.*Did you mean "
         "`structures`"),
        ("type: Box", "type: CPML", "must be one of Box, .* is 'CPML'"),
        ("type: FluxMonitor", "type: Path", "must be one of FieldMonitor, .*"
         " EnergyMonitor, but"),
        ("run:", "averaging: mean\nrun:", "must be one of 'volume', "
         "'polarised', 'staircase', but is"),
        ("type: Box", "type: Bix", "must be one of Box, Cylinder, .*, STL, GDS, but "
         "is 'Bix'. Did you mean `Box`"),
        ("centre_um: [0.2]", "centre_ul: [0.2]", "With a unit it is `centre_nm` or"),
        ("material: {permittivity: 4}", "material: SiO3", "`material` must be a name.* "
         "but is 'SiO3'. Did you mean .*'SiO2'"),
        ("material: {permittivity: 4}", "material: Si", r"`wavelengths` must lie "
         r"between .* for 'Si'"),
        ("permittivity: 4", "permittivity: -4", r"`permittivity` must be positive and "
         r"finite, but is -4\. Metals have poles, as `Drude`"),
        ("permittivity: 4", "poles: [[], [{type: Drud, frequency_THz: 9}], []]",
         r"`structures\[.\].material.poles\[1\]\[0\].type` must be one of .*Drude"),
        ("permittivity: 4", "poles: [[], []]", "poles` must have 3 entries, but has 2"),
        ("permittivity: 4", "permittivity: 4, valid: [2, 0.9]", r"line 6: .*`valid` "
         r"must be the shortest and then the longest .* but is \(2.0, 0.9\)"),
        ("spacing_nm: 25", "spacing: .inf", "line 4: .*`spacing` must be positive and "
         "finite, but is inf"),
        ("run:", "output: {animation: gif}\nrun:", "line 17: .*`animation` must be "
         "left out without a `TimeMonitor` on an area in `monitors`, but is 'gif'"),
        ("run:", "output: {animation: gif, figures: false}\nrun:", "line 17: .*must be "
         "left out without `figures`, but is 'gif'. Write `figures: true`"),
        ("  energy:", "  2nd:", "line 16: .*begin with no digit, .* one is '2nd'"),
        ("  energy:", f"  {'e' * 101}:", "line 16: .*at most 100 bytes.* is 'eee"),
        ("size_um: [0.25]", "size_um: [inf]", r"line 6: .*must be a number, but is the "
         r"text 'inf'\. Write \.inf, with a dot"),
        ("type: FluxMonitor, axis: x", "type: FluxMonitor, axes: x", "line 10: .*"
         "unknown key `axes`.*Did you mean `axis`"),
        ("centre_um: [-0.7]", "centre_um: [-9]", "monitor 'back' must lie in the grid"),
        ("direction: +x", "direction: +q", "`direction` must be one of"),
        ("time_fs: 160", "time_fs: 160, steps: 4", "`time` and `steps` must not both"),
        ("time_fs: 160", "time_fs: -1", "`time` must be positive, but is -1e-15 s"),
        ("time_fs: 160", "decay: 2", r"`decay` must lie in \(0, 1\), but is 2"),
        ("wavelengths_um: [0.95, 1.0, 1.05]", "wavelengths_um: []", "at least one "
         "positive number"),
        ("  energy:", "  a/b:", "line 16: .*must be of letters.* one is 'a/b'"),
        ("size_um: [1.6]", "size_um: [1.6, 1.0]", "`polarisation` must be"),
        ("run:", "boundaries: {y: {type: PEC}}\nrun:", "`boundaries.y` must be left "
         "out: `size` has 1 entry"),
        ("run:", "boundaries: {x: [{type: PEC}]}\nrun:", "`boundaries.x` must be one "
         "face or a list of two, but has 1"),
        ("run:", "boundaries: {x: {type: PML, cells: 9}}\nrun:", "Did you mean `CPML`"),
        ("run:", "output: {results: a.csv}\nrun:", "ends in .npz or .h5"),
    ],
)  # fmt: skip
def test_faulty_settings_are_refused(tmp_path, capsys, old, new, message):
    assert old in TEXT
    out = tmp_path / "out"
    path = settings(tmp_path, TEXT.replace(old, new))
    assert main(["em", "run", path, "--output-dir", str(out)]) == ExitCode.REFUSED
    assert re.search(message, capsys.readouterr().err.replace("\n", " "))
    assert not out.exists()
