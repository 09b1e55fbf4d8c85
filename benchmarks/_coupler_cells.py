"""A quarter of a published directional coupler, of one bend or the whole, as cells.

All lengths are in um unless said otherwise.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import FEMTO, MICRO, SPEED_OF_LIGHT


# From the article: indices, gap and length. Width, height, bends and the distance of
# the ports are those of the `coupler` of GDSFactory, which it names.
SILICON, SILICA = 3.47644, 1.44402
GAP, LENGTH = 0.236, 20.0
WIDTH, HEIGHT = 0.5, 0.22
BEND, APART = 10.0, 4.0
WAVE = 1.55
NEAR, FAR = (GAP + WIDTH) / 2, APART / 2  # from the mirror to the middle of a guide
# Of Ey, which is normal to this mirror: a conductor keeps it even.
WALLS = {"even": em.PEC(), "odd": em.PMC()}

# Edges of the cells at resolution 1, on the faces of both guides; r halves, thirds ...
# each. `AFTER` are the last cells before the layers.
X = 0.125
AFTER = {"y": (0.13, 0.16, 0.19), "z": (0.12, 0.15, 0.18)}
PORT = 3 * X  # from a bend to where modes are measured


def across(gaps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Returns the edges along y and z at resolution 1, without layers.

    Args:
        gaps: How many gaps wide the one between the guides is, of a section of them.
    """
    near, wide = GAP / 2 * gaps, APART / 2 + GAP / 2 * (gaps - 1)
    inner, outer = wide - WIDTH / 2, wide + WIDTH / 2
    y = [*np.linspace(0, near, gaps + 1), *np.linspace(near, near + WIDTH, 5)[1:]]
    y += [*np.linspace(y[-1], inner, 10)[1:], *np.linspace(inner, outer, 5)[1:]]
    y += [*(outer + np.cumsum(AFTER["y"]))]
    return np.array(y), np.cumsum([0.0, HEIGHT / 2, *AFTER["z"]])


def refined(edges: np.ndarray, parts: int, low: int, high: int) -> np.ndarray:
    """Cuts each cell into equal parts and adds layers of so many cells."""
    fine = np.interp(
        np.arange((len(edges) - 1) * parts + 1) / parts, np.arange(len(edges)), edges
    )
    before = fine[0] - (fine[1] - fine[0]) * np.arange(low, 0, -1)
    after = fine[-1] + (fine[-1] - fine[-2]) * np.arange(1, high + 1)
    return np.concatenate([before, fine, after])


def cells_a_wavelength(parts: int) -> float:
    """Returns the cells a wavelength in silicon, averaged over the axes."""
    widths = X, WIDTH / 4, HEIGHT / 2
    return WAVE / SILICON / float(np.cbrt(np.prod(widths))) * parts


def middle_line(length: float | None) -> np.ndarray:
    """Returns points along the middle of the upper guide, from beyond the scene on.

    Args:
        length: Of the straight part, around x = 0; without, it comes from beyond the
            scene and the bend begins at x = 0.
    """
    t = np.linspace(0, 1, 99)[:, None]  # as many as in the layout
    rise = t**2 * (3 - 2 * t) * (FAR - NEAR) + NEAR
    run = BEND * (1.5 * t * (1 - t) ** 2 + 1.5 * t**2 * (1 - t) + t**3)
    up = np.concatenate([np.hstack([run + (length or 0) / 2, rise]), [(99, FAR)]])
    start = up[::-1] * [-1, 1] if length else np.array([(-99, NEAR)])
    return np.concatenate([start, up])


def simulation(parts: int, wall: str, length: float | None = None) -> em.Simulation:
    """Makes a quarter of one bend, or of the whole device.

    Args:
        parts: The resolution.
        wall: `"even"` or `"odd"`: what stands at y = 0.
        length: Of the straight part of the whole device.
    """
    grid, layer = cells(parts, length), em.CPML(layers(parts))
    make = partial(
        em.Simulation,
        grid,
        extruded(grid, parts, middle_line(length)),
        em.Boundaries(x=layer, y=(WALLS[wall], layer), z=(em.PMC(), layer)),
    )
    longest = 250 * FEMTO + 15 * FEMTO / MICRO * float(grid.size(0))
    dt = time_step(grid)
    return make(dt=dt, steps=round(longest / dt))


