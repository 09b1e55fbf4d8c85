"""Pictures of field components."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.lib.stride_tricks import sliding_window_view

from .._checks import ArgumentError, instance, kind_of, whole
from ..em import Simulation, SpectralFields, TimeSeries
from ..grid import AXES, Field
from ..units import NANO, SPEED_OF_LIGHT
from ._canvas import add_colour_bar, choose, new_axes, readable_unit
from ._permittivity import permittivity_picture
from ._samples import aspect_of, cut, draw_image, edges_around


class Part(NamedTuple):
    """A real picture of complex numbers.

    Attributes:
        of: Makes real numbers.
        label: A format for the label.
        colours: Name of a colour map.
        limits: From values to the limits of the colours.
    """

    of: Any
    label: str
    colours: str
    limits: Any


def _symmetric(values):
    largest = float(np.max(np.abs(values), initial=0.0))
    return (-largest, largest)


PARTS = {
    "abs": Part(
        np.abs,
        "|{}|",
        "inferno",
        lambda v: (0.0, float(np.max(v, initial=0.0))),
    ),
    "real": Part(np.real, "Re {}", "RdBu_r", _symmetric),
    "imag": Part(np.imag, "Im {}", "RdBu_r", _symmetric),
    "phase": Part(np.angle, "arg {}", "twilight", lambda v: (-np.pi, np.pi)),
}
"""The parts of a field that can be drawn."""


class Samples(NamedTuple):
    """One component at one frequency or time.

    Attributes:
        values: The axes are x, y, z.
        points: Positions along each axis in metres.
        name: Of the component.
        unit: Of the values.
        title: Which frequency or time; may be empty.
        axes: Names of the axes.
    """

    values: np.ndarray
    points: list[np.ndarray]
    name: str
    unit: str
    title: str
    axes: tuple[str, ...] = AXES


def field(
    fields: SpectralFields | TimeSeries | Field,
    component: str | None = None,
    index: int = 0,
    *,
    part: str = "abs",
    plane: tuple[str, float | int] | None = None,
    outline: Simulation | None = None,
    largest: float | int | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws a field component as an image, or as a curve where it lies on a line.

    Args:
        fields: The result of a `FieldMonitor` or a `TimeMonitor`, or a `grid.Field`.
        component: For example `"Ez"`; the first one if `None`. Not used for a `Field`.
        index: Which of the frequencies or times, counted from 0; from the end if
            negative. Not used for a `Field`.
        part: `"abs"`, `"real"`, `"imag"` or `"phase"`.
        plane: Where the samples fill a volume, the cut: an axis and the position on it
            in metres. The middle along z if `None`.
        outline: A simulation whose materials are outlined, in 2-D, half way between
            the permittivities on both sides of a border.
        largest: Modulus at the end of the colours, in the unit of the field; the
            largest that there is if `None`. Not used for a phase.
        axes: Where to draw; a new figure if `None`.

    Returns:
        The axes.

    Raises:
        ArgumentError: If there is no such component, index, part or plane, or the
            samples are a single point.
    """
    style = PARTS[choose("part", part, tuple(PARTS))]
    if outline is not None:
        instance(outline, "outline", Simulation, "Pass the one that made `fields`.")
    samples = samples_of(fields, component, index)
    values, left = cut(style.of(samples.values), samples.points, plane, samples.axes)
    unit = "rad" if part == "phase" else samples.unit
    label = style.label.format(samples.name) + (f" ({unit})" if unit else "")
    if not left:
        raise ArgumentError(
            "`fields` must have more than one sample, but is a point. Draw it over "
            "time or frequency: `time_series`, `spectrum`."
        )
    if len(left) == 1:
        axes = new_axes(axes)
        ((name, points),) = left.items()
        length = readable_unit(points, "m")
        axes.plot(points / length.size, values)
        axes.set_xlabel(f"{name} ({length.name})")
        axes.set_ylabel(label)
    else:
        borders = {name: edges_around(points) for name, points in left.items()}
        axes = new_axes(axes, aspect_of(borders))
        low, high = style.limits(values)
        if largest is not None and part != "phase":
            low, high = largest * np.sign([low, high])
        image = draw_image(
            axes, values, borders, cmap=style.colours, vmin=low, vmax=high
        )
        add_colour_bar(axes, image, label)
        if outline is not None:
            _draw_outline(axes, outline, tuple(left), bright=part == "abs")
    axes.set_title(samples.title, fontsize="medium")
    return axes


