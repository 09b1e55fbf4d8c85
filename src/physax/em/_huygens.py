"""Equivalent currents: the field of an earlier run, sent again from a surface."""

from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex

from .._checks import ArgumentError, at_once, check, refuse_traced
from ..grid import Box
from ._boundaries import Bloch, Periodic
from ._clock import Clock
from ._faces import Correction, metric_at
from ._flux import poynting_pairs
from ._frame import Frame
from ._injection import Injection
from ._monitors import Read
from ._near_field import NearField, recorded
from ._pulses import AbstractPulse
from ._setup import Setup
from ._sources import AbstractSource
from ._surroundings import across, at_frequencies, powers


class HuygensSource(AbstractSource):
    r"""The equivalent currents of near fields that an earlier run has recorded.

    On the faces of the record $J = n \times H$ and $M = -n \times E$, placed as the
    equations of the grid have it: outside they make the recorded field, inside nothing.
    What lies inside may therefore be left out or replaced; what lies outside must be as
    it was in the first run, or, if it is not, scatters the recorded field. On the faces
    the medium must be that of the first run, whose walls, periods and Bloch vectors
    must be there, too. All fields of the first run must have come from inside. At the
    frequency of the record the spectra of the new run are those of the first, in V s/m,
    whatever the pulse.

    Reference: Taflove and Hagness, *Computational Electrodynamics*, 3rd edition (2005),
    sections 5.10 and 8.3.

    Attributes:
        near: From a `NearFieldMonitor`. Faces that it does not have send nothing.
        pulse: The time dependence; it must contain the frequency. Its profile is that
            of the record at all others, too.
        index: Number of the frequency of `near` that is sent, from 0; to be given if
            there are several.

    Raises:
        ArgumentError: If `near` is not a near field, or `index` is not one of its
            numbers.
    """

    near: NearField
    pulse: AbstractPulse
    index: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        count = recorded(self.near).frequencies.shape[-1]
        if self.number not in range(count):
            raise ArgumentError(
                "`index` must select one of the frequencies of `near`, 0 to "
                f"{count - 1}, but is {self.index}."
            )

    @property
    def number(self) -> int | None:
        """The index, which need not be given for a single frequency."""
        alone = self.index is None and self.near.frequencies.shape[-1] == 1
        return 0 if alone else self.index

    def locate(self, frame, what):
        parts = frame.components
        if (parts.axes, parts.m) != (self.near.axes, self.near.m):
            here, there = (
                "".join(one.axes) + ("" if one.m is None else f" and m = {one.m}")
                for one in (parts, self.near)
            )
            raise ArgumentError(
                f"`near` of {what} must be from a simulation with the axes {here}, but "
                f"is from one with {there}."
            )
        boxes = {key: _box(self.near, key, frame, what) for key in self.near.values}
        _check_ends(self.near, frame, what)
        both = []
        for terms in (parts.electric_terms, parts.magnetic_terms):
            found = []
            for face in self.near.faces:
                axis, outward = parts.axes.index(face[1]), 1 if face[0] == "+" else -1
                for term in terms:
                    box = boxes.get(f"{term.target} {face}")
                    if term.axis != axis or box is None:
                        continue
                    at = boxes[f"{term.source} {face}"][axis][0]
                    sign = -outward * term.sign
                    found.append((face, Correction(term, box, at, sign)))
            both.append(tuple(found))
        for face in self.near.faces:
            pairs = poynting_pairs(face[1], parts.names)
            box = boxes[f"{pairs[0][0]} {face}"]
            normal = parts.axes.index(face[1])
            frame.warn_in_layer(box, f"Face {face} of {what}", (normal,))
        return tuple(both)

    def injections(self, place, setup):
        frequency = self.near.frequencies[self.number]
        quarter = 1 / (4 * frequency)
        fits = _fits(self.near, place, setup, "a Huygens source")
        out = []
        for electric, terms in zip((True, False), place, strict=True):
            spectrum = fits * _spectrum(self.pulse, frequency, setup, electric)
            for face, term in terms:
                field = self.near.values[f"{term.source} {face}"][self.number]
                profile = term.sign * metric_at(setup.axes, term, electric)
                profile = profile * field / spectrum.astype(field.dtype)
                if any(phase is not None for phase in setup.phases):
                    # Complex fields: what is real would hold other Bloch waves, too.
                    parts = ((profile, 0 * quarter),)
                else:
                    # The pulse a quarter of a period later has i times its spectrum.
                    parts = (profile.real, 0 * quarter), (profile.imag, quarter)
                for part, delay in parts:
                    out.append(
                        Injection(term.target, term.box, part, delay, self.pulse)
                    )
        return out


