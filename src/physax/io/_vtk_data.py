"""What a VTK file holds, as NumPy arrays in the order that physax uses."""

import math
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Num, Shaped

from .._checks import ArgumentError
from ._vtk_cells import VTKCells, VTKFaultError, check_cells


# The kinds of data that are read and written, and the suffixes of their XML files.
SUFFIXES = {
    "image": ".vti",
    "rectilinear": ".vtr",
    "structured": ".vts",
    "unstructured": ".vtu",
    "polydata": ".vtp",
}
GHOSTS = "vtkGhostType"


class VTKData(eqx.Module):
    """The contents of one VTK file: a grid or mesh, and values on it.

    Of the three structured kinds `"image"`, `"rectilinear"` and `"structured"`, values
    have the shape `[i, j, k]` or `[i, j, k, components]` in C order, with `i` along x
    (VTK's own order is the reverse). Values on points have the `shape` of the grid,
    values on cells one less along each axis, but at least 1. Of `"unstructured"` and
    `"polydata"` they are `[n]` or `[n, components]`.

    Attributes:
        kind: One of the five kinds.
        points: Of `"structured"`, as `[i, j, k, 3]`; of `"unstructured"` and
            `"polydata"` as `[points, 3]`; else `None`.
        axes: The coordinates along x, y and z of `"image"` and `"rectilinear"`.
        cells: Of `"unstructured"` and `"polydata"`. Those of polydata are in VTK's
            order: vertices, lines, polygons, strips.
        point_data: Values on points, by name.
        cell_data: Values on cells, by name.
        field_data: Other arrays of numbers, `[tuples]` or `[tuples, components]`.
        time: The time in the unit of the file, or `None` if it has none.

    Raises:
        ArgumentError: If shapes do not fit, or cells refer to points that do not exist.
    """

    kind: str = eqx.field(static=True)
    points: Num[np.ndarray, "*shape 3"] | None = None
    axes: tuple[Num[np.ndarray, " _"], ...] | None = None
    cells: VTKCells | None = None
    point_data: dict[str, Shaped[np.ndarray, "..."]] = eqx.field(default_factory=dict)
    cell_data: dict[str, Shaped[np.ndarray, "..."]] = eqx.field(default_factory=dict)
    field_data: dict[str, Shaped[np.ndarray, "..."]] = eqx.field(default_factory=dict)
    time: float | None = None

    def __check_init__(self):
        try:
            check_data(self)
        except VTKFaultError as error:
            raise ArgumentError(str(error)) from error

    @property
    def shape(self) -> tuple[int, ...]:
        """How many points there are: along each axis of a structured kind."""
        if self.axes is not None:
            return tuple(axis.size for axis in self.axes)
        assert self.points is not None
        return self.points.shape[:-1]

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """How many cells there are: along each axis of a structured kind."""
        if self.cells is not None:
            return (self.cells.types.size,)
        return cell_shape(self.shape)


def cell_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns how many cells a structured grid of points has along each axis."""
    if 0 in shape:
        return (0,) * len(shape)
    return tuple(max(n - 1, 1) for n in shape)


def check_data(data: VTKData) -> None:
    """Checks that the parts of the data fit to each other.

    Raises:
        VTKFaultError: If they do not.
    """
    if data.kind not in SUFFIXES:
        raise VTKFaultError(
            f"`kind` must be one of {', '.join(SUFFIXES)}, but is {data.kind!r}."
        )
    meshed = data.kind in ("unstructured", "polydata")
    axial = data.kind in ("image", "rectilinear")
    for name, needed in (("points", not axial), ("axes", axial), ("cells", meshed)):
        if (getattr(data, name) is not None) != needed:
            must = "must be given" if needed else "must not be given"
            raise VTKFaultError(f"`{name}` {must} for data of kind {data.kind!r}.")
    if len(data.shape) != (1 if meshed else 3):
        raise VTKFaultError(
            f"Points of kind {data.kind!r} must be numbered along {1 if meshed else 3} "
            f"axes, but have the shape {data.shape}."
        )
    if data.cells is not None:
        check_cells(data.cells, math.prod(data.shape))
    for what, shape in (("point_data", data.shape), ("cell_data", data.cell_shape)):
        for name, values in getattr(data, what).items():
            n = len(shape)
            if values.shape[:n] != shape or values.ndim > n + 1:
                raise VTKFaultError(
                    f"`{what}[{name!r}]` must have the shape {shape}, or that and "
                    f"components, but has {values.shape}."
                )
