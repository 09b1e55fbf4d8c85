"""What lies at the faces of the grid: walls, absorbing layers, or another period."""

from types import UnionType
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from .._checks import ArgumentError, finite, traced, warn
from ..grid import Box, Grid
from ._absorber import Absorber
from ._components import AXES, CYLINDRICAL_AXES
from ._cpml import CPML


class PEC(eqx.Module):
    """A perfect electric conductor: the tangential electric field is zero on the face.

    At the low face it is also the mirror plane under which the tangential electric
    field is odd. In place of a material it is perfect metal inside the grid.
    """


class PMC(eqx.Module):
    """A perfect magnetic conductor: the tangential magnetic field is zero on the face.

    It is also the mirror plane under which the tangential electric field is even: a
    simulation of half a symmetric scene has it at the plane of symmetry.
    """


class Periodic(eqx.Module):
    """The fields repeat: what leaves through one face enters through the other."""


class Bloch(eqx.Module):
    """The fields repeat with a phase: `E(r + L) = E(r) exp(i k L)`; fields are complex.

    Attributes:
        wavevector: Component of the Bloch vector along this axis, in rad/m.

    Raises:
        ArgumentError: If it is not finite, or complex.
    """

    wavevector: Float[Array, ""] = eqx.field(converter=finite("wavevector"))


Layer = CPML | Absorber

Face = PEC | PMC | Layer | Periodic | Bloch


def _pair(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple | list) else (value, value)


def _outer(value: Any) -> Any:
    """Converts the faces along r: one alone is the outer one."""
    if value is None or isinstance(value, tuple | list):
        return None if value is None else tuple(value)
    return (None, value)


class Boundaries(eqx.Module):
    """The two faces of each axis, low then high.

    `Boundaries(x=CPML(10), y=(PMC(), CPML(10)))` gives both faces of x the same layer
    and mirrors the scene at the low face of y. For an axis that the grid lacks there is
    nothing to give: faces like those of another axis, as `all` makes, have no effect,
    and others are refused. In cylindrical coordinates write
    `Boundaries(r=CPML(10), z=CPML(10))`.

    Attributes:
        x: Both faces of the x axis, or a pair (low, high).
        y: The same along y.
        z: The same along z.
        r: In cylindrical coordinates the outer face, or, where the grid does not reach
            the axis, a pair (inner, outer).

    Raises:
        ArgumentError: If one face of an axis is periodic and the other is not, or one
            along r is.
    """

    x: tuple[Face, Face] = eqx.field(converter=_pair, default_factory=PEC)
    y: tuple[Face, Face] = eqx.field(converter=_pair, default_factory=PEC)
    z: tuple[Face, Face] = eqx.field(converter=_pair, default_factory=PEC)
    r: tuple[Face | None, Face] | None = eqx.field(converter=_outer, default=None)

    def __check_init__(self):
        walls = (PEC, PMC, Layer)
        if self.r is not None and not (
            len(self.r) == 2
            and isinstance(self.r[1], walls)
            and isinstance(self.r[0], (*walls, type(None)))
        ):
            raise ArgumentError(
                "`r` must be the outer face, `PEC()`, `PMC()` or a layer, or a pair "
                f"of inner and outer ones, but is {self.r!r}."
            )
        for axis in ("x", "y", "z"):
            pair = getattr(self, axis)
            if len(pair) != 2 or not all(isinstance(face, Face) for face in pair):
                raise ArgumentError(
                    f"`{axis}` must be a face, such as `CPML(10)`, or a pair "
                    f"of them, but is {pair!r}."
                )
            low, high = pair
            for kind in (Periodic, Bloch):
                if isinstance(low, kind) != isinstance(high, kind):
                    raise ArgumentError(
                        f"`{axis}` must be periodic at both faces or at none, but has "
                        f"{type(low).__name__} and {type(high).__name__}."
                    )

    @classmethod
    def all(cls, face: Face) -> "Boundaries":
        """Returns the same face everywhere."""
        return cls(x=face, y=face, z=face)

    def axis(self, axis: int) -> tuple[Face | None, Face]:
        """Returns the low and the high face of an axis, by number; `None` is r = 0."""
        if self.r is not None:
            return (self.r, self.z)[axis]
        return (self.x, self.y, self.z)[axis]

    def names(self, ndim: int) -> tuple[str, ...]:
        """Returns the names of the axes of a grid with these faces."""
        return AXES[:ndim] if self.r is None else CYLINDRICAL_AXES[:ndim]


