"""The simulation: grid, medium, faces, sources and monitors, checked and placed."""

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Num

from .._checks import (
    ArgumentError,
    by_name,
    instance,
    positive,
    refuse_traced,
    warn,
    whole,
)
from ..grid import Grid
from ..runtime import Precision
from ._apodised import check_windows
from ._boundaries import PEC, Bloch, Boundaries, check_boundaries
from ._components import Components, components
from ._cylindrical import Cylindrical, check_cylindrical
from ._emission import check_excitation
from ._force import check_forces
from ._frame import Frame, build_frame
from ._gaussian_beam import check_beams
from ._huygens import check_records
from ._limits import (
    check_frequencies,
    check_places,
    check_resolution,
    check_step,
    largest_step,
)
from ._medium import Medium, at_component
from ._medium_checks import (
    beyond_scalars,
    check_medium,
    check_storage,
    warn_of_metal_in_layers,
)
from ._monitors import AbstractMonitor
from ._plane_wave_checks import check_plane_waves
from ._setup import Setup
from ._sources import AbstractSource
from ._tilt import allowed, missing_neighbours
from ._time_monitors import EnergyMonitor, TimeMonitor


class Simulation(eqx.Module):
    r"""A Maxwell problem in the time domain.

    Everything is checked when it is built, before anything is compiled. Numbers and
    arrays are leaves: replace them with `eqx.tree_at` inside `jit`, `vmap` or `grad`.
    Where sources and monitors lie, and the number of steps, is fixed.

    Attributes:
        grid: Cells, in metres.
        medium: What fills them.
        boundaries: What lies at the faces.
        sources: By name.
        monitors: By name; results come back under the same names.
        dt: Time step in seconds.
        steps: Number of steps.
        polarisation: In 2-D the component out of the plane, `"Ez"` or `"Hz"`.
        cylindrical: The angular number where the grid is of r and z, else `None`.
        precision: `storage` is the type of the fields and of their arithmetic, so that
            `compute` must be the same; `accumulate` is that of the monitors.
        places: What `locate` of each source and monitor found.

    Raises:
        ArgumentError: If the parts do not fit together; see the docs for the list.
    """

    grid: Grid
    medium: Medium
    boundaries: Boundaries
    sources: dict[str, AbstractSource]
    monitors: dict[str, AbstractMonitor]
    dt: Float[Array, ""]
    steps: int = eqx.field(static=True)
    polarisation: str | None = eqx.field(static=True)
    cylindrical: Cylindrical | None
    precision: Precision = eqx.field(static=True)
    places: tuple[tuple[str, Hashable], ...] = eqx.field(static=True)

    def __init__(
        self,
        grid: Grid,
        medium: Medium | None = None,
        boundaries: Boundaries | None = None,
        *,
        sources: Mapping[str, AbstractSource] | None = None,
        monitors: Mapping[str, AbstractMonitor] | None = None,
        steps: int,
        dt: Num[Array, ""] | float | None = None,
        courant: float = 0.99,
        polarisation: str | None = None,
        cylindrical: Cylindrical | None = None,
        precision: Precision | None = None,
    ):
        """Builds and checks a simulation.

        Args:
            grid: The cells.
            medium: Vacuum by default.
            boundaries: A PEC box by default.
            sources: By name.
            monitors: By name.
            steps: Number of steps, at least 1 and at most 1073741823.
            dt: Time step in seconds; by default `courant` times the largest stable one,
                which derivatives hold fixed.
            courant: Fraction of the largest stable step in vacuum, at most 1.
            polarisation: In 2-D, `"Ez"` or `"Hz"`; none in cylindrical coordinates.
            cylindrical: For rings, lenses and bodies of revolution; the axes of the
                2-D grid are then r and z.
            precision: float32 by default, or float64 if JAX's 64-bit types are on.

        Raises:
            ArgumentError: If a value is out of range or the parts do not fit.
        """
        self.grid = instance(grid, "grid", Grid)
        if medium is None:
            medium = Medium()
        self.medium = instance(
            medium, "medium", Medium, "Write `Medium(2.25)`, or `rasterise` shapes."
        )
        if boundaries is None:
            boundaries = Boundaries(r=None if cylindrical is None else PEC())
        self.boundaries = instance(
            boundaries, "boundaries", Boundaries, "Write `Boundaries.all(CPML(10))`."
        )
        self.sources = by_name(sources, "sources", AbstractSource)
        self.monitors = by_name(monitors, "monitors", AbstractMonitor)
        self.polarisation = polarisation
        self.cylindrical = cylindrical
        self.precision = _as_precision(precision)
        _check_coordinates(self)
        parts = self.components
        self.steps = _countable(steps, 1)
        check_boundaries(self.boundaries, grid, around=cylindrical is not None)
        frame = build_frame(grid, self.boundaries, parts)
        check_medium(self.medium, parts.names, grid.shape)
        _check_energy(self)
        if self.medium.dispersions:
            check_storage(self.precision, "dispersive")
            if len(parts.electric) > 1:
                warn_of_metal_in_layers(self.medium, self.boundaries, grid)
        if self.medium.nonlinearities:
            _check_nonlinear(self)
        if self.medium.off_diagonals:
            _check_tensors(self)
        merged = self.medium.merged(grid.shape)
        limit = largest_step(grid, merged, parts)
        if dt is None:
            if not 0 < courant <= 1:
                raise ArgumentError(
                    f"`courant` must lie in (0, 1], but is {courant:g}."
                )
            vacuum = largest_step(grid, Medium(), parts)
            # A choice, not a property of the medium: derivatives hold it fixed.
            dt = lax.stop_gradient(courant * jnp.minimum(limit, vacuum))
        self.dt = _one_number(positive(dt, "dt"))
        check_step(self.dt, limit)
        # Before places: in coarse cells there is also what is only near.
        check_resolution(self.sources, grid, merged, parts.electric)
        self.places = tuple(_locate(self.sources, self.monitors, frame))
        placed = {**self.sources, **self.monitors}
        check_places(self.medium, placed, self.places)
        # Checks ask for neither metrics nor phases.
        setup = Setup(
            grid, parts, self.medium, (), self.dt, (), self.steps, self.boundaries
        )
        check_forces(self.monitors, self.sources, self.places, setup)
        check_plane_waves(self.sources, self.monitors, self.places, setup, merged)
        check_beams(self.sources, self.places, setup)
        check_records(self.sources, self.places, setup)
        check_frequencies(self.monitors, self.dt, self.steps)
        check_windows(self.monitors, self.dt, self.steps)
        _review_records(self.monitors, self.steps)
        linear = not self.medium.nonlinearities
        check_excitation(self.sources, self.monitors, linear=linear)

    def place(self, name: str) -> Any:
        """Returns what `locate` found for a source or a monitor."""
        places = dict(self.places)
        if name not in places:
            raise ArgumentError(
                f"Sources and monitors are placed when a `Simulation` is made, but "
                f"{name!r} came later. Make a new `Simulation` with it."
            )
        return places[name]

    @property
    def component_names(self) -> tuple[str, ...]:
        """The components that are stepped, electric first."""
        return self.components.names

    @property
    def components(self) -> Components:
        """The components and how the curls couple them."""
        m = None if self.cylindrical is None else self.cylindrical.m
        return components(self.grid.ndim, self.polarisation, m)

    @property
    def complex_fields(self) -> bool:
        """Whether the fields are complex: under Bloch faces."""
        faces = (self.boundaries.axis(axis)[0] for axis in range(self.grid.ndim))
        return any(isinstance(face, Bloch) for face in faces)


