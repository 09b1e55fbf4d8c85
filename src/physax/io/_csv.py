"""S-parameters as a table of comma-separated values."""

import csv
import io
import math
import os
from pathlib import Path

import numpy as np

from .._checks import ArgumentError
from .._whole_file import whole_file
from ..em import SParameters
from ._errors import PhysaxFileError
from ._s_matrix import s_parameters_of, text_of


_COLUMNS = ("wavelength_m", "output", "input", "real", "imaginary")


def write_csv(path: str | os.PathLike, sparameters: SParameters) -> None:
    """Writes S-parameters as a table, one row per wavelength, output and input.

    The columns are `wavelength_m` (in vacuum, metres), `output`, `input` (names of
    ports), `real` and `imaginary` (of the amplitude, time sign `exp(-i w t)`). Numbers
    have as many digits as it takes to read back the same ones.

    Args:
        path: The file, by custom `*.csv`.
        sparameters: The S-parameters.

    Raises:
        ArgumentError: If it is another result.
        OSError: If the file cannot be written.
    """
    if not isinstance(sparameters, SParameters):
        raise ArgumentError(
            "`sparameters` must be `em.SParameters`, but is "
            f"{type(sparameters).__name__}, which `save_npz` takes."
        )
    values = np.asarray(sparameters.values)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for matrix, wavelength in zip(
        values, np.asarray(sparameters.wavelengths), strict=True
    ):
        for output, row in zip(sparameters.ports, matrix, strict=True):
            for source, value in zip(sparameters.inputs, row, strict=True):
                parts = map(text_of, (value.real, value.imag))
                writer.writerow([text_of(wavelength), output, source, *parts])
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def read_csv(path: str | os.PathLike) -> SParameters:
    """Reads a table that `write_csv` wrote.

    Args:
        path: The file.

    Returns:
        The S-parameters, in the default precision.

    Raises:
        PhysaxFileError: If the table is damaged or incomplete; names the line.
        FileNotFoundError: If there is no such file.
    """
    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise PhysaxFileError(path, f"It is not a text file: {error}.") from error
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise PhysaxFileError(path, f"It is not a valid table: {error}.") from error
    if not rows or tuple(rows[0]) != _COLUMNS:
        raise PhysaxFileError(path, f"Line 1 must be {','.join(_COLUMNS)!r}.")
    entries: dict[tuple[float, str, str], complex] = {}
    for number, row in enumerate(rows[1:], 2):
        wavelength, output, source, value = _row(path, number, row)
        if (wavelength, output, source) in entries:
            raise PhysaxFileError(path, f"Line {number} repeats an entry.")
        entries[wavelength, output, source] = value
    wavelengths = list(dict.fromkeys(wavelength for wavelength, _, _ in entries))
    outputs = tuple(dict.fromkeys(output for _, output, _ in entries))
    inputs = tuple(dict.fromkeys(source for _, _, source in entries))
    keys = [(w, o, i) for w in wavelengths for o in outputs for i in inputs]
    if not entries or list(entries) != keys:
        raise PhysaxFileError(
            path, "It must give every output and input at every wavelength, in order."
        )
    values = np.array([entries[key] for key in keys])
    values = values.reshape(len(wavelengths), len(outputs), len(inputs))
    return s_parameters_of(values, np.array(wavelengths), outputs, inputs)


def _row(path, number: int, row: list[str]) -> tuple[float, str, str, complex]:
    if len(row) != len(_COLUMNS):
        raise PhysaxFileError(
            path,
            f"Line {number} must have {len(_COLUMNS)} columns, but has {len(row)}.",
        )
    try:
        wavelength, real, imaginary = (float(row[i]) for i in (0, 3, 4))
    except ValueError as error:
        raise PhysaxFileError(path, f"Line {number}: {error}.") from error
    if not (0 < wavelength < math.inf):
        raise PhysaxFileError(path, f"Line {number} has the wavelength {wavelength} m.")
    return wavelength, row[1], row[2], complex(real, imaginary)
