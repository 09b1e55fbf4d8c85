"""Reverse mode in the frequency domain: memory that no number of steps changes."""

from functools import partial
from numbers import Real
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from .._checks import ArgumentError, check, traced
from .._loop import iterate
from ..grid import Layout
from ._adjoints import AbstractAdjoint, refuse_powers
from ._backward_pass import enter_back, step_back
from ._cotangents import start_back
from ._course import AbstractCourse, everywhere
from ._march import (
    Decay,
    decayed,
    each_device,
    on_devices,
    own_all,
    watching,
)
from ._monitors import AbstractSpectralMonitor, Sampling
from ._program import Program, ready
from ._scattered import scattered
from ._simulation import Simulation
from ._spectra import (
    Band,
    added,
    band_of,
    blank,
    current_sums,
    row_sums,
    window_at,
    windowed,
)
from ._state import State, residual, rest, step
from ._tape import kept_cells
from ._tape_plan import Kept, Plan


_REMEDY = "Take `adjoint=LinearTape()`."


class FrequencyDomain(AbstractAdjoint):
    r"""Transforms the differentiated cells to the monitors' frequencies during a run.

    Once all fields have decayed, the sum over all steps of a cotangent times a field is
    one over frequencies, $\sum_f \mathrm{Re}\, \hat\lambda_f \hat R_f$. The transforms
    $\hat R_f$ are taken during the run, $\hat\lambda_f$ in one transposed run of twice
    the steps: the monitors radiate a pulse with the right amplitude at every frequency,
    then its waves leave. Memory is that of the transforms, whatever the number of
    steps. The error is that of the fields left: the square root of the residual energy.

    It supports objectives of spectral monitors, for derivatives by media and by
    currents (dipoles, modes, beams). Gradients of the last fields are NaN. Frequencies
    much closer to each other than one over the duration of the run lose accuracy.

    Attributes:
        tolerance: Largest energy left, over the largest seen, for which gradients are
            given. Above it the run is refused; under `jit` and `vmap`, where nothing
            can be raised, gradients are NaN.

    Raises:
        ArgumentError: If the tolerance is not in (0, 1).
    """

    tolerance: float = eqx.field(static=True, default=1e-8)

    def __check_init__(self):
        if not (isinstance(self.tolerance, Real) and 0 < self.tolerance < 1):
            raise ArgumentError(
                f"`tolerance` must be a number in (0, 1), but is {self.tolerance!r}."
            )

    def prepared(self, sim: Simulation) -> "_Grouped":
        refuse_powers(sim, "FrequencyDomain()")
        firsts: dict[str, Array] = {}
        groups = []
        for name, monitor in sim.monitors.items():
            if not isinstance(monitor, AbstractSpectralMonitor):
                raise ArgumentError(
                    "`adjoint=FrequencyDomain()` needs monitors with frequencies, but "
                    f"{name!r} is a {type(monitor).__name__}. Leave it out. {_REMEDY}"
                )
            own = monitor.frequencies
            same = (n for n, other in firsts.items() if _equal(own, other))
            first = next(same, name)
            groups.append((name, first))
            firsts.setdefault(first, own)
        if not groups:
            raise ArgumentError(
                "`adjoint=FrequencyDomain()` needs a monitor with frequencies, but the "
                f"simulation has no monitors. {_REMEDY}"
            )
        return _Grouped(self.tolerance, tuple(groups))

    def review(self, residual) -> None:
        residual = lax.stop_gradient(residual)
        if isinstance(residual, jax.core.Tracer):
            return
        check(
            residual,
            residual <= self.tolerance,
            "`adjoint=FrequencyDomain()` needs fields that have decayed (take more "
            "`steps`, or another adjoint): the remaining energy over the largest must "
            f"be at most {self.tolerance:g}",
        )

    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        groups = tuple((name, name) for name in program.monitors)
        return _Grouped(self.tolerance, groups).march(program, steps, until)


class _Grouped(AbstractAdjoint):
    """The adjoint with what it knows of a simulation.

    Attributes:
        tolerance: Of the residual energy.
        groups: For each monitor, by name, the first with the same frequencies.
    """

    tolerance: float = eqx.field(static=True)
    groups: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def prepared(self, sim: Simulation) -> "_Grouped":
        del sim
        return self

    def review(self, residual) -> None:
        FrequencyDomain(self.tolerance).review(residual)

    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        static = eqx.filter(program, eqx.is_array, inverse=True)
        return _Course(
            static, steps, until, "FrequencyDomain()", self.tolerance, self.groups
        ).differentiable(program)


def _equal(one: Array, other: Array) -> bool:
    if one is other:
        return True
    if one.shape != other.shape:
        return False
    known = not traced((one, other))
    return known and bool(np.all(np.asarray(one) == np.asarray(other)))


