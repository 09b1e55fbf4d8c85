"""Steps as a GPU makes them, run on a CPU: the numbers are those of a CPU's steps."""

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em import _state, _step, _tilt
from physax.runtime import default_platform

from .scenes import SCENES, dispersive, skewed


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


@pytest.fixture
def gpu(monkeypatch):
    """Traces under this device, which nothing else does, take the GPU's way."""
    for module in (_step, _state, _tilt):
        monkeypatch.setattr(module, "default_platform", lambda: "gpu")
    return lambda: jax.default_device(jax.devices("cpu")[0])


def assert_close(found, wanted, rtol=1e-12):
    for a, b in zip(*map(jax.tree.leaves, (found, wanted)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * np.max(np.abs(b)))


@pytest.mark.slow
@pytest.mark.parametrize("scene", [*SCENES, "tensors"])
def test_fields_and_monitors_are_those_of_a_cpu(scene, monkeypatch, gpu):
    sim = skewed("3-D") if scene == "tensors" else SCENES[scene]()
    with gpu():
        found = em.simulate(sim)
    monkeypatch.undo()
    wanted = em.simulate(sim)
    assert_close((found.fields, found.monitors), (wanted.fields, wanted.monitors))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scene", "adjoint"),
    [
        ("walls", None),
        ("3-D", None),
        ("3-D", em.Direct()),
        ("3-D", em.Checkpointed()),
    ],
)
def test_gradients_are_those_of_a_cpu(scene, adjoint, monkeypatch, gpu):
    sim = dispersive(scene)

    def loss(permittivity):
        with_it = eqx.tree_at(lambda s: s.medium.permittivity, sim, permittivity)
        seen = em.simulate(with_it, adjoint=adjoint).monitors["fields"]
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in seen.values.values())

    with gpu():
        found = jax.grad(loss)(sim.medium.permittivity)
    monkeypatch.undo()
    assert_close(found, jax.grad(loss)(sim.medium.permittivity))


def updates_in_place(sim):
    """Counts the primitives of a half step of E that write a part of an array."""
    program = em._program.build_program(sim)
    state = _state.rest(program)
    step = eqx.Partial(_step.half_step, program.stepper, electric=True)
    equations = jax.make_jaxpr(step)(state.fields, state.psi).eqns
    return Counter(e.primitive.name for e in equations)["dynamic_update_slice"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("scene", ["Ez", "3-D"])
def test_on_a_gpu_layers_start_no_kernels_of_their_own(scene, gpu):
    # Each addition in place would be one.
    assert updates_in_place(SCENES[scene]()) == 0


def test_the_platform_is_that_of_the_default_device():
    assert default_platform() == jax.default_backend()
    for device in ("cpu", jax.devices("cpu")[0]):
        with jax.default_device(device):
            assert default_platform() == "cpu"