# Part of the sum of a pulse below which its spectrum is rounding.
_DARK = 1e-5


def _spectrum(
    pulse: AbstractPulse,
    frequency: Array,
    setup: Setup,
    electric: bool,
    what: str = "a Huygens source",
) -> Complex[Array, ""]:
    """Returns the spectrum of a pulse in seconds, as the rows of a kind get it."""
    # Rows of E read H, at half steps; those of H read E.
    half_steps = 2 * jnp.arange(setup.steps) + electric

    def sample(half_steps):
        clock = Clock(half_steps, setup.dt)
        angle = 2 * jnp.pi * clock.cycles(frequency)
        return pulse(clock, jnp.zeros_like(setup.dt)), lax.complex(
            jnp.cos(angle), jnp.sin(angle)
        )

    values, wave = jax.vmap(sample)(half_steps)
    total = jnp.sum(values * wave)
    share = jnp.abs(total) / jnp.sum(jnp.abs(values))
    share = check(
        share,
        share > _DARK,
        f"`pulse` of {what} must contain the frequency of its `near`: the share of its "
        f"spectrum there must exceed {_DARK:g}",
    )
    return (total + 0 * share) * setup.dt


def check_records(
    sources: Mapping[str, AbstractSource],
    places: Iterable[tuple[str, Any]],
    setup: Setup,
) -> None:
    """Refuses Huygens sources that this run cannot send, when concrete.

    Args:
        sources: By name.
        places: Names of sources and monitors, and where they are.
        setup: The run; metrics and phases are not asked for.

    Raises:
        ArgumentError: If the medium on the faces or a Bloch vector is not that of the
            record, or the pulse lacks its frequency.
    """
    for name, place in places:
        source = sources.get(name)
        if not isinstance(source, HuygensSource):
            continue
        what = f"source {name!r}"
        with at_once((source, setup)):
            _fits(source.near, place, setup, what)
            frequency = source.near.frequencies[source.number]
            _spectrum(source.pulse, frequency, setup, True, what)


# Roundings of means and phases that were computed in other runs.
_SAME = 1e-4


