"""Faulty files of `physax em`: refused with their line before anything is made."""

import dataclasses
import json
import re
import signal
import typing
import warnings
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import pytest
from matplotlib.animation import FFMpegWriter

from physax import PhysaxWarning, em
from physax.cli import ExitCode, _em, _em_run, main
from physax.cli._em_settings import DIMENSIONS, REGISTRY, Settings
from physax.cli._session import double_precision
from physax.io._construct import _is_array, _parameters
from physax.runtime import CheckpointWarning


TEXT = """\
size_um: [1.6, 1.2]
wavelengths_um: [0.95, 1.05]
spacing_nm: 50
polarisation: Ez
structures:
  - shape: {type: Cylinder, centre_um: [0.2, 0], radius_um: 0.1}
    material: SiO2
boundaries:
  x: {type: CPML, cells: 8}
  y: {type: CPML, cells: 8}
sources:
  lamp: {type: Dipole, component: Ez, position_um: [-0.5, 0]}
monitors:
  back: {type: FluxMonitor, axis: x, centre_um: [0.6, 0], size_um: [0, 0.4]}
  film: {type: TimeMonitor, components: [Ez], centre_um: [0.5, 0], size_um: [0, 0],
         every: 4}
run: {time_fs: 10, decay: 1.0e-5}
output: {figures: false}
"""


def refused(tmp_path, capsys, old, new, code=ExitCode.REFUSED):
    """What is said of a file with a fault; nothing may have been made."""
    assert old in TEXT
    path, out = tmp_path / "run.yaml", tmp_path / "out"
    path.write_text(TEXT.replace(old, new))
    assert main(["em", "run", str(path), "--output-dir", str(out)]) == code
    assert not out.exists()
    said = capsys.readouterr().err
    assert said.startswith(f"physax: {path}: ")
    return said.removeprefix(f"physax: {path}: ")


@pytest.mark.slow
def test_the_file_without_a_fault_runs_and_says_what_it_was(tmp_path, capsys):
    path, out = tmp_path / "run.yaml", tmp_path / "out"
    path.write_text(TEXT)
    with pytest.warns(PhysaxWarning, match="The fields had not decayed"):
        code = main(["em", "run", str(path), "--output-dir", str(out)])
    assert code == ExitCode.DONE
    summary = json.loads((out / "summary.json").read_text())
    assert summary["first_step"] == 0
    said = capsys.readouterr().out
    assert f"{summary['steps']} steps in" in said


UNITS = {
    "wavelengths_um": ("wavelengths_fs", "line 2: `wavelengths_fs` must not end in "
                       "`_fs`, but is [0.95, 1.05]: `wavelengths` is a length, in "
                       "metres without a unit. With a unit it is `wavelengths_nm` or "
                       "`wavelengths_um` or `wavelengths_mm`."),
    "spacing_nm": ("spacing_THz", "line 3: `spacing_THz` must not end in `_THz`, but "
                   "is 50: `spacing` is a length"),
    "polarisation": ("polarisation_degrees", "line 4: `polarisation_degrees` must not "
                     "end in `_degrees`, but is 'Ez': `polarisation` takes no unit: "
                     "write `polarisation`."),
    "material: ": ("material_um: ", "line 7: `structures[0].material_um` must not end"),
    "cells: 8}\n  y": ("cells_nm: 8}\n  y", "line 9: `boundaries.x.cells_nm` must not"),
    "every": ("every_um", "line 16: `monitors.film.every_um` must not end in `_um`, "
              "but is 4: `every` takes no unit: write `every`."),
    "time_fs": ("time_um", "line 17: `run.time_um` must not end in `_um`, but is 10: "
                "`time` is a time, in seconds without a unit. With a unit it is "
                "`time_fs`."),
    "decay": ("decay_fs", "line 17: `run.decay_fs` must not end in `_fs`"),
    "figures": ("figures_um", "line 18: `output.figures_um` must not end in `_um`"),
    "Cylinder, centre_um: [0.2, 0], radius_um: 0.1": (
        "Bend, centre: [0, 0], radius_um: 1, width_um: 0.2, start_um: 1, stop: 2",
        "line 6: `structures[0].shape.start_um` must not end in `_um`, but is 1: "
        "`start` is an angle, in radians without a unit. With a unit it is "
        "`start_degrees`."),
    "position_um: [-0.5, 0]": (
        "position: [0, 0], pulse: {type: Ricker, frequency_um: 1}",
        "line 12: `sources.lamp.pulse.frequency_um` must not end in `_um`, but is 1: "
        "`frequency` is a frequency, in Hz without a unit. With a unit it is "
        "`frequency_THz`."),
    "spacing_nm: 50": ("spacing: 50 nm", "line 3: `spacing` must be a number, but is "
                       "the text '50 nm'. With a unit it is `spacing_nm` or"),
    "size_um: [1.6, 1.2]": ("size: [1.6 um, 1.2 um]", "line 1: `size[0]` must be a "
                            "number, but is the text '1.6 um'. With a unit it is"),
}  # fmt: skip


