"""How a program that is cut over devices scales: a model of the time of its step."""

import math
import time
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from .._auto_mesh import auto_mesh
from .._byte_text import byte_text
from .._checks import ArgumentError, optional, whole


_COUNTS = tuple(2**n for n in range(11))


class Link(eqx.Module):
    """How devices send to each other.

    Attributes:
        latency: Seconds that a message takes however short it is.
        rate: Bytes per second that a device sends, in one direction.
        reach: How many devices it joins, as those of one node; `None` for any number.

    Raises:
        ArgumentError: If a value is out of its range.
    """

    latency: float = eqx.field(converter=float)
    rate: float = eqx.field(converter=float)
    reach: int | None = eqx.field(
        converter=optional(lambda n: whole(n, "reach", 2)), default=None
    )

    def __check_init__(self):
        _check_positive("rate", self.rate)
        if not self.latency >= 0:
            raise ArgumentError(
                f"`latency` must be at least 0 s, but is {self.latency:g}."
            )


class Machine(eqx.Module):
    """What a step runs on.

    Attributes:
        memory_rate: Bytes per second that one device moves to and from its memory, best
            as measured with the step itself.
        flop_rate: Floating point operations per second of one device.
        links: The links, the shortest reach first. A step uses the first that reaches
            all of its devices.
        overhead: Seconds of a step that no cell causes, as to launch its kernels.

    Raises:
        ArgumentError: If a value is out of its range, or the links are not in order.
    """

    memory_rate: float = eqx.field(converter=float)
    flop_rate: float = eqx.field(converter=float, default=math.inf)
    links: tuple[Link, ...] = ()
    overhead: float = eqx.field(converter=float, default=0.0)

    def __check_init__(self):
        _check_positive("memory_rate", self.memory_rate)
        _check_positive("flop_rate", self.flop_rate)
        if not self.overhead >= 0:
            raise ArgumentError(
                f"`overhead` must be at least 0 s, but is {self.overhead:g}."
            )
        reaches = [math.inf if x.reach is None else x.reach for x in self.links]
        if reaches != sorted(reaches):
            raise ArgumentError(
                f"`links` must have the shortest reach first, but has {reaches}."
            )


class StepCost(eqx.Module):
    """What one device does in a step, or in an iteration.

    Attributes:
        blocks: How many devices there are along each axis of their mesh.
        cells: Cells (points, particles) of the whole problem over the devices.
        flops: Floating point operations.
        memory_bytes: Bytes read from memory and written to it.
        held_bytes: Bytes of the arrays that a device holds from step to step.
        messages: Arrays that it sends, one after another.
        halo_bytes: Their bytes together.
        reductions: Sums over all devices, per step.
        reduced_bytes: Their bytes together.
    """

    blocks: tuple[int, ...]
    cells: float = eqx.field(converter=float)
    flops: float = eqx.field(converter=float)
    memory_bytes: float = eqx.field(converter=float)
    held_bytes: float = eqx.field(converter=float, default=0.0)
    messages: int = 0
    halo_bytes: int = 0
    reductions: float = eqx.field(converter=float, default=0.0)
    reduced_bytes: float = eqx.field(converter=float, default=0.0)

    @property
    def devices(self) -> int:
        """How many devices share the work."""
        return math.prod(self.blocks)


class ScalingRow(eqx.Module):
    """What the model says about one number of devices.

    Attributes:
        cost: What each device does.
        compute: Seconds of a step without what is sent.
        exchange: Seconds that its messages and sums take.
        efficiency: Cells per second and device, over those of one device alone.
    """

    cost: StepCost
    compute: float
    exchange: float
    efficiency: float

    @property
    def seconds(self) -> float:
        """Time of a step."""
        return self.compute + self.exchange


class Scaling(eqx.Module):
    """The time of a step over the number of devices. Printing it gives a table.

    Attributes:
        rows: One for each number of devices.
    """

    rows: tuple[ScalingRow, ...]

    def __str__(self) -> str:
        head = (
            f"{'devices':>7}  {'mesh':>10} {'cells/device':>13} {'held':>9} "
            f"{'sent/step':>9} {'messages':>8} {'step, ms':>9} {'sending':>7} "
            f"{'efficiency':>10}"
        )
        return "\n".join([head, *map(_line, self.rows)])


def _line(row: ScalingRow) -> str:
    cost = row.cost
    mesh = "x".join(map(str, cost.blocks))
    held, sent = byte_text(cost.held_bytes), byte_text(cost.halo_bytes)
    return (
        f"{cost.devices:>7}  {mesh:>10} {cost.cells:>13,.0f} {held:>9} "
        f"{sent:>9} {cost.messages:>8} {1e3 * row.seconds:>9.3g} "
        f"{100 * row.exchange / row.seconds:>6.0f}% {100 * row.efficiency:>9.1f}%"
    )


