"""Modes of a cross-section: guided waves of any shape, with all six components."""

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Num

from .._checks import ArgumentError, as_array, check, instance, positive, warn, whole
from ..grid import Grid
from ..units import ETA_0, SPEED_OF_LIGHT
from ._boundaries import Boundaries, check_boundaries, layer_cells
from ._components import stagger
from ._cross_section_layers import (
    bent_fields,
    bent_parts,
    build_section,
    check_radius,
    layer_stretches,
    section_ends,
    section_parts,
)
from ._cross_section_operator import (
    CrossSection,
    areas,
    electric_along,
    magnetic_along,
    power_density,
)
from ._cross_section_solver import Request, eigenmodes
from ._medium import Medium
from ._medium_checks import check_section_medium
from ._resolution import check_section, one_frequency


class CrossSectionModes(eqx.Module):
    r"""Modes that propagate along +z through a cross-section in the xy plane.

    In decreasing order of the effective index; every array has the mode as its first
    axis. Fields are those of the time sign `exp(-i w t)`, E in V/m and $\eta_0 H$, each
    at its Yee points, scaled to carry 1 W (time average of the sum of products over the
    grid). Without loss the transverse ones are real and those along z imaginary. The
    sign makes the first lobe of the larger transverse component of E positive.

    Attributes:
        effective_index: $\beta / k$; complex with loss or absorbing layers.
        fields: By component, `"Ex"` to `"Hz"`.
        coordinates: By component, the positions of its samples along x and y in metres.
        areas: Around the samples of Ex and of Ey, in m^2.
        guided: Whether the mode propagates, $|\mathrm{Im}\, n| < \mathrm{Re}\, n$, and
            its index exceeds that of everything that continues beyond the open ends.
        cladding_index: That index; 0 between walls.
        edge: Largest power density in the outermost cells at open ends over the largest
            of all. A guided mode with more than 1e-3 is cut off by the window.
        x_fraction: Share of Ex in the sum of the squares of Ex and Ey.
        effective_area: $(\int S)^2 / \int S^2$ of the power density outside absorbing
            layers, in m^2.
        frequency: In Hz.
    """

    effective_index: Num[Array, " modes"]
    fields: dict[str, Num[Array, "modes _ _"]]
    coordinates: dict[str, tuple[Float[Array, " _"], Float[Array, " _"]]]
    areas: tuple[Num[Array, "_ _"], Num[Array, "_ _"]]
    guided: Bool[Array, " modes"]
    cladding_index: Float[Array, ""]
    edge: Float[Array, " modes"]
    x_fraction: Float[Array, " modes"]
    effective_area: Float[Array, " modes"]
    frequency: Float[Array, ""]

    def __getitem__(self, index) -> "CrossSectionModes":
        """Returns some of the modes, by a slice or a list of numbers from 0."""
        index = np.atleast_1d(np.arange(len(self.effective_index))[index])

        def per_mode(modes):
            return (
                modes.effective_index,
                modes.fields,
                modes.guided,
                modes.edge,
                modes.x_fraction,
                modes.effective_area,
            )

        return eqx.tree_at(
            per_mode, self, jax.tree.map(lambda x: x[index], per_mode(self))
        )

    def table(self) -> str:
        """Returns a line of text for each mode."""
        rows = [" mode  effective index          guided  Ex share  area (um^2)  edge"]
        for k, index in enumerate(np.asarray(self.effective_index)):
            text = f"{index.real:.7f}"
            if np.iscomplexobj(index):
                text += f" {index.imag:+.3e}i"
            rows.append(
                f"{k + 1:5d}  {text:<23}  {'yes' if self.guided[k] else 'no':<6}  "
                f"{float(self.x_fraction[k]):8.4f}  "
                f"{float(self.effective_area[k]) * 1e12:11.4g}  "
                f"{float(self.edge[k]):.1e}"
            )
        return "\n".join(rows)