@pytest.mark.parametrize("old", UNITS)
def test_each_key_takes_the_units_of_what_it_measures(tmp_path, capsys, old):
    new, message = UNITS[old]
    assert message in refused(tmp_path, capsys, old, new)


@pytest.mark.parametrize("key", ["frequencies", "frequency"])
def test_a_band_of_frequencies_is_one_of_wavelengths(tmp_path, capsys, key):
    for old in ("wavelengths_um", "every"):
        said = refused(tmp_path, capsys, old, key)
        assert f"has the unknown key `{key}`" in said
        assert ("Did you mean `wavelengths`?" in said) == (old != "every")


def test_a_run_that_ends_before_its_pulse_is_warned_of_by_the_check(tmp_path):
    path = tmp_path / "run.yaml"
    message = "ends after 1e-14 s, before the middle .* 'lamp' .* of .'back'. lack"
    path.write_text(TEXT)
    with pytest.warns(PhysaxWarning, match=message):
        assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE
    # The pulse, of 30 THz, has its middle at 6 / (2 pi 30 THz) = 32 fs.
    path.write_text(TEXT.replace("time_fs: 10", "time_fs: 33"))
    assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE


def test_coarse_cells_are_named_before_what_they_reach_into(tmp_path, capsys):
    lamp = "Dipole, component: Ez, position_um: [-0.5, 0]"
    wave = "PlaneWave, direction: +x, component: Ez, centre_um: [-0.2, 0], size_um: "
    text = TEXT.replace(lamp, f"{wave}[0.2, .inf]").replace(
        "y: {type: CPML, cells: 8}", "y: {type: Periodic}"
    )
    path = tmp_path / "run.yaml"
    path.write_text(text.replace("spacing_nm: 50", "spacing_nm: 400"))
    assert main(["em", "config", "--check", str(path)]) == ExitCode.REFUSED
    assert "at least 4 cells per wavelength" in capsys.readouterr().err


