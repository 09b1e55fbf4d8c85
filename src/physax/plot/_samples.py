"""Images and lines of samples at given positions."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from .._checks import ArgumentError
from ..grid import AXES
from ._canvas import is_even, readable_unit


def edges_around(points: np.ndarray) -> np.ndarray:
    """Returns the borders of the cells around samples, one more than samples."""
    middle = (points[1:] + points[:-1]) / 2
    first, last = 2 * points[0] - middle[0], 2 * points[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


def as_plane(plane: Any) -> tuple[str, float] | None:
    """Returns an axis and a position in metres, refusing what is neither."""
    if plane is None:
        return None
    pair = plane if isinstance(plane, tuple | list) and len(plane) == 2 else (0, 0)
    name, position = pair
    kind = np.asarray(position)
    if not isinstance(name, str) or kind.ndim or kind.dtype.kind not in "fiu":
        raise ArgumentError(
            "`plane` must be an axis and a position in metres, such as "
            f'`("y", 0.0)`, but is {plane!r}.'
        )
    return name, float(position)


def cut(
    values: np.ndarray,
    points: list[np.ndarray],
    plane: tuple[str, float | int] | None,
    axes: tuple[str, ...] = AXES,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Takes the samples nearest to a plane, and drops axes of a single sample.

    Args:
        values: The axes are x, y, z.
        points: Positions along each axis in metres.
        plane: An axis and the position on it in metres. Needed where the samples fill
            a volume; the middle of the last axis if `None`.
        axes: Names of the axes.

    Returns:
        Samples, and the positions along each axis that is left, by name.

    Raises:
        ArgumentError: If the plane is outside the samples, or is none.
    """
    names, plane = axes[: len(points)], as_plane(plane)
    left = {n: p for n, p in zip(names, points, strict=True) if len(p) > 1}
    if plane is None and len(left) == 3:
        plane = (names[-1], float(np.mean(points[-1][[0, -1]])))
    if plane is not None:
        name, position = plane
        if name not in left:
            raise ArgumentError(
                f"`plane` must name one of the axes {tuple(left)}, but is {plane}."
            )
        borders = edges_around(left[name])
        if not borders[0] <= position <= borders[-1]:
            raise ArgumentError(
                f"`plane` must lie between {borders[0]:g} and {borders[-1]:g} m along "
                f"{name}, but is at {position:g} m."
            )
        number = names.index(name)
        values = np.take(
            values, [np.argmin(np.abs(left.pop(name) - position))], axis=number
        )
    return np.asarray(values).reshape([len(p) for p in left.values()]), left


def draw_image(
    axes: Axes, values: np.ndarray, borders: dict[str, np.ndarray], **options
) -> ScalarMappable:
    """Draws samples over two axes, with the axes labelled in a readable unit.

    Args:
        axes: Where.
        values: Shape (first axis, second axis).
        borders: For each axis the borders of the cells in metres.
        **options: Passed on to matplotlib: `cmap`, `vmin`, `vmax`.

    Returns:
        The image.
    """
    unit = readable_unit(np.concatenate(list(borders.values())), "m")
    (across, x), (up, y) = ((n, b / unit.size) for n, b in borders.items())
    if _uniform(x) and _uniform(y):
        extent = (x[0], x[-1], y[0], y[-1])
        image = axes.imshow(
            values.T, origin="lower", extent=extent, aspect="auto", **options
        )
    else:
        image = axes.pcolormesh(x, y, values.T, rasterized=True, **options)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    ratio = float((y[-1] - y[0]) / (x[-1] - x[0]))
    axes.set_aspect("equal" if is_even(ratio) else "auto")
    axes.set_xlabel(f"{across} ({unit.name})")
    axes.set_ylabel(f"{up} ({unit.name})")
    return image


def aspect_of(borders: dict[str, np.ndarray]) -> float:
    """Returns height over width of the picture of an area."""
    x, y = (b[-1] - b[0] for b in borders.values())
    ratio = float(y / x)
    return ratio if is_even(ratio) else 0.65


def _uniform(borders: np.ndarray) -> bool:
    widths = np.diff(borders)
    # Positions in float32 are known to 1e-7 of the largest.
    slack = 4e-7 * np.max(np.abs(borders)) + 1e-6 * np.max(widths)
    return bool(np.ptp(widths) <= 2 * slack)
