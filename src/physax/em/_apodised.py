"""Spectra of a part of the time: transforms under a Gaussian window."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import ArgumentError, kind_of, numeric, positive, traced, warn
from ._clock import Clock
from ._flux import FluxMonitor
from ._monitors import AbstractMonitor, FieldMonitor
from ._near_field_monitor import NearFieldMonitor


class Apodised(AbstractMonitor):
    r"""A spectral monitor that looks through a Gaussian window in time.

    The transforms are $\sum_n w(t_n) F(t_n) e^{2 \pi i f t_n} \Delta t$ with
    $w(t) = e^{-(t - t_0)^2 / 2 \tau^2}$. After the pulse they hold only the ringing,
    the pattern of a resonance; for a run that is too short they have no ripples, as the
    window has closed before the end. A line has the width $1 / 2 \pi \tau$ (standard
    deviation), so that closer frequencies are not resolved.

    Samples are taken in each step. Results are those of the monitor inside.
    Differentiable in the window with `Checkpointed` and `Direct`; not supported by
    `FrequencyDomain`.

    Attributes:
        monitor: A `FieldMonitor`, `FluxMonitor` or `NearFieldMonitor`.
        centre: $t_0$ in seconds, within the run.
        width: $\tau$ in seconds.

    Raises:
        ArgumentError: If `monitor` is of another kind, or `width` is not positive.
    """

    monitor: AbstractMonitor
    centre: Float[Array, ""] = eqx.field(converter=numeric("centre"))
    width: Float[Array, ""] = eqx.field(converter=lambda x: positive(x, "width"))

    def __check_init__(self):
        if not isinstance(self.monitor, FieldMonitor | FluxMonitor | NearFieldMonitor):
            raise ArgumentError(
                "`monitor` must be a `FieldMonitor`, `FluxMonitor` or "
                f"`NearFieldMonitor`, but is {kind_of(self.monitor)}"
            )

    def locate(self, frame, what):
        return self.monitor.locate(frame, what)

    def start(self, reads, setup, dtype):
        return self.monitor.start(reads, setup, jnp.result_type(dtype, jnp.complex64))

    def update(self, total, read, step, sampling):
        def seen():
            return {key: self._at(key, step, sampling) * x for key, x in read().items()}

        return self.monitor.update(total, seen, step, sampling)

    def _at(self, key, step, sampling):
        # E is known at the end of the step, H half a step before.
        clock = Clock(2 * step + (2 if key[0] == "E" else 1), sampling.dt)
        return jnp.exp(-(((clock.time - self.centre) / self.width) ** 2) / 2)

    def finish(self, total, reads, setup):
        return self.monitor.finish(total, reads, setup)


# Widths off its centre at which a window is closed: 1 % of it is left.
_CLOSED = 3


def check_windows(
    monitors: Mapping[str, AbstractMonitor], dt: Float[Array, ""], steps: int
) -> None:
    """Refuses windows that never open in a run, and warns of flanks.

    Args:
        monitors: By name.
        dt: Time step in seconds.
        steps: Number of steps.

    Raises:
        ArgumentError: If the middle of a window is known to lie more than three widths
            outside of the run.
    """
    for name, monitor in monitors.items():
        if not isinstance(monitor, Apodised):
            continue
        times = (monitor.centre, monitor.width, dt)
        if traced(times):
            continue
        centre, width, step = map(float, times)
        end = steps * step
        away = max(centre - end, -centre, 0.0) / width
        if not away <= _CLOSED:
            raise ArgumentError(
                f"`centre` of monitor {name!r} must be within {_CLOSED} widths of "
                f"{width:.4g} s of the run, from 0 to {end:.4g} s, but is "
                f"{centre:.4g} s: the window never opens. Take more `steps`."
            )
        if away > 0:
            warn(
                f"`centre` of monitor {name!r} should lie in the run, from 0 to "
                f"{end:.4g} s, but is {centre:.4g} s: only a flank of the window lies "
                "in the run. Take more `steps`.",
            )
