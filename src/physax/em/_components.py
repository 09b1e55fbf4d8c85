"""Which field components a simulation has, where they sit, and how the curls couple."""

from typing import NamedTuple

from .._checks import ArgumentError
from ..grid import AXES


class CurlTerm(NamedTuple):
    """One term of a curl: `target += sign * d(source)/d(axis)`."""

    target: str
    axis: int
    source: str
    sign: int


class Components(NamedTuple):
    """The electric and magnetic components that exist, and the terms of both curls.

    Electric rows read `eps dE/dt = + sum of terms`, magnetic rows
    `mu dH/dt = + sum of terms` (the minus of Faraday's law is in the signs).
    """

    ndim: int
    electric: tuple[str, ...]
    magnetic: tuple[str, ...]
    electric_terms: tuple[CurlTerm, ...]
    magnetic_terms: tuple[CurlTerm, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All components, electric first."""
        return self.electric + self.magnetic


def components(ndim: int, polarisation: str | None = None) -> Components:
    """Returns the component set of a 1-D, 2-D or 3-D simulation.

    1-D grids run along x and carry Ez and Hy. 2-D grids lie in the xy plane and carry
    either Ez, Hx, Hy (`polarisation="Ez"`) or Hz, Ex, Ey (`"Hz"`).

    Args:
        ndim: Dimension of the grid.
        polarisation: In 2-D, the component out of the plane.

    Returns:
        The set.

    Raises:
        ArgumentError: If `polarisation` is unknown, or missing in 2-D.
    """
    if ndim == 2 and polarisation not in ("Ez", "Hz"):
        raise ArgumentError(
            f"`polarisation` must be 'Ez' or 'Hz' in 2-D, but is {polarisation!r}."
        )
    if ndim != 2 and polarisation is not None:
        raise ArgumentError(
            f"`polarisation` must be None in {ndim}-D, but is {polarisation!r}."
        )
    names = {
        (1, None): ("Ez", "Hy"),
        (2, "Ez"): ("Ez", "Hx", "Hy"),
        (2, "Hz"): ("Hz", "Ex", "Ey"),
        (3, None): ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz"),
    }[ndim, polarisation]
    electric_terms, magnetic_terms = [], []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        for axis, other, sign in ((j, k, 1), (k, j, -1)):
            if axis >= ndim:
                continue
            e, h = "E" + AXES[i], "H" + AXES[other]
            if e in names and h in names:
                electric_terms.append(CurlTerm(e, axis, h, sign))
            h, e = "H" + AXES[i], "E" + AXES[other]
            if e in names and h in names:
                magnetic_terms.append(CurlTerm(h, axis, e, -sign))
    return Components(
        ndim,
        tuple(name for name in names if name[0] == "E"),
        tuple(name for name in names if name[0] == "H"),
        tuple(electric_terms),
        tuple(magnetic_terms),
    )


def stagger(component: str, ndim: int) -> tuple[float, ...]:
    """Returns where a component sits in its cell, in cells, for each axis of the grid.

    Electric components sit half a cell along their own axis, magnetic ones half a cell
    along the two others (Yee, IEEE Trans. Antennas Propag. 14, 302, 1966).
    """
    own = AXES.index(component[1])
    electric = component[0] == "E"
    return tuple(0.5 if (axis == own) == electric else 0.0 for axis in range(ndim))
