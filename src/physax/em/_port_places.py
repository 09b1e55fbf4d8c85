"""Where ports lie in a simulation, and how a wave starts from them."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..grid import Box
from ._components import stagger
from ._faces import Face, corrections, metric_at
from ._frame import Frame
from ._injection import Injection
from ._port_disc import Disc, port_disc
from ._port_plane import PlanePlace, PortPlane, launch_plane, place_plane, port_plane
from ._ports import Port, normal_of, port_line
from ._pulses import AbstractPulse
from ._setup import Setup


def find_port(
    port: Port, frame: Frame, what: str, along: float = 0.0
) -> Box | PortPlane | Disc:
    """Finds the samples of a port: of a line, a plane in 3-D, or a disc.

    Args:
        port: The port.
        frame: The frame of the simulation.
        what: How messages name it.
        along: Distance in metres from the port plane, along its direction.
    """
    if frame.components.m is not None:
        return port_disc(port, frame, what, along)
    return (port_plane if frame.ndim == 3 else port_line)(port, frame, what, along)


def samples_of(place: Box | PortPlane | Disc) -> Box:
    """Returns the samples that `find_port` found, one node thick."""
    return place.box if isinstance(place, PortPlane | Disc) else place


def place_port(port: Port, frame: Frame, what: str) -> "LinePlace | PlanePlace":
    """Finds the rows from which a wave starts one way.

    Args:
        port: The port.
        frame: The frame of the simulation.
        what: How messages name it.
    """
    if frame.ndim == 3:
        return place_plane(port, frame, what)
    box = samples_of(find_port(port, frame, what))
    axis = normal_of(port, frame.components)
    frame.warn_in_layer(box, what, axes=(axis,))
    return one_way(frame, box, axis, port.sign)


def launch(
    place: "LinePlace | PlanePlace",
    setup: Setup,
    fields: dict[str, Array],
    delays: dict[str, Array],
    pulse: AbstractPulse,
) -> list[Injection]:
    """Turns incident fields on a port into the currents of a one-way source."""
    start = launch_plane if isinstance(place, PlanePlace) else launch_line
    return start(place, setup, fields, delays, pulse)  # pyright: ignore[reportArgumentType]


class LinePlace(NamedTuple):
    """A port line and the corrections of the rows on either side of it."""

    box: Box
    face: Face
    corrections: tuple


def one_way(frame: Frame, box: Box, axis: int, sign: int) -> LinePlace:
    """Returns the corrections of a single face from which a wave starts."""
    node = box[axis][0]
    region = tuple(
        (low, high - 1) if a != axis else (low, low)
        for a, (low, high) in enumerate(box)
    )
    out = "Hz" if "Hz" in frame.components.names else "Ez"
    half = stagger(out, frame.ndim)
    region = tuple(
        (low, high + 1) if a != axis and half[a] else (low, high)
        for a, (low, high) in enumerate(region)
    )
    face = Face(axis, sign < 0, node)
    both = tuple(
        tuple(corrections(frame, region, [face], electric=electric))
        for electric in (True, False)
    )
    return LinePlace(box, face, both)


def launch_line(
    place: LinePlace,
    setup: Setup,
    fields: dict[str, Array],
    delays: dict[str, Array],
    pulse: AbstractPulse,
) -> list[Injection]:
    """Turns incident fields on a line into the currents of a one-way source."""
    out = []
    for terms, electric in zip(place.corrections, (True, False), strict=True):
        for term in terms:
            shape = tuple(high - low for low, high in term.box)
            metric = metric_at(setup.axes, term, electric)
            profile = term.sign * metric * fields[term.source]
            delay = jnp.broadcast_to(delays[term.source], profile.shape)
            out.append(
                Injection(
                    term.target,
                    term.box,
                    profile.reshape(shape),
                    delay.reshape(shape),
                    pulse,
                )
            )
    return out
