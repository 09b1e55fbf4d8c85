import jax.numpy as jnp
import numpy as np
import pytest

from physax.em import SParameters
from physax.io import PhysaxFileError, read_csv, write_csv


def example():
    values = jnp.asarray([[[0.1 - 0.2j], [0.5j]], [[1 / 3], [-1e-9]]], complex)
    wavelengths = jnp.asarray([1.5e-6, 1.55e-6], float)
    return SParameters(values, wavelengths, ("west", "north, east"), ("west",), {})


TEXT = """\
wavelength_m,output,input,real,imaginary
1.5e-06,west,west,1e-01,-2e-01
1.5e-06,"north, east",west,0e+00,5e-01
"""


def test_rows_are_those_expected_by_hand(tmp_path):
    write_csv(tmp_path / "s.csv", example())
    text = (tmp_path / "s.csv").read_text()
    assert text.startswith(TEXT)
    assert len(text.splitlines()) == 5


def test_round_trip_is_exact(tmp_path):
    s = example()
    write_csv(tmp_path / "s.csv", s)
    back = read_csv(tmp_path / "s.csv")
    assert back.values.dtype == s.values.dtype
    assert np.array_equal(back.values, s.values)
    assert np.array_equal(back.wavelengths, s.wavelengths)
    assert (back.ports, back.inputs) == (s.ports, s.inputs)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wavelength_m", "lambda", "Line 1 must be 'wavelength_m,output"),
        ("-2e-01", "two", "Line 2: could not convert"),
        ("-2e-01", "1,2", "Line 2 must have 5 columns, but has 6"),
        ("1.5e-06,west", "-1,west", "Line 2 has the wavelength -1.0 m"),
        ('"north, east"', "west", "Line 3 repeats an entry"),
        ('"north, east",west', '"north, east",east', "every output and input"),
        ('"north, east"', '"north, east', "It is not a valid table"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path, old, new, message):
    path = tmp_path / "s.csv"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(PhysaxFileError, match=message):
        read_csv(path)


@pytest.mark.parametrize("data", [b"", TEXT.splitlines()[0].encode(), b"\xff\xfe"])
def test_an_empty_or_binary_file_is_refused(tmp_path, data):
    path = tmp_path / "s.csv"
    path.write_bytes(data)
    with pytest.raises(PhysaxFileError, match=str(path)):
        read_csv(path)
