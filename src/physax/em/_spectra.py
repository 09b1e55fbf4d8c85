"""Transforms of the differentiated cells, and what gradients follow from them."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from .._loop import iterate
from .._products import matmul, tensordot
from ..grid import Box
from ._clock import Clock
from ._cotangents import current_value, pull
from ._monitors import AbstractSpectralMonitor
from ._program import Program
from ._tape_plan import Plan


class Band(eqx.Module):
    """The frequencies of all spectral monitors.

    Attributes:
        frequencies: In Hz; a frequency stands twice if two monitors have it whose
            lists differ, or are not known to be equal.
        share: One over the number of times that each stands there.
        places: For each monitor where its own frequencies stand.
        every: Steps between samples of the transforms.
        dt: Time step in seconds.
        wide: The accumulators' type.
        complex_fields: Whether fields are complex.
    """

    frequencies: Float[Array, " freqs"]
    share: Float[Array, " freqs"]
    places: dict[str, tuple[int, int]] = eqx.field(static=True)
    every: Int[Array, ""]
    dt: Float[Array, ""]
    wide: Any = eqx.field(static=True)
    complex_fields: bool = eqx.field(static=True)


def band_of(program: Program, groups: tuple[tuple[str, str], ...]) -> Band:
    """Collects the frequencies of all monitors.

    Args:
        program: The program, whose monitors are spectral.
        groups: For each monitor, by name, one with the same frequencies.

    Returns:
        The band.
    """
    starts: dict[str, tuple[int, int]] = {}
    lists, count = [], 0
    # By name: the order of a dictionary changes where it passes through `jit`.
    chosen = dict(groups)
    for name in dict.fromkeys(chosen[name] for name in program.monitors):
        monitor = program.monitors[name]
        assert isinstance(monitor, AbstractSpectralMonitor)
        own = monitor.frequencies
        starts[name] = count, count + len(own)
        lists.append(own)
        count += len(own)
    frequencies = lax.stop_gradient(jnp.concatenate(lists))
    same = frequencies[:, None] == frequencies
    every = jnp.min(jnp.stack([s.every for s in program.sampling.values()]))
    kind = jnp.dtype(program.dtype)
    return Band(
        frequencies,
        1 / jnp.sum(same, axis=1, dtype=frequencies.dtype),
        {name: starts[chosen[name]] for name in program.monitors},
        every,
        program.setup.dt,
        jnp.result_type(jnp.dtype(program.accumulate), jnp.complex64),
        jnp.issubdtype(kind, jnp.complexfloating),
    )


def phases(band: Band, component: str, n: Int[Array, ""], sign: int) -> Array:
    """Returns `exp(sign i w t)` at the end of a step, for H half a step before."""
    half_steps = 2 * n + (2 if component[0] == "E" else 1)
    angle = 2 * jnp.pi * sign * Clock(half_steps, band.dt).cycles(band.frequencies)
    return lax.complex(jnp.cos(angle), jnp.sin(angle)).astype(band.wide)


def blank(plan: Plan, band: Band) -> dict:
    """Returns transforms of nothing: for each kept box one for each frequency."""
    count = len(band.frequencies)
    return {
        name: tuple(
            jnp.zeros((count, *(high - low for low, high in one.box)), band.wide)
            for one in kept
        )
        for name, kept in plan.rows.items()
    }


def added(band: Band, sums: dict, cells: dict, n: Int[Array, ""], *, sign: int) -> dict:
    """Adds the samples of one step to transforms, if it is one that counts."""

    def add(sums):
        new = dict(sums)
        for name, parts in cells.items():
            factors = band.every * phases(band, name, n, sign)
            new[name] = tuple(
                total + factors.reshape(-1, *(1,) * part.ndim) * part
                for total, part in zip(sums[name], parts, strict=True)
            )
        return new

    return lax.cond(n % band.every == 0, add, lambda s: s, sums)


def window_at(steps: Int[Array, ""], n: Int[Array, ""]) -> Array:
    """Returns the envelope of the monitors' pulses, over the later half of all steps.

    With this power of a sine next to nothing is sent at other frequencies.
    """
    x = (n - steps + 0.5) / steps
    inside = (x > 0) & (x < 1)
    return jnp.where(inside, jnp.sin(jnp.pi * jnp.where(inside, x, 0)) ** 8, 0)


def windowed(
    program: Program, band: Band, cotangents: dict, steps: Int[Array, ""]
) -> dict:
    """Finds pulses whose transforms are the cotangents of the monitors.

    A monitor radiates `Re sum_f c_f exp(i w_f t)` under the window. With the transform
    W of the window its own is `sum_g [c_g W(w_g - w_f) + conj(c_g W(w_g + w_f))] / 2`.

    Args:
        program: The program.
        band: The frequencies.
        cotangents: Of the accumulators, by monitor and key.
        steps: Length of the window.

    Returns:
        The amplitudes, for all frequencies of the band.
    """
    f = band.frequencies
    gaps = jnp.stack([f - f[:, None], -f - f[:, None]])
    sums = _window_spectra(band, gaps, steps)
    inverses = {kind: _inverse(band, gaps, sums, kind) for kind in "EH"}
    same = (f[:, None] == f).astype(f.dtype)
    out = {}
    for name, totals in cotangents.items():
        low, high = band.places[name]
        out[name] = {
            key: _solved(band, inverses[key[0]], same[:, low:high], ct)
            for key, ct in totals.items()
        }
    return out


def _window_spectra(band: Band, gaps: Array, steps: Int[Array, ""]) -> Array:
    """Returns `sum_n w_n exp(2 pi i gap t_n)` at whole steps."""

    def add(total, n):
        angle = 2 * jnp.pi * Clock(2 * n + 2, band.dt).cycles(gaps)
        wave = lax.complex(jnp.cos(angle), jnp.sin(angle)).astype(band.wide)
        return total + window_at(steps, n).astype(wave.real.dtype) * wave

    return iterate(add, jnp.zeros(gaps.shape, band.wide), steps, 2 * steps)[0]


def _inverse(band: Band, gaps: Array, sums: Array, kind: str) -> Array:
    """Returns the map from transforms to amplitudes, as a real matrix."""
    if kind == "H":
        angle = -jnp.pi * gaps * band.dt
        sums = sums * lax.complex(jnp.cos(angle), jnp.sin(angle)).astype(band.wide)
    near, far = sums
    if band.complex_fields:
        near, far = 2 * near, jnp.zeros_like(far)
    # Rows: real and imaginary part of the transforms; columns: those of amplitudes.
    plus, minus = (near + far) / 2, (near - far) / 2
    matrix = jnp.block([[plus.real, -minus.imag], [plus.imag, minus.real]])
    return jnp.linalg.pinv(matrix)


def _solved(band: Band, inverse: Array, same: Array, cotangent: Array) -> Array:
    shape = cotangent.shape[1:]
    wanted = matmul(same, cotangent.reshape(cotangent.shape[0], -1))
    parts = matmul(inverse, jnp.concatenate([wanted.real, wanted.imag]))
    real, imag = jnp.split(parts, 2)
    found = lax.complex(real, imag).astype(cotangent.dtype)
    return found.reshape(len(band.frequencies), *shape)


def row_sums(plan: Plan, band: Band, spectra: dict, duals: dict) -> dict:
    """Returns the sums for the rows, arranged as the plan.

    Args:
        plan: What is differentiated.
        band: The frequencies.
        spectra: Transforms of the fields of the kept cells.
        duals: Those of their cotangents.

    Returns:
        The sums.
    """
    angle = 2 * jnp.pi * band.frequencies * band.dt
    q = lax.complex(jnp.cos(angle), jnp.sin(angle)).astype(band.wide)
    share = band.share.astype(q.dtype)
    factors = (1 - q) * share, (1 + q) * share
    out = {}
    for name, kept in plan.rows.items():
        groups = []
        # The duals of the currents' cells follow those of the rows.
        for one, field, dual in zip(kept, spectra[name], duals[name], strict=False):
            asked = (one.change, one.sum)
            groups.append(
                tuple(
                    -jnp.real(tensordot(factor, dual * field, 1))
                    for factor, wanted in zip(factors, asked, strict=True)
                    if wanted
                )
            )
        out[name] = tuple(groups)
    return out


def current_sums(
    plan: Plan,
    wide: Plan,
    program: Program,
    band: Band,
    duals: dict,
    steps: Int[Array, ""],
) -> tuple[dict, dict]:
    """Returns the sums for electric and magnetic currents, by number.

    Args:
        plan: What is differentiated.
        wide: The same with the cells of the currents, after those of the rows.
        program: The program.
        band: The frequencies.
        duals: Transforms of the cotangents of the kept cells.
        steps: Number of steps of the run.

    Returns:
        Both.
    """
    seen = {name: len(kept) for name, kept in plan.rows.items()}
    out = []
    for numbers, currents, offset in (
        (plan.electric, program.electric, 1),
        (plan.magnetic, program.magnetic, 0),
    ):
        sums = {}
        for i in numbers:
            one = currents[i]
            at = seen.get(one.component, 0)
            seen[one.component] = at + 1
            outer = wide.rows[one.component][at].box
            parts = program.stepper.block.parts
            dual = duals[one.component][at][_cells(one.box, outer, parts)]
            sums[i] = _current_sum(band, one, dual, offset, steps, program.dtype)
        out.append(sums)
    return out[0], out[1]


def _cells(box: Box, outer: Box, parts: tuple[int, ...]) -> tuple[slice, ...]:
    """Returns where a box lies in one that holds all cells along cut axes."""
    own = (
        slice(low, high) if count > 1 else slice(low - start, high - start)
        for (low, high), (start, _), count in zip(box, outer, parts, strict=True)
    )
    return slice(None), *own


def _current_sum(band: Band, one, dual: Array, offset: int, steps, dtype: str):
    """Sums over all steps what a steady cotangent gives for a current."""
    weights = band.share.astype(dual.dtype).reshape(-1, *(1,) * (dual.ndim - 1)) * dual
    value = partial(current_value, dtype=jnp.dtype(dtype))

    def add(total, n):
        factors = phases(band, one.component, n, sign=1)
        steady = tensordot(factors, weights, 1)
        if not band.complex_fields:
            steady = steady.real
        clock = Clock(2 * n + offset, band.dt)
        more = pull(partial(value, clock), one, steady.astype(dtype))
        return jax.tree.map(jnp.add, total, more)

    start = jax.tree.map(jnp.zeros_like, eqx.filter(one, eqx.is_inexact_array))
    return iterate(add, start, 0, steps)[0]