def _check_coordinates(sim: Simulation) -> None:
    """Refuses what cylindrical coordinates do not support."""
    if sim.cylindrical is None:
        return
    instance(sim.cylindrical, "cylindrical", Cylindrical, "Write `Cylindrical(m=1)`.")
    if sim.polarisation is not None:
        raise ArgumentError(
            "`polarisation` must be left out in cylindrical coordinates, where all six "
            f"components exist, but is {sim.polarisation!r}."
        )
    check_cylindrical(sim.grid, sim.boundaries)
    if sim.medium.metal is not None:
        raise ArgumentError(
            "`medium` must not hold perfect metal in cylindrical coordinates, but "
            "does. End the grid with `PEC` faces, or take a `Drude` metal."
        )


def _as_precision(precision: Any) -> Precision:
    if precision is None:
        wide = jnp.result_type(float) == jnp.float64
        return Precision(*("float64",) * 3) if wide else Precision()
    remedy = "Write `runtime.Precision(storage, compute, accumulate)`."
    precision = instance(precision, "precision", Precision, remedy)
    if precision.compute != precision.storage:
        raise ArgumentError(
            f"`compute` of the precision must be {precision.storage}, as its `storage`,"
            f" in which steps are computed, but is {precision.compute}."
        )
    return precision


MOST_STEPS = 2**30 - 1
"""Half steps are counted in 32 bits."""


