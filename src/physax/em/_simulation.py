"""The simulation: grid, medium, faces, sources and monitors, checked and placed."""

import dataclasses
from collections.abc import Hashable, Mapping
from numbers import Integral
from typing import Any

import equinox as eqx
import jax.core
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Num

from .._checks import ArgumentError, positive
from ..grid import Grid
from ..runtime import Precision
from ._boundaries import Bloch, Boundaries, check_boundaries
from ._components import components
from ._frame import Frame, build_frame
from ._limits import check_frequencies, check_resolution, largest_step
from ._medium import Medium, check_medium
from ._monitors import AbstractMonitor
from ._sources import AbstractSource


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
        precision: `storage` is the type of the fields, `accumulate` of the monitors.
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
        precision: Precision | None = None,
    ):
        """Builds and checks a simulation.

        Args:
            grid: The cells.
            medium: Vacuum by default.
            boundaries: A PEC box by default.
            sources: By name.
            monitors: By name.
            steps: Number of steps, at least 1.
            dt: Time step in seconds; by default `courant` times the largest stable one,
                which derivatives hold fixed.
            courant: Fraction of the largest stable step in vacuum, at most 1.
            polarisation: In 2-D, `"Ez"` or `"Hz"`.
            precision: float32 by default, or float64 if JAX's 64-bit types are on.

        Raises:
            ArgumentError: If a value is out of range or the parts do not fit.
        """
        self.grid = grid
        self.medium = Medium() if medium is None else medium
        self.boundaries = Boundaries() if boundaries is None else boundaries
        self.sources = dict(sources or {})
        self.monitors = dict(monitors or {})
        self.polarisation = polarisation
        self.precision = _default_precision() if precision is None else precision
        parts = components(grid.ndim, polarisation)
        self.steps = _whole(steps)
        check_boundaries(self.boundaries, grid)
        check_medium(self.medium, parts.names, grid.shape)
        whole = self.medium.merged(grid.shape)
        limit = largest_step(grid, whole, parts)
        if dt is None:
            if not 0 < courant <= 1:
                raise ArgumentError(
                    f"`courant` must lie in (0, 1], but is {courant:g}."
                )
            vacuum = largest_step(grid, Medium(), parts)
            # A choice, not a property of the medium: derivatives hold it fixed.
            dt = lax.stop_gradient(courant * jnp.minimum(limit, vacuum))
        self.dt = _one_number(positive(dt, "dt"))
        _check_step(self.dt, limit)
        frame = build_frame(grid, self.boundaries, parts)
        self.places = tuple(_locate(self.sources, self.monitors, frame))
        check_resolution(self.sources, grid, whole)
        check_frequencies(self.monitors, self.dt)

    def place(self, name: str) -> Any:
        """Returns what `locate` found for a source or a monitor."""
        return dict(self.places)[name]

    @property
    def component_names(self) -> tuple[str, ...]:
        """The components that are stepped, electric first."""
        return components(self.grid.ndim, self.polarisation).names

    @property
    def complex_fields(self) -> bool:
        """Whether the fields are complex: under Bloch faces."""
        faces = (self.boundaries.axis(axis)[0] for axis in range(self.grid.ndim))
        return any(isinstance(face, Bloch) for face in faces)


def _default_precision() -> Precision:
    wide = jnp.result_type(float) == jnp.float64
    return Precision(*("float64",) * 3) if wide else Precision()


def _whole(steps: int) -> int:
    if not isinstance(steps, Integral) or steps < 1:
        raise ArgumentError(
            f"`steps` must be an integer and at least 1, but is {steps!r}."
        )
    return int(steps)


def _one_number(dt: Array) -> Array:
    if dt.ndim:
        raise ArgumentError(
            f"`dt` must be one number, but has shape {dt.shape}. Batch over time steps "
            "with `vmap`."
        )
    return dt


def _check_step(dt: Array, limit: Array) -> None:
    """Refuses a time step above the stability limit, as far as both are known."""
    if isinstance(dt, jax.core.Tracer) or isinstance(limit, jax.core.Tracer):
        return
    # A relative slack of a few roundings: the limit itself is stable.
    if float(dt) > float(limit) * (1 + 4 * float(jnp.finfo(dt.dtype).eps)):
        raise ArgumentError(
            f"`dt` must be at most {float(limit):.6g} s, the Courant limit of this "
            f"grid and medium, but is {float(dt):.6g} s. Leave `dt` out to have it "
            "chosen."
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
        ArgumentError: If `steps` is no such number.
    """
    if not isinstance(steps, Integral) or steps < 0:
        raise ArgumentError(
            f"`steps` must be an integer and at least 0, but is {steps!r}."
        )
    copy = object.__new__(Simulation)
    for field in dataclasses.fields(Simulation):
        value = steps if field.name == "steps" else getattr(sim, field.name)
        object.__setattr__(copy, field.name, value)
    return copy