# Thinner layers reflect visibly even at normal incidence.
_FEW = {CPML: 8, Absorber: 20}


def check_boundaries(
    boundaries: Boundaries, grid: Grid, *, around: bool = False
) -> None:
    """Refuses absorbing layers that do not fit into the grid, and warns of thin ones.

    Args:
        boundaries: The faces.
        grid: The grid.
        around: Whether it is in cylindrical coordinates.

    Raises:
        ArgumentError: If the layers of an axis overlap or fill it, or there are faces
            along r in other coordinates, or along an axis that the grid lacks.
    """
    if boundaries.r is not None and not around:
        raise ArgumentError(
            "`boundaries` must have `r` in cylindrical coordinates only, but has "
            f"{boundaries.r!r}. Give `x` and `y`, or pass `cylindrical=Cylindrical(m)` "
            "to the simulation."
        )
    _refuse_extra(boundaries, grid)
    for axis, name in enumerate(boundaries.names(grid.ndim)):
        _review_phase(boundaries.axis(axis)[0], grid, axis, name)
        layers = [f for f in boundaries.axis(axis) if isinstance(f, Layer)]
        total = sum(layer.cells for layer in layers)
        if total >= grid.shape[axis]:
            raise ArgumentError(
                f"`boundaries` along {name} must leave room between the absorbing "
                f"layers, but they take {total} of {grid.shape[axis]} cells. Use "
                "thinner layers or a larger grid."
            )
        for layer in layers:
            few = _FEW[type(layer)]
            if layer.cells < few:
                warn(
                    f"`boundaries` along {name} should have layers of at least {few} "
                    f"cells, but one has {layer.cells}: it reflects visibly.",
                )


# Phases over a period, in radians, below which a wavevector was meant in other units.
_LEAST_PHASE = 1e-4


def _review_phase(face: Face | None, grid: Grid, axis: int, name: str) -> None:
    """Warns of a wavevector that is as good as none."""
    if not isinstance(face, Bloch) or traced((face, grid)):
        return
    vector = float(np.asarray(face.wavevector))
    with jax.ensure_compile_time_eval():
        period = float(grid.size(axis))
    if 0 < abs(vector) * period < _LEAST_PHASE:
        warn(
            f"`wavevector` of the `Bloch` faces along {name} should be in rad/m, but "
            f"{vector:g} rad/m turn the phase by {vector * period:.3g} over the period "
            f"of {period:.3g} m, as good as 0. A fraction f of the reciprocal period "
            "is `2 * np.pi * f / period`."
        )


def _refuse_extra(boundaries: Boundaries, grid: Grid) -> None:
    """Refuses faces of an axis that the grid lacks, unless another axis has them."""
    names = boundaries.names(grid.ndim)
    there = [face for axis in range(grid.ndim) for face in boundaries.axis(axis)]
    for name in AXES:
        for face in () if name in names else getattr(boundaries, name):
            if not isinstance(face, PEC) and not any(_alike(face, f) for f in there):
                raise ArgumentError(
                    f"`boundaries` must have faces along {', '.join(names)} only, the "
                    f"axes of the grid, but have {face!r} along {name}. Leave `{name}` "
                    "out."
                )


def _alike(one: Face, other: Face | None) -> bool:
    """Whether two faces are the same, when their values are concrete."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(traced(pair) or bool(np.all(np.equal(*pair))) for pair in pairs)


def layer_cells(
    boundaries: Boundaries, axis: int, kind: type[Layer] | UnionType = Layer
) -> tuple[int, int]:
    """Returns the cells that layers of a kind take of an axis, low and high."""
    low, high = (
        face.cells if isinstance(face, Layer) and isinstance(face, kind) else 0
        for face in boundaries.axis(axis)
    )
    return low, high


def reaches_layer(
    boundaries: Boundaries,
    box: Box,
    shape: tuple[int, ...],
    kind: type[Layer] | UnionType = Layer,
) -> bool:
    """Tells whether some cells of a box lie in layers of a kind.

    Args:
        boundaries: The faces.
        box: For each axis the first cell and one past the last.
        shape: Cells of the grid.
        kind: Which layers count.
    """
    for axis, (low, high) in enumerate(box):
        first, last = layer_cells(boundaries, axis, kind)
        if low < first or high > shape[axis] - last:
            return True
    return False


def absorbing_axes(boundaries: Boundaries, ndim: int) -> list[int]:
    """Returns the axes that have an `Absorber`."""
    axes = range(ndim)
    return [axis for axis in axes if any(layer_cells(boundaries, axis, Absorber))]
