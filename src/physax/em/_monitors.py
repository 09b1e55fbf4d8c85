"""Monitors: what a run records while it goes, reduced step by step."""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Complex, Float, Int

from .._checks import ArgumentError, positive
from ..grid import AXES, Box
from ._clock import Clock
from ._components import KNOWN
from ._frame import Frame, Point, as_point, check_point, check_size
from ._setup import Setup


class Read(NamedTuple):
    """Samples of one component under a key.

    Attributes:
        key: The key.
        component: The component.
        box: The samples.
        weights: Around a dipole for each axis the weight of each sample.
        turns: Around a dipole for each axis how many periods further on they stand for.
    """

    key: str
    component: str
    box: Box
    weights: tuple[tuple[float, ...], ...] = ()
    turns: tuple[int, ...] = ()


class Sampling(eqx.Module):
    """How often a monitor is updated.

    Attributes:
        every: Steps between updates; the first is after step 0.
        dt: Time step in seconds.
    """

    every: Int[Array, ""]
    dt: Float[Array, ""]


class AbstractMonitor(eqx.Module):
    """Something that reads samples of the fields after each step."""

    @abstractmethod
    def locate(self, frame: Frame, what: str) -> tuple[Read, ...]:
        """Finds the samples on the host; refuses places outside the grid."""

    @abstractmethod
    def start(self, reads: tuple[Read, ...], setup: Setup, dtype: Any) -> Any:
        """Returns the accumulator at rest."""

    @abstractmethod
    def update(
        self,
        total: Any,
        read: Callable[[], dict[str, Array]],
        step: Int[Array, ""],
        sampling: Sampling,
    ) -> Any:
        """Returns the accumulator with the samples of one step added, linearly.

        `read` returns the samples by key, those of other blocks as zeros; results of
        the blocks are summed at the end. Call it only where they are needed.
        """

    @abstractmethod
    def finish(self, total: Any, reads: tuple[Read, ...], setup: Setup) -> Any:
        """Turns the accumulator into the result."""


def as_frequencies(values) -> Float[Array, " freqs"]:
    """Returns frequencies as a list of positive numbers in Hz."""
    values = positive(values, "frequencies")
    if values.ndim > 1 or values.size == 0:
        raise ArgumentError(
            "`frequencies` must be one number or a list of at least one, but has shape "
            f"{values.shape}."
        )
    return jnp.atleast_1d(values)


class AbstractSpectralMonitor(AbstractMonitor):
    r"""A monitor whose accumulator is the Fourier transform of its samples.

    $F(f) = \sum_n F(t_n) e^{2 \pi i f t_n} \Delta t$ with $t_n$ at whole steps for E
    and at half steps for H: for the time sign `exp(-i w t)` this is the amplitude of
    the spectrum. The samples are decimated as far as the band of the sources allows.
    """

    frequencies: eqx.AbstractVar[Float[Array, " freqs"]]

    def start(self, reads, setup, dtype):
        count = self.frequencies.shape[0]
        return {
            read.key: jnp.zeros((count, *(high - low for low, high in read.box)), dtype)
            for read in reads
        }

    def update(self, total, read, step, sampling):
        # Read before the condition: one that reads whole fields makes XLA copy them.
        values = read()

        def add(total):
            new = {}
            for key, samples in values.items():
                # E is known at the end of the step, H half a step before.
                half_steps = 2 * step + (2 if key[0] == "E" else 1)
                cycles = Clock(half_steps, sampling.dt).cycles(self.frequencies)
                weight = sampling.every * sampling.dt
                angle = 2 * jnp.pi * cycles
                phase = weight * lax.complex(jnp.cos(angle), jnp.sin(angle))
                phase = phase.astype(total[key].dtype)
                phase = phase.reshape((-1, *(1,) * samples.ndim))
                new[key] = total[key] + phase * samples
            return new

        return lax.cond(step % sampling.every == 0, add, lambda t: t, total)


class SpectralFields(eqx.Module):
    """Fourier transforms of field components on a region.

    Attributes:
        frequencies: In Hz.
        values: By component, shape (frequency, x, y, z); E in V s/m, H as `eta0 H`.
        coordinates: By component, the positions of its samples along each axis, in m.
        axes: Names of the axes, `("r", "z")` in cylindrical coordinates.
    """

    frequencies: Float[Array, " freqs"]
    values: dict[str, Complex[Array, "..."]]
    coordinates: dict[str, tuple[Float[Array, "..."], ...]]
    axes: tuple[str, ...] = eqx.field(static=True, default=AXES)


def sample_coordinates(read: Read, setup: Setup) -> tuple[Array, ...]:
    """Returns the positions of the samples of a read along each axis, in metres."""
    grid = setup.grid
    out = []
    for axis, half in enumerate(setup.components.stagger(read.component)):
        points = grid.centres(axis) if half else grid.edges(axis)
        low, high = read.box[axis]
        out.append(points[low:high])
    return tuple(out)


def as_names(components: Any) -> Any:
    """Returns names of components; what is no list of them is refused where placed."""
    if not isinstance(components, list | tuple):
        return components
    for name in components:
        if name not in KNOWN:
            raise ArgumentError(
                f"`components` of a monitor must be among {KNOWN}, but contain "
                f"{name!r}."
            )
    return tuple(components)


class FieldMonitor(AbstractSpectralMonitor):
    """Fourier transforms of components in a region, at the Yee points of each.

    Attributes:
        components: Which, for example `("Ez",)`.
        centre: Middle of the region in metres.
        size: Its lengths in metres; 0 takes the nearest samples, `inf` all.
        frequencies: In Hz.
    """

    components: tuple[str, ...] = eqx.field(static=True, converter=as_names)
    centre: Point = eqx.field(static=True, converter=partial(as_point, name="centre"))
    size: Point = eqx.field(static=True, converter=partial(as_point, name="size"))
    frequencies: Float[Array, " freqs"] = eqx.field(converter=as_frequencies)

    def locate(self, frame, what):
        return region_reads(frame, self.components, self.centre, self.size, what)

    def finish(self, total, reads, setup):
        where = {read.key: sample_coordinates(read, setup) for read in reads}
        return SpectralFields(self.frequencies, total, where, setup.components.axes)


def region_reads(
    frame: Frame, components: tuple[str, ...], centre: Point, size: Point, what: str
) -> tuple[Read, ...]:
    """Returns the reads of components in a region, after checking them."""
    if isinstance(components, str):
        raise ArgumentError(
            f"`components` of {what} must be a list of names, but is the text "
            f"{components!r}. Write `({components!r},)`."
        )
    if not components:
        raise ArgumentError(
            f"`components` of {what} must name at least one component, but is empty."
        )
    centre = check_point(centre, frame.ndim, "centre", what)
    size = check_size(size, frame, what)
    reads = []
    for name in components:
        if name not in frame.components.names:
            raise ArgumentError(
                f"`components` of {what} must be among {frame.components.names}, but "
                f"contains {name!r}."
            )
        box = frame.box(name, centre, size, what)
        frame.warn_in_layer(box, what)
        reads.append(Read(name, name, box))
    return tuple(reads)