def cross_section_modes(
    grid: Grid,
    medium: Medium,
    frequency: Num[ArrayLike, ""],
    *,
    count: int = 1,
    boundaries: Boundaries | None = None,
    radius: Num[ArrayLike, ""] | None = None,
    target: Num[ArrayLike, ""] | None = None,
    spacing: Num[ArrayLike, ""] | None = None,
    dt: Num[ArrayLike, ""] | None = None,
) -> CrossSectionModes:
    r"""Solves for the modes of a waveguide, on the Yee points of its cross-section.

    Full vector: $G A (E_x, E_y) = n^2 (E_x, E_y)$ with the differences of the Yee grid,
    a sparse eigenproblem that SciPy solves on the host in double precision, also from
    a compiled program. Differentiable, fields too, with respect to medium, grid,
    frequency and radius, if the mode is not degenerate.

    References: Zhu and Brown, Optics Express 10, 853 (2002); bends: Ward and Pendry,
    J. Mod. Opt. 43, 773 (1996).

    Args:
        grid: A 2-D grid, the section. Light travels along z.
        medium: What fills it, for example from `rasterise` with
            `components=("Ex", "Ey", "Ez")`. Conductivity and poles make the indices
            complex; poles count with their susceptibility at the frequency.
        frequency: In Hz.
        count: Number of modes.
        boundaries: Walls and layers at the faces of x and y. By default the section is
            a window into something larger, closed by electric walls out of the
            mode's reach.
        radius: Radius in metres of a bend around an axis parallel to y at
            `x = -radius`; negative for one at the other side. The index is that at
            `x = 0`, and needs absorbing layers for the loss.
        target: Find the modes with the indices nearest to this one instead of the
            largest, for example below those of a substrate. Needed where the real part
            of a permittivity is not positive: the largest index may then lie above that
            of any medium.
        spacing: Length of the cells along z in metres, to have the index that a
            time-domain simulation on such cells has. Less than a third of a wavelength
            in the guide.
        dt: Its time step in seconds, likewise; less than half a period.

    Returns:
        The modes.

    Raises:
        ArgumentError: If the grid is not 2-D, the medium does not fit it, a number is
            out of range, more modes are requested than there are unknowns, or fewer
            modes propagate than were requested; that message lists the indices found.
            If a metal comes without `target`, is perfect, the permittivity has
            off-diagonal entries, or the solver does not converge. If there are fewer
            than 4 cells per wavelength in the medium, or the grid spans less than a
            thousandth of a wavelength; in a compiled program such a grid, and such
            entries, give NaN.
    """
    count = whole(count, "count")
    _check_arguments(grid, medium, count, boundaries)
    frequency = check_section_medium(medium, grid.shape, one_frequency(frequency))
    frequency = check_section(grid, medium, frequency)
    numbers = {"radius": radius, "target": target, "spacing": spacing, "dt": dt}
    numbers = {k: as_array(v, k) for k, v in numbers.items() if v is not None}
    for name in {"target", "spacing", "dt"} & set(numbers):
        numbers[name] = positive(numbers[name], name)
    if "dt" in numbers:
        numbers["dt"] = check(
            numbers["dt"],
            numbers["dt"] * frequency < 0.5,
            "`dt` must be less than half a period of `frequency`",
        )
    if "radius" in numbers:
        check_radius(grid, numbers["radius"])
    modes, squares, least, turns = _solved(
        grid, medium, frequency, boundaries, numbers, count
    )
    _refuse_metal(least, numbers)
    _refuse_missing(squares, modes.cladding_index)
    _refuse_long_cells(turns, numbers)
    _warn_of_small_window(modes)
    return modes


