"""Fits whose data come in blocks: the host reads, shows progress, and can resume."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool

from .._checks import ArgumentError, refuse_traced
from ..runtime import (
    Checkpointing,
    DriveResult,
    Progress,
    all_finite,
    anywhere,
    drive,
    fingerprint,
    pack_state,
    unpack_state,
)
from ._passes import add_points, first_sums, start_search
from ._plan import Plan
from ._pointwise import check_pointwise
from ._problems import AbstractProblem
from ._search import Search
from ._sharded import block_on_devices, on_first_device, total
from ._sources import (
    Block,
    CountError,
    DataError,
    Skip,
    Stream,
    count_points,
    in_memory,
    read_blocks,
)
from ._sums import Sums
from ._trust_region import TrustRegion, advance


ONLY_IN_MEMORY = (
    "Fits block by block do not work under these: pass data in memory, with a `plan` "
    "for memory or none."
)


class Pass(eqx.Module):
    """A search in the middle of a pass over the data.

    Attributes:
        search: Before the pass.
        sums: Of the blocks so far; with a mesh of each device, along the first axis.
        skipped: Which blocks are left out.
    """

    search: Search
    sums: Sums
    skipped: Bool[Array, " blocks"]


@eqx.filter_jit
def add_block(
    problem: AbstractProblem, state: Pass, batch, first, last, *, chunk: int
) -> Sums:
    """Adds the points of a block to the sums of a pass."""
    search = state.search
    return add_points(
        problem,
        batch,
        search.trial,
        search.factored,
        state.sums,
        first,
        last,
        chunk=chunk,
        unit=search.unit,
    )


@eqx.filter_jit
def end_pass(
    problem: AbstractProblem,
    method: TrustRegion,
    state: Pass,
    mesh: Mesh | None = None,
) -> Search:
    """Judges the trial whose sums are complete."""
    search, sums = state.search, state.sums
    if mesh is not None:
        sums = total(sums, search.factored, mesh=mesh)
    normal = problem.normal(search.trial, sums, search.factored, search.unit)
    return advance(method, problem.bounds(), search, normal)


class _Reader:
    """Hands out the blocks of pass after pass, in order."""

    def __init__(self, data, size: int, blocks: int, mesh: Mesh | None):
        self._data, self._size, self._blocks = data, size, blocks
        self._where = None
        if mesh is not None:
            self._where = NamedSharding(mesh, PartitionSpec(mesh.axis_names))
        self._next = -1
        self._open: Iterator[Block] = iter(())

    def read(self, number: int) -> Block:
        """Returns a block; fastest in order."""
        if number != self._next or number == 0:
            self._open = read_blocks(self._data, self._size, number, self._where)
        # An iterator that has raised gives nothing any more.
        self._next = -1
        block = next(self._open, None)
        if block is None:
            raise DataError(f"the data ended before {self._blocks} blocks were read")
        self._next = number + 1
        return block


def check_plan(
    plan: Plan,
    problem: AbstractProblem,
    checkpoint: Checkpointing | None,
    on_bad_chunk: Skip | None,
) -> None:
    """Refuses a plan that is not one for a problem.

    Args:
        plan: The plan.
        problem: The problem, with its data.
        checkpoint: Where to keep checkpoints.
        on_bad_chunk: Whether blocks may be left out.

    Raises:
        ArgumentError: If it is for another number of points, or does not read as data,
            checkpoints or blocks that are left out need it.
    """
    points = count_points(problem.data)
    if plan.n_points != points:
        raise ArgumentError(
            f"`plan` must be for the {points:,} points of the data, the entries of "
            f"their first axis, but is for {plan.n_points:,}. Write `plan({points}, "
            "...)`."
        )
    if plan.driven:
        refuse_traced(problem, "problem", ONLY_IN_MEMORY)
    if not plan.driven and (checkpoint is not None or on_bad_chunk is not None):
        name = "checkpoint" if checkpoint is not None else "on_bad_chunk"
        raise ArgumentError(
            f"`{name}` must be used with a plan that reads block by block, but the "
            f"plan is {plan.strategy.value}. Pass `plan({points}, "
            f"{plan.n_params}, resident=False)`."
        )
    if plan.driven and _on_several_devices(problem.data):
        raise ArgumentError(
            "`data` must be on the host, on one device or on disk to be read "
            f"block by block, but are spread over devices, and the plan is "
            f"{plan.strategy.value}. Pass arrays of the host with `mesh`, or a "
            "`plan` for memory."
        )
    if not plan.driven and not in_memory(problem.data):
        raise ArgumentError(
            "`plan` must read block by block where data are on disk or come from a "
            f"stream, but is {plan.strategy.value}."
        )


def _on_several_devices(data) -> bool:
    leaves = jax.tree.leaves(data)
    return any(isinstance(x, jax.Array) and len(x.devices()) > 1 for x in leaves)


def fit_blocks(
    problem: AbstractProblem,
    data,
    method: TrustRegion,
    plan: Plan,
    *,
    mesh: Mesh | None,
    checkpoint: Checkpointing | None,
    progress: Progress | bool | None,
    on_bad_chunk: Skip | None,
    checks: bool,
) -> tuple[Search, DriveResult, Bool[np.ndarray, " blocks"]]:
    """Fits block by block.

    Args:
        problem: The problem, without its data.
        data: Where the blocks are read.
        method: How to search.
        plan: Sizes.
        mesh: Devices over which the points of each block are divided.
        checkpoint: Where to keep checkpoints; `every` counts blocks.
        progress: Whether and how to show progress.
        on_bad_chunk: Whether blocks may be left out.
        checks: Whether to look at each block of the first pass.

    Returns:
        The search, the run, and which blocks were left out.
    """
    blocks = -(-plan.n_points // plan.block)
    reader = _Reader(data, plan.block, blocks, mesh)
    sample = reader.read(0)
    each = plan.block if mesh is None else -(-plan.block // mesh.size)
    check_pointwise(problem, sample.batch, plan.n_points, min(plan.chunk, each))
    search = start_search(problem)
    empty = first_sums(problem, sample.batch, search.trial)
    if mesh is not None:
        empty = on_first_device(empty, mesh=mesh)
    state = Pass(search, empty, jnp.zeros(blocks, bool))
    refuse_traced(state, "problem", ONLY_IN_MEMORY)

    def one_block(state: Pass, number: int) -> Pass:
        if np.asarray(state.skipped)[number]:
            return state
        block, fault = sample, None
        try:
            block = reader.read(number)
        except DataError as error:
            fault = error
        if anywhere(fault is not None):
            if isinstance(fault, CountError):
                raise fault
            why = str(fault or "another process could not read its part").rstrip(".")
            return _leave_out(state, number, plan, on_bad_chunk, why)
        sums = _with_block(problem, state, block, plan.chunk, mesh)
        # By what functions read from outside.
        refuse_traced(sums, "problem", ONLY_IN_MEMORY)
        first_pass = checks and int(state.search.evaluations) == 0
        if first_pass and not bool(all_finite(sums.matrix)):
            return _leave_out(
                state,
                number,
                plan,
                on_bad_chunk,
                "its residuals or their derivatives are not finite at the start",
            )
        return eqx.tree_at(lambda s: s.sums, state, sums)

    def advance_blocks(state: Pass, start, stop) -> Pass:
        for step in range(int(start), int(stop)):
            number = step % blocks
            if bool(state.search.done):
                return state
            state = one_block(state, number)
            if number == blocks - 1:
                search = end_pass(problem, method, state, mesh)
                refuse_traced(search, "problem", ONLY_IN_MEMORY)
                state = Pass(search, empty, state.skipped)
            # Not more than one block is computed with while the next is read.
            jax.block_until_ready(state.sums.cost)
        return state

    outcome = drive(
        advance_blocks,
        state,
        stop=method.max_evaluations * blocks,
        checkpoint=_complete(checkpoint, problem, data, method, plan, state, mesh),
        progress=_progress(progress, plan),
        watch=None,
        converged=lambda s: bool(s.search.done),
        check_every=blocks,
    )
    found: Pass = outcome.state
    return found.search, outcome, np.asarray(found.skipped)


def _with_block(problem, state: Pass, block, chunk, mesh: Mesh | None):
    """Returns the sums of a pass with those of one more block."""
    ends = jnp.asarray(block.first), jnp.asarray(block.last)
    if mesh is None:
        return add_block(problem, state, block.batch, *ends, chunk=chunk)
    return block_on_devices(
        problem, state.search, state.sums, block.batch, *ends, chunk=chunk, mesh=mesh
    )


def _progress(progress, plan: Plan) -> Progress | bool | None:
    if progress is not True:
        return progress
    return Progress("fit", unit="Mpoints", per_step=plan.block / 1e6)


def _complete(
    checkpoint: Checkpointing | None,
    problem,
    data,
    method,
    plan: Plan,
    state: Pass,
    mesh: Mesh | None,
) -> Checkpointing | None:
    """Fills in the fingerprint, and a packing that knows no mesh."""
    if checkpoint is None:
        return None
    mark = checkpoint.fingerprint or fingerprint(
        problem,
        method=method,
        sizes=(plan.n_points, plan.block, plan.chunk),
        data=_marks(data),
    )
    return checkpoint.completed(mark, None if mesh is None else _packing(state, mesh))


def _packing(state: Pass, mesh: Mesh) -> dict[str, Any]:
    """Returns how a state is stored with the sums of all devices as one."""
    alone = jax.tree.map(lambda x: np.zeros(x.shape[1:], x.dtype), state.sums)
    like = eqx.tree_at(lambda s: s.sums, state, jax.tree.map(jnp.asarray, alone))

    def pack(state: Pass):
        sums = total(state.sums, state.search.factored, mesh=mesh)
        return pack_state(eqx.tree_at(lambda s: s.sums, state, sums))

    def unpack(arrays) -> Pass:
        state = unpack_state(arrays, like)
        sums = on_first_device(state.sums, mesh=mesh)
        return eqx.tree_at(lambda s: s.sums, state, sums)

    return {"pack": pack, "unpack": unpack}


_PLACES, _MARKED = 64, 256


def _marks(data) -> dict:
    """Describes data: all of what is in memory, samples of what takes long to read."""
    marks = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        if isinstance(leaf, Stream):
            mark = ("stream", leaf.points)
        elif in_memory(leaf):
            mark = leaf
        else:
            last = max(leaf.shape[0] - _MARKED, 0)
            begins = np.unique(np.linspace(0, last, _PLACES).astype(int))
            seen = [np.array(leaf[at : at + _MARKED]) for at in begins.tolist()]
            mark = (tuple(leaf.shape), str(leaf.dtype), seen)
        marks[jax.tree_util.keystr(path)] = mark
    return marks


def _leave_out(state: Pass, number: int, plan: Plan, skip: Skip | None, why: str):
    """Marks a block as left out, or refuses to."""
    begin = number * plan.block
    place = (
        f"Chunk {number} of the data (points {begin} to "
        f"{min(begin + plan.block, plan.n_points)})"
    )
    if skip is None:
        raise DataError(
            f"{place} must be readable and finite, but {why}. Fix the data, mask the "
            "points, or allow it with `on_bad_chunk=Skip(max_fraction)`."
        )
    if int(state.search.evaluations):
        raise DataError(
            f"{place} must stay readable during a fit, but {why}: without it the cost "
            "of this pass cannot be compared with the pass before."
        )
    skipped = state.skipped.at[number].set(True)
    part = int(skipped.sum()) / skipped.size
    if part > skip.max_fraction:
        raise DataError(
            "`max_fraction` must be at least the fraction of chunks that are bad, but "
            f"is {skip.max_fraction:g}, and {int(skipped.sum())} of {skipped.size} "
            "are. "
            f"The last: {place}: {why}."
        )
    return eqx.tree_at(lambda s: s.skipped, state, skipped)