class _Course(AbstractCourse):
    static: Program
    steps: int = eqx.field(static=True)
    until: Decay | None = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)
    groups: tuple[tuple[str, str], ...] = eqx.field(static=True)

    def cuts(self, layout: Layout):
        """Returns how a layout cuts the transforms."""
        return layout.spec(self.static.stepper.components.ndim, 1)

    def recorded(self, plan: Plan, draft: Program) -> tuple[State, Any]:
        self.check(plan)
        program = ready(draft)

        def run(program, state):
            band = band_of(program, self.groups)

            def one(carry, n):
                state, sums = carry
                state = step(program, state, n)
                cells = kept_cells(plan, state.fields)
                return state, added(band, sums, cells, n, sign=1)

            options: dict[str, Any] = watching(program)
            if options:
                look = options["between"]
                options["between"] = lambda c: (look(c[0]), c[1])
            if self.until is not None:
                limit = self.until.threshold
                options["done"] = lambda c: decayed(program, c[0], limit)
            start = state, own_all(blank(plan, band), program.layout)
            return iterate(one, start, 0, self.steps, **options)[0]

        state, sums = on_devices(run, program, rest(program), self.cuts)
        return state, (sums, residual(program, state), state.done)

    def check(self, plan: Plan) -> None:
        """Refuses by name what has no place in the frequency domain."""
        if plan.lines:
            raise ArgumentError(
                f"`adjoint={self.adjoint}` differentiates media and currents, but was "
                "asked for a derivative with respect to the plane wave "
                f"{plan.lines[0]!r}. Fix it with `jax.lax.stop_gradient`. {_REMEDY}"
            )
        if any(at is not None for many in plan.poles.values() for at in many):
            raise ArgumentError(
                f"`adjoint={self.adjoint}` differentiates media and currents, but was "
                f"asked for a derivative with respect to a dispersion. {_REMEDY}"
            )

        if plan.tilts:
            raise ArgumentError(
                f"`adjoint={self.adjoint}` differentiates media without off-diagonal "
                f"permittivity, but this one has some. {_REMEDY}"
            )

    def vjp(self, plan, draft, theta, kept, cotangent) -> Program:
        program = ready(draft)
        band = band_of(program, self.groups)
        spectra, left, done = kept
        fields, monitors = cotangent
        # What is asked of the last fields is of the time domain.
        asked = [jnp.any(ct != 0) for ct in fields.values()]
        bad = jnp.any(jnp.stack([left > self.tolerance, *asked]))
        wide = _with_currents(plan, program)
        psi = jax.tree.map(jnp.zeros_like, rest(program).psi)
        none = jax.tree.map(jnp.zeros_like, fields)
        pulses = windowed(program, band, monitors, done)
        back = _radiating(program, band)

        def run(back, band, none, psi, pulses, done):
            start = start_back(wide, back, none, psi, pulses)
            start = eqx.tree_at(lambda c: c.rows, start, blank(wide, band))
            carry = own_all(start, back.layout)
            window = partial(window_at, done)
            last = 2 * done - 1
            carry = enter_back(back, wide, carry, last, window)

            def gather(sums, cells, n):
                return added(band, sums, cells, n, sign=-1)

            def one(carry, k):
                return step_back(back, wide, gather, carry, {}, last - k, window)

            return iterate(one, carry, 0, 2 * done)[0].rows

        duals = each_device(
            run,
            back,
            (band, none, psi, pulses, done),
            (everywhere, self.cells, self.cells, everywhere, everywhere),
            self.cuts,
        )
        # NaN where the answer would be wrong: this may be traced, and cannot raise.
        band = eqx.tree_at(lambda b: b.share, band, jnp.where(bad, jnp.nan, band.share))
        rows = row_sums(plan, band, spectra, duals)
        currents = current_sums(plan, wide, program, band, duals, done)
        return scattered(plan, draft, theta, (rows, {}, ()), (*currents, {}))


def _with_currents(plan: Plan, program: Program) -> Plan:
    """Returns a plan that keeps the cells of the differentiated currents, too."""
    block, rows = program.stepper.block, dict(plan.rows)
    chosen = [program.electric[i] for i in plan.electric]
    chosen += [program.magnetic[i] for i in plan.magnetic]
    for one in chosen:
        box = tuple(
            span if parts == 1 else (0, cells)
            for span, cells, parts in zip(
                one.box, block.shape, block.parts, strict=True
            )
        )
        rows[one.component] = (
            *rows.get(one.component, ()),
            Kept(box, True, False, one.box),
        )
    poles: dict[str, tuple[int | None, ...]] = {
        name: (None,) * len(many) for name, many in plan.poles.items()
    }
    return Plan(rows, (), (), (), poles)


def _radiating(program: Program, band: Band) -> Program:
    """Returns a program whose monitors all have all frequencies, and miss no step."""
    every = jnp.ones((), jnp.int32)
    return eqx.tree_at(
        lambda p: (p.monitors, p.sampling),
        program,
        (
            {
                name: eqx.tree_at(lambda m: m.frequencies, one, band.frequencies)
                for name, one in program.monitors.items()
            },
            {name: Sampling(every, one.dt) for name, one in program.sampling.items()},
        ),
    )
