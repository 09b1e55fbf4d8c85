"""Cells of meshes in VTK's numbering: nodes, types, and faces of polyhedra."""

import equinox as eqx
import numpy as np
from jaxtyping import Int, UInt8

from .._checks import ArgumentError


POLYHEDRON = 42

# The number of nodes of VTK's cell types, of those where it is fixed.
NODES = {
    **{1: 1, 3: 2, 5: 3, 8: 4, 9: 4, 10: 4, 11: 8, 12: 8, 13: 6, 14: 5, 15: 10, 16: 12},
    **{21: 3, 22: 6, 23: 8, 24: 10, 25: 20, 26: 15, 27: 13, 28: 6, 29: 27},
}

# The types of polygonal cells with 1, 2, 3, 4 nodes, and of those with others.
SECTIONS = {
    "Verts": ({1: 1}, 2),
    "Lines": ({2: 3}, 4),
    "Polys": ({3: 5, 4: 9}, 7),
    "Strips": ({}, 6),
}


class VTKFaultError(Exception):
    """What is wrong with VTK data, as a sentence; callers say of which file."""


class VTKCells(eqx.Module):
    """Cells of an unstructured grid or of polygonal data.

    The nodes of cell `c` are `connectivity[offsets[c]:offsets[c + 1]]`, in VTK's order.
    A polyhedron has faces in addition: those of cell `c` have the numbers
    `cell_faces[c]` to `cell_faces[c + 1] - 1`, and the nodes of face `f` are
    `face_connectivity[face_offsets[f]:face_offsets[f + 1]]`.

    Attributes:
        connectivity: Numbers of points, one cell after the other.
        offsets: Where each cell begins, and the end: one more than there are cells.
        types: VTK's number for the type of each cell: 5 triangle, 9 quadrilateral,
            10 tetrahedron, 12 hexahedron, 13 wedge, 14 pyramid, 42 polyhedron, ...
        face_connectivity: Numbers of points, one face after the other.
        face_offsets: Where each face begins, and the end.
        cell_faces: Where the faces of each cell begin, and the end; `None` if no cell
            is a polyhedron.
    """

    connectivity: Int[np.ndarray, " nodes"]
    offsets: Int[np.ndarray, " cells_and_one"]
    types: UInt8[np.ndarray, " cells"]
    face_connectivity: Int[np.ndarray, " face_nodes"] | None = None
    face_offsets: Int[np.ndarray, " faces_and_one"] | None = None
    cell_faces: Int[np.ndarray, " cells_and_one"] | None = None

    def of_type(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the cells of one type that has a fixed number of nodes.

        Args:
            number: VTK's number of the type.

        Returns:
            Their nodes, one cell per row, and their numbers among all cells.

        Raises:
            ArgumentError: If the type has no fixed number of nodes.
        """
        if number not in NODES:
            raise ArgumentError(
                f"`number` must be a type of cell with a fixed number of nodes, one of "
                f"{sorted(NODES)}, but is {number}."
            )
        which = np.flatnonzero(self.types == number)
        nodes = self.offsets[which][:, None] + np.arange(NODES[number])
        return self.connectivity[nodes], which

    def subset(self, keep: np.ndarray) -> "VTKCells":
        """Returns the cells that a mask of truth values keeps, or of given numbers."""
        which = np.flatnonzero(keep) if keep.dtype == bool else keep
        rows, offsets = _rows(self.offsets, which)
        faces: tuple = (None, None, None)
        if self.cell_faces is not None:
            assert self.face_connectivity is not None
            assert self.face_offsets is not None
            faces_kept, cell_faces = _rows(self.cell_faces, which)
            face_rows, face_offsets = _rows(self.face_offsets, faces_kept)
            faces = (self.face_connectivity[face_rows], face_offsets, cell_faces)
        return VTKCells(self.connectivity[rows], offsets, self.types[which], *faces)


def _rows(offsets: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns where the entries of some rows lie, and the offsets of these rows."""
    starts, sizes = offsets[:-1][which], np.diff(offsets)[which]
    new = ends_to_offsets(np.cumsum(sizes))
    return np.repeat(starts - new[:-1], sizes) + np.arange(new[-1]), new


def ends_to_offsets(ends: np.ndarray) -> np.ndarray:
    """Puts the 0 in front that VTK leaves out."""
    return np.concatenate([np.zeros(1, np.int64), ends.astype(np.int64, copy=False)])


def check_cells(cells: VTKCells, points: int) -> None:
    """Checks that cells have the nodes that their types need, among the points.

    Raises:
        VTKFaultError: If they do not.
    """
    count = cells.types.size
    _check_list("cells", cells.offsets, cells.connectivity, count, points)
    sizes = np.diff(cells.offsets)
    for number in np.flatnonzero(np.bincount(cells.types, minlength=256)).tolist():
        if number in NODES:
            wrong = (cells.types == number) & (sizes != NODES[number])
            if np.any(wrong):
                at = int(np.argmax(wrong))
                raise VTKFaultError(
                    f"Cells of type {number} must have {NODES[number]} nodes, but cell "
                    f"{at} has {sizes[at]}."
                )
    faces = (cells.face_connectivity, cells.face_offsets, cells.cell_faces)
    face_connectivity, face_offsets, cell_faces = faces
    if face_connectivity is None or face_offsets is None or cell_faces is None:
        if any(part is not None for part in faces):
            raise VTKFaultError("Polyhedra must have all three arrays of faces.")
        if np.any(cells.types == POLYHEDRON):
            raise VTKFaultError("Polyhedra must have faces, but have none.")
        return
    number = max(face_offsets.size - 1, 0)
    _check_list("faces", face_offsets, face_connectivity, number, points)
    _check_list("faces of cells", cell_faces, np.arange(number), count, number)
    wrong = (cells.types == POLYHEDRON) != (np.diff(cell_faces) > 0)
    if np.any(wrong):
        at = int(np.argmax(wrong))
        raise VTKFaultError(
            "Polyhedra, and no other cells, must have faces, but cell "
            f"{at} of type {cells.types[at]} has {np.diff(cell_faces)[at]}."
        )


def _check_list(
    what: str, offsets: np.ndarray, entries: np.ndarray, count: int, points: int
) -> None:
    """Checks offsets and entries of `count` lists of numbers below `points`."""
    if offsets.size != count + 1:
        raise VTKFaultError(
            f"The offsets of {count} {what} must be {count + 1}, but are "
            f"{offsets.size}."
        )
    if offsets[0] != 0 or np.any(np.diff(offsets) < 0) or offsets[-1] != entries.size:
        raise VTKFaultError(
            f"The offsets of the {what} must increase from 0 to {entries.size}, the "
            "length of their list, but do not."
        )
    if entries.size and (entries.min() < 0 or entries.max() >= points):
        at = int(np.argmax((entries < 0) | (entries >= points)))
        cell = int(np.searchsorted(offsets, at, side="right")) - 1
        raise VTKFaultError(
            f"The {what} must refer to numbers from 0 to {points - 1}, but number "
            f"{cell} of them refers to {entries[at]}."
        )


def section_of(types: np.ndarray) -> np.ndarray:
    """Returns which section of polygonal data each cell belongs to, -1 for none."""
    table = np.full(256, -1, np.int8)
    for number, (special, general) in enumerate(SECTIONS.values()):
        table[[*special.values(), general]] = number
    return table[types]


def polygonal_cells(parts: list[tuple[str, np.ndarray, np.ndarray]]) -> VTKCells:
    """Joins sections of polygonal data, and finds the types of their cells.

    Args:
        parts: The name, the nodes and the offsets of each section.
    """
    nodes, ends, types = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)], []
    total = 0
    for section, entries, offsets in parts:
        special, general = SECTIONS[section]
        sizes = np.diff(offsets)
        kinds = np.full(sizes.size, general, np.uint8)
        for size, number in special.items():
            kinds[sizes == size] = number
        nodes.append(entries)
        ends.append(offsets[1:] + total)
        types.append(kinds)
        total += entries.size
    return VTKCells(
        np.concatenate(nodes),
        np.concatenate(ends),
        np.concatenate([np.zeros(0, np.uint8), *types]),
    )


