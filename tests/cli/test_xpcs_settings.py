import re

import pytest

from physax.cli import ExitCode, _xpcs, main
from physax.cli._xpcs_config import template
from physax.cli._xpcs_settings import numbers, read_settings
from physax.xpcs import MODES, Fourier


def check(path, capsys):
    code = main(["xpcs", "config", "--check", str(path)])
    out = capsys.readouterr()
    return code, out.out + out.err


@pytest.mark.parametrize("mode", MODES)
def test_a_template_is_accepted_word_for_word(mode, tmp_path, capsys):
    path = tmp_path / "fit.yaml"
    assert main(["xpcs", "config", "--mode", mode, "-o", str(path)]) == ExitCode.DONE
    assert path.read_text() == template(mode)
    code, text = check(path, capsys)
    assert code == ExitCode.DONE
    assert f"valid settings of the mode {mode}" in text


def test_the_command_line_offers_the_modes_of_the_library():
    assert _xpcs.MODES == MODES


def test_a_template_goes_to_the_screen_without_a_file(capsys):
    assert main(["xpcs", "config", "--mode", "laminar_flow"]) == ExitCode.DONE
    assert capsys.readouterr().out == template("laminar_flow")


def test_modules_and_units_come_from_the_file(tmp_path):
    path = tmp_path / "fit.yaml"
    path.write_text(
        "mode: laminar_flow\nconvention: homodyne\n"
        "scaling: {type: Fourier, order: 1}\n"
        "parameters:\n  phi0: {start_degrees: 90, bounds_degrees: [0, 180]}\n"
    )
    settings = read_settings(str(path))
    assert settings.scaling == Fourier(1)
    assert settings.convention == "homodyne"
    phi0 = numbers(settings)["phi0"]
    assert phi0.start == pytest.approx(3.14159265 / 2)
    assert phi0.bounds == pytest.approx((0, 3.14159265))


LAMINAR = "mode: laminar_flow\nconvention: physical\n"
STATIC = "mode: static_anisotropic\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {}\n", "line 1: It must have the key `mode`"),
        ("mode: shear\n", "line 1: `mode` must be one of static_isotropic.*'shear'"),
        (STATIC + "gap: 2e6\n", "line 2: It has the unknown key `gap`"),
        (
            STATIC + "data:\n  frame: [1, 9]\n",
            "line 3: `data` has the unknown key `frame`.*Did you mean `frames`",
        ),
        (
            STATIC + "parameters:\n  shear_rate: {start: 1}\n",
            "line 3: `parameters` has the unknown key `shear_rate`",
        ),
        (STATIC + "data:\n  q: much\n", "line 3: `data.q` must be a number or null"),
        (
            STATIC + "contrast_bounds: [1, 0]\n",
            r"`contrast_bounds` must be a lower and a higher number, .* \[1, 0\]",
        ),
        (
            STATIC + "scaling: {type: Fourier}\noffset_bounds: [0.5, 1.5]\n",
            "`offset_bounds` must be left out with the scaling `Fourier`, but are 0.5 "
            "and 1.5: .* or take `PerAngle` or `Shared`",
        ),
        (STATIC + "fit:\n  xtol: -1\n", "line 3: .*`xtol` must be at least 0"),
        (
            STATIC + "data:\n  q: -1\n",
            "line 3: `data` is refused: `q` must be positive",
        ),
        (
            STATIC + "data:\n  frames: [9, 1]\n",
            "line 3: .*`frames` must be the first and the last one",
        ),
        (
            STATIC + "data:\n  without: [3, 0]\n",
            "line 3: .*`without` must be numbers of frames, counted from 1, but has 0",
        ),
        (
            STATIC + "parameters:\n  D0:\n    bounds: [0, 9]\n    start: 10\n",
            r"line 5: .*`start` must lie within \[0, 9\], but is 10",
        ),
        (
            STATIC + "parameters:\n  D0: {bounds: [9, 0]}\n",
            "line 3: .*`bounds` must be a lower and a higher number",
        ),
        (
            STATIC + "parameters:\n  D0: {fixed: true}\n",
            "line 3: .*`fixed` must go with a `start`",
        ),
        (
            LAMINAR + "parameters:\n  phi0: {fixed: true}\n",
            "line 4: .*`fixed` must go with a `start_degrees`",
        ),
        (
            LAMINAR + "parameters:\n  phi0: {start: 4}\n",
            "line 4: .*unknown key `start`; known are start_degrees",
        ),
        (
            LAMINAR + "parameters:\n"
            "  phi0: {start_degrees: 20, bounds_degrees: [-10, 10]}\n",
            r"line 4: .*`start_degrees` must lie within \[-10, 10\]",
        ),
        (LAMINAR + "gap: 0\n", "line 3: .*`gap` must be positive, but is 0"),
        (LAMINAR + "gap_degrees: 1\n", "line 3: .*unknown key `gap_degrees`"),
        ("mode: laminar_flow\n", "must have the keys `convention`"),
        (
            "mode: laminar_flow\nconvention: mine\n",
            "line 2: `convention` must be one of 'physical', 'homodyne'",
        ),
        (
            STATIC + "scaling: {type: Mine}\n",
            "line 2: .*must be one of PerAngle, Shared, Fourier, Constant",
        ),
        (STATIC + "fit: {starts: 0}\n", "line 2: .*`starts` must be at least 1"),
        (
            STATIC + f"sampling: {{seed: {2**63}}}\n",
            f"line 2: .*`seed` must be a whole number .* below {2**63}, but is",
        ),
        (STATIC + "sampling: {seed: -1}\n", "line 2: .*`seed` must be .* at least 0"),
        (STATIC + "sampling: {chains: 0}\n", "line 2: .*`chains` must be at least 1"),
        (STATIC + "checkpoint: {every: 0}\n", "line 2: .*`every` must be at least 1"),
        (STATIC + "mode: static_isotropic\n", "line 2: .*'mode' in line 1 already"),
        (STATIC + "data: !!python/object:x {}\n", "line 2: .*must have no tag"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message, tmp_path, capsys):
    path = tmp_path / "fit.yaml"
    path.write_text(text)
    code, written = check(path, capsys)
    assert code == ExitCode.REFUSED
    assert re.search(message, written), written


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    code, text = check(tmp_path / "none.yaml", capsys)
    assert code == ExitCode.REFUSED
    assert "none.yaml" in text
