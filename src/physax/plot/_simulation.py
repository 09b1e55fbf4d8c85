"""The picture of a simulation before it runs."""

from collections.abc import Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from .._checks import ArgumentError, by_name, instance, refuse_traced
from ..em import PEC, PMC, Port, Simulation
from ..em._boundaries import layer_cells
from ..grid import AXES
from ._canvas import Unit, add_colour_bar, new_axes, readable_unit
from ._marks import Mark, grid_bounds, monitor_marks, port_marks, source_marks
from ._permittivity import permittivity_picture
from ._samples import as_plane, aspect_of, cut, draw_image


_SOURCE, _MONITOR, _PORT, _LAYER = "tab:red", "tab:blue", "tab:green", "0.35"
# From white to a grey on which red and blue stand out.
_NEGATIVE = "#e0c268"
_GREYS = LinearSegmentedColormap.from_list(
    "permittivity", ["1.0", "0.45"]
).with_extremes(under=_NEGATIVE)
_METAL = LinearSegmentedColormap.from_list("metal", ["#00000000", "#000000ff"])
_WALLS = {PEC: ("-", "PEC"), PMC: ("--", "PMC")}
_LABEL_BOX = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.7}


def simulation(
    sim: Simulation,
    axes: Axes | None = None,
    *,
    plane: tuple[str, float | int] | None = None,
    component: str | None = None,
    ports: Mapping[str, Port] | None = None,
) -> Axes:
    """Draws what will be simulated: permittivity, sources, monitors and faces.

    Sources are red, with an arrow the way they send; monitors blue, with an arrow the
    way their flux counts; ports green, with an arrow into the device; absorbing layers
    hatched. Perfect metal and walls are black, walls of PMC dashed; periodic faces stay
    bare. Where there is a negative permittivity, as of metals with poles, the greys
    span the positive ones. In 3-D, what does not touch the plane is drawn faintly where
    it is projected onto it. The legend names monitors that cover the whole grid.

    Args:
        sim: The simulation, of any dimension.
        axes: Where to draw; a new figure if `None`.
        plane: In 3-D the cut: an axis and the position on it in metres, for example
            `("y", 0.0)`. The middle along z if `None`.
        component: The electric component whose permittivity is drawn, where each has
            its own: `"Ez"`. The last one if `None`.
        ports: By name, as for `s_parameters`; each is drawn where its mode is launched.

    Returns:
        The axes. `axes.figure.savefig(path)` writes the picture.

    Raises:
        ArgumentError: If the plane or the component does not exist, or a port does not
            fit the dimension of the grid.
    """
    instance(sim, "sim", Simulation, "For the fields of a result, use `plot.field`.")
    refuse_traced(sim, "sim", "Draw it outside.")
    ports = by_name(ports, "ports", Port)
    if sim.grid.ndim == 1:
        if plane is not None:
            raise ArgumentError(f"`plane` must be None in 1-D, but is {plane}.")
        if ports:
            raise ArgumentError(
                f"`ports` must be left out in 1-D, but names {sorted(ports)}."
            )
        return _draw_line(sim, new_axes(axes, 0.4), component)
    return _draw_area(sim, axes, plane, component, ports)