def _draw_outline(axes: Axes, sim: Simulation, names, *, bright: bool) -> None:
    """Draws the borders of materials, and of metal."""
    if sim.grid.ndim != 2 or names != sim.components.axes:
        raise ArgumentError("`outline` must be a 2-D simulation of the same plane.")
    picture = permittivity_picture(sim, None)
    images = [x for x in (picture.values, picture.metal) if x is not None]
    limits = (axes.get_xlim(), axes.get_ylim())
    unit = readable_unit(np.concatenate(picture.borders), "m")
    x, y = ((b[1:] + b[:-1]) / 2 / unit.size for b in picture.borders)
    colour = "white" if bright else "black"
    style = {"colors": colour, "linewidths": 0.7, "alpha": 0.8}
    for image in images:
        above = _above_middle(np.asarray(image, float))
        if not np.all(above.mask):
            axes.contour(x, y, above.T, [0.0], **style)
    axes.set_xlim(*limits[0])
    axes.set_ylim(*limits[1])


# Permittivities that are this close are one, but for rounding.
_SAME = 1e-4
# Where cells average a border, a step over it is half of the jump or more.
_STEEP = 0.4


def _above_middle(image: np.ndarray) -> np.ma.MaskedArray:
    """Returns by how much cells at a border exceed the middle of both sides.

    Where values change little by little it is that of all values. Cells away from
    borders are masked.
    """
    low, high = (_extreme(image, of, 1) for of in (np.min, np.max))
    plain = high - low <= _SAME * np.maximum(np.abs(low), np.abs(high))
    # Five cells hold a border with its cell of averages, or four steps of a gradient.
    change = _extreme(image, np.max, 2) - _extreme(image, np.min, 2)
    steps = [np.diff(image, axis=k, append=image.take([-1], k)) for k in (0, 1)]
    steepest = _extreme(np.max(np.abs(steps), axis=0), np.max, 2)
    border = steepest >= _STEEP * change
    middle = np.where(border, low + high, image.min() + image.max()) / 2
    return np.ma.masked_array(image - middle, plain)


def _extreme(image: np.ndarray, of: Callable[..., np.ndarray], reach: int):
    """Returns the extreme around each cell."""
    padded = np.pad(image, reach, mode="edge")
    for axis in (0, 1):
        padded = of(sliding_window_view(padded, 2 * reach + 1, axis), axis=-1)
    return padded


def _field_name(component: str) -> str:
    return component if component[0] == "E" else f"η₀{component}"


def _chosen(fields, component: str | None) -> str:
    names = tuple(fields.values)
    return names[0] if component is None else choose("component", component, names)


def _entry(values, index: int, what: str):
    index = whole(index, "index", -len(values))
    if index >= len(values):
        raise ArgumentError(
            f"`index` must be one of {len(values)} {what}, but is {index}."
        )
    return values[index]


@singledispatch
def samples_of(fields, component: str | None, index: int) -> Samples:
    """Takes one component at one frequency or time out of a result."""
    del component, index
    raise ArgumentError(
        "`fields` must be `SpectralFields`, a `TimeSeries` or a `Field`, but is "
        f"{kind_of(fields)} From a `Result`, pass one of `monitors`."
    )


@samples_of.register
def _(fields: SpectralFields, component: str | None, index: int) -> Samples:
    name = _chosen(fields, component)
    frequency = float(_entry(np.asarray(fields.frequencies), index, "frequencies"))
    values = _entry(fields.values[name], index, "frequencies")
    points = [np.asarray(p) for p in fields.coordinates[name]]
    title = f"{SPEED_OF_LIGHT / frequency / NANO:.6g} nm, {frequency / 1e12:.5g} THz"
    return Samples(
        np.asarray(values), points, _field_name(name), "V s/m", title, fields.axes
    )


@samples_of.register
def _(fields: TimeSeries, component: str | None, index: int) -> Samples:
    name = _chosen(fields, component)
    times = np.asarray(fields.times[name])
    time = float(_entry(times, index, "times"))
    unit = readable_unit(times, "s")
    points = [np.asarray(p) for p in fields.coordinates[name]]
    values = np.asarray(fields.values[name][index])
    # As many digits as tell one record from the next.
    step = float(np.ptp(times)) / max(1, len(times) - 1) / unit.size
    digits = max(1, int(np.ceil(-np.log10(step)))) if step > 0 else 1
    title = f"{time / unit.size:.{digits}f} {unit.name}"
    return Samples(values, points, _field_name(name), "V/m", title, fields.axes)


@samples_of.register
def _(fields: Field, component: str | None, index: int) -> Samples:
    del component, index
    values = np.asarray(fields.values)
    if values.ndim != fields.grid.ndim:
        raise ArgumentError(
            "`fields` must have no axes before those of its grid, but has shape "
            f"{values.shape}. Pass one entry of it."
        )
    points = [np.asarray(p) for p in fields.coordinates()]
    return Samples(values, points, "field", "", "")
