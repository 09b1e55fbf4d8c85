"""How a run is differentiated in reverse mode."""

from abc import abstractmethod
from functools import partial

import equinox as eqx
import jax
from jaxtyping import Array

from .._checks import ArgumentError
from .._loop import divisor_near_root
from ._march import Decay, march, on_devices
from ._program import Program, one_by_one, ready
from ._simulation import Simulation
from ._state import State, rest, without_poles
from ._tape import check_every


class AbstractAdjoint(eqx.Module):
    """A way to take derivatives of a run."""

    @abstractmethod
    def prepared(self, sim: Simulation) -> "AbstractAdjoint":
        """Checks that it supports a simulation, before anything is compiled.

        Args:
            sim: The simulation; its numbers may be traced.

        Returns:
            The adjoint, with what it needs to know about the simulation.
        """

    @abstractmethod
    def review(self, residual: Array) -> None:
        """Raises if it does not support a run, when the numbers are concrete.

        Args:
            residual: Energy left over the largest seen.
        """

    @abstractmethod
    def march(self, program: Program, steps: int, until: Decay | None) -> State:
        """Makes the steps from rest, differentiable in the numbers of the program.

        Args:
            program: The program; its design regions may still be apart.
            steps: How many steps.
            until: Stops early.

        Returns:
            The last state.
        """


def refuse_powers(sim: Simulation, adjoint: str) -> None:
    """Refuses media whose steps are not linear in the fields."""
    if sim.medium.nonlinearities:
        raise ArgumentError(
            f"`adjoint={adjoint}` needs steps that are linear in the fields, but the "
            "medium is nonlinear. Take `adjoint=Checkpointed()`."
        )


class _Replayed(AbstractAdjoint):
    """Differentiates the loop itself, step by step."""

    @abstractmethod
    def checkpoint(self, steps: int) -> int | None:
        """Returns the steps between stored states, `None` to store all."""

    def prepared(self, sim):
        del sim
        return self

    def review(self, residual):
        del residual

    def march(self, program, steps, until):
        # The blocks that reverse mode replays cost a forward run a quarter of its state
        # in copies, and a fifth of its speed: they are for differentiated runs only.
        arrays, static = eqx.partition(program, eqx.is_array)

        def call(run, program):
            return without_poles(on_devices(run, program, rest(program)))

        plain = partial(march, steps, until)
        taped = partial(plain, checkpoint=self.checkpoint(steps), taped=True)

        @jax.custom_jvp
        def marched(arrays):
            return call(plain, ready(eqx.combine(arrays, static)))

        def singly(arrays):
            return call(taped, one_by_one(ready(eqx.combine(arrays, static))))

        @marched.defjvp
        def _(primals, tangents):
            return jax.jvp(singly, primals, tangents)

        return marched(arrays)


class Checkpointed(_Replayed):
    """Stores some states and replays the steps between them.

    Exact for everything the forward run does, and for derivatives of any order and in
    either mode. The default stores about twice the square root of the number of steps
    in states, and costs one more forward run.

    Attributes:
        every: Steps between stored states; about the square root of the number of
            steps if `None`.
    """

    every: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_every(self.every)

    def checkpoint(self, steps):
        if self.every is not None:
            return self.every
        divisor = divisor_near_root(steps)
        # A prime number of steps has no useful divisor; the loop then has a rest.
        return divisor if divisor**2 * 4 > steps else max(1, round(steps**0.5))


class Direct(_Replayed):
    """Stores what every step needs: for short runs, and as an oracle in tests."""

    def checkpoint(self, steps):
        del steps
        return None
