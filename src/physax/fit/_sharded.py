"""Passes over data that are spread over several devices."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, PyTree

from .._checks import ArgumentError, traced
from ._factors import factors
from ._passes import add_points, first_sums, points_in, without_data
from ._problems import AbstractProblem
from ._search import Search
from ._sums import Factored, Normal, Sums, Unit, either


_SPLIT = 4096


def spread(data: PyTree, mesh: Mesh) -> tuple[PyTree, int]:
    """Places data on a mesh, the points divided evenly.

    Arrays that reach over several processes stay where they are. All are made longer by
    copies of the last point if need be, which no pass counts.

    Args:
        data: Arrays whose first axis is the points.
        mesh: The devices.

    Returns:
        The arrays, and the number of points that count.
    """
    count = points_in(data)
    more = -count % mesh.size
    where = NamedSharding(mesh, PartitionSpec(mesh.axis_names))

    def place(x):
        if isinstance(x, jax.Array) and not x.is_fully_addressable:
            return jnp.concatenate([x, jnp.repeat(x[-1:], more, axis=0)]) if more else x
        if more:
            host = np.asarray(x)
            x = np.concatenate([host, np.repeat(host[-1:], more, axis=0)])
        return jax.device_put(x, where)

    return jax.tree.map(place, data), count


def placed(problem: AbstractProblem, mesh: Mesh | None) -> AbstractProblem:
    """Returns a problem whose arrays may meet in one program.

    Args:
        problem: The problem.
        mesh: The devices, if they are chosen: arrays of others come to the host.

    Raises:
        ArgumentError: If arrays lie on different devices and no mesh says where to fit.
    """
    if traced(problem):
        return problem
    chosen = None if mesh is None else set(mesh.devices.flat)
    arrays = filter(_bound, jax.tree.leaves(problem.data))
    places = {frozenset(x.sharding.device_set) for x in arrays}
    if chosen is None and len(places) > 1:
        named = sorted(", ".join(sorted(map(str, place))) for place in places)
        raise ArgumentError(
            "`data` must lie on the same devices, with `weights`, `mask` and the like, "
            f"but are on {' and on '.join(named)}. Pass arrays of the host, or a "
            "`mesh` to place them."
        )
    if chosen is None:
        return problem

    def freed(x):
        here = not _bound(x) or x.sharding.device_set == chosen
        return x if here or not x.is_fully_addressable else np.asarray(x)

    return jax.tree.map(freed, problem)


def _bound(x) -> bool:
    """Whether an array was given a place, which JAX does not leave by itself."""
    return isinstance(x, jax.Array) and x.committed


def sharded_normal(
    problem: AbstractProblem,
    vector: Float[Array, " m"],
    factored: Factored,
    unit: Unit = 1.0,
    *,
    chunk: int,
    mesh: Mesh,
    count: int,
) -> Normal:
    """Makes the quadratic model of all points in one pass on all devices.

    Each device adds up its own points; one exchange between the devices follows.

    Args:
        problem: The problem, its data from `spread`, or traced and not yet divided.
        vector: What the solver moves.
        factored: Whether to form triangular factors.
        unit: What residuals are multiplied by.
        chunk: Points that are evaluated at once on each device.
        mesh: The devices.
        count: Number of points that count.
    """
    names = mesh.axis_names
    here, rest = PartitionSpec(names), PartitionSpec()
    bare, data = without_data(problem), problem.data
    more = -points_in(data) % mesh.size
    if more:
        # Copies of the last point, as in `spread`, which had no traced data to place.
        data = jax.tree.map(
            lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], more, axis=0)]), data
        )
    dynamic, static = eqx.partition(bare, eqx.is_array)

    def on_one_device(dynamic, data, vector, unit, factored):
        problem = eqx.combine(dynamic, static)
        each = points_in(data)
        before = jax.lax.axis_index(names) * each
        last = jnp.clip(count - before, 0, each)
        sums = first_sums(problem, data, vector)
        zero = jnp.zeros_like(last)
        sums = add_points(
            *(problem, data, vector, factored, sums, zero, last),
            chunk=chunk,
            unit=unit,
        )
        return _together(sums, factored, names)

    # Known when compiling or not, as `either` distinguishes.
    known = isinstance(factored, bool)
    body = partial(on_one_device, factored=factored) if known else on_one_device
    given = () if known else (factored,)
    # The types of JAX's check do not tell that what is gathered is the same everywhere.
    everywhere = jax.shard_map(
        body,
        mesh=mesh,
        in_specs=(rest, here, rest, rest, *(rest for _ in given)),
        out_specs=rest,
        check_vma=False,
    )
    unit = jnp.asarray(unit, vector.dtype)
    sums = everywhere(dynamic, data, vector, unit, *given)
    return problem.normal(vector, sums, factored, unit)


@eqx.filter_jit
def block_on_devices(
    problem: AbstractProblem,
    search: Search,
    sums: Sums,
    batch: PyTree,
    first,
    last,
    *,
    chunk: int,
    mesh: Mesh,
) -> Sums:
    """Adds the points of a block to the sums of each device. Nothing is sent.

    Args:
        problem: The problem, without its data.
        search: What the solver knows.
        sums: Of each device, along the first axis.
        batch: Arrays whose points are divided over the mesh.
        first: The first point of the block that counts.
        last: One past the last.
        chunk: Points that are evaluated at once on each device.
        mesh: The devices.
    """
    names = mesh.axis_names
    here, rest = PartitionSpec(names), PartitionSpec()
    dynamic, static = eqx.partition((problem, search), eqx.is_array)

    def on_one_device(dynamic, sums, batch, first, last):
        problem, search = eqx.combine(dynamic, static)
        each = points_in(batch)
        before = jax.lax.axis_index(names) * each
        first, last = (jnp.clip(x - before, 0, each) for x in (first, last))
        own = jax.tree.map(lambda x: x[0], sums)
        added = add_points(
            problem,
            batch,
            search.trial,
            search.factored,
            own,
            first,
            last,
            chunk=chunk,
            unit=search.unit,
        )
        return jax.tree.map(lambda x: x[None], added)

    return jax.shard_map(
        on_one_device,
        mesh=mesh,
        in_specs=(rest, here, here, rest, rest),
        out_specs=here,
        check_vma=False,
    )(dynamic, sums, batch, first, last)


@eqx.filter_jit
def total(sums: Sums, factored: Factored, *, mesh: Mesh) -> Sums:
    """Adds up the sums of each device: the only exchange of a pass."""
    names = mesh.axis_names
    rest = PartitionSpec()

    def on_one_device(sums, factored):
        return _together(jax.tree.map(lambda x: x[0], sums), factored, names)

    return jax.shard_map(
        on_one_device,
        mesh=mesh,
        in_specs=(PartitionSpec(names), rest),
        out_specs=rest,
        check_vma=False,
    )(sums, jnp.asarray(factored))


def on_first_device(sums: Sums, *, mesh: Mesh) -> Sums:
    """Gives sums to the first device, and none to the others."""
    where = NamedSharding(mesh, PartitionSpec(mesh.axis_names))

    def place(x):
        whole = np.zeros((mesh.size, *x.shape), x.dtype)
        whole[0] = np.asarray(x)
        return jax.make_array_from_callback(whole.shape, where, whole.__getitem__)

    return jax.tree.map(place, sums)


def _together(sums: Sums, factored: Factored, names) -> Sums:
    """Adds the sums of all devices, in one collective.

    Of two that may run at once each can keep the threads of XLA's CPU client waiting
    for the other (jax 0.10).
    """
    own = sums.matrix, sums.parts, sums.rest, sums.cost
    # As two floats, which are exact in single precision too.
    count = jnp.stack(jnp.divmod(sums.count, _SPLIT)).astype(sums.cost.dtype)
    vector, apart = ravel_pytree((own, count))
    if factored is False:
        of_all, whole = (), jax.lax.psum(vector, names)
    else:
        every = jax.lax.all_gather(vector, names)
        (of_all, _), whole = jax.vmap(apart)(every), jnp.sum(every, axis=0)
    (matrix, parts, rest, cost), counts = apart(whole)
    high, low = counts.astype(sums.count.dtype)

    def stacked(x):
        # One after the other along the rows, group by group.
        rows = jnp.moveaxis(x, 0, -3)
        return rows.reshape(*rows.shape[:-3], -1, rows.shape[-1])

    matrix, parts = either(
        factored,
        lambda _: factors(*jax.tree.map(stacked, of_all[:2])),
        lambda sums: sums,
        (matrix, parts),
    )
    return Sums(matrix, rest, cost, high * _SPLIT + low, parts)
