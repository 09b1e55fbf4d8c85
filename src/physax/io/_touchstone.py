"""S-parameters in Touchstone files, version 1.

Reference: EIA/IBIS Open Forum, *Touchstone File Format Specification*, revision 1.1
(2002).
"""

import math
import os
import re
from pathlib import Path

import numpy as np

from .._checks import ArgumentError, instance
from .._whole_file import whole_file
from ..em import SParameters
from ..units import GIGA, KILO, MEGA, SPEED_OF_LIGHT
from ._errors import PhysaxFileError
from ._s_matrix import s_parameters_of, text_of


_SUFFIX = re.compile(r"\.s([1-9]\d?)p", re.IGNORECASE)
_PORT_LINE = re.compile(r"!\s*port (\d+): (.+)")
_UNITS = {"HZ": 1.0, "KHZ": KILO, "MHZ": MEGA, "GHZ": GIGA}
_FORMATS = {
    "RI": lambda a, b: a + 1j * b,
    "MA": lambda a, b: a * np.exp(1j * np.deg2rad(b)),
    "DB": lambda a, b: 10 ** (a / 20) * np.exp(1j * np.deg2rad(b)),
}
_PAIRS_PER_LINE = 4


def write_touchstone(
    path: str | os.PathLike,
    sparameters: SParameters,
    reference_impedance: float | int = 50,
) -> None:
    """Writes S-parameters as a Touchstone file of version 1, frequencies ascending.

    Circuit tools take the time sign `exp(+j w t)`, so the complex conjugates of the
    values are written; `read_touchstone` conjugates again. Names of ports go into
    comments.

    Args:
        path: The file; its suffix must give the number of ports: `.s2p` for two.
        sparameters: The S-parameters, of every port as output and as input.
        reference_impedance: Reference resistance in ohm that the file declares. For
            optical ports, whose amplitudes are normalised by power, it means nothing.

    Raises:
        ArgumentError: If these are not S-parameters, inputs are missing, the suffix is
            another, the impedance is not positive, or a value is not finite.
        OSError: If the file cannot be written.
    """
    instance(sparameters, "sparameters", SParameters, "`save_npz` takes other results.")
    values = np.conj(np.asarray(sparameters.values))
    wavelengths = np.asarray(sparameters.wavelengths)
    if not 0 < reference_impedance < math.inf:
        raise ArgumentError(
            f"`reference_impedance` must be positive, but is {reference_impedance:g}."
        )
    _check_writable(path, sparameters, values)
    lines = [
        "! S-parameters by physax: amplitudes normalised by power",
        "! time sign exp(+j w t): conjugates of the values in physax",
        *(f"! port {i}: {name}" for i, name in enumerate(sparameters.ports, 1)),
        f"# Hz S RI R {reference_impedance:g}",
    ]
    frequencies = SPEED_OF_LIGHT / wavelengths.astype(np.float64)
    for k in np.argsort(frequencies):
        lines += _data_lines(text_of(np.float64(frequencies[k])), values[k])
    with whole_file(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _check_writable(path, sparameters: SParameters, values: np.ndarray) -> None:
    ports = sparameters.ports
    if sparameters.inputs != ports:
        raise ArgumentError(
            f"`sparameters` must have every port {ports} as input, in that order, but "
            f"has {sparameters.inputs}. Use `write_csv`."
        )
    suffix = f".s{len(ports)}p"
    if Path(path).suffix.lower() != suffix:
        raise ArgumentError(
            f"`path` must end in {suffix!r} for {len(ports)} ports, but is "
            f"{os.fspath(path)!r}."
        )
    if not np.all(np.isfinite(values)):
        raise ArgumentError("`sparameters` must be finite, but has NaN or infinity.")
    wavelengths = np.asarray(sparameters.wavelengths)
    if np.unique(wavelengths).size != wavelengths.size:
        raise ArgumentError("`sparameters` must have no wavelength twice.")
    if any(set(name) & set("\r\n") or name != name.strip() for name in ports):
        raise ArgumentError(
            "Names of ports must have no line breaks and no spaces at their ends, but "
            f"are {ports}."
        )


def _data_lines(frequency: str, matrix: np.ndarray) -> list[str]:
    """Returns the lines of one frequency."""
    pairs = [[f"{text_of(v.real)} {text_of(v.imag)}" for v in row] for row in matrix]
    if len(pairs) == 2:
        # Two ports only: S11 S21 S12 S22 on one line.
        (s11, s12), (s21, s22) = pairs
        return [" ".join([frequency, s11, s21, s12, s22])]
    rows = [
        " ".join(row[k : k + _PAIRS_PER_LINE])
        for row in pairs
        for k in range(0, len(row), _PAIRS_PER_LINE)
    ]
    return [f"{frequency} {rows[0]}", *rows[1:]]


def read_touchstone(path: str | os.PathLike) -> SParameters:
    """Reads S-parameters from a Touchstone file of version 1.

    The values are conjugated, for the time sign `exp(-i w t)`. Real and imaginary part,
    magnitude and angle, decibel and angle are read, in any unit of frequency. The
    reference impedance is not used. Names of ports are read from comments as
    `write_touchstone` makes them, else they are "1", "2", ...

    Args:
        path: The file; its suffix gives the number of ports.

    Returns:
        The S-parameters in the order of the file, in the default precision. The
        wavelengths went through a division: they may differ in the last digit from
        those that were written.

    Raises:
        PhysaxFileError: If the file is not a Touchstone file of version 1, is damaged,
            or holds other than S-parameters.
        FileNotFoundError: If there is no such file.
    """
    suffix = _SUFFIX.fullmatch(Path(path).suffix)
    if suffix is None:
        raise PhysaxFileError(path, "Its name must end in .s1p, .s2p, ....")
    count = int(suffix[1])
    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise PhysaxFileError(path, f"It is not a text file: {error}.") from error
    names: dict[int, str] = {}
    options: tuple | None = None
    numbers: list[float] = []
    for k, line in enumerate(text.splitlines(), 1):
        named = _PORT_LINE.fullmatch(line.strip())
        if named:
            names[int(named[1])] = named[2]
        words = line.partition("!")[0].split()
        if not words:
            continue
        if words[0].startswith("#"):
            # Of several option lines the first counts.
            options = options or _options(path, k, line)
            continue
        if options is None or words[0].startswith("["):
            raise PhysaxFileError(
                path, f"Line {k} does not belong to version 1: {line!r}."
            )
        numbers += _numbers(path, k, words)
    if options is None:
        raise PhysaxFileError(path, "It has no option line, which begins with '#'.")
    frequencies, values = _matrices(path, np.array(numbers), count, options)
    known = sorted(names) == list(range(1, count + 1))
    distinct = len(set(names.values())) == count
    ports = tuple(
        names[i] if known and distinct else str(i) for i in range(1, count + 1)
    )
    return s_parameters_of(np.conj(values), SPEED_OF_LIGHT / frequencies, ports, ports)


def _numbers(path, line: int, words: list[str]) -> list[float]:
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise PhysaxFileError(path, f"Line {line}: {error}.") from error
    if not all(map(math.isfinite, numbers)):
        raise PhysaxFileError(path, f"Line {line} has a number that is not finite.")
    return numbers


def _options(path, number: int, line: str) -> tuple:
    """Reads unit and format from the option line; defaults are those of the format."""
    words = line.strip()[1:].split("!")[0].upper().split()
    unit, form = _UNITS["GHZ"], _FORMATS["MA"]
    while words:
        word = words.pop(0)
        if word in _UNITS:
            unit = _UNITS[word]
        elif word in _FORMATS:
            form = _FORMATS[word]
        elif word == "R" and words:
            _numbers(path, number, [words.pop(0)])
        elif word != "S":
            raise PhysaxFileError(
                path, f"Line {number} has the option {word!r}, which is not supported."
            )
    return unit, form


def _matrices(path, numbers: np.ndarray, count: int, options: tuple):
    """Cuts the numbers into frequencies and matrices."""
    unit, form = options
    size = 1 + 2 * count**2
    if not numbers.size or numbers.size % size:
        raise PhysaxFileError(
            path,
            f"It must have {size} numbers for each frequency, but has {numbers.size} "
            "in all. Noise parameters are not supported.",
        )
    table = numbers.reshape(-1, size)
    frequencies = table[:, 0] * unit
    if not (np.all(frequencies > 0) and np.all(np.diff(frequencies) > 0)):
        raise PhysaxFileError(path, "Its frequencies must be positive and increase.")
    values = form(table[:, 1::2], table[:, 2::2]).reshape(-1, count, count)
    if count == 2:
        values = values.transpose(0, 2, 1)
    return frequencies, values