def step_seconds(cost: StepCost, machine: Machine) -> tuple[float, float]:
    r"""Estimates the time of a step.

    $$t = t_0 + \max\left(\frac{F}{R_F}, \frac{B}{R_B}\right)
        + m \lambda + \frac{H}{R_L}
        + 2 r \lceil \log_2 N \rceil \lambda + \frac{2 S}{R_L}$$

    with the flops $F$, bytes $B$, messages $m$ of $H$ bytes and sums $r$ of $S$ bytes
    of a device, and the link's latency $\lambda$ and rate $R_L$. Nothing is taken to be
    sent while a device computes. The sums are those of Thakur, Rabenseifner and Gropp,
    *Optimization of Collective Communication Operations in MPICH*, International
    Journal of High Performance Computing Applications 19, 49 (2005).

    Args:
        cost: What each device does.
        machine: What it runs on.

    Returns:
        Seconds of computing, and of sending.

    Raises:
        ArgumentError: If no link of the machine reaches all devices.
    """
    count = cost.devices
    work = max(cost.flops / machine.flop_rate, cost.memory_bytes / machine.memory_rate)
    compute = machine.overhead + work
    if not (cost.messages or cost.reductions) or count == 1:
        return compute, 0.0
    link = _link_for(machine, count)
    turns = cost.messages + 2 * cost.reductions * math.ceil(math.log2(count))
    size = cost.halo_bytes + 2 * cost.reduced_bytes
    return compute, turns * link.latency + size / link.rate


def predict_scaling(
    cost: Callable[[int], StepCost],
    machine: Machine,
    devices: Sequence[int] | None = None,
) -> Scaling:
    """Predicts the time of a step on several numbers of devices.

    Where the whole problem stays the same the efficiency is that of strong scaling,
    where it grows with the devices that of weak scaling.

    Args:
        cost: What each device does if there are so many.
        machine: What it runs on. It need not be at hand.
        devices: The numbers of devices; powers of two up to 1,024 by default.

    Returns:
        The times.

    Raises:
        ArgumentError: If a number of devices is not a positive integer, or no link
            reaches all.
    """
    devices = _COUNTS if devices is None else devices
    devices = [whole(n, f"devices[{i}]") for i, n in enumerate(devices)]
    alone = cost(1)
    best = alone.cells / sum(step_seconds(alone, machine))
    rows = []
    for count in devices:
        one = cost(count)
        compute, exchange = step_seconds(one, machine)
        efficiency = one.cells / (compute + exchange) / best
        rows.append(ScalingRow(one, compute, exchange, efficiency))
    return Scaling(tuple(rows))


def measure_link(
    mesh: Mesh,
    *,
    small: int = 1 << 10,
    large: int = 1 << 22,
    repeats: int = 20,
) -> Link:
    """Measures how fast the devices of a mesh send to their neighbours.

    All of them send at once, as in a step, each to the next along the first axis. With
    several processes all must call this.

    Args:
        mesh: The devices, two at least along its first axis.
        small: Bytes of a message that gives the latency.
        large: Bytes of one that gives the rate.
        repeats: How many runs of each; the fastest counts.

    Returns:
        The link, as a straight line through both times.

    Raises:
        ArgumentError: If the mesh is too small, `large` is not above `small`, or
            `repeats` is not a positive integer.
    """
    mesh, repeats = auto_mesh(mesh), whole(repeats, "repeats")
    name = mesh.axis_names[0]
    count = mesh.shape[name]
    if count < 2:
        raise ArgumentError(
            f"`mesh` must have at least 2 devices along {name!r}, but has {count}."
        )
    if not 4 <= small < large:
        raise ArgumentError(
            f"`large` must be above `small`, and both at least 4 bytes, but they are "
            f"{large} and {small}."
        )
    short, long = (_sending(mesh, name, size, repeats) for size in (small, large))
    # Noise can make the long one seem no slower.
    slope = max(long - short, 1e-9 * long) / (large - small)
    return Link(max(short - slope * small, 0.0), 1 / slope, mesh.size)


_TURNS = 20


def _sending(mesh: Mesh, name: str, size: int, repeats: int) -> float:
    """Returns the seconds of a message to the next device, the fastest seen."""
    count = mesh.shape[name]
    pairs = [(i, (i + 1) % count) for i in range(count)]

    def local(x):
        def turn(_, x):
            return lax.ppermute(x, name, pairs)

        return lax.fori_loop(0, _TURNS, turn, x)

    spec = PartitionSpec(name)
    run = jax.jit(jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec))
    make = jax.jit(
        lambda: jnp.zeros(count * (size // 4), jnp.float32),
        out_shardings=jax.NamedSharding(mesh, spec),
    )
    values = jax.block_until_ready(run(make()))
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        values = jax.block_until_ready(run(values))
        seconds.append(time.perf_counter() - begin)
    return float(np.min(seconds)) / _TURNS


def _link_for(machine: Machine, count: int) -> Link:
    for link in machine.links:
        if link.reach is None or link.reach >= count:
            return link
    farthest = max((link.reach or 0 for link in machine.links), default=1)
    raise ArgumentError(
        f"`links` of the machine must reach {count} devices, but reach {farthest}."
    )


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ArgumentError(f"`{name}` must be positive, but is {value:g}.")
