"""Circuits of scattering matrices, joined by ports, reflections included."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Num

from .._checks import as_array, check
from .._products import matmul
from ._block import AbstractBlock, GraphError


def _complex(values: Any) -> Complex[Array, "..."]:
    array = as_array(values, "values")
    return array.astype(jnp.result_type(array, jnp.complex64))


class Scatterer(eqx.Module):
    r"""A part of a circuit: the waves that leave its ports for those that enter.

    $b_j = \sum_i S_{ji} a_i$ with amplitudes whose squared modulus is power. The time
    sign is that of the numbers that are given; `em` has `exp(-i w t)`, under which a
    wave gains the phase `+k L`.

    Attributes:
        values: $S$, shape (..., output, input); leading axes are those of a sweep.
        ports: Names of the ports.

    Raises:
        GraphError: If there are not as many ports as rows and columns, or two of one
            name.
        ArgumentError: If `values` are not numbers.
    """

    values: Complex[Array, "*sweep outputs inputs"] = eqx.field(converter=_complex)
    ports: tuple[str, ...] = eqx.field(static=True, converter=tuple)

    def __check_init__(self):
        count = len(self.ports)
        if len(set(self.ports)) != count:
            raise GraphError(
                f"`ports` must have different names, but are {self.ports}."
            )
        if self.values.shape[-2:] != (count, count):
            raise GraphError(
                f"`values` must have a row and a column for each of {count} ports, but "
                f"has shape {self.values.shape}."
            )

    def __call__(self, output: str, input: str) -> Complex[Array, "*sweep"]:
        """Returns one parameter, by names of ports."""
        for port in (output, input):
            if port not in self.ports:
                raise GraphError(f"A port must be one of {self.ports}, not {port!r}.")
        return self.values[..., self.ports.index(output), self.ports.index(input)]


def waveguide(
    phase: Num[ArrayLike, "*sweep"], amplitude: Num[ArrayLike, "*sweep"] = 1.0
) -> Scatterer:
    """Makes a piece of waveguide from port `in` to port `out`, without reflection.

    Args:
        phase: What a wave gains on its way, in radians.
        amplitude: What is left of its amplitude.

    Returns:
        The part.
    """
    through = amplitude * jnp.exp(1j * jnp.asarray(phase))
    zero = jnp.zeros_like(through)
    values = jnp.stack(
        [jnp.stack([zero, through], -1), jnp.stack([through, zero], -1)], -2
    )
    return Scatterer(values, ("in", "out"))


def coupler(coupling: Num[ArrayLike, "*sweep"]) -> Scatterer:
    r"""Makes a lossless coupler of two waveguides, `in0` to `out0` and `in1` to `out1`.

    Args:
        coupling: Fraction of the power $\kappa^2$ that goes over, from 0 to 1: straight
            on $\sqrt{1 - \kappa^2}$, across $i \kappa$. At 0 and at 1 themselves an
            amplitude has no finite derivative.

    Returns:
        The part.

    Raises:
        ArgumentError: If `coupling` is out of its range.
    """
    power = as_array(coupling, "coupling")
    inside = (power >= 0) & (power <= 1)
    power = check(power, inside, "`coupling` must lie in [0, 1]")
    straight = jnp.sqrt(1 - power) + 0j
    across = 1j * jnp.sqrt(power)
    there = [[straight, across], [across, straight]]
    values = jnp.zeros((*power.shape, 4, 4), straight.dtype)
    for row, entries in enumerate(there):
        for column, entry in enumerate(entries):
            values = values.at[..., row, column + 2].set(entry)
            values = values.at[..., row + 2, column].set(entry)
    return Scatterer(values, ("in0", "in1", "out0", "out1"))


class Circuit(AbstractBlock):
    """Parts whose ports are joined: a block that takes a scatterer for each part.

    Attributes:
        joins: Pairs of joined ports, such as `("splitter.out0", "arm.in")`.
        ports: The port of a part that each port of the circuit is.
        terminals: Names of the parts.
        label: What a node is called unless it gets a name.
        results: `("output",)`, a `Scatterer`.
        trainable: Has no arrays.

    Raises:
        GraphError: If a port is used twice, or its part is unknown.
    """

    joins: tuple[tuple[str, str], ...] = eqx.field(static=True)
    ports: tuple[tuple[str, str], ...] = eqx.field(static=True)
    terminals: tuple[str, ...] = eqx.field(static=True)
    label: str = eqx.field(static=True, default="circuit")
    results: tuple[str, ...] = eqx.field(static=True, default=("output",))
    trainable: bool = eqx.field(static=True, default=False)

    def __init__(
        self,
        parts: Sequence[str],
        joins: Mapping[str, str],
        ports: Mapping[str, str],
        label: str = "circuit",
    ):
        """Makes the block.

        Args:
            parts: Names of the parts, the terminals of the block.
            joins: The port that each port is joined to, as `"part.port"`.
            ports: The port of a part that each port of the circuit is.
            label: What a node is called unless it gets a name.
        """
        self.terminals = tuple(parts)
        self.joins = tuple(joins.items())
        self.ports = tuple(ports.items())
        self.label = label
        self.results = ("output",)
        self.trainable = False
        _check_used(joins, ports)
        for port in (*joins, *joins.values(), *ports.values()):
            if port.partition(".")[0] not in parts or "." not in port:
                raise GraphError(
                    f"A port must be one of a part, {', '.join(parts)}, such as "
                    f"'{next(iter(parts), 'part')}.in', but is {port!r}."
                )

    def build(self, key, *inputs):
        """Returns the function that joins the parts."""
        del key, inputs
        return self.joined

    def joined(self, *parts: Scatterer) -> Scatterer:
        """Joins parts.

        Args:
            *parts: In the order of the terminals.

        Returns:
            The scatterer of the circuit. Ports that are neither joined nor shown lead
            into absorbers.

        Raises:
            GraphError: If a part has no such port.
        """
        return joined(
            dict(zip(self.terminals, parts, strict=True)),
            dict(self.joins),
            dict(self.ports),
        )


def joined(
    parts: Mapping[str, Scatterer], joins: Mapping[str, str], ports: Mapping[str, str]
) -> Scatterer:
    r"""Joins parts by their ports.

    With internal waves $b_i = S_{ie} a_e + S_{ii} P b_i$, where $P$ swaps joined
    ports, the circuit has $S_{ee} + S_{ei} P (1 - S_{ii} P)^{-1} S_{ie}$: all
    reflections between the parts, to any order. Differentiable.

    Reference: Filipsson, *A new general computer algorithm for S-matrix calculation of
    interconnected multiports*, 11th European Microwave Conference (1981).

    Args:
        parts: The parts by name; their sweeps broadcast.
        joins: The port that each port is joined to, as `"part.port"`.
        ports: The port of a part that each port of the circuit is.

    Returns:
        The scatterer of the circuit. Ports that are neither joined nor shown lead into
        absorbers. It is NaN at a resonance of a closed loop without loss, where waves
        have no limit.

    Raises:
        GraphError: If a part has no such port, or sweeps do not broadcast.
    """
    _check_used(joins, ports)
    if not parts:
        raise GraphError("A circuit must have at least one part, but has none.")
    places, count = {}, 0
    for name, part in parts.items():
        for port in part.ports:
            places[f"{name}.{port}"] = count
            count += 1
    for port in (*joins, *joins.values(), *ports.values()):
        if port not in places:
            raise GraphError(
                f"A joined or shown port must be one of {', '.join(places)}, but is "
                f"{port!r}."
            )
    sweep = _sweep({name: part.values.shape[:-2] for name, part in parts.items()})
    dtype = jnp.result_type(*(part.values for part in parts.values()))
    whole = jnp.zeros((*sweep, count, count), dtype)
    start = 0
    for part in parts.values():
        stop = start + len(part.ports)
        whole = whole.at[..., start:stop, start:stop].set(part.values)
        start = stop
    pairs = [(places[one], places[other]) for one, other in joins.items()]
    inner = [place for pair in pairs for place in pair]
    swapped = [place for one, other in pairs for place in (other, one)]
    outer = [places[port] for port in ports.values()]

    def block(rows: Sequence[int], columns: Sequence[int]) -> Array:
        return whole[..., jnp.array(rows, int)[:, None], jnp.array(columns, int)]

    values = block(outer, outer)
    if inner:
        # A column of S P is that of the port at the other side.
        around = jnp.eye(len(inner), dtype=dtype) - block(inner, swapped)
        waves = jnp.linalg.solve(around, block(inner, outer))
        values = values + matmul(block(outer, swapped), waves)
    return Scatterer(values, tuple(ports))


def _sweep(shapes: Mapping[Any, tuple[int, ...]]) -> tuple[int, ...]:
    """Returns the shape that sweeps broadcast to."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError as error:
        shown = ", ".join(f"{shape} of {name!r}" for name, shape in shapes.items())
        raise GraphError(
            f"Sweeps must have shapes that broadcast, but have {shown}. Evaluate all "
            "at the same points."
        ) from error


