"""Reads solids from STL files."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import ArrayLike, Float, Int

from .._checks import ArgumentError
from ..em import AbstractShape, TriangleMesh, Union
from ..em._bodies import bodies_of, check_closed
from ..units import MICRO
from ._centre import as_centre
from ._errors import PhysaxFileError
from ._gds import MissingPackageError


def read_stl(
    path: str | os.PathLike,
    *,
    unit: float | int = MICRO,
    centre: ArrayLike | Sequence[ArrayLike] | None = None,
    parts: int = 2,
    max_triangles: int = 20_000,
) -> AbstractShape:
    """Reads a solid from an STL file, binary or of text.

    Needs trimesh, which `pip install physax[photonics]` brings. Corners at the same
    place are joined. A body inside another, facing the other way, is a cavity. A body
    outside of all others that faces inward is turned, and its cavities with it. Bodies
    that cross or touch are united, with the accuracy of `em.Union`; those that share an
    edge are refused.

    Args:
        path: The file.
        unit: The length of 1 in the file, in metres: STL has no units.
        centre: Where the middle of the box around the solid goes, (x, y, z) in metres;
            as in the file if not given.
        parts: Into how many parts a cell is divided along each axis, see
            `em.TriangleMesh`.
        max_triangles: Larger files are refused: the work grows as triangles x cells.

    Returns:
        The solid, to be filled with a material by `em.Structure`: a mesh, or the union
        of some where bodies meet.

    Raises:
        MissingPackageError: If trimesh is missing.
        ArgumentError: If `unit` is not positive or `centre` not three numbers.
        PhysaxFileError: If the file cannot be read as STL, is too large, or its surface
            is not closed, or a body inside another faces the same way.
    """
    if not 0 < unit < np.inf:
        raise ArgumentError(f"`unit` must be positive and finite, but is {unit:g}.")
    middle = None if centre is None else as_centre(centre, 3)
    try:
        import trimesh
    except ImportError as error:
        raise MissingPackageError(
            "Reading STL needs the package trimesh: pip install 'physax[photonics]'."
        ) from error

    path = Path(path)
    with path.open("rb") as file:
        try:
            mesh = trimesh.load_mesh(file, file_type="stl", process=True)
        except (ValueError, IndexError, KeyError, TypeError) as error:
            raise PhysaxFileError(
                path, f"this is not a valid STL file: {error}."
            ) from error
    triangles = np.asarray(mesh.faces)
    if not len(triangles):
        raise PhysaxFileError(
            path, "the file holds no triangles: it is cut short, or no STL file."
        )
    if len(triangles) > max_triangles:
        raise PhysaxFileError(
            path,
            f"the surface must have 1 to {max_triangles} triangles (`max_triangles`), "
            f"but has {len(triangles)}. Simplify it, or allow more.",
        )
    vertices = np.asarray(mesh.vertices, float) * unit
    if middle is not None:
        box = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
        vertices = vertices - box + middle
    try:
        check_closed(triangles, len(vertices))
        solids = [
            TriangleMesh(vertices, some, parts) for some in _solids(vertices, triangles)
        ]
    except ArgumentError as error:
        raise PhysaxFileError(path, f"the surface is not valid: {error}") from error
    return solids[0] if len(solids) == 1 else Union(solids)


def _solids(
    vertices: Float[np.ndarray, "vertices 3"], triangles: Int[np.ndarray, "triangles 3"]
) -> list[Int[np.ndarray, "_ 3"]]:
    """Turns bodies that face inward, and shares those that meet among solids."""
    bodies = bodies_of(vertices, triangles)
    count, facing = len(bodies.volume), bodies.volume > 0
    own = bodies.inside | np.eye(count, dtype=bool)
    outermost = ~bodies.inside.any(axis=1)
    outer = np.argmax(own & outermost, axis=1)
    # A pocket, or a body that faces inward by mistake.
    unclear = bodies.meet & np.outer(outermost, outermost)
    unclear &= facing[:, None] != facing
    if unclear.any():
        one, other = bodies.first[np.argwhere(unclear)[0]]
        raise ArgumentError(
            "Bodies that cross or touch must face the same way, but those of "
            f"triangles {one} and {other} do not. Reverse one to unite them; cut a "
            "pocket out before."
        )
    # A body goes with the smallest solid around it. What stands on the wall of a cavity
    # is a solid of its own.
    begins = outermost | (facing == facing[outer]) & bodies.meet.any(axis=1)
    sizes = np.where(own & begins, np.abs(bodies.volume), np.inf)
    around = np.argmin(sizes, axis=1)
    solid = np.zeros(count, int)
    for k in np.flatnonzero(begins):
        touching = bodies.meet[around == k].any(axis=0) & (around < k)
        solid[around == k] = min(set(range(count)) - set(solid[touching]))
    turn = ~facing[outer][bodies.number][:, None]
    turned = np.where(turn, triangles[:, ::-1], triangles)
    return [turned[solid[bodies.number] == k] for k in range(solid.max() + 1)]
