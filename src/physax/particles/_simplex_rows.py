"""The numbers of each simplex from which places in it are found."""

import numpy as np

from ._simplices import Simplices


def element_centres(parts: Simplices, number: int) -> np.ndarray:
    """Returns the centre of mass of each element."""
    share = parts.volumes / np.bincount(parts.owner, parts.volumes, number)[parts.owner]
    middle = np.mean(parts.points[parts.corners], axis=1)
    axes = range(middle.shape[1])
    return np.stack(
        [np.bincount(parts.owner, share * middle[:, k], number) for k in axes], -1
    )


def simplex_rows(parts: Simplices, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows of the mesh, and the corners in the order they count in."""
    corners = parts.corners.copy()
    places = parts.points[corners]
    simplices, n = len(corners), places.shape[-1]
    factors = np.swapaxes(places[:, 1:] - places[:, :1], 1, 2).copy()
    every = np.arange(simplices)
    # Edges as columns; E = L U with a U whose diagonal is 1. Columns are exchanged, not
    # rows, so that rounding stays small along each axis for itself: a layer of flat
    # elements along an axis loses nothing across it.
    for k in range(n):
        pivot = k + np.argmax(np.abs(factors[:, k, k:]), axis=1)
        for array in (factors, corners[:, None, 1:]):
            kept = array[every, :, k].copy()
            array[:, :, k] = array[every, :, pivot]
            array[every, :, pivot] = kept
        for j in range(k + 1, n):
            factors[:, k, j] /= factors[:, k, k]
            factors[:, k + 1 :, j] -= factors[:, k + 1 :, k] * factors[:, k, j, None]
    factors[:, range(n), range(n)] = 1 / factors[:, range(n), range(n)]
    places = parts.points[corners]
    edges = np.swapaxes(places[:, 1:] - places[:, :1], 1, 2)
    slopes = np.linalg.inv(edges)
    slopes = np.concatenate([-slopes.sum(1, keepdims=True), slopes], 1)
    pairs = places[:, :, None] - places[:, None]
    longest = np.sqrt(np.max(np.sum(pairs**2, -1), (1, 2)))
    heights = 1 / (np.linalg.norm(slopes, axis=-1) * longest[:, None])
    reference = places[:, 0].astype(dtype)
    rows = [
        reference,
        reference - places[:, 0],
        heights,
        factors.reshape(simplices, n * n),
    ]
    return np.concatenate(rows, 1).astype(dtype), corners


def neighbours(corners: np.ndarray) -> np.ndarray:
    """Returns the simplex across the face opposite to each corner, -1 if none."""
    simplices, count = corners.shape
    faces = np.stack([np.delete(corners, k, 1) for k in range(count)], 1)
    faces = np.sort(faces.reshape(simplices * count, count - 1), 1)
    order = np.lexsort(faces.T)
    faces = faces[order]
    same = np.flatnonzero(np.all(faces[1:] == faces[:-1], axis=1))
    beside = np.full(simplices * count, -1)
    beside[order[same]] = order[same + 1] // count
    beside[order[same + 1]] = order[same] // count
    return beside.reshape(simplices, count)
