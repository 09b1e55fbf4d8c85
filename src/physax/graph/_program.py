"""Compiled graphs."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jaxtyping import Array, ArrayLike, Inexact, Key, PyTree, Shaped

from ..runtime import propose
from ._backend import Backend
from ._block import GraphError
from ._evaluation import check_mapping
from ._given_values import check_numbers
from ._summary import table
from ._wiring import Wiring


Parameters: TypeAlias = dict[str, Inexact[Array, "..."]]
Constants: TypeAlias = dict[str, Shaped[Array, "..."]]


class Program(eqx.Module):
    """A compiled graph; made by `compile`.

    A pytree: it may be called, differentiated, batched and compiled as any Equinox
    module. `evaluate` is the fast way in from Python; its parameters are a dict that
    optax and checkpoints take as it is.

    Attributes:
        params: The parameters by name, such as `linear.weight`.
        constants: Arrays that are not trained, by name.
        inputs: The wires to be given.
        outputs: The wires that are returned.
        backend: Where and how it runs.
        wiring: The nodes that it runs, with all shapes.
        forward: Takes parameters, constants and inputs; returns the outputs.
        pull_back: Takes these and `output_gradients`; returns the outputs and the
            gradients.
        draw: Draws parameters and constants from a key.
    """

    params: Parameters
    constants: Constants
    inputs: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    backend: Backend = eqx.field(static=True)
    wiring: Wiring = eqx.field(static=True)
    forward: Callable = eqx.field(static=True)
    pull_back: Callable = eqx.field(static=True)
    draw: Callable = eqx.field(static=True)

    def __call__(
        self, /, *unnamed: Any, **inputs: PyTree[ArrayLike]
    ) -> dict[str, PyTree[Array]]:
        """Evaluates the outputs with the parameters of the program itself.

        Args:
            *unnamed: Refused: inputs are given by name.
            **inputs: The value of each input.

        Returns:
            The value of each output.

        Raises:
            GraphError: If an input is missing, unknown, not named, no array of numbers
                or of another shape.
        """
        if unnamed:
            names = ", ".join(f"{wire}=..." for wire in self.inputs)
            raise GraphError(
                f"Inputs must be given by name, `program({names})`, but {len(unnamed)} "
                "came by position."
            )
        return _evaluate(
            self.forward, self.pull_back, self.constants, self.params, inputs
        )

    @property
    def evaluate(self) -> Callable[..., Any]:
        """Evaluates the outputs, and gradients by the parameters if asked for.

        Called as `evaluate(params, inputs, output_gradients=None)`:

        - `params` are the parameters, as in `Program.params`; integers count as real
          numbers;
        - `inputs` holds the value of each input;
        - `output_gradients` holds the derivative of what is to be minimised by each
          output: an array of its shape, or True for 1 by a scalar. An output that is
          not named counts as 0. For complex outputs the convention is `jax.vjp`'s.

        It returns a dict with the value of each output; with `output_gradients`, this
        and the gradients, a dict such as `params`. It raises a `GraphError` if a name
        is missing or unknown, a value is no array of numbers or a shape another, or a
        real parameter is complex, and a `NotFiniteError` if the backend is to debug and
        a node gives NaN or infinity.
        """
        # A method of an Equinox module is a module that is made at each access, which
        # takes longer than a small program runs.
        return functools.partial(
            _evaluate, self.forward, self.pull_back, self.constants
        )

    def randomize_params(self, key: Key[Array, ""]) -> Parameters:
        """Draws new parameters.

        Args:
            key: Where they come from.

        Returns:
            The parameters. Arrays that were given rather than drawn keep their values.
        """
        drawn, _ = self.draw(key)
        return {**self.params, **drawn}

    def init(self, key: Key[Array, ""]) -> "Program":
        """Draws new parameters and all other random arrays.

        Args:
            key: Where they come from.

        Returns:
            The program with them.
        """
        params, constants = self.draw(key)
        fresh = ({**self.params, **params}, {**self.constants, **constants})
        return eqx.tree_at(lambda p: (p.params, p.constants), self, fresh)

    def with_arrays(self, params: Parameters, constants: Constants) -> "Program":
        """Puts other arrays in place, such as those of a file.

        Args:
            params: All parameters. Real floating point numbers take the dtype of those
                of the program.
            constants: All constants, likewise.

        Returns:
            The program with them.

        Raises:
            GraphError: If a name is missing or unknown, or a shape or another dtype
                differs.
        """
        pairs = ((self.params, params), (self.constants, constants))
        for mine, given in pairs:
            wrong = sorted(mine.keys() ^ given.keys()) or [
                name for name in mine if _shapes(mine[name]) != _shapes(given[name])
            ]
            if wrong:
                raise GraphError(
                    f"Arrays must have the names and shapes of those of the program, "
                    f"{', '.join(f'{n} {_shapes(a)}' for n, a in mine.items())}, but "
                    f"{', '.join(wrong)} differ."
                )
        placed = [
            {
                name: jax.tree.map(functools.partial(_like, name), old, given[name])
                for name, old in mine.items()
            }
            for mine, given in pairs
        ]
        return eqx.tree_at(lambda p: (p.params, p.constants), self, tuple(placed))

    def split(self) -> tuple[Parameters, "Program"]:
        """Separates the parameters.

        Returns:
            The parameters, and the program without them, whose `evaluate` takes them.
        """
        return self.params, eqx.tree_at(lambda p: p.params, self, {})

    def propose_shardings(self) -> dict[str, PartitionSpec]:
        """Proposes how to cut each parameter over the mesh of the backend.

        Returns:
            A layout for each parameter, largest axes cut first, as `shard_params` of
            `compile` takes them.

        Raises:
            GraphError: If the backend has no mesh.
        """
        if self.backend.mesh is None:
            raise GraphError(
                "`propose_shardings` needs a mesh, but the backend has none. Give "
                "`Backend(mesh=...)`."
            )
        return propose(self.params, self.backend.mesh)

    def summary(self, depth: int = 1) -> str:
        """Shows the nodes with their wires, shapes and numbers of parameters.

        Args:
            depth: Down to which level nested graphs are opened.

        Returns:
            A table.
        """
        return table(self.wiring, depth=depth, arrays=self.params)


def _shapes(array: PyTree[ArrayLike]) -> PyTree[tuple[int, ...]]:
    return jax.tree.map(jnp.shape, array)


def _like(name: str, old: Array, new: ArrayLike) -> Array:
    """Returns an array in the dtype and the place of another."""
    array = new if isinstance(new, jax.Array) else np.asarray(new)
    for kind in (jnp.floating, jnp.complexfloating, jnp.integer):
        # Of another precision, or integers of NumPy.
        if all(jnp.issubdtype(x.dtype, kind) for x in (old, array)):
            array = array.astype(old.dtype)
    if array.dtype != old.dtype:
        raise GraphError(
            f"`{name}` must have the dtype that it has in the program, {old.dtype}, "
            f"but has {array.dtype}. Convert it."
        )
    return jax.device_put(array, old.sharding)


def _evaluate(
    forward: Callable,
    pull_back: Callable,
    constants: Constants,
    params: Mapping[str, Any],
    inputs: Mapping[str, PyTree[ArrayLike]],
    output_gradients: Mapping[str, PyTree[ArrayLike]] | None = None,
) -> Any:
    try:
        if output_gradients is None:
            return forward(params, constants, inputs)
        return pull_back(params, constants, inputs, output_gradients)
    except TypeError:
        # Not before: what is right should cost nothing.
        _check_values(params=params, inputs=inputs, output_gradients=output_gradients)
        raise


def _check_values(**arguments: Any) -> None:
    """Raises if an argument is no dict of arrays of numbers."""
    for argument, given in arguments.items():
        if given is not None:
            check_mapping(argument, given)
            for name, value in given.items():
                for leaf in jax.tree.leaves(value):
                    check_numbers(argument, name, leaf)
