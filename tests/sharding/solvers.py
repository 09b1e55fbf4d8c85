"""A simulation and a training, for one process or several."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from physax import em, graph, runtime
from physax.grid import Grid, Layout


CELL = 50e-9
SHAPE = (64, 44)
BESIDE = abs(np.arange(SHAPE[1])[None, :] - 21.5)
GUIDE = np.where(BESIDE < 4, 6.0, 1.0) * np.ones(SHAPE)
PORTS = {
    "left": em.Port((16 * CELL, 22 * CELL), 28 * CELL, "+x", offset=3 * CELL),
    "right": em.Port((48 * CELL, 22 * CELL), 28 * CELL, "-x", offset=3 * CELL),
}
PLACES = np.linspace(-1, 1, 48).reshape(16, 3)


def transmitted(mesh):
    """An S-parameter and its derivatives by the permittivity of a row of cells."""

    def loss(row):
        sim = em.Simulation(
            Grid.uniform(SHAPE, CELL),
            em.Medium(jnp.asarray(GUIDE).at[30].set(row)),
            em.Boundaries.all(em.CPML(8)),
            polarisation="Ez",
            steps=200,
        )
        layout = Layout(mesh, x="x")
        found = em.s_parameters(sim, PORTS, 1.55e-6, inputs=["left"], layout=layout)
        return jnp.abs(found("right", "left")[0])

    whole = jax.sharding.NamedSharding(mesh, jax.P())
    run = jax.jit(jax.value_and_grad(loss), out_shardings=whole)
    value, slope = run(jnp.asarray(GUIDE[30]))
    return float(value), np.asarray(slope).tolist()


def trained(mesh):
    """The parameters of a network after some steps, its data cut over the devices."""
    backend = graph.Backend("float64", mesh=mesh)
    model = graph.Graph() | graph.MLP(3, (8,), 1, "tanh").connect(input="x", output="y")
    model |= graph.op(lambda y, z: jnp.mean((y[:, 0] - z) ** 2), label="loss").connect(
        y="y", z="z", output="loss"
    )
    cut = jax.P("x")
    program = graph.compile(
        model,
        {"x": ("n", 3), "z": ("n",)},
        jax.random.key(4),
        backend,
        shard={"x": cut, "z": cut},
    )
    optimiser = optax.adam(0.05)

    @jax.jit
    def step(params, state, inputs):
        outputs, gradients = program.evaluate(params, inputs, {"loss": True})
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), state, outputs["loss"]

    params, inputs = program.params, {"x": PLACES, "z": np.sin(PLACES.sum(1))}
    state = optimiser.init(params)
    for _ in range(20):
        params, state, loss = step(params, state, inputs)
    flat = np.concatenate([np.asarray(params[name]).ravel() for name in params])
    return float(loss), flat.tolist()


def results(count):
    """Both, on a mesh of the first devices."""
    mesh = runtime.mesh(count)
    return [transmitted(mesh), trained(mesh)]


def driven(count, folder, on_chunk=None, steps=60, every=20):
    """Fields and monitors after some steps, with checkpoints.

    The 31 samples along y do not fall into equal parts, so they are padded.
    """
    medium = em.Medium(np.linspace(2.0, 3.0, 44)[:, None] * np.ones((44, 30)))
    pulse = em.GaussianPulse(2e14, 5e13)
    source = em.Dipole("Ez", (20 * CELL, 13 * CELL), pulse)
    size = (0, 16 * CELL)
    sim = em.Simulation(
        Grid.uniform((44, 30), CELL),
        medium,
        em.Boundaries(x=em.CPML(8), y=(em.CPML(8), em.PMC())),
        polarisation="Ez",
        steps=steps,
        sources={"dipole": source},
        monitors={"flux": em.FluxMonitor("x", (26 * CELL, 18 * CELL), size, [2e14])},
    )
    layout = Layout(runtime.mesh(count), y="x")
    found = em.run(
        sim,
        layout=layout,
        checkpoint=runtime.Checkpointing(folder, every),
        progress=False,
        throw=False,
        on_chunk=on_chunk,
    )
    whole = jax.sharding.NamedSharding(layout.mesh, jax.P())
    state = found.state.fields, found.state.monitors
    state = jax.tree.map(np.asarray, jax.jit(lambda s: s, out_shardings=whole)(state))
    leaves = [x[..., :44, :31] for x in state[0].values()] + jax.tree.leaves(state[1])
    numbers = [[np.real(x).tolist(), np.imag(x).tolist()] for x in leaves]
    return [found.drive.status.name, found.drive.first_step, found.drive.step, numbers]