def join_cells(parts: list[tuple[VTKCells, int]]) -> VTKCells:
    """Joins cells of several meshes, each with its number of points."""
    nodes, ends, types, shift, total = [], [np.zeros(1, np.int64)], [], 0, 0
    faces, face_ends, cell_ends, face_total, face_count = [], [], [], 0, 0
    for cells, points in parts:
        nodes.append(cells.connectivity + shift)
        ends.append(cells.offsets[1:] + total)
        types.append(cells.types)
        if cells.cell_faces is not None:
            assert cells.face_connectivity is not None
            assert cells.face_offsets is not None
            faces.append(cells.face_connectivity + shift)
            face_ends.append(cells.face_offsets[1:] + face_total)
            cell_ends.append(cells.cell_faces[1:] + face_count)
            face_total += cells.face_connectivity.size
            face_count += cells.face_offsets.size - 1
        else:
            cell_ends.append(np.full(cells.types.size, face_count))
        total += cells.connectivity.size
        shift += points
    joined = (np.concatenate(nodes), np.concatenate(ends), np.concatenate(types))
    if not faces:
        return VTKCells(*joined)
    zero = np.zeros(1, np.int64)
    return VTKCells(
        *joined,
        np.concatenate(faces),
        np.concatenate([zero, *face_ends]),
        np.concatenate([zero, *cell_ends]),
    )


def faces_of_streams(
    stream: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Takes apart lists of faces: how many, then for each its size and its nodes.

    Args:
        stream: All lists.
        starts: Where the list of each cell begins.
        ends: Where it ends; cells of which it is no later have no faces.

    Returns:
        Nodes and offsets of the faces, and the offsets of the faces of each cell.

    Raises:
        VTKFaultError: If a list does not end where it should.
    """
    values = stream.tolist()
    places: list[int] = []
    sizes: list[int] = []
    counts = np.zeros(starts.size, np.int64)
    for cell in np.flatnonzero(ends > starts).tolist():
        at, end = int(starts[cell]), int(ends[cell])
        number, at = values[at], at + 1
        for _ in range(min(max(number, 0), end - at)):
            if at >= end or not 0 <= values[at] < end - at:
                break
            places.append(at + 1)
            sizes.append(values[at])
            at += 1 + values[at]
            counts[cell] += 1
        if at != end or counts[cell] != number:
            raise VTKFaultError(
                f"The faces of cell {cell} must fill their {end - int(starts[cell])} "
                "numbers exactly, but do not."
            )
    face_offsets = ends_to_offsets(np.cumsum(sizes))
    # Where each node lies: the place of its face, and on from there.
    spread = np.repeat(np.asarray(places, np.int64) - face_offsets[:-1], sizes)
    nodes = stream[spread + np.arange(face_offsets[-1])]
    return nodes, face_offsets, ends_to_offsets(np.cumsum(counts))
