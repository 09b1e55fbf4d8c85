"""Units of velocities in files, as UDUNITS and users spell them."""

from collections.abc import Mapping

from .._checks import ArgumentError, real, single
from ._netcdf_variable import StoredVariable


_LENGTHS = {
    **dict.fromkeys("m meter meters metre metres".split(), 1.0),
    **dict.fromkeys("cm centimeter centimeters centimetre centimetres".split(), 1e-2),
    **dict.fromkeys("mm millimeter millimeters millimetre millimetres".split(), 1e-3),
    **dict.fromkeys("km kilometer kilometers kilometre kilometres".split(), 1e3),
}
_PRESSURES = {"pa": 1.0, "hpa": 100.0}
_TIMES = {
    **dict.fromkeys("s sec second seconds".split(), 1.0),
    **dict.fromkeys("min minute minutes".split(), 60.0),
    **dict.fromkeys("h hr hour hours".split(), 3600.0),
    **dict.fromkeys("d day days".split(), 86400.0),
}
_FORMS = "{}/{} {}per{}".split() + [
    f"{{}}{times}{{}}{power}"
    for times in ("", ".", "*")
    for power in "-1 **-1 ^-1".split()
]


def _rates(lengths: Mapping[str, float]) -> dict[str, float]:
    """Returns the rates of change in SI units, by names without spaces."""
    return {
        form.format(length, time): worth / seconds
        for length, worth in lengths.items()
        for time, seconds in _TIMES.items()
        for form in _FORMS
    }


_SPEEDS = _rates(_LENGTHS) | dict.fromkeys("knot knots kt kts".split(), 1852 / 3600)
_FALLS = _rates(_PRESSURES)
# "m·s⁻¹"
_SUPERSCRIPTS = str.maketrans({"·": ".", "⁻": "-", "\N{MINUS SIGN}": "-", "¹": "1"})


def _plain(units: str) -> str:
    plain = "".join(units.split()).translate(_SUPERSCRIPTS)
    # Megametres are no millimetres.
    return plain if plain.startswith("Mm") else plain.lower()


def changes_pressure(units: str) -> bool:
    """Tells whether a unit is one of a rate of change of pressure."""
    return _plain(units) in _FALLS


def speed_factor(
    variable: StoredVariable, scale: float | None, *, vertical: bool = False
) -> float:
    """Returns what a number of the file is worth in m/s, or in Pa/s.

    Args:
        variable: A component of a velocity.
        scale: What the user says, or `None`.
        vertical: Whether it may be a rate of change of pressure.

    Raises:
        ArgumentError: If `scale` is not a number, or the unit in the file not known.
    """
    if scale is not None:
        return float(single(real(scale, "scale"), "scale"))
    units = "m/s" if variable.units is None else variable.units
    known = _SPEEDS | (_FALLS if vertical else {})
    factor = known.get(_plain(units))
    if factor is None:
        raise ArgumentError(
            f"The unit of {variable.name!r} must be a unit of speed, such as m/s, "
            f"cm s-1 or m day-1, but is {units!r}. Correct `units` in the file; or, if "
            "all components have one unit, give its value in m/s as `scale`, which "
            "replaces the units of all."
        )
    return factor