def layers(parts: int) -> int:
    """Returns the cells of an absorbing layer."""
    return max(8, 2 * parts)


def cells(parts: int, length: float | None = None) -> Grid:
    """Returns the cells around one bend, or the whole device of a length."""
    stop = BEND + (length or 0) / 2 + 6 * X
    start = -stop if length else -4 * X
    x, (y, z) = np.linspace(start, stop, round((stop - start) / X) + 1), across()
    more = layers(parts)
    edges = (
        refined(x, parts, more, more),
        refined(y, parts, 0, more),
        refined(z, parts, 0, more),
    )
    return Grid.graded([e * MICRO for e in edges])


def time_step(grid: Grid) -> float:
    """Returns a time step for silica; the default is for vacuum, of which is none."""
    return 0.9 * SILICA * float(em.Simulation(grid, em.Medium(), steps=1).dt)


def extruded(grid: Grid, parts: int, line: np.ndarray) -> em.Medium:
    """Fills a grid with a guide, whose upper face lies on a node.

    Walls are averaged in the plane, and the plane with what lies above it, to which its
    fields are tangential. At the edge between the two the normal of `rasterise` would
    depend on which side of it a cell lies that ends there.
    """
    plane = Grid.graded([grid.edges(0), grid.edges(1)])
    guide = em.Structure(em.Path(line * MICRO, WIDTH * MICRO), em.Material(SILICON**2))
    paint = partial(em.rasterise, [guide], plane, em.Material(SILICA**2))
    flat = paint(components=("Hz", "Ex", "Ey"), averaging="polarised")
    up = paint(components=("Ez", "Hx", "Hy"))
    widths = np.asarray(grid.cell_widths(2))
    share = widths[parts - 1] / (widths[parts - 1] + widths[parts])
    nodes, centres = np.zeros((2, len(widths)))
    nodes[:parts], nodes[parts], centres[:parts] = 1, share, 1

    def stacked(values, inside):
        values = np.asarray(values)[..., None]
        return jnp.asarray(SILICA**2 + inside * (values - SILICA**2), jnp.float32)

    found = {name: flat.permittivity[name] for name in ("Ex", "Ey")}
    permittivity = {name: stacked(values, nodes) for name, values in found.items()}
    permittivity["Ez"] = stacked(up.permittivity["Ez"], centres)
    (tensor,) = flat.off_diagonals
    entry = np.asarray(tensor.inverse["xy"])
    top = half_filled(entry, found, tensor.box, share)
    layers = np.stack([entry] * parts + [top], axis=-1)
    box = (*tensor.box, (0, parts + 1))
    return em.Medium(
        permittivity,
        off_diagonals=em.OffDiagonal(box, {"xy": jnp.asarray(layers, jnp.float32)}),
    )


def half_filled(entry, permittivity, box, share: float) -> np.ndarray:
    """Mixes tensors at nodes, known by the entry of their inverses, with silica."""
    inner = tuple(slice(low, high) for low, high in box)
    inverse = [1 / np.asarray(permittivity[name]) for name in ("Ex", "Ey")]
    a, b = (
        ((one + np.roll(one, 1, axis)) / 2)[inner] for axis, one in enumerate(inverse)
    )
    det = a * b - entry**2
    first, second = (share * x / det + (1 - share) * SILICA**2 for x in (b, a))
    beside = -share * entry / det
    return -beside / (first * second - beside**2)


def port(x: float, direction: str, offset: float = 0.0, *, near: bool = False):
    """Returns a port of one guide, or of the pair behind the mirror."""
    y, z = across()
    low, high = (0.0, y[10]) if near else (y[9], y[-1] + 0.19)
    top = z[-1] + 0.18
    return em.Port(
        (x * MICRO, (low + high) / 2 * MICRO, top / 2 * MICRO),
        ((high - low) * MICRO, top * MICRO),
        direction,
        offset=offset * MICRO,
    )


def on_cells(index: float, dt: float, parts: int) -> float:
    """Returns the index with which a mode travels along the cells of a run."""
    seen = np.sin(np.pi * SPEED_OF_LIGHT / (WAVE * MICRO) * dt) / (np.pi * dt)
    cell = X / parts * MICRO
    turn = 2 * np.arcsin(np.pi * seen / SPEED_OF_LIGHT * index * cell)
    return float(turn / cell * WAVE * MICRO / (2 * np.pi))