@eqx.filter_jit
def _solved(grid, medium, frequency, boundaries, numbers, count):
    """Returns the modes and what the refusals look at.

    Those are the squares of the indices that the equations have, the least real part of
    a permittivity, and half the phase over a cell along z as if it were short.
    """
    dt, spacing = numbers.get("dt"), numbers.get("spacing")
    seen = frequency
    if dt is not None:
        seen = jnp.sin(jnp.pi * frequency * dt) / (jnp.pi * dt)
    k0 = 2 * jnp.pi * seen / SPEED_OF_LIGHT
    ends, open_ = section_ends(boundaries)
    parts = section_parts(medium, grid.shape, seen, frequency, dt)
    electric = [jnp.min(jnp.real(parts[name])) for name in ("Ex", "Ey", "Ez")]
    least = jnp.min(jnp.stack(electric))
    if "target" not in numbers:
        parts["Ex"] = jnp.where(least > 0, parts["Ex"], jnp.nan)
    if "radius" in numbers:
        parts = bent_parts(parts, grid, numbers["radius"])
    widths = grid.cell_widths(0), grid.cell_widths(1)
    stretches = layer_stretches(grid, boundaries, frequency)
    section = build_section(parts, widths, ends, k0, stretches)
    aim = numbers.get("target", 0.0)
    aim = jnp.asarray(aim, jnp.real(section.widths[0]).dtype)
    found = eigenmodes(section, aim, Request(count, open_))
    solved = jnp.isfinite(found.squares)
    beta = jnp.sqrt(jnp.where(solved, found.squares, jnp.nan)) * k0
    turns = jnp.zeros(count)
    if spacing is not None:
        turns = jnp.real(beta) * spacing / 2
        beta = 2 / spacing * jnp.arcsin(beta * spacing / 2)
        beta = jnp.where(turns < 1, beta, jnp.nan)
    index = beta * SPEED_OF_LIGHT / (2 * jnp.pi * frequency)
    modes = _finished(section, found, index, grid, k0, frequency, boundaries)
    if "radius" in numbers:
        fields = bent_fields(modes.fields, modes.coordinates, numbers["radius"])
        modes = eqx.tree_at(lambda modes: modes.fields, modes, fields)
    return modes, found.squares, least, turns


def _check_arguments(grid, medium, count, boundaries) -> None:
    instance(grid, "grid", Grid)
    instance(medium, "medium", Medium, "Write `Medium(2.25)`, or `rasterise` shapes.")
    if grid.ndim != 2:
        raise ArgumentError(
            "`grid` must be 2-D, the section in x and y, but is "
            f"{grid.ndim}-D. Light travels along z."
        )
    most = 2 * grid.shape[0] * grid.shape[1] - sum(grid.shape) - 4
    if count > max(most, 1):
        raise ArgumentError(
            f"`count` must be at most {max(most, 1)} on a section of {grid.shape} "
            f"cells, but is {count}."
        )
    if boundaries is not None:
        check_boundaries(boundaries, grid)


def _refuse_missing(squares, cladding) -> None:
    """Refuses, where they are known, modes that do not travel or were not found."""
    if isinstance(squares, jax.core.Tracer):
        return
    squares = np.asarray(squares)
    if np.any(np.isinf(squares)):
        raise ArgumentError(
            "The mode solver did not converge: it found "
            f"{np.sum(np.isfinite(squares))} of {len(squares)} modes. Ask for a "
            "smaller `count`, or give a `target` near the index of a mode."
        )
    # The real part is positive where |Im n| < Re n.
    travels = np.real(squares) > 0
    if np.all(travels):
        return
    known = f"the cladding has {float(cladding):.6g}"
    if not np.any(travels):
        raise ArgumentError(
            "`count` must be at most 0, the number of modes that propagate in this "
            f"section, but is {len(squares)}; {known}. Raise `frequency`, or widen "
            "the core."
        )
    indices = ", ".join(f"{n:.6g}" for n in np.sqrt(squares[travels]).tolist())
    raise ArgumentError(
        f"`count` must be at most {int(np.sum(travels))}, the number of modes that "
        f"propagate in this section, but is {len(squares)}. Their effective indices "
        f"are [{indices}]; {known}. For more, raise `frequency` or widen the core."
    )


def _refuse_metal(least, numbers: dict[str, Array]) -> None:
    """Refuses, where it is known, a search for the largest index beside a metal."""
    if isinstance(least, jax.core.Tracer) or "target" in numbers:
        return
    # Not `<= 0`: a medium that is NaN is told of as modes that are missing.
    if not float(least) <= 0:
        return
    raise ArgumentError(
        "`target` must be given if the real part of a permittivity is not positive, "
        f"but is `None` and the smallest is {float(least):.6g}: modes at a metal "
        "surface have indices above those of all media. Give the index to search "
        "near; for a plasmon, sqrt(eps_m eps_d / (eps_m + eps_d))."
    )


def _refuse_long_cells(turns, numbers: dict[str, Array]) -> None:
    """Refuses, where they are known, cells along z that cannot carry a mode."""
    if isinstance(turns, jax.core.Tracer) or np.all(np.asarray(turns) < 1):
        return
    spacing, largest = float(numbers["spacing"]), float(np.max(np.asarray(turns)))
    raise ArgumentError(
        f"`spacing` must be less than {spacing / largest:.6g} m, 1 / pi of a "
        f"wavelength in the guide, but is {spacing:.6g} m: no wave of that index "
        "propagates on such cells. Make it smaller."
    )


