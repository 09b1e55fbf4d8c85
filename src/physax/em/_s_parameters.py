"""Scattering parameters of a device with several ports."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float

from .._checks import (
    ArgumentError,
    at_once,
    by_name,
    check,
    instance,
    positive,
    traced,
    warn,
)
from ..grid import Box, Grid, Layout
from ..units import NANO, SPEED_OF_LIGHT
from ._adjoints import AbstractAdjoint
from ._cut_off import check_modes, check_travels
from ._frame import build_frame
from ._march import Decay
from ._mode_monitor import ModeAmplitudes, ModeMonitor
from ._port_places import find_port, samples_of
from ._ports import Port
from ._pulses import AbstractPulse, band_pulse
from ._simulate import Result, simulate
from ._simulation import Simulation
from ._sources import ModeSource


def _port_boxes(sim: Simulation, ports: Mapping[str, Port]) -> dict[str, Box]:
    """Returns the samples of each port in its plane."""
    frame = build_frame(sim.grid, sim.boundaries, sim.components)
    return {
        name: samples_of(find_port(port, frame, f"port {name!r}"))
        for name, port in ports.items()
    }


def _holds_middle(box: Box, other: Box) -> bool:
    """Whether a box holds the middle of another."""
    return all(
        2 * low <= start + stop < 2 * high
        for (low, high), (start, stop) in zip(box, other, strict=True)
    )


def _check_places(sim: Simulation, ports: Mapping[str, Port]) -> None:
    """Raises if ports overlap."""
    boxes = _port_boxes(sim, ports)
    for (one, here), (other, there) in combinations(boxes.items(), 2):
        a, b = ports[one], ports[other]
        # Several modes of one waveguide are measured on the same samples.
        modes = here == there and a.direction == b.direction and a.mode != b.mode
        # Ports of guides side by side may share what is between these.
        same = _holds_middle(here, there) or _holds_middle(there, here)
        if a.axis == b.axis and same and not modes:
            raise ArgumentError(
                f"Ports {one!r} and {other!r} must not overlap as far as the middle "
                f"of either, but span the samples {here} and {there}. Move one, or "
                "make their `width` smaller."
            )


def _review_modes(result: Result, ports: Mapping[str, Port]) -> None:
    """Refuses modes that do not propagate, warns of cut ones, when concrete."""
    for name, port in ports.items():
        found = result.monitors[f"port {name}"]
        if isinstance(found.square, jax.core.Tracer):
            return
        square, rim = np.asarray(found.square), np.asarray(found.rim)
        if np.any(np.isposinf(square)):
            raise ArgumentError(
                f"The mode solver did not converge for mode {port.mode} of port "
                f"{name!r}. Ask for a lower `mode`, or change `width` a little."
            )
        check_travels(
            f"port {name!r}",
            port.mode,
            found.frequencies,
            found.square,
            found.cladding_index,
            _SHORTER,
        )
        guided = np.asarray(found.guided)
        if np.any(guided & (rim > _RIM)):
            warn(
                f"Port {name!r} is smaller than its mode: {np.max(rim[guided]):.1e} "
                f"of the power, more than {_RIM:g}, lies at its open ends, the outer "
                "twentieth on each side. Widen `width`.",
            )


def _review_directions(driven: str, seen: dict[str, ModeAmplitudes]) -> None:
    """Warns of ports that seem to point out of the device, when concrete."""
    if traced(seen):
        return
    power = {
        name: [np.abs(np.asarray(a)) ** 2 for a in (found.incoming, found.outgoing)]
        for name, found in seen.items()
    }
    given = power[driven][0]
    turned = [
        name
        for name, (inward, outward) in power.items()
        if name != driven and np.all(inward > np.maximum(given / 2, 100 * outward))
    ]
    if turned:
        warn(
            f"Most of the power of port {driven!r} passes port {turned[0]!r} along "
            "its `direction`, which should point into the device. Reverse it.",
        )
    elif np.all(sum(outward for _, outward in power.values()) < _NOTHING * given):
        warn(
            f"None of the power of port {driven!r} leaves any port. Does its "
            "`direction` point into the device?",
        )


# Of the power: what layers reflect, and no device is made for.
_NOTHING = 1e-5
# About the power that the edge of the port cuts off, and by which S is wrong.
_RIM = 1e-3


_SHORTER = "take shorter `wavelengths`"


class SParameters(eqx.Module):
    r"""Complex scattering parameters over wavelength.

    $S_{ji}$ is the amplitude of the wave leaving port j over that entering port i, each
    scaled so that its squared modulus is power, with phases at the monitor planes and
    the time sign `exp(-i w t)`.

    Attributes:
        values: Shape (wavelength, output, input).
        wavelengths: In vacuum, in metres.
        ports: Names of the outputs.
        inputs: Names of the inputs.
        results: The run of each input, by name of the port.
    """

    values: Complex[Array, "wavelengths outputs inputs"]
    wavelengths: Float[Array, " wavelengths"]
    ports: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    results: dict[str, Result]

    def __call__(self, output: str, input: str) -> Complex[Array, " wavelengths"]:
        """Returns one parameter over wavelength, by names of ports."""
        for kind, name, known in (
            ("output", output, self.ports),
            ("input", input, self.inputs),
        ):
            if name not in known:
                raise ArgumentError(
                    f"`{kind}` must be one of {known}, but is {name!r}."
                )
        return self.values[:, self.ports.index(output), self.inputs.index(input)]

    @property
    def power(self) -> Float[Array, "wavelengths outputs inputs"]:
        """Squared moduli: the fractions of the power."""
        return jnp.abs(self.values) ** 2

    def __str__(self) -> str:
        """Lists the fractions of the power, at nine wavelengths at most."""
        if traced(self) or self.values.ndim != 3:
            return repr(self)
        count, width = len(self.wavelengths), max(9, *map(len, self.ports)) + 2
        rows = np.unique(np.linspace(0, count - 1, min(count, 9)).round().astype(int))
        lines = []
        each = np.moveaxis(np.asarray(self.power), 2, 0)
        for power, name in zip(each, self.inputs, strict=True):
            heads = "".join(f"{port:>{width}}" for port in (*self.ports, "sum"))
            lines.append(f"power from {name}")
            lines.append(f"{'wavelength (nm)':>16}{heads}")
            for wave, out in zip(self.wavelengths[rows], power[rows], strict=True):
                parts = "".join(f"{p:{width}.4g}" for p in (*out, np.sum(out)))
                lines.append(f"{wave / NANO:16.7g}{parts}")
        if len(rows) < count:
            lines.append(f"({len(rows)} of {count} wavelengths)")
        return "\n".join(lines)


def run_frequencies(
    wavelengths: Float[Array, " wavelengths"],
    dt: Float[Array, ""],
    *,
    match_frequency_domain: bool,
) -> Float[Array, " wavelengths"]:
    r"""Returns the frequencies in Hz at which a run stands for given wavelengths.

    The discrete time derivative sees $(2 / \Delta t) \sin(\omega \Delta t / 2)$. A
    frequency-domain solver of the same cells has no such error; to compare with one,
    the run must be driven and measured at
    $\omega = (2 / \Delta t) \arcsin(c k_0 \Delta t / 2)$.
    """
    frequency = SPEED_OF_LIGHT / wavelengths
    if not match_frequency_domain:
        return frequency
    return jnp.arcsin(jnp.pi * frequency * dt) / (jnp.pi * dt)


def _checked_inputs(
    sim: Simulation, ports: Mapping[str, Port], inputs: Sequence[str] | None
) -> tuple[str, ...]:
    """Returns the names of the ports to excite, after checking what they need."""
    if not by_name(ports, "ports", Port):
        raise ArgumentError("`ports` must name at least one port, but is empty.")
    if sim.sources:
        raise ArgumentError(
            f"`sim` must have no sources, but has {sorted(sim.sources)}: the ports are "
            "excited one after the other."
        )
    if isinstance(inputs, str):
        raise ArgumentError(
            f"`inputs` must be a list of names, but is the text {inputs!r}. Write "
            f"[{inputs!r}]."
        )
    names = tuple(ports) if inputs is None else tuple(inputs)
    if not names:
        raise ArgumentError("`inputs` must name at least one port, but is empty.")
    for name in names:
        if name not in ports:
            raise ArgumentError(
                f"`inputs` must be among the ports {tuple(ports)}, but contains "
                f"{name!r}."
            )
        if not ports[name].offset > 0:
            raise ArgumentError(
                f"`offset` of the input port {name!r} must be positive, so that the "
                f"incident wave can be measured, but is {ports[name].offset:g} m."
            )
    taken = {"in", *(f"port {name}" for name in ports)}
    for name in sim.monitors:
        if name in taken:
            raise ArgumentError(
                f"`sim` must not have a monitor named {name!r}, which is taken for a "
                "port. Choose another."
            )
    return names


# A scene is not so much smaller than the light in it: then the unit is wrong.
_LARGEST = 1000


def _as_wavelengths(wavelengths, grid: Grid) -> Float[Array, " wavelengths"]:
    waves = positive(wavelengths, "wavelengths")
    if waves.ndim > 1 or waves.size == 0:
        raise ArgumentError(
            "`wavelengths` must be one number or a list of at least one, but has shape "
            f"{waves.shape}."
        )
    with at_once(grid.widths):
        longest = max(float(grid.size(axis)) for axis in range(grid.ndim))
    waves = check(
        waves,
        waves < _LARGEST * longest,
        "`wavelengths` must be in metres and less than a thousand times the grid, "
        f"{longest:.3g} m",
    )
    return jnp.atleast_1d(waves)


def s_parameters(
    sim: Simulation,
    ports: Mapping[str, Port],
    wavelengths: Float[ArrayLike, "..."] | Sequence[float],
    *,
    inputs: Sequence[str] | None = None,
    pulse: AbstractPulse | None = None,
    power: Float[ArrayLike, ""] | None = None,
    match_frequency_domain: bool = False,
    until: Decay | None = None,
    adjoint: AbstractAdjoint | None = None,
    layout: Layout | None = None,
) -> SParameters:
    """Computes scattering parameters, broadband, by one run for each input port.

    The incident amplitude is measured in the same run at the monitor plane of the input
    port, so the spectrum of the pulse and the strength of the source cancel. One pulse
    carries the profile of one wavelength: towards the ends of a band of some percent
    the squared moduli are wrong by some 1e-4. For less, pass one wavelength at a time.
    Differentiable with respect to the medium.

    Args:
        sim: Grid, medium, faces, time step and number of steps; its monitors are kept
            and their results are in `results`. It must have no sources.
        ports: By name. Each needs room for its `offset` between the plane where the
            wave is launched and the device.
        wavelengths: In vacuum, in metres.
        inputs: Names of the ports to excite; all by default.
        pulse: Time dependence; by default a Gaussian that covers the wavelengths.
        power: Of the source at the peak of the envelope in W/m (W in 3-D and
            cylindrical coordinates). Needed in a nonlinear medium, where the parameters
            depend on it; elsewhere it cancels.
        match_frequency_domain: Whether to shift the frequencies so that the numbers are
            those of a frequency-domain solver on the same cells.
        until: Stops each run when the fields have decayed.
        adjoint: How reverse mode is done.
        layout: How the grid is cut over devices.

    Returns:
        The parameters.

    Raises:
        ArgumentError: If there are no ports, a name is unknown, a port has no room for
            its monitor, the simulation has sources, ports overlap as far as the middle
            of one (several modes at one place may), a port lies in a conductor, its
            mode does not propagate, or a nonlinear medium lacks a `power`.
    """
    instance(sim, "sim", Simulation, "Make one of structures by `scene`.")
    inputs = _checked_inputs(sim, ports, inputs)
    if power is None:
        if sim.medium.nonlinearities:
            raise ArgumentError(
                "`power` must be given in a nonlinear medium: S-parameters depend on "
                "it there, but it is None. Give the peak power of the pulse, in W/m "
                "(in W in 3-D and cylindrical coordinates)."
            )
        power = 1.0
    waves = _as_wavelengths(wavelengths, sim.grid)
    frequencies = run_frequencies(
        waves, sim.dt, match_frequency_domain=match_frequency_domain
    )
    _check_places(sim, ports)
    named = {f"port {name!r}": port for name, port in ports.items()}
    check_modes(sim, named, dict.fromkeys(named, frequencies), _SHORTER)
    if pulse is None:
        pulse = band_pulse(jnp.min(frequencies), jnp.max(frequencies))
    monitors: dict[str, Any] = {
        f"port {name}": ModeMonitor(port=port, frequencies=frequencies)
        for name, port in ports.items()
    }
    columns, results = [], {}
    for name in inputs:
        driven = Simulation(
            sim.grid,
            sim.medium,
            sim.boundaries,
            sources={"in": ModeSource(port=ports[name], pulse=pulse, power=power)},
            monitors={**sim.monitors, **monitors},
            steps=sim.steps,
            dt=sim.dt,
            polarisation=sim.polarisation,
            cylindrical=sim.cylindrical,
            precision=sim.precision,
        )
        result = simulate(driven, adjoint=adjoint, until=until, layout=layout)
        if not results:
            _review_modes(result, ports)
        seen = {port: result.monitors[f"port {port}"] for port in ports}
        _review_directions(name, seen)
        columns.append(
            jnp.stack([seen[p].outgoing / seen[name].incoming for p in ports], axis=-1)
        )
        results[name] = result
    values = jnp.stack(columns, axis=-1)
    return SParameters(values, waves, tuple(ports), inputs, results)
