"""Stages on different devices that work on different microbatches at once."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jax.tree_util import keystr, tree_leaves_with_path
from jaxtyping import Array, PyTree, Shaped

from .._auto_mesh import auto_mesh
from .._checks import ArgumentError
from ._leading import leading_size


def pipeline(
    stage: Callable[[Any, Any], Any],
    weights: PyTree,
    microbatches: PyTree[Shaped[Array | np.ndarray, "..."]],
    *,
    mesh: Mesh,
    axis: str,
) -> PyTree[Shaped[Array, "..."]]:
    """Applies stages one after the other, each on a device of its own.

    Each microbatch goes from device to device along one axis of the mesh. With `s`
    stages and `n` microbatches this takes `n + s - 1` turns, so a device works for a
    fraction `n / (n + s - 1)` of the time: take several times as many microbatches as
    stages. In a turn without a microbatch a device computes nothing. Values and
    gradients are those of the stages one after the other. Other axes of the mesh stay
    free to spread the rows of the microbatches or the weights of a stage.

    Communication: in each turn a device hands one microbatch to the next; at the end
    one sum over the axis gives all devices the results.

    Args:
        stage: Takes the weights of one stage and a microbatch to what the next stage
            takes, of the same structure, shapes and dtypes.
        weights: Any pytree whose arrays have a leading axis with one entry per stage.
            Put them along `axis` beforehand, as `place` does with
            `PartitionSpec(axis)`; then each device holds its own stage's only.
        microbatches: Arrays with a leading axis, one entry per microbatch.
        mesh: The devices.
        axis: The axis of `mesh` along which the stages lie, as many as it has devices.

    Returns:
        What the last stage returns, with the leading axis of `microbatches`.

    Raises:
        ArgumentError: If `mesh` has no such axis, or an array of `weights` does not
            have one entry per device along it, or the arrays of `microbatches` do not
            have the same number of entries, or `stage` does not return what it takes.
    """
    mesh = auto_mesh(mesh)
    stages = _stages(weights, mesh, axis)
    count = leading_size(
        microbatches, "microbatches", "one leading axis of the same size"
    )
    arrays, rest = eqx.partition(weights, eqx.is_array)
    _check_stage(stage, arrays, rest, microbatches)
    onward = [(i, i + 1) for i in range(stages - 1)]

    def on_device(own, inputs):
        own = jax.tree.map(lambda a: a[0], own)
        inputs = jax.tree.map(lambda a: lax.pcast(a, axis, to="varying"), inputs)
        index = lax.axis_index(axis)

        def turn(arriving, time):
            now = jnp.minimum(time, count - 1)
            x = jax.tree.map(
                lambda a, b: jnp.where(
                    index == 0, lax.dynamic_index_in_dim(a, now, keepdims=False), b
                ),
                inputs,
                arriving,
            )
            # A branch, not a choice between results: where there is no microbatch yet,
            # the stage could have an infinite slope, and 0 times that is NaN.
            busy = (index <= time) & (time < index + count)
            y = lax.cond(
                busy,
                lambda w, x: stage(eqx.combine(w, rest), x),
                lambda w, x: x,
                own,
                x,
            )
            return jax.tree.map(lambda a: lax.ppermute(a, axis, onward), y), y

        nothing = jax.tree.map(lambda a: jnp.zeros_like(a[0]), inputs)
        _, made = lax.scan(turn, nothing, jnp.arange(count + stages - 1))
        last = index == stages - 1
        return jax.tree.map(
            lambda a: lax.psum(jnp.where(last, a[stages - 1 :], 0), axis), made
        )

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(PartitionSpec(axis), PartitionSpec()),
        out_specs=PartitionSpec(),
        axis_names={axis},
    )(arrays, microbatches)


def _stages(weights, mesh: Mesh, axis: str) -> int:
    if axis not in mesh.axis_names:
        raise ArgumentError(
            f"`axis` must be one of the mesh's axes, {', '.join(mesh.axis_names)}, but "
            f"is {axis}."
        )
    stages = mesh.shape[axis]
    for path, leaf in tree_leaves_with_path(eqx.filter(weights, eqx.is_array)):
        if leaf.shape[:1] != (stages,):
            raise ArgumentError(
                f"The arrays of `weights` must have a leading axis of {stages}, one "
                f"entry for each device along `{axis}`, but `weights{keystr(path)}` "
                f"has the shape {list(leaf.shape)}. Let a stage do several layers, or "
                "take another mesh."
            )
    return stages


def _check_stage(stage, arrays, rest, microbatches) -> None:
    first = jax.eval_shape(
        lambda *trees: jax.tree.map(lambda a: a[0], trees), arrays, microbatches
    )
    taken = first[1]
    given = jax.eval_shape(lambda w, x: stage(eqx.combine(w, rest), x), *first)
    if _describe(given) != _describe(taken):
        raise ArgumentError(
            "`stage` must return what it takes, since its result goes to the next "
            f"stage, but takes {_describe(taken)} and returns {_describe(given)}."
        )


def _describe(tree) -> str:
    leaves, structure = jax.tree.flatten(tree)
    texts = [f"{leaf.dtype.name}{list(leaf.shape)}" for leaf in leaves]
    return str(jax.tree.unflatten(structure, texts)).replace("'", "")