def _countable(steps: Any, least: int) -> int:
    refuse_traced(steps, "steps", "Give a Python integer.")
    steps = whole(steps, "steps", least)
    if steps > MOST_STEPS:
        raise ArgumentError(
            f"`steps` must be at most {MOST_STEPS}, but is {steps}. The length of a "
            "run is `steps * dt`; `until=Decay()` ends it when the fields have decayed."
        )
    return steps


def _one_number(dt: Array) -> Array:
    if dt.ndim:
        raise ArgumentError(
            f"`dt` must be one number, but has shape {dt.shape}. Batch over time steps "
            "with `vmap`."
        )
    return dt


def _review_records(monitors: Mapping[str, AbstractMonitor], steps: int) -> None:
    """Warns of monitors that record a run of several steps once."""
    for name, monitor in monitors.items():
        recorder = isinstance(monitor, TimeMonitor | EnergyMonitor)
        if recorder and monitor.every > steps > 1:
            warn(
                f"`every` of monitor {name!r} should be at most {steps}, the steps of "
                f"the run, but is {monitor.every}: only the first step is recorded."
            )


def _check_energy(sim: Simulation) -> None:
    """Raises if a monitor records energy in a medium that holds some uncounted."""
    found = beyond_scalars(sim.medium)
    for name, monitor in sim.monitors.items():
        if found and isinstance(monitor, EnergyMonitor):
            raise ArgumentError(
                f"Monitor {name!r} must not record energy in a medium with {found}, "
                "whose energy is not counted. Leave it out, or take flux monitors "
                "around the region."
            )


def _check_nonlinear(sim: Simulation) -> None:
    """Refuses what nonlinear media do not support."""
    check_storage(sim.precision, "nonlinear")
    if sim.cylindrical is not None:
        raise ArgumentError(
            "`medium` must be linear in cylindrical coordinates, because powers of "
            "the field mix values of m, but has `nonlinearities`."
        )
    if sim.complex_fields:
        raise ArgumentError(
            "`boundaries` must not be `Bloch` around a nonlinear medium: it responds "
            "to the real field. Take `Periodic()`."
        )


def _check_tensors(sim: Simulation) -> None:
    """Raises if tensors would make fields grow."""
    names = sim.components.electric
    of = {name: at_component(sim.medium.permittivity, name) for name in names}
    for number, one in enumerate(sim.medium.off_diagonals):
        lacking = missing_neighbours(one, sim.grid.shape, sim.boundaries)
        for pair, alone in lacking.items():
            entry = one.inverse[pair]
            if isinstance(entry, jax.core.Tracer):
                continue
            bad = np.argwhere(alone & (np.asarray(entry) != 0))
            if bad.size:
                node = tuple(map(int, bad[0]))
                raise ArgumentError(
                    f"`inverse`[{pair!r}] of off-diagonal entries {number} must be 0 "
                    f"at the low end of its box along {pair[0]} and {pair[1]}, where "
                    f"nodes lack a neighbour, but is {float(entry[node]):g} at node "
                    f"{node} of the box. Begin the box a cell earlier, with zeros, or "
                    "let it span the period."
                )
        factor = allowed(one, of)
        if isinstance(factor, jax.core.Tracer) or bool(jnp.all(factor == 1)):
            continue
        node = tuple(map(int, np.argwhere(np.asarray(factor) < 1)[0]))
        raise ArgumentError(
            f"`inverse` of off-diagonal entries {number} must leave the tensor "
            f"positive, but does not at node {node} of its box: fields would grow. "
            f"Multiply the entries there by at most {float(factor[node]):.3g}."
        )


def _locate(sources: dict, monitors: dict, frame: Frame):
    both = [("source", sources), ("monitor", monitors)]
    for kind, group in both:
        for name, one in group.items():
            if kind == "monitor" and name in sources:
                raise ArgumentError(
                    f"A monitor must not have the name of a source, but {name!r} is "
                    "both."
                )
            yield name, one.locate(frame, f"{kind} {name!r}")


def with_steps(sim: Simulation, steps: int) -> Simulation:
    """Returns the same simulation with another number of steps.

    Args:
        sim: The simulation.
        steps: Number of steps, at least 0.

    Returns:
        A copy that shares all arrays.

    Raises:
        ArgumentError: If `steps` is not such a number, or above 2**30 - 1.
    """
    steps = _countable(steps, 0)
    copy = object.__new__(Simulation)
    for field in dataclasses.fields(Simulation):
        value = steps if field.name == "steps" else getattr(sim, field.name)
        object.__setattr__(copy, field.name, value)
    return copy
