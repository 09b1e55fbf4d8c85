"""Pieces of VTK data put together: of one file, and of parallel files."""

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from ._vtk_arrays import check_size
from ._vtk_cells import VTKFaultError, join_cells, section_of
from ._vtk_data import GHOSTS, VTKData, cell_shape


# First and last index along each axis.
Extent = tuple[tuple[int, int], ...]
_DUPLICATE_CELL = 1


def shape_of(extent: Extent) -> tuple[int, ...]:
    """Returns how many points an extent has along each axis."""
    return tuple(high - low + 1 for low, high in extent)


def check_wanted(
    arrays: Collection[str] | None, found: Sequence[dict], there: Sequence[str]
) -> None:
    """Checks that all arrays were found that are asked for.

    Raises:
        VTKFaultError: If one was not; names those that are there.
    """
    missing = [n for n in arrays or () if not any(n in values for values in found)]
    if missing:
        raise VTKFaultError(
            f"It must hold the arrays {missing} of `arrays`, but has "
            f"{', '.join(there) or 'none'}."
        )


def merge(
    parts: Sequence[tuple[Extent | None, VTKData]], whole: Extent | None
) -> VTKData:
    """Puts pieces together.

    Args:
        parts: The extent of each, `None` of meshes, and its data.
        whole: The extent of all, `None` of meshes.

    Returns:
        One mesh, in which points that pieces share are repeated; or one grid.

    Raises:
        VTKFaultError: If they have different arrays, or leave gaps.
    """
    first = parts[0][1]
    if len(parts) == 1 and parts[0][0] == whole:
        return first
    filled = [part for part in parts if math.prod(part[1].shape)]
    if not filled:
        return first
    first = filled[0][1]
    for _, data in filled[1:]:
        if _signature(data) != _signature(first):
            raise VTKFaultError(
                "All pieces must be of one kind with the same arrays and components, "
                f"but one has {_signature(first)} and another {_signature(data)}."
            )
    if whole is None:
        return _join_meshes([data for _, data in filled])
    return _join_grids([(e, d) for e, d in filled if e is not None], whole)


def _signature(data: VTKData) -> tuple:
    axes = len(data.shape)
    return data.kind, *(
        {name: values.shape[axes:] for name, values in sorted(arrays.items())}
        for arrays in (data.point_data, data.cell_data)
    )


def _join_meshes(parts: Sequence[VTKData]) -> VTKData:
    cells = join_cells([(p.cells, p.shape[0]) for p in parts if p.cells is not None])
    first = parts[0]
    point_data = {
        name: np.concatenate([part.point_data[name] for part in parts])
        for name in first.point_data
    }
    cell_data = {
        name: np.concatenate([part.cell_data[name] for part in parts])
        for name in first.cell_data
    }
    if first.kind == "polydata":
        # All vertices come first, then all lines, and so on.
        order = np.argsort(section_of(cells.types), kind="stable")
        cells = cells.subset(order)
        cell_data = {name: values[order] for name, values in cell_data.items()}
    points = np.concatenate([p.points for p in parts if p.points is not None])
    return VTKData(
        first.kind, points, None, cells, point_data, cell_data, first.field_data
    )


def _join_grids(parts: Sequence[tuple[Extent, VTKData]], whole: Extent) -> VTKData:
    shape = shape_of(whole)
    first = parts[0][1]
    widest = max([8] + [v.nbytes // max(v.size, 1) for v in first.point_data.values()])
    check_size(math.prod(shape) * widest, np.dtype("u1"), "The grid of all pieces")
    _check_covered(parts, whole)

    def place(extent: Extent, cells: bool) -> tuple[slice, ...]:
        starts = [
            low - start for (low, _), (start, _) in zip(extent, whole, strict=True)
        ]
        sizes = cell_shape(shape_of(extent)) if cells else shape_of(extent)
        return tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))

    def joined(get: Callable[[VTKData], np.ndarray], cells: bool = False) -> np.ndarray:
        inner = cell_shape(shape) if cells else shape
        example = get(first)
        out = np.empty((*inner, *example.shape[3:]), example.dtype)
        for extent, data in parts:
            out[place(extent, cells)] = get(data)
        return out

    point_data = {n: joined(lambda d, n=n: d.point_data[n]) for n in first.point_data}
    cell_data = {
        n: joined(lambda d, n=n: d.cell_data[n], True) for n in first.cell_data
    }
    axes, points = None, None
    if first.kind == "structured":
        points = joined(lambda d: np.asarray(d.points))
    else:
        axes = tuple(_join_axis(parts, whole, axis) for axis in range(3))
    return VTKData(
        first.kind, points, axes, None, point_data, cell_data, first.field_data
    )


def _join_axis(
    parts: Sequence[tuple[Extent, VTKData]], whole: Extent, axis: int
) -> np.ndarray:
    start, end = whole[axis]
    out = np.empty(end - start + 1, np.result_type(*(_axis(d, axis) for _, d in parts)))
    for extent, data in parts:
        low, high = extent[axis]
        out[low - start : high + 1 - start] = _axis(data, axis)
    return out


def _axis(data: VTKData, axis: int) -> np.ndarray:
    assert data.axes is not None
    return data.axes[axis]


def _check_covered(parts: Sequence[tuple[Extent, VTKData]], whole: Extent) -> None:
    for extent, _ in parts:
        if any(
            low < start or high > end or (low == high and start != end)
            for (low, high), (start, end) in zip(extent, whole, strict=True)
        ):
            raise VTKFaultError(
                f"Pieces must lie in the whole extent {whole}, and be flat only where "
                f"it is, but one is {extent}."
            )
    # Points between the pieces would be left unset, and so would cells.
    covered = np.zeros(cell_shape(shape_of(whole)), bool)
    for extent, _ in parts:
        region = []
        for (low, _), (start, _), n in zip(
            extent, whole, cell_shape(shape_of(extent)), strict=True
        ):
            region.append(slice(low - start, low - start + n))
        covered[tuple(region)] = True
    if not np.all(covered):
        at = tuple(int(i) for i in np.argwhere(~covered)[0])
        raise VTKFaultError(
            f"Pieces must cover the whole extent {whole}, but cell {at} is in none."
        )


def without_ghosts(data: VTKData) -> VTKData:
    """Leaves out what another piece holds too: cells of meshes, and the marks."""
    ghosts = data.cell_data.get(GHOSTS)
    cells = data.cells
    cell_data = {k: v for k, v in data.cell_data.items() if k != GHOSTS}
    point_data = {k: v for k, v in data.point_data.items() if k != GHOSTS}
    if cells is not None and ghosts is not None:
        keep = (ghosts.astype(np.uint8) & _DUPLICATE_CELL) == 0
        cells = cells.subset(keep)
        cell_data = {name: values[keep] for name, values in cell_data.items()}
    return VTKData(
        data.kind,
        data.points,
        data.axes,
        cells,
        point_data,
        cell_data,
        data.field_data,
        data.time,
    )
