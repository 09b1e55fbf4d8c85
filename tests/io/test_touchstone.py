import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError
from physax.em import SParameters
from physax.io import PhysaxFileError, read_touchstone, write_touchstone
from physax.units import SPEED_OF_LIGHT


def example(ports, wavelengths=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (wavelengths, ports, ports)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    names = tuple(f"arm {i}" for i in range(ports))
    # Frequencies ascend, as in a file.
    waves = np.linspace(1.6e-6, 1.5e-6, wavelengths)
    return SParameters(
        jnp.asarray(values, complex), jnp.asarray(waves, float), names, names, {}
    )


def numbers(text):
    rows = [line for line in text.splitlines() if line[0] not in "!#"]
    return [[float(word) for word in row.split()] for row in rows]


def test_two_ports_are_written_column_by_column(tmp_path):
    values = jnp.asarray([[[0.1 + 0.2j, 0.3], [0.5j, -0.7]]], complex)
    s = SParameters(values, jnp.asarray([1.5e-6], float), *[("in", "out")] * 2, {})
    write_touchstone(tmp_path / "s.s2p", s)
    lines = (tmp_path / "s.s2p").read_text().splitlines()
    assert lines[:-1] == [
        "! S-parameters by physax: amplitudes normalised by power",
        "! time sign exp(+j w t): conjugates of the values in physax",
        "! port 1: in",
        "! port 2: out",
        "# Hz S RI R 50",
    ]
    # S11 S21 S12 S22, conjugated.
    wanted = [0.1, -0.2, 0, -0.5, 0.3, 0, -0.7, 0]
    frequency, *found = map(float, lines[-1].split())
    # 1.5 um is rounded to float32 before it is divided.
    assert frequency == pytest.approx(SPEED_OF_LIGHT / 1.5e-6, rel=6e-8)
    assert found == pytest.approx(wanted, rel=1e-6)


def test_three_ports_are_written_row_by_row(tmp_path):
    s = example(3, 1)
    write_touchstone(tmp_path / "s.s3p", s)
    rows = numbers((tmp_path / "s.s3p").read_text())
    assert [len(row) for row in rows] == [7, 6, 6]
    first = np.conj(np.asarray(s.values[0, 0]))
    assert rows[0][1::2] == pytest.approx(first.real, rel=1e-6)
    assert rows[0][2::2] == pytest.approx(first.imag, rel=1e-6)


def test_long_rows_are_broken_after_four_pairs(tmp_path):
    write_touchstone(tmp_path / "s.s5p", example(5, 1))
    rows = numbers((tmp_path / "s.s5p").read_text())
    assert [len(row) for row in rows] == [9, 2] + [8, 2] * 4


def test_phase_of_a_line_falls_with_frequency_as_circuit_tools_expect(tmp_path):
    wavelengths = jnp.linspace(1.6e-6, 1.5e-6, 5)
    line = jnp.exp(2j * jnp.pi / wavelengths * 1e-6)[:, None, None]
    both = jnp.concatenate([0 * line, line], 2), jnp.concatenate([line, 0 * line], 2)
    s = SParameters(jnp.concatenate(both, 1), wavelengths, *[("a", "b")] * 2, {})
    write_touchstone(tmp_path / "s.s2p", s)
    rows = np.array(numbers((tmp_path / "s.s2p").read_text()))
    assert np.all(np.diff(rows[:, 0]) > 0)
    assert np.all(np.diff(np.unwrap(np.arctan2(rows[:, 4], rows[:, 3]))) < 0)


@pytest.mark.parametrize("ports", [1, 2, 3, 4, 5])
def test_round_trip_is_exact(tmp_path, ports):
    s = example(ports)
    path = tmp_path / f"s.s{ports}p"
    write_touchstone(path, s, reference_impedance=75)
    assert "# Hz S RI R 75" in path.read_text()
    back = read_touchstone(path)
    assert np.array_equal(back.values, s.values)
    assert back.values.dtype == s.values.dtype
    # Twice divided: the last digit may differ in float64.
    assert np.allclose(back.wavelengths, s.wavelengths, rtol=3e-16, atol=0)
    assert back.ports == back.inputs == s.ports


def test_frequencies_are_sorted(tmp_path):
    s = example(2)
    turned = SParameters(s.values[::-1], s.wavelengths[::-1], s.ports, s.inputs, {})
    write_touchstone(tmp_path / "a.s2p", s)
    write_touchstone(tmp_path / "b.s2p", turned)
    assert (tmp_path / "a.s2p").read_text() == (tmp_path / "b.s2p").read_text()


FOREIGN = """\
! by another program
#  GHz  S  MA  R 50   ! comment
# MHz S DB R 75
 100000.0   0.5 90   0.25 180
            0.1 0    1.0 -90   ! the second line of one frequency
200000.0 1 0 1 0
  1 0 1 0
"""


def test_a_file_of_another_program_is_read(tmp_path):
    (tmp_path / "s.S2P").write_text(FOREIGN)
    s = read_touchstone(tmp_path / "s.S2P")
    assert s.ports == ("1", "2")
    wanted = SPEED_OF_LIGHT / np.array([1e14, 2e14])
    assert np.allclose(s.wavelengths, wanted, rtol=1e-6, atol=0)
    assert np.allclose(s("1", "1")[0], -0.5j, atol=1e-6)
    assert np.allclose(s("2", "1")[0], -0.25, atol=1e-6)
    assert np.allclose(s("1", "2")[0], 0.1, atol=1e-6)
    assert np.allclose(s("2", "2")[0], 1j, atol=1e-6)


def test_decibels_are_read(tmp_path):
    (tmp_path / "s.s1p").write_text("# GHz S DB R 50\n1 -20 0\n")
    assert np.allclose(read_touchstone(tmp_path / "s.s1p").values, 0.1, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no option line"),
        ("1 0 0\n", "Line 1 does not belong to version 1"),
        ("[Version] 2.0\n# GHz S RI R 50\n", "Line 1 does not belong to version 1"),
        ("# GHz Y RI R 50\n1 0 0\n", "has the option 'Y'"),
        ("# GHz S RI R x\n1 0 0\n", "Line 1: could not convert"),
        ("# GHz S RI R 50\n", "must have 3 numbers for each frequency, but has 0"),
        ("# GHz S RI R 50\n1 0\n", "must have 3 numbers for each frequency"),
        ("# GHz S RI R 50\n1 0 zero\n", "Line 2: could not convert"),
        ("# GHz S RI R 50\n1 0 nan\n", "Line 2 has a number that is not finite"),
        ("# GHz S RI R 50\n2 0 0\n1 0 0\n", "must be positive and increase"),
        ("# GHz S RI R 50\n0 0 0\n", "must be positive and increase"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text, message):
    path = tmp_path / "s.s1p"
    path.write_text(text)
    with pytest.raises(PhysaxFileError, match=message) as caught:
        read_touchstone(path)
    assert str(path) in str(caught.value)


def test_binary_and_misnamed_files_are_refused(tmp_path):
    (tmp_path / "s.s1p").write_bytes(b"\xff\xfe")
    with pytest.raises(PhysaxFileError, match="It is not a text file"):
        read_touchstone(tmp_path / "s.s1p")
    with pytest.raises(PhysaxFileError, match=r"must end in \.s1p"):
        read_touchstone(tmp_path / "s.txt")


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    s = example(2)
    with pytest.raises(ArgumentError, match=r"must end in '\.s2p' for 2 ports"):
        write_touchstone(tmp_path / "s.s3p", s)
    path = tmp_path / "s.s2p"
    half = SParameters(s.values[:, :, :1], s.wavelengths, s.ports, s.ports[:1], {})
    with pytest.raises(ArgumentError, match="must have every port"):
        write_touchstone(path, half)
    nan = SParameters(s.values * jnp.nan, s.wavelengths, s.ports, s.inputs, {})
    with pytest.raises(ArgumentError, match="must be finite"):
        write_touchstone(path, nan)
    twice = SParameters(s.values, 0 * s.wavelengths + 1e-6, s.ports, s.inputs, {})
    with pytest.raises(ArgumentError, match="no wavelength twice"):
        write_touchstone(path, twice)
    broken = SParameters(s.values, s.wavelengths, *[("a\nb", "c")] * 2, {})
    with pytest.raises(ArgumentError, match="Names of ports must have no line breaks"):
        write_touchstone(path, broken)
    with pytest.raises(ArgumentError, match="`reference_impedance` must be positive"):
        write_touchstone(path, s, reference_impedance=0)
    assert not list(tmp_path.iterdir())