def _check_used(joins: Mapping[str, str], ports: Mapping[str, str]) -> None:
    used = [*joins, *joins.values(), *ports.values()]
    for port in used:
        if used.count(port) > 1:
            raise GraphError(
                f"A port must be joined or shown once, but {port!r} is twice."
            )


def to_sax(scatterer: Scatterer) -> dict[tuple[str, str], Complex[Array, "*sweep"]]:
    """Turns a scatterer into the dictionary of sax, by (input, output).

    Args:
        scatterer: The part or circuit.

    Returns:
        An entry for each pair of ports.
    """
    return {
        (one, other): scatterer(other, one)
        for one in scatterer.ports
        for other in scatterer.ports
    }


def from_sax(parameters: Mapping[tuple[str, str], Any]) -> Scatterer:
    """Turns a dictionary of sax, by (input, output), into a scatterer.

    Args:
        parameters: The entries; a pair that is missing counts as 0.

    Returns:
        The part, its ports in the order of their first appearance.

    Raises:
        GraphError: If there is no entry, a key is no pair of ports, or sweeps do not
            broadcast.
    """
    pairs = isinstance(parameters, Mapping) and all(
        isinstance(pair, tuple) and len(pair) == 2 for pair in parameters
    )
    if not pairs or not parameters:
        raise GraphError(
            "`parameters` must be a dictionary by pairs of ports, as "
            f"`{{('in', 'out'): 1.0}}`, but is {parameters!r}."
        )
    ports = tuple(dict.fromkeys(port for pair in parameters for port in pair))
    sweep = _sweep({pair: jnp.shape(value) for pair, value in parameters.items()})
    zero = jnp.zeros(sweep, jnp.result_type(complex))

    def entry(output: str, input: str) -> Array:
        return jnp.broadcast_to(parameters.get((input, output), zero), sweep) + zero

    rows = [jnp.stack([entry(j, i) for i in ports], -1) for j in ports]
    return Scatterer(jnp.stack(rows, -2), ports)
