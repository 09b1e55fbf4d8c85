"""One-way sources: corrections on the faces between total and scattered field."""

from collections.abc import Iterator
from typing import NamedTuple

from jaxtyping import Array

from .._checks import ArgumentError
from ..grid import Box
from ._boundaries import PEC, PMC
from ._components import CurlTerm
from ._frame import Frame
from ._layers import Axis


class Correction(NamedTuple):
    """One term to add to a curl on a face.

    Attributes:
        term: The term of the curl, along the normal.
        box: Its samples on the face.
        at: Index of the incident samples along the normal.
        sign: Sign of what is added, without the metric.
    """

    term: CurlTerm
    box: Box
    at: int
    sign: int

    @property
    def target(self) -> str:
        """The component whose row is corrected."""
        return self.term.target

    @property
    def source(self) -> str:
        """The incident component that is added."""
        return self.term.source

    @property
    def axis(self) -> int:
        """The normal."""
        return self.term.axis


class Face(NamedTuple):
    """A face of the total-field region: its axis, which end, and its node."""

    axis: int
    high: bool
    node: int

    @property
    def outside(self) -> int:
        """The cell just outside: before the low node, after the high one."""
        return self.node if self.high else self.node - 1


def _transverse(frame: Frame, term: CurlTerm, region: Box) -> list[tuple[int, int]]:
    """Returns the samples of the target inside the region, for each axis.

    Nodes behind the last that is stored, where E is zero, are none.
    """
    spans = []
    for axis, half in enumerate(frame.components.stagger(term.target)):
        low, high = region[axis]
        if frame.on_axis and axis == 0 and not half:
            # What there is on the axis of a plane wave is held at zero.
            low = max(low, 1)
        spans.append((low, high if half else min(high + 1, frame.stored[axis])))
    return spans


def corrections(
    frame: Frame, region: Box, faces: list[Face], *, electric: bool
) -> Iterator[Correction]:
    """Lists what the rows next to the faces lack, or have too much, of the wave.

    Electric samples on the nodes of the region and magnetic ones inside it hold the
    total field, all others the scattered field. A row that differences across a face
    must see both neighbours as its own kind. Reference: Taflove and Hagness,
    *Computational Electrodynamics*, 3rd edition (2005), section 5.10.

    Args:
        frame: The frame of the simulation.
        region: First and last node of the region along each axis; an axis given as
            `(0, stored)` is filled without faces.
        faces: The faces.
        electric: Which half step.

    Yields:
        The corrections.
    """
    parts = frame.components
    terms = parts.terms(electric=electric)
    for face in faces:
        for term in terms:
            if term.axis != face.axis:
                continue
            spans = _transverse(frame, term, region)
            row = face.node if electric else face.outside
            spans[face.axis] = (row, row + 1)
            at = face.outside if electric else face.node
            sign = term.sign if face.high else -term.sign
            yield Correction(term, tuple(spans), at, sign)


def faces_along(
    frame: Frame,
    axis: int,
    nodes: tuple[int, int],
    mirror: type[PEC | PMC] | None,
    open_end: int | None,
    what: str,
) -> list[Face]:
    """Returns the faces of a box along an axis.

    Args:
        frame: The frame of the simulation.
        axis: The axis, along which the box is finite.
        nodes: The first and last node of the box.
        mirror: The kind of wall at which the box may end without a face.
        open_end: Number of an end that has none in any case.
        what: How messages name what the box belongs to.
    """
    (low, high), name = nodes, frame.components.axes[axis]
    if low >= high:
        raise ArgumentError(
            f"`size` of {what} must span at least one cell along {name}, but spans the "
            f"nodes {low} to {high}."
        )
    border, out = (0, len(frame.nodes[axis]) - 1), []
    for end, node in enumerate(nodes):
        if end == open_end:
            continue
        if node != border[end]:
            out.append(Face(axis, bool(end), node))
        elif mirror is None or frame.faces[axis][end] is not mirror:
            fits = f", at a `{mirror.__name__}` face, or be `inf`" if mirror else ""
            raise ArgumentError(
                f"`size` of {what} must end inside the grid along {name}{fits}, but "
                f"spans the nodes {low} to {high} of {border[1]}."
            )
    return out


def metric_at(axes: tuple[Axis, ...], correction: Correction, electric: bool) -> Array:
    """Returns the metric factor of the corrected row."""
    term, box, at, _ = correction
    axis = axes[term.axis]
    metric, radius = axis.metric(term, electric=electric), axis.radius(term)
    metric = metric[box[term.axis][0]] if metric.ndim else metric
    return metric if radius is None else metric * radius[at]
