"""What a linear tape has to hold: decided by what is differentiated."""

from typing import NamedTuple

import jax

from .._checks import ArgumentError
from ..grid import Box
from ._program import Program


class Kept(NamedTuple):
    """What is kept of one component in one box: changes, and sums for losses.

    Attributes:
        box: Cells of a block.
        change: Whether its change over a step is wanted.
        sum: Whether the sum of its values before and after a step is.
        cells: The cells of the whole grid that are differentiated, `None` for all.
    """

    box: Box
    change: bool
    sum: bool
    cells: Box | None = None


class Plan(NamedTuple):
    """What a tape has to hold, decided by what is differentiated.

    Attributes:
        rows: For each component the boxes of which it keeps something.
        electric: Which electric currents are differentiated, by number.
        magnetic: Which magnetic ones.
        lines: Which incident waves.
        poles: For each component and dispersion where the changes of its box stand
            among those of the component, `None` where it is not differentiated.
        tilts: Whether the changes that tilts read are wanted.
    """

    rows: dict[str, tuple[Kept, ...]]
    electric: tuple[int, ...]
    magnetic: tuple[int, ...]
    lines: tuple[str, ...]
    poles: dict[str, tuple[int | None, ...]]
    tilts: bool = False


def _any(tree) -> bool:
    return any(jax.tree.leaves(tree))


_REMEDY = "Fix it with `jax.lax.stop_gradient`, or take `adjoint=Checkpointed()`."


def build_plan(program: Program, moved: Program, adjoint: str) -> Plan:
    """Decides what to keep.

    Args:
        program: The program, its design regions apart.
        moved: The same tree with a truth value for each array: whether it changes.
        adjoint: Who asks, for messages.

    Returns:
        The plan.

    Raises:
        ArgumentError: If something changes that enters the step other than as a
            coefficient of the medium or as a source.
    """
    refused = {
        "the grid, the time step or the layers": (
            moved.stepper.axes,
            moved.setup.dt,
            moved.setup.axes,
        ),
        "the Bloch wavevector": moved.stepper.block,
        "the window or the frequencies of a monitor": moved.monitors,
        "the resonances, dampings or residues of a dispersion": [
            (p.matrix, p.inflow, p.outflow, p.inertia)
            for many in moved.responses.values()
            for one in many
            for p in one.poles
        ],
    }
    for what, tree in refused.items():
        if _any(tree):
            raise ArgumentError(
                f"`adjoint={adjoint}` differentiates media and sources, but was asked "
                f"for a derivative with respect to {what}. {_REMEDY}"
            )
    for name, reads in program.reads.items():
        if any(read.component == "energy" for read in reads):
            raise ArgumentError(
                f"`adjoint={adjoint}` needs monitors that are linear in the fields, "
                f"but {name!r} records energy. Leave it out, or take "
                "`adjoint=Checkpointed()`."
            )
    rows, poles = {}, {}
    for name in program.stepper.components.names:
        kept, places = list(_kept(program, moved, name)), []
        for one, own in zip(
            program.responses.get(name, ()),
            moved.responses.get(name, ()),
            strict=True,
        ):
            asked = own.fraction or any(p.amplitude for p in own.poles)
            places.append(len(kept) if asked else None)
            if asked:
                box = one.here(program.stepper.block)
                kept.append(Kept(box, True, True, one.cells))
        if places:
            poles[name] = tuple(places)
        if kept:
            rows[name] = tuple(kept)
    return Plan(
        rows,
        tuple(i for i, one in enumerate(moved.electric) if _any(one)),
        tuple(i for i, one in enumerate(moved.magnetic) if _any(one)),
        tuple(name for name, one in moved.lines.items() if _any(one)),
        poles,
        bool(program.tilts) and (_any(moved.tilts) or any(n[0] == "E" for n in rows)),
    )


def _kept(program: Program, moved: Program, name: str) -> tuple[Kept, ...]:
    """Lists the boxes of a component whose entries change, in cells of a block."""
    block, row = program.stepper.block, moved.stepper.rows[name]
    whole = tuple((0, cells) for cells in block.shape)
    if row.inertia or row.loss:
        patches = moved.patches.get(name, ())
        change = row.inertia or any(p.inertia for p in patches)
        lossy = bool(row.loss) or any(p.loss for p in patches)
        return (Kept(whole, bool(change), lossy),)
    out = []
    for patch, own in zip(
        program.patches.get(name, ()), moved.patches.get(name, ()), strict=True
    ):
        if own.inertia or own.loss:
            # Where devices cut the grid each keeps all its cells along the cut axis.
            box = tuple(
                span if parts == 1 else every
                for span, every, parts in zip(
                    patch.box, whole, block.parts, strict=True
                )
            )
            out.append(Kept(box, bool(own.inertia), bool(own.loss), patch.box))
    return tuple(out)