def _draw_area(sim: Simulation, axes, plane, component, ports) -> Axes:
    ndim, plane = sim.grid.ndim, as_plane(plane)
    if ndim == 2 and plane is not None:
        raise ArgumentError(f"`plane` must be None in 2-D, but is {plane}.")
    low, high = grid_bounds(sim.grid)
    if ndim == 3 and plane is None:
        plane = ("z", float(low[2] + high[2]) / 2)
    picture = permittivity_picture(sim, component)
    all_names = sim.components.axes
    names = [name for name in all_names if plane is None or name != plane[0]]
    middles = [(b[1:] + b[:-1]) / 2 for b in picture.borders]
    values, kept = _cut_area(picture.values, middles, plane, all_names)
    by_name: dict[str, np.ndarray] = dict(zip(all_names, picture.borders, strict=True))
    borders = {name: by_name[name] for name in kept}
    axes = new_axes(axes, aspect_of(borders))

    # Metals with poles reach so far below 0 that dielectrics would all look alike.
    negative = bool(np.any(values < 0) and np.any(values > 0))
    limits = _range(values[values > 0] if negative else values)
    image = draw_image(axes, values, borders, cmap=_GREYS, **limits)
    add_colour_bar(axes, image, picture.label)
    if picture.metal is not None:
        metal, _ = _cut_area(picture.metal, middles, plane, all_names)
        draw_image(axes, metal, borders, cmap=_METAL, vmin=0, vmax=1)
    unit = readable_unit(np.concatenate([borders[n] for n in names]), "m")
    shown = [all_names.index(name) for name in names]
    x, y = (np.array([low[a], high[a]]) / unit.size for a in shown)
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    layers = _draw_layers(axes, sim, shown, unit)
    walls = _draw_walls(axes, sim, shown, (x, y))
    monitors, everywhere = _sorted_monitors(sim)
    for marks, colour in (
        (monitors, _MONITOR),
        (port_marks(ports, sim), _PORT),
        (source_marks(sim), _SOURCE),
    ):
        for mark in marks:
            faint = plane is not None and not _touches(mark, plane, sim)
            _draw_mark(axes, mark, shown, unit, colour, 0.35 if faint else 1.0)
    if plane is not None:
        place = f"{plane[0]} = {plane[1] / unit.size + 0.0:.3f} {unit.name}"
        axes.annotate(
            place,
            (1, 0),
            xytext=(-5, 5),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="bottom",
            bbox=_LABEL_BOX,
            zorder=6,
        )
    _add_legend(
        axes, sim, layers, walls, everywhere, ports=bool(ports), negative=negative
    )
    return axes


def _sorted_monitors(sim: Simulation) -> tuple[list[Mark], list[str]]:
    """Returns the marks to draw, and the names of monitors that cover the grid."""
    low, high = grid_bounds(sim.grid)
    marks, everywhere = [], []
    for mark in monitor_marks(sim):
        # All samples of a component may end half a cell before the grid does.
        if np.all(mark.high - mark.low >= 0.97 * (high - low)):
            everywhere.append(mark.name)
        else:
            marks.append(mark)
    return marks, everywhere


def _cut_area(values, middles, plane, names):
    """Cuts where there is a plane; a grid may be one cell thick."""
    if plane is None:
        return values, names
    number = AXES.index(plane[0]) if plane[0] in AXES else -1
    if number >= 0 and len(middles[number]) == 1:
        return np.take(values, 0, axis=number), [n for n in AXES if n != plane[0]]
    return cut(values, middles, plane)