def _fits(near: NearField, place: tuple, setup: Setup, what: str) -> Array:
    """Returns 1 if medium and Bloch vectors are those of a record, else raises or NaN.

    What is compared of the medium is all that the record keeps: means over the faces,
    their spread and the largest loss.
    """
    names = setup.components.names
    boxes = {
        f"{term.target} {face}": term.box for terms in place for face, term in terms
    }
    reads = []
    for face in near.faces:
        # In the order of the monitor, on which the samples of `across` depend.
        for electric, magnetic, _ in poynting_pairs(face[1], names):
            for name in (electric, magnetic):
                key = f"{name} {face}"
                reads.append(Read(key, name, boxes[key]))
    reads += across(tuple(reads), setup.components)
    at = near.frequencies, near.dt
    found = at_frequencies(reads, setup.medium, setup.grid, *at)
    power = powers(reads, setup.medium)
    power = check(
        power,
        power == 0,
        f"The medium on the faces of {what} must be linear, as its currents replace "
        "what is inside only where waves add up. The largest nonlinear susceptibility "
        "there must be 0",
    )
    spread = check(
        found[2],
        found[2] < jnp.inf,
        f"The medium on the faces of {what} must have its principal axes along the "
        "grid, where its currents drive one component each: record elsewhere. The "
        "spread of the permittivity there must be finite",
    )
    fits = jnp.ones_like(setup.dt) + 0 * (power + spread).astype(setup.dt.dtype)
    for name, now, then in zip(
        ("permittivity", "permeability", "spread", "loss"),
        found,
        (near.permittivity, near.permeability, near.spread, near.loss),
        strict=True,
    ):
        now, then = jnp.broadcast_arrays(now, then)
        scale = 1.0 if name == "spread" else jnp.abs(then)
        now = check(
            now,
            (now == then) | (jnp.abs(now - then) <= _SAME * scale),
            f"The medium on the faces of {what} must be that of the run that recorded "
            f"`near`: its {name} there must be {then}",
        )
        fits = fits * jnp.where(jnp.isnan(now).any(), jnp.nan, 1)
    for axis in map(near.of_grid, near.repeated):
        low, then = setup.boundaries.axis(axis)[0], near.wavevectors[axis]
        now = low.wavevector if isinstance(low, Bloch) else jnp.zeros_like(then)
        now = check(
            now,
            jnp.abs(jnp.sin((now - then) * near.periods[axis] / 2)) <= _SAME,
            f"The Bloch vector of the run along {near.axes[axis]} must be the one with "
            f"which `near` of {what} was recorded, {then} rad/m",
        )
        fits = fits * jnp.where(jnp.isnan(now), jnp.nan, 1)
    return fits


def _check_ends(near: NearField, frame: Frame, what: str) -> None:
    """Refuses a run without the walls and periods of the run of a record."""
    for (number, kind), plane in zip(near.walls, near.planes, strict=True):
        axis = near.of_grid(number)
        nodes, name = frame.nodes[axis], near.axes[axis]
        slack = 0.01 * float(np.min(np.diff(nodes)))
        there = any(
            face.__name__ == kind and abs(float(plane) - end) <= slack
            for face, end in zip(frame.faces[axis], nodes[[0, -1]], strict=True)
        )
        if not there:
            raise ArgumentError(
                f"The run of {what} must have the {kind} wall at {name} = "
                f"{float(plane):g} m of the run that recorded `near`, but has none "
                "there: the record holds what the wall reflected."
            )
    for axis in map(near.of_grid, near.repeated):
        nodes, period = frame.nodes[axis], float(near.periods[axis])
        length = float(nodes[-1] - nodes[0])
        wraps = issubclass(frame.faces[axis][0], (Periodic, Bloch))
        if not wraps or abs(length - period) > 1e-4 * period:
            found = f"has {length:g} m" if wraps else "is not periodic"
            raise ArgumentError(
                f"The run of {what} must be periodic over the {period:g} m along "
                f"{near.axes[axis]} with which `near` was recorded, but {found}."
            )


def _box(near: NearField, key: str, frame: Frame, what: str) -> Box:
    """Finds the samples of a record on another grid."""
    name = key.split()[0]
    if name not in frame.components.names:
        raise ArgumentError(
            f"`near` of {what} must hold the components {frame.components.names}, but "
            f"holds {name!r}. Take the same polarisation."
        )
    box = []
    for axis, half in enumerate(frame.components.stagger(name)):
        wanted = near.coordinates[key][axis]
        refuse_traced(
            wanted,
            "near.coordinates",
            f"For {what} build the `Simulation` outside and replace `near.values`.",
        )
        wanted = np.asarray(wanted, np.float64)
        points = frame.positions(axis, half)
        low = int(np.argmin(np.abs(points - wanted[0])))
        here = points[low : low + len(wanted)]
        cell = float(np.min(np.diff(frame.nodes[axis])))
        if here.shape != wanted.shape or np.max(np.abs(here - wanted)) > 0.01 * cell:
            raise ArgumentError(
                f"`near` of {what} must lie on cells of the grid, but the samples of "
                f"{name} along {near.axes[axis]}, from {wanted[0]:g} to "
                f"{wanted[-1]:g} m, "
                "do not. Give both runs the same cells there."
            )
        box.append((low, low + len(wanted)))
    return tuple(box)