def _warn_of_small_window(modes: CrossSectionModes) -> None:
    """Warns of guided modes that reach the open ends of the window."""
    if isinstance(modes.edge, jax.core.Tracer) or isinstance(
        modes.guided, jax.core.Tracer
    ):
        return
    edge, guided = np.asarray(modes.edge), np.asarray(modes.guided)
    cut = np.flatnonzero(guided & (edge > 1e-3))
    if cut.size:
        warn(
            f"Mode {cut[0] + 1} has {edge[cut[0]]:.1e} of its largest power density at "
            "the edge of `grid`: the window should be larger.",
        )


def _finished(
    section, found, index, grid, k0, frequency, boundaries
) -> CrossSectionModes:
    """Scales the modes to 1 W and names their components."""
    e, h = found.electric, found.magnetic
    weight = areas(section)
    flow = sum(
        jnp.sum(jnp.real(w * x * jnp.conj(y)), axis=(1, 2))
        for w, x, y in zip(weight, e, h, strict=True)
    )
    scale = (k0 * jnp.sqrt(2 * ETA_0 / jnp.abs(flow)))[:, None, None]
    e, h = tuple(scale * x for x in e), tuple(scale * x for x in h)
    fields = {
        "Ex": e[0],
        "Ey": e[1],
        "Ez": 1j * jax.vmap(lambda a, b: electric_along(section, (a, b)))(*h),
        "Hx": -h[1],
        "Hy": h[0],
        "Hz": 1j * jax.vmap(lambda a, b: magnetic_along(section, (a, b)))(*e),
    }
    coordinates = {name: _points(grid, name, section) for name in fields}
    density = power_density(section, e, h)
    squares = [
        jnp.sum(jnp.abs(w) * jnp.abs(x) ** 2, axis=(1, 2))
        for w, x in zip(weight, e, strict=True)
    ]
    return CrossSectionModes(
        effective_index=index,
        fields=fields,
        coordinates=coordinates,
        areas=(weight[0] / k0**2, weight[1] / k0**2),
        guided=_guided(found, index),
        cladding_index=found.outside,
        edge=_edge(density, section_ends(boundaries)[1]),
        x_fraction=squares[0] / (squares[0] + squares[1]),
        effective_area=_effective_area(density, grid, boundaries),
        frequency=frequency,
    )


def _guided(found, index: Array) -> Array:
    """Returns which modes travel and do not leak through the open ends."""
    travels = (jnp.real(found.squares) > 0) & jnp.isfinite(index)
    return travels & (jnp.real(jnp.sqrt(found.squares)) > found.outside)


def _effective_area(density: Array, grid: Grid, boundaries) -> Array:
    """Returns the areas of modes, of their parts outside absorbing layers."""
    cells = grid.cell_widths(0)[:, None] * grid.cell_widths(1)
    if boundaries is not None:
        (a, b), (c, d) = (layer_cells(boundaries, axis) for axis in range(2))
        nu, nv = cells.shape
        cells, density = (x[..., a : nu - b, c : nv - d] for x in (cells, density))
    total = jnp.sum(density * cells, axis=(1, 2))
    return total**2 / jnp.sum(density**2 * cells, axis=(1, 2))


def _edge(density: Array, open_) -> Array:
    """Returns the largest density at the open ends over the largest of all."""
    size = jnp.abs(density)
    sides = [
        jnp.max(jnp.take(size, index, axis + 1), axis=1)
        for axis, both in enumerate(open_)
        for index, is_open in zip((0, -1), both, strict=True)
        if is_open
    ]
    if not sides:
        return jnp.zeros(size.shape[0], size.dtype)
    return jnp.max(jnp.stack(sides), axis=0) / jnp.max(size, axis=(1, 2))


def _points(grid: Grid, name: str, section: CrossSection) -> tuple[Array, Array]:
    """Returns where the samples of a component lie."""
    out = []
    for axis, half in enumerate(stagger(name, 2)):
        nodes = grid.edges(axis)[: section.duals[axis].shape[0]]
        out.append(grid.centres(axis) if half else nodes)
    return out[0], out[1]
