"""Material rows: what a field component keeps in half a step, and what drives it."""

import equinox as eqx
from jaxtyping import Array, Num

from ..grid import Box
from ..units import ETA_0
from ._boxes import cells_of
from ._medium import Medium, at_component


class Row(eqx.Module):
    r"""The row of one component: $f \gets ((m - s) f + \mathrm{curl}) / (m + s)$.

    Where an entry varies from cell to cell the division stands inside the step: a
    coefficient array computed before the loop would cost a third of the state of a 2-D
    run. Where both are numbers the quotients are taken once.

    Attributes:
        inertia: $m$, the relative permittivity or permeability.
        loss: $s$, `None` for none.
        gain: $1 / (m + s)$ where both are numbers.
        decay: $(m - s) / (m + s)$ where both are numbers and there is loss.
    """

    inertia: Num[Array, "..."]
    loss: Num[Array, "..."] | None
    gain: Num[Array, ""] | None = None
    decay: Num[Array, ""] | None = None

    def quotients(self) -> "Row":
        """Returns the row with its quotients, where both entries are numbers."""
        m, s = self.inertia, self.loss
        if m.ndim or (s is not None and s.ndim):
            return self
        if s is None:
            return Row(m, None, gain=1 / m)
        return Row(m, s, gain=1 / (m + s), decay=(m - s) / (m + s))

    def drive(self, curl: Array, where: Box | None = None) -> Array:
        """Returns what a curl adds to the field in some cells."""
        if self.gain is not None:
            return self.gain * curl
        m = entries_in(self.inertia, where)
        return curl / (m if self.loss is None else m + entries_in(self.loss, where))

    def kept(self, field: Array) -> Array:
        """Returns what is left of a field that nothing drives."""
        if self.loss is None:
            return field
        if self.gain is not None:
            return field if self.decay is None else self.decay * field
        m, s = self.inertia, self.loss
        return (m - s) / (m + s) * field

    def update(self, field: Array, curl: Array) -> Array:
        """Returns the next field."""
        if self.gain is not None:
            kept = field if self.decay is None else self.decay * field
            return kept + self.gain * curl
        m, s = self.inertia, self.loss
        return field + curl / m if s is None else ((m - s) * field + curl) / (m + s)


def entries_in(value: Array, where: Box | None, within: Box | None = None) -> Array:
    """Returns the entries in a box of local cells; a number stands for all.

    Args:
        value: The entries, or a number.
        where: The box; without it all entries.
        within: Of which cells the entries are, if not of all.
    """
    if where is None or value.ndim == 0:
        return value
    return value[cells_of(where, within)]


def build_row(medium: Medium, component: str, step_length: Num[Array, ""]) -> Row:
    """Builds the row of a component from the medium and `c dt` in metres."""
    electric = component[0] == "E"
    kinds = ("permittivity", "conductivity")
    if not electric:
        kinds = ("permeability", "magnetic_conductivity")
    m: Array = at_component(getattr(medium, kinds[0]), component)
    s: Array | None = at_component(getattr(medium, kinds[1]), component)
    if s is not None:
        s = s * (ETA_0 if electric else 1 / ETA_0) * step_length / 2
    if medium.metal is not None:
        m = medium.metal.inertia(m, component)
        s = None if s is None else medium.metal.loss(s, component)
    return Row(m, s)


def faded(row: Row, fade: Array | None) -> Row:
    """Returns a row with the loss of absorbers, which keep the impedance of the medium.

    Args:
        row: The row.
        fade: What half a step takes of the field, in each cell; `None` without them.
    """
    if fade is None:
        return row
    loss = row.inertia * fade
    return Row(row.inertia, loss if row.loss is None else row.loss + loss)