def _range(values: np.ndarray) -> dict[str, float]:
    """Returns the limits of the colours, apart also where all values are equal."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.5 if high - low <= 1e-6 * high else 0.0
    return {"vmin": low - margin, "vmax": high + margin}


def _layer_bounds(sim: Simulation) -> Iterator[tuple[int, float, float]]:
    """Yields the axis and the extent in metres of each absorbing layer."""
    for axis in range(sim.grid.ndim):
        edges = np.asarray(sim.grid.edges(axis))
        low, high = layer_cells(sim.boundaries, axis)
        if low:
            yield axis, edges[0], edges[low]
        if high:
            yield axis, edges[-1 - high], edges[-1]


def _draw_layers(axes: Axes, sim: Simulation, shown: list[int], unit: Unit) -> bool:
    drawn = False
    style = {"hatch": "////", "fill": False, "ec": _LAYER, "lw": 0.0, "zorder": 2}
    for axis, start, stop in _layer_bounds(sim):
        if axis not in shown:
            continue
        start, size = start / unit.size, (stop - start) / unit.size
        if axis == shown[0]:
            low, high = axes.get_ylim()
            axes.add_patch(Rectangle((start, low), size, high - low, **style))
        else:
            low, high = axes.get_xlim()
            axes.add_patch(Rectangle((low, start), high - low, size, **style))
        drawn = True
    return drawn


def _draw_walls(axes: Axes, sim: Simulation, shown: list[int], limits) -> list[type]:
    """Draws conductors along the faces, and returns the kinds that there are."""
    kinds = []
    for number, axis in enumerate(shown):
        for face, at in zip(sim.boundaries.axis(axis), limits[number], strict=True):
            if type(face) not in _WALLS:
                continue
            kinds.append(type(face))
            line = [(at, at), tuple(limits[1 - number])]
            x, y = line if number == 0 else line[::-1]
            style = _WALLS[type(face)][0]
            # Half of the line lies outside of the grid.
            axes.plot(x, y, style, color="k", lw=3, clip_on=False, zorder=5)
    return kinds


def _touches(mark: Mark, plane: tuple[str, float | int], sim: Simulation) -> bool:
    axis = AXES.index(plane[0])
    cell = float(np.max(np.asarray(sim.grid.cell_widths(axis))))
    return bool(mark.low[axis] - cell <= plane[1] <= mark.high[axis] + cell)


def _draw_mark(axes: Axes, mark: Mark, shown, unit: Unit, colour: str, alpha: float):
    """Draws a point, a line or a box, with its name and an arrow."""
    (x0, y0), (x1, y1) = (corner[shown] / unit.size for corner in (mark.low, mark.high))
    style = {"color": colour, "alpha": alpha, "zorder": 4}
    point = x0 == x1 and y0 == y1
    if point and mark.direction is not None and mark.direction[0] not in shown:
        # The sign that tells the direction marks the place as well.
        pass
    elif point:
        axes.plot([x0], [y0], "o", ms=5, mec="white", mew=0.6, **style)
    elif x0 == x1 or y0 == y1:
        axes.plot([x0, x1], [y0, y1], "-", lw=2, solid_capstyle="butt", **style)
    else:
        size = (x1 - x0, y1 - y0)
        axes.add_patch(
            Rectangle(
                (x0, y0), *size, fill=False, ls="--", lw=1.5, clip_on=False, **style
            )
        )
    source = colour == _SOURCE
    # Sources are named at the low end and monitors at the high one: they often lie side
    # by side.
    anchor = (x0, y0) if source else (x1, y1)
    down = source
    low, high = axes.get_ylim()
    # Beyond the ends of the picture there are numbers and the legend.
    if min(anchor[1] - low, high - anchor[1]) < 0.06 * (high - low):
        down = anchor[1] > (low + high) / 2
    axes.annotate(
        mark.name,
        anchor,
        xytext=(0, (-6 if point else -4) * (1 if down else -1)),
        textcoords="offset points",
        ha="center" if x0 == x1 else ("left" if source else "right"),
        va="top" if down else "bottom",
        fontsize="small",
        bbox=_LABEL_BOX,
        color=colour,
        alpha=alpha,
        zorder=6,
    )
    if mark.direction is not None:
        _draw_arrow(axes, mark, shown, unit, style)


def _draw_arrow(axes: Axes, mark: Mark, shown, unit: Unit, style: dict) -> None:
    """Draws where a mark points; into or out of the picture as a sign in a circle."""
    axis, sign = mark.direction or (0, 0)
    start = (mark.low + mark.high)[shown] / 2 / unit.size
    if axis not in shown:
        text = r"$\odot$" if sign > 0 else r"$\otimes$"
        style = {key: style[key] for key in ("color", "alpha")}
        x, y = start
        axes.text(x, y, text, ha="center", va="center", zorder=6, **style)
        return
    number = shown.index(axis)
    box = mark.high[axis] - mark.low[axis]
    if box:
        # From the face where a wave enters a box.
        start[number] = (mark.low if sign > 0 else mark.high)[axis] / unit.size
    limits = (axes.get_xlim(), axes.get_ylim())
    length = 0.1 * min(high - low for low, high in limits)
    end = start.copy()
    end[number] += sign * length
    arrow = {"arrowstyle": "-|>", "lw": 1.8, "shrinkA": 0, "shrinkB": 0} | style
    axes.annotate(
        "", tuple(end), tuple(start), arrowprops=arrow, zorder=5, annotation_clip=False
    )


def _add_legend(
    axes: Axes,
    sim: Simulation,
    layers: bool,
    walls: list[type],
    everywhere: list[str],
    *,
    ports: bool = False,
    negative: bool = False,
) -> None:
    """Explains above the picture what the marks are."""
    entries: list = []
    if sim.sources:
        entries.append(Line2D([], [], color=_SOURCE, lw=2, label="source"))
    if sim.monitors:
        entries.append(Line2D([], [], color=_MONITOR, lw=2, label="monitor"))
    if ports:
        entries.append(Line2D([], [], color=_PORT, lw=2, label="port"))
    if layers:
        patch = Patch(
            fill=False, hatch="////", ec=_LAYER, lw=0, label="absorbing layer"
        )
        entries.append(patch)
    if sim.medium.metal is not None:
        entries.append(Patch(color="k", label="perfect metal"))
    if negative:
        entries.append(Patch(color=_NEGATIVE, label="permittivity < 0"))
    for kind, (style, name) in _WALLS.items():
        if kind in walls:
            entries.append(Line2D([], [], ls=style, color="k", lw=3, label=name))
    if everywhere:
        label = f"everywhere: {', '.join(everywhere)}"
        entries.append(Line2D([], [], color=_MONITOR, ls="--", label=label))
    if entries:
        axes.legend(
            handles=entries,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(len(entries), 4),
            frameon=False,
            fontsize="small",
            borderaxespad=0.3,
            columnspacing=1.0,
        )


def _draw_line(sim: Simulation, axes: Axes, component: str | None) -> Axes:
    """Draws a simulation along x alone."""
    picture = permittivity_picture(sim, component)
    (low,), (high,) = grid_bounds(sim.grid)
    unit = readable_unit(np.array([low, high]), "m")
    borders = picture.borders[0] / unit.size
    axes.stairs(picture.values, borders, color="0.3", lw=1.5)
    if picture.metal is not None:
        whole = axes.get_xaxis_transform()
        axes.stairs(picture.metal, borders, fill=True, color="k", transform=whole)
    axes.set_xlim(low / unit.size, high / unit.size)
    limits = _range(picture.values)
    room = 0.15 * (limits["vmax"] - limits["vmin"])
    axes.set_ylim(limits["vmin"] - room, limits["vmax"] + room)
    layers = False
    for _, start, stop in _layer_bounds(sim):
        style = {"fill": False, "hatch": "////", "ec": _LAYER, "lw": 0.0}
        axes.axvspan(start / unit.size, stop / unit.size, **style)
        layers = True
    walls = _draw_walls(
        axes, sim, [0], ((low / unit.size, high / unit.size), axes.get_ylim())
    )
    monitors, everywhere = _sorted_monitors(sim)
    for marks, colour in ((monitors, _MONITOR), (source_marks(sim), _SOURCE)):
        for mark in marks:
            _draw_mark_on_line(axes, mark, unit, colour)
    axes.set_xlabel(f"x ({unit.name})")
    axes.set_ylabel(picture.label)
    _add_legend(axes, sim, layers, walls, everywhere)
    return axes


def _draw_mark_on_line(axes: Axes, mark: Mark, unit: Unit, colour: str) -> None:
    start, stop = float(mark.low[0]) / unit.size, float(mark.high[0]) / unit.size
    if start == stop:
        axes.axvline(start, color=colour, lw=2)
    else:
        axes.axvspan(start, stop, color=colour, alpha=0.15, lw=0)
    low, high = axes.get_ylim()
    source = colour == _SOURCE
    level = low + (0.05 if source else 0.95) * (high - low)
    axes.annotate(
        mark.name,
        (start, level),
        xytext=(4, 0),
        textcoords="offset points",
        va="bottom" if source else "top",
        fontsize="small",
        color=colour,
        bbox=_LABEL_BOX,
    )
    if mark.direction is not None and mark.direction[0] == 0:
        sign = mark.direction[1]
        left, right = axes.get_xlim()
        begin = start if sign > 0 else stop
        middle = (low + high) / 2
        arrow = {"arrowstyle": "-|>", "lw": 1.8, "color": colour, "shrinkA": 0}
        end = (begin + sign * 0.06 * (right - left), middle)
        axes.annotate("", end, (begin, middle), arrowprops=arrow)