def test_a_run_that_would_record_nothing_is_warned_of(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(re.sub(r"monitors:\n(  .*\n)*", "", TEXT))
    with pytest.warns(
        PhysaxWarning, match="no `monitors`: the run will record nothing"
    ):
        assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE


# Numbers, factors, and what has SI units that no ending stands for.
PURE = {
    *("moment", "amplitude", "power", "strength", "rise", "mode", "every", "decay"),
    *("permittivity", "permeability", "conductivity", "magnetic_conductivity"),
    *(
        "chi2",
        "chi3",
        "sigma3",
        "cells",
        "order",
        "reflection",
        "kappa_max",
        "alpha_max",
    ),
    *("wavevector", "segments", "outlines", "parts", "max_triangles", "layer"),
    *("steps", "checkpoint_every"),
}


def holds_numbers(hint):
    return (
        hint in (int, float)
        or _is_array(hint)
        or any(map(holds_numbers, typing.get_args(hint)))
    )


def test_every_number_of_the_file_has_one_dimension_or_none():
    fields = dataclasses.fields(Settings)
    inner = (field.type for field in fields if dataclasses.is_dataclass(field.type))
    seen = set()
    for made in (*REGISTRY.values(), Settings, em.Port, em.Material, *inner):
        for name, parameter in _parameters(made).items():
            if not holds_numbers(parameter.annotation):
                continue
            names = {name, f"{getattr(made, '__name__', made)}.{name}"}
            fitting = [one for one in DIMENSIONS if names & {*one.keys}]
            assert len(fitting) == (0 if name in PURE else 1), (made, name)
            seen |= names
    assert seen >= PURE
    assert {key for one in DIMENSIONS for key in one.keys} <= seen


SCALES = {
    "size": ("size_um: [1.6, 1.2]", "size: [1.6, 1.2]", r"line 1: .*`size` must make "
             r"the scene 0.001 to 100000 wavelengths long, but it is 1.68e\+06: 1.6 m "
             r"at a wavelength of 9.5e-07 m\..*write `size_um`"),
    "wavelengths": ("wavelengths_um", "wavelengths", "line 2: .*`wavelengths` must "
                    "make the scene .* but it is 1.52e-06: 1.6e-06 m at a wavelength"),
    "spacing": ("spacing_nm: 50", "spacing: 50", "line 3: .*`spacing` must be at most "
                "twice the shortest length of the scene, 1.2e-06 m, but is 50 m"),
    "monitor": ("axis: x,", "axis: x, wavelengths: [1],", "line 14: `monitors.back` is "
                "refused: `wavelengths` must make .* at a wavelength of 1 m"),
    "pulse": ("Ez, pos", "Ez, pulse: {type: Ricker, frequency: 300}, pos", "line 12: "
              "`sources.lamp.pulse` is refused: `frequency` must make the scene .*"
              r"1.6e-06 m at a wavelength of 9.99e\+05 m"),
    "metal": ("material: SiO2", "material: {poles: [{type: Drude, frequency: 2000}]}",
              r"line 7: `structures\[0\].material.poles\[0\]` is refused: `frequency` "
              "must make the scene 1e-09 to 1e.08 wavelengths .*`frequency_THz`"),
    "crystal": ("material: SiO2", "material: {poles: [[], [{type: Drude, frequency: "
                r"2000}], []]}", r"line 7: `structures\[0\].material.poles\[1\]\[0\]` "
                "is refused: `frequency` must make"),
    "water": ("structures:", "background: {poles: [{type: Debye, strength: 1, time: "
              "9}]}\nstructures:", r"line 5: `background.poles\[0\]` is refused: "
              r"`time` must make .* at a wavelength of 1.7e\+10 m.*`time_fs`"),
    "time": ("time_fs: 10,", "time: 10,", "line 17: `run` is refused: `time` and "
             "`steps` must make at most 1073741823 steps of 1.17e-16 s, but make 8.*"
             "write `time_fs`"),
    "endless": ("time_fs: 10,", "time: 1.0e+300,", "line 17: .*at most 1073741823 "),
    "shape": ("centre_um: [0.2, 0], radius", "centre: [0.2, 0], radius", "line 6: .*"
              r"`structures\[0\].shape` is refused: `shape` must have a part in the "
              r"scene of 1.6e-06 x 1.2e-06 m, but lies at 0.2 to 0.2, .*`centre_um`"),
    "steps": ("time_fs: 10,", "steps: 3000000000,", "line 17: .*at most 1073741823 "
              "steps.* but make 3000000000"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALES)
def test_numbers_of_another_scale_than_light_are_refused(tmp_path, capsys, name):
    old, new, message = SCALES[name]
    assert re.match(message, refused(tmp_path, capsys, old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("spacing_nm: 50", "spacing_nm: 0.0001", "line 3: It is refused: `spacing` "
         "makes 16000016 x 12000016 cells of 1e-13 m"),
        ("size_um: [1.6, 1.2]\nwavelengths_um: [0.95, 1.05]\nspacing_nm: 50",
         "wavelengths_um: [0.95, 1.05]\nsize_mm: [90, 90]", "line 2: It is refused: "
         "`size` makes 27"),
        ("cells: 8}\n  y", "cells: 1000000000000}\n  y", "line 3: It is refused: "
         "`spacing` makes 2000000000032 x 40 cells"),
    ],
)  # fmt: skip
def test_a_scene_beyond_the_memory_is_refused_before_it_is_made(
    tmp_path, capsys, monkeypatch, old, new, message
):
    monkeypatch.setattr(em, "scene", None)
    said = refused(tmp_path, capsys, old, new, ExitCode.RESOURCES)
    assert said.startswith(message)
    assert "must fit into the memory" in said


LINES = {
    "size": ("size_um: [1.6, 1.2]", "size_um: [0, 1]", "line 1: .*`size` must be"),
    "no axes": ("size_um: [1.6, 1.2]", "size_um: []", "line 1: .*1 to 3 entries"),
    "spacing": ("spacing_nm: 50", "spacing_nm: -1", "line 3: .*`spacing` must be"),
    "centre": ("spacing_nm", "centre_um: [0, .inf]\nspacing_nm", "line 3: .*`centre` "
               "must be finite"),
    "axes of the centre": ("spacing_nm", "centre_um: [0]\nspacing_nm", "line 3: .*"
                           "`centre` of the scene must have one entry"),
    "axes": ("[1.6, 1.2]", "[1, 1, 1]", "line 9: `boundaries` is refused: .* lack z"),
    "no polarisation": ("polarisation: Ez\n", "", "`polarisation` must be 'Ez' or"),
    "null": ("polarisation: Ez", "polarisation: ", "line 4: .*`polarisation` must be"),
    "background": ("boundaries:", "background: Glas\nboundaries:", "line 8: .*"
                   "`background` must be a name"),
    "range": ("material: SiO2", "material: Si", r"line 7: `structures\[0\].material` "
              "is refused: `wavelengths` must lie between"),
    "boundaries": ("  y: {type: CPML, cells: 8}\n", "", "line 9: `boundaries` is "
                   "refused: .* but lack y"),
    "one face": ("y: {type: CPML, cells: 8}", "y: [{type: PMC}]", "line 10: .*"
                 "`boundaries.y` must be one face or a list of two"),
    "half a period": ("y: {type: CPML, cells: 8}", "y: [{type: PMC}, {type: Periodic}]",
                      "line 10: `boundaries` is refused: `y` must be periodic"),
    "whole boundaries": ("boundaries:\n", "boundaries:\n  type: CPML\n", "line 9: "
                         "`boundaries` has the unknown key `type`; known are x, y, z"),
    "source outside": ("[-0.5, 0]", "[-50, 0]", "line 12: `sources.lamp` is refused: "
                       "source 'lamp' must lie in the grid"),
    "component": ("component: Ez, pos", "component: Ex, pos", "line 12: `sources.lamp` "
                  "is refused: `component` of source"),
    "made": ("type: Dipole, component: Ez, position_um: [-0.5, 0]",
             "type: PlaneWave,\n    direction: +q, component: Ez, centre: [0, 0], "
             "size: [0, 0]", "line 13: `sources.lamp` is refused: `direction` must be"),
    "quoted": ("type: Dipole, component: Ez, position_um: [-0.5, 0]", "type: PlaneWave,"
               " direction: +x, component: Ez, centre: [0, 0], size_um: [0.3, 0.1]",
               "line 12: .*`poles` of the plane wave 'lamp' must be those of"),
    "monitor outside": ("[0.6, 0]", "[60, 0]", "line 14: `monitors.back` is refused: "
                        "monitor 'back' must lie in the grid"),
    "axis": ("axis: x", "axis: z", "line 14: `monitors.back` is refused: `axis` of"),
    "force": ("back: {type: FluxMonitor, axis: x, centre_um: [0.6, 0], size_um: "
              "[0, 0.4]}", "back: {type: ForceMonitor, centre_um: [0.2, 0], size_um: "
              "[0.2, 0.2]}", "line 14: `monitors.back` is refused: The material within "
              "three cells of all faces of monitor 'back' must be the same"),
    "every": ("every: 4", "every: 0", "line 16: `monitors.film` is refused: `every`"),
    "energy": ("back: {type: FluxMonitor, axis: x, centre_um: [0.6, 0], size_um: "
               "[0, 0.4]}", "back: {type: EnergyMonitor}", "line 14: `monitors.back` "
               "is refused: Monitor 'back' must not record energy in a medium with p"),
    "name of a picture": ("film", "simulation", "line 15: .*not be `simulation`, as "
                          "files are named after them"),
    "name of another picture": ("back: {", "all: {type: FieldMonitor, components: [Ez],"
                                " centre_um: [0, 0], size_um: [0.2, 0.2]}\n  all_Ez: {",
                                "line 15: .*'all_Ez' must have another name: the pict"
                                "ure of Ez of monitor 'all'"),
    "name in another case": ("back: {", "Film: {type: EnergyMonitor}\n  back: {",
                             "line 14: `monitors.Film` is refused: Monitor 'Film' must "
                             "have a name that differs from 'film' in more than case"),
    "picture in another case": ("back: {", "all: {type: FieldMonitor, components: [Ez],"
                                " centre_um: [0, 0], size_um: [0.2, 0.2]}\n  ALL_EZ: {",
                                "line 15: .*'ALL_EZ' must have another name: the pict"
                                "ure of Ez of monitor 'all'"),
    "infinite time": ("time_fs: 10", "time_fs: .inf", "line 17: .*`time` must be finite"
                      ", but is inf s. Leave it out"),
    "hidden results": ("figures: false", "results: .npz", "line 18: .*`results` must"),
    "no light": ("sources:\n  lamp: {type: Dipole, component: Ez, position_um: "
                 "[-0.5, 0]}", "sources: {}", "line 11: .*`sources` must have at least "
                 "one entry"),
}  # fmt: skip


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("name", LINES)
def test_faults_of_the_whole_name_the_line_that_they_are_about(tmp_path, capsys, name):
    old, new, message = LINES[name]
    assert re.match(message, refused(tmp_path, capsys, old, new))


def test_moving_pictures_that_cannot_be_written_are_refused_first(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    message = "line 18: `output` is refused: `animation` must be gif, but is mp4"
    said = refused(tmp_path, capsys, "figures: false", "animation: mp4")
    assert said.startswith(message)


# A mode that is cut off.
GUIDE = (
    "type: Dipole, component: Ez, position_um: [-0.5, 0]",
    "type: ModeSource, port: "
    "{centre_um: [0.2, 0], width_um: 0.8, direction: +x, mode: 9}",
)


def test_a_mode_that_cannot_be_solved_is_refused_before_the_folder_is_made(
    tmp_path, capsys
):
    said = refused(tmp_path, capsys, *GUIDE)
    assert "the effective index of mode 9 is" in said


@pytest.mark.filterwarnings("ignore:The run ends after")
def test_a_check_is_made_in_the_precision_of_the_file(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        _em_run, "check_run", lambda sim, until: found.append((sim.dt.dtype, until))
    )
    path = tmp_path / "run.yaml"
    path.write_text(f"{TEXT}precision: float64\n")
    assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE
    assert found == [("float64", em.Decay(1e-5))]


@pytest.mark.filterwarnings("ignore:The run ends after")
def test_a_file_of_float32_is_run_in_it_where_float64_is_on(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        _em_run, "check_run", lambda sim, until: found.append(sim.dt.dtype)
    )
    path = tmp_path / "run.yaml"
    path.write_text(f"{TEXT}precision: float32\n")
    with double_precision():
        assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE
        assert jnp.result_type(float) == "float64"
    assert found == ["float32"]


def test_layers_that_dwarf_the_scene_are_refused_as_a_mistaken_unit(tmp_path, capsys):
    layers = TEXT[TEXT.index("boundaries:") : TEXT.index("sources:")]
    text = TEXT.replace("material: SiO2", "material: {permittivity: 2}")
    path = tmp_path / "run.yaml"
    path.write_text(text.replace(layers, "").replace("[0.95, 1.05]", "[950]"))
    assert main(["em", "config", "--check", str(path)]) == ExitCode.REFUSED
    said = capsys.readouterr().err
    assert "line 2: It is refused: `wavelengths` must be at most 0.00048 m" in said
    assert "but one is 0.00095 m. Is its unit right?" in said


def test_a_check_refuses_what_a_run_refuses(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(FFMpegWriter, "isAvailable", lambda: False)
    path = tmp_path / "run.yaml"
    moving = ("figures: false", "animation: mp4")
    for old, new in (LINES["no light"][:2], moving, GUIDE):
        wanted = refused(tmp_path, capsys, old, new)
        assert main(["em", "config", "--check", str(path)]) == ExitCode.REFUSED
        assert capsys.readouterr().err == f"physax: {path}: {wanted}"


def test_a_dry_run_needs_no_light(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(TEXT[: TEXT.index("sources:")] + "sources: {}\n")
    line = ["em", "run", str(path), "--output-dir", str(tmp_path / "out"), "--dry-run"]
    assert main([*line, "-q"]) == ExitCode.DONE


def test_warnings_are_sentences(monkeypatch):
    shown = warnings.formatwarning
    seen = []

    def warned(options):
        for kind in (PhysaxWarning, CheckpointWarning, UserWarning):
            seen.append(warnings.formatwarning("Beware.", kind, "a.py", 1))
        return ExitCode.DONE

    monkeypatch.setattr(_em, "_config", warned)
    assert main(["em", "config"]) == ExitCode.DONE
    sentence = "physax: warning: Beware.\n"
    assert seen == [sentence, sentence, "a.py:1: UserWarning: Beware.\n"]
    assert warnings.formatwarning is shown


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_another_file_leaves_the_folder_of_an_unfinished_run_alone(
    tmp_path, capsys, monkeypatch
):
    path, out = tmp_path / "run.yaml", tmp_path / "out"
    text = TEXT.replace("time_fs: 10", "steps: 800").replace(", decay: 1.0e-5", "")
    path.write_text(text.replace("figures: false", "figures: true"))
    line = ["em", "run", str(path), "--output-dir", str(out)]
    stop = partial(em.run, on_chunk=lambda *_: signal.raise_signal(signal.SIGINT))
    with monkeypatch.context() as patch:
        patch.setattr(em, "run", stop)
        assert main(line) == ExitCode.CHECKPOINTED
    before = (out / "simulation.png").read_bytes()
    good = path.read_text()
    path.write_text(good.replace("centre_um: [0.2, 0]", "centre_um: [-0.2, 0]"))
    assert main(line) == ExitCode.REFUSED
    assert "must belong to this problem" in capsys.readouterr().err
    assert (out / "simulation.png").read_bytes() == before
    path.write_text(good)
    assert main(line) == ExitCode.DONE
    summary = json.loads((out / "summary.json").read_text())
    assert 0 < summary["first_step"] < summary["steps"] == 800
    told = f"800 steps, {summary['first_step']} of them before, in"
    assert told in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:The run ends after")
def test_a_disc_may_be_called_a_circle(tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(_em_run, "check_run", lambda sim, until: found.append(sim))
    path = tmp_path / "run.yaml"
    for kind in ("Cylinder", "Circle"):
        path.write_text(TEXT.replace("type: Cylinder", f"type: {kind}"))
        assert main(["em", "config", "--check", str(path)]) == ExitCode.DONE
    assert eqx.tree_equal(*found)
