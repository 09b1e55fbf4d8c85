"""Which field components a simulation has, where they sit, and how the curls couple."""

from collections.abc import Callable
from typing import NamedTuple

from .._checks import ArgumentError
from ..grid import AXES


class CurlTerm(NamedTuple):
    """One term of a curl: `target += sign * d(source)/d(axis)`.

    A `ring` term, in cylindrical coordinates, is `sign * d(r source)/dr / r`.
    """

    target: str
    axis: int
    source: str
    sign: int
    ring: bool = False


class TurnTerm(NamedTuple):
    """A derivative by the azimuth: `target += factor * source / r`."""

    target: str
    source: str
    factor: int


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
    axes: tuple[str, ...]
    m: int | None = None
    electric_turns: tuple[TurnTerm, ...] = ()
    magnetic_turns: tuple[TurnTerm, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All components, electric first."""
        return self.electric + self.magnetic

    def terms(self, *, electric: bool) -> tuple[CurlTerm, ...]:
        """Returns the terms of the curl that drives the fields of one kind."""
        return self.electric_terms if electric else self.magnetic_terms

    def with_terms(self, kept: Callable[[CurlTerm], bool]) -> "Components":
        """Returns the same components with some of the terms of both curls."""
        electric = tuple(filter(kept, self.electric_terms))
        magnetic = tuple(filter(kept, self.magnetic_terms))
        return self._replace(electric_terms=electric, magnetic_terms=magnetic)

    def stagger(self, component: str) -> tuple[float, ...]:
        """Returns where a component sits in its cell, for each axis of the grid."""
        return staggered(component, self.axes)


CYLINDRICAL_AXES = ("r", "z")
"""Names of the axes of a grid in cylindrical coordinates."""

KNOWN_ELECTRIC = tuple("E" + axis for axis in "xyzrp")
"""Electric components of all coordinates; p stands for the azimuth phi."""

KNOWN = KNOWN_ELECTRIC + tuple("H" + axis for axis in "xyzrp")
"""Components of all coordinates."""


def in_space(axis: str) -> int:
    """Returns the number of an axis in space; r, phi and z are those of phi = 0."""
    return AXES.index({"r": "x", "p": "y"}.get(axis, axis))


CYLINDRICAL_NAMES = ("Er", "Ep", "Ez", "Hr", "Hp", "Hz")
"""The components in cylindrical coordinates; p stands for the azimuth phi."""


def cylindrical_components(m: int) -> Components:
    r"""Returns the components in cylindrical coordinates on a grid of r and z.

    Er, Ez and Hp are factors of $\cos m \phi$, Ep, Hr and Hz of $\sin m \phi$, for
    $m = 0$ all of 1.

    Args:
        m: The angular number, at least 0.

    Returns:
        The set.
    """
    return Components(
        2,
        CYLINDRICAL_NAMES[:3],
        CYLINDRICAL_NAMES[3:],
        (
            CurlTerm("Er", 1, "Hp", -1),
            CurlTerm("Ep", 1, "Hr", 1),
            CurlTerm("Ep", 0, "Hz", -1),
            CurlTerm("Ez", 0, "Hp", 1, ring=True),
        ),
        (
            CurlTerm("Hr", 1, "Ep", 1),
            CurlTerm("Hp", 1, "Er", -1),
            CurlTerm("Hp", 0, "Ez", 1),
            CurlTerm("Hz", 0, "Ep", -1, ring=True),
        ),
        CYLINDRICAL_AXES,
        m,
        (TurnTerm("Er", "Hz", m), TurnTerm("Ez", "Hr", -m)) if m else (),
        (TurnTerm("Hr", "Ez", m), TurnTerm("Hz", "Er", -m)) if m else (),
    )


def components(
    ndim: int, polarisation: str | None = None, m: int | None = None
) -> Components:
    """Returns the component set of a 1-D, 2-D or 3-D simulation.

    1-D grids run along x and carry Ez and Hy. 2-D grids lie in the xy plane and carry
    either Ez, Hx, Hy (`polarisation="Ez"`) or Hz, Ex, Ey (`"Hz"`), or in the rz plane
    and carry all six.

    Args:
        ndim: Dimension of the grid.
        polarisation: In 2-D, the component out of the plane.
        m: The angular number in cylindrical coordinates, else `None`.

    Returns:
        The set.

    Raises:
        ArgumentError: If `polarisation` is unknown, or missing in 2-D.
    """
    if m is not None:
        return cylindrical_components(m)
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
        AXES[:ndim],
    )


def stagger(component: str, ndim: int) -> tuple[float, ...]:
    """Returns where a component sits in its cell, in cells, for each axis of the grid.

    Electric components sit half a cell along their own axis, magnetic ones half a cell
    along the two others (Yee, IEEE Trans. Antennas Propag. 14, 302, 1966).
    """
    return staggered(component, AXES[:ndim])


def staggered(component: str, axes: tuple[str, ...]) -> tuple[float, ...]:
    """Returns the same for a grid with axes of these names."""
    electric = component[0] == "E"
    return tuple(0.5 if (axis == component[1]) == electric else 0.0 for axis in axes)
