"""Products of float32 arrays are made in full precision on every platform.

CPUs do so anyway: what a program asks of others shows in its traced form alone.
"""

import ast
import re
from pathlib import Path

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.lax import Precision

from physax import em, fit, graph, particles, xpcs
from physax.design import MovingAsymptotes, NeuralDensity
from physax.design._moving_asymptotes import Rows, first_asymptotes, propose
from physax.em._eigenpair import eigenpair
from physax.fit._posterior import _advance, _begin, _read, _sampler
from physax.grid import Grid
from physax.xpcs._frame_covariance import _summed_scores
from physax.xpcs._speckle_covariance import _of_map
from tests.em.scenes import SCENES, dispersive
from tests.fit.decays import X, Y, problem
from tests.particles.flows import gyre, seeds


pytestmark = [
    pytest.mark.f32,
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
]

PACKAGE = Path(__file__).parents[1] / "src" / "physax"

KEY = jax.random.key(0)
PULSE = em.GaussianPulse(3e14, 5e13)


def seen(sim, adjoint):
    """The gradient of what monitors see by the permittivity, and where to take it."""
    kept = {n: m for n, m in sim.monitors.items() if n not in ("energy", "time")}
    sim = eqx.tree_at(lambda s: s.monitors, sim, kept)

    def power(eps):
        changed = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        found = em.simulate(changed, adjoint=adjoint).monitors
        return sum(jnp.sum(jnp.abs(x) ** 2) for x in jax.tree.leaves(found))

    return jax.grad(power), sim.medium.permittivity


def beam():
    port = em.Port((0.0, 0.0), 1.6e-6, "+x")
    grid, sources = (
        Grid.centred((40, 40), 5e-8),
        {"beam": em.GaussianBeam(port, PULSE, 3e-7)},
    )
    sim = em.Simulation(
        grid,
        sources=sources,
        steps=1,
        polarisation="Ez",
        boundaries=em.Boundaries.all(em.CPML(8)),
    )
    return em.simulate, sim


def far_field():
    cell, middle = 9e-8, (0.0, 0.0, 0.0)
    sim = em.Simulation(
        Grid.centred((28, 28, 28), cell),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"dipole": em.Dipole("Ez", middle, PULSE)},
        monitors={"near": em.NearFieldMonitor(middle, (6 * cell,) * 3, 3e14)},
        steps=1,
    )
    return em.radiated_power, eqx.filter_eval_shape(em.simulate, sim).monitors["near"]


def decays(y):
    """Two curves of one rate, whose heights and offsets are eliminated."""
    x, both = jnp.asarray(X), jnp.stack([y, 2 * y], 1)
    rate = lambda p, x: jnp.exp(-p["b"] * x)[:, None] * jnp.ones(2)  # noqa: E731
    return fit.Separable(rate, {"b": 2.0}, x, both, offset=True)


def covariance(y):
    return jnp.sum(fit.least_squares(decays(y)).full_covariance)


def robust(y):
    data, penalty = (jnp.asarray(X), y), lambda p: p["a"]
    made = problem(data=data, loss=fit.Huber(0.1), penalty=penalty)
    return fit.least_squares(made).covariance


def posterior():
    made = decays(jnp.asarray(Y))
    target = fit.target_of(made, fit.least_squares(made))

    def draw(key):
        run = _begin(target, _sampler(), 4, 10, 2, key)
        run = _advance(target, _sampler(), 10, run, jnp.int32(0), jnp.int32(4))
        return _read(target, run.u, key)

    return draw, KEY


def track(motion=gyre, **options):
    def positions(x):
        return particles.track(motion, x, [0.0, 1.0], **options).positions

    return positions, jnp.asarray(seeds())


def wall():
    return particles.Obstacle(lambda x: jnp.sum(x) - 0.1, particles.Reflect())


def slip():
    nodes = np.linspace(0.0, 2.0, 7)
    values = np.ones((7, 7, 2))
    values[:2] = np.nan
    return particles.SlipField(values, (nodes, nodes), slip=0.5)


def light_force(x):
    wave = lambda t, x: jnp.array([1.0, 0.0]) * jnp.exp(1j * x[0])  # noqa: E731
    return particles.OpticalForce(wave, 1e-20)(jnp.zeros(()), x, x)


def spread(x):
    return particles.cloud_covariance(particles.track(gyre, x, [0.0, 1.0]))


def asymptotes(x):
    rows = Rows(jnp.ones(3), jnp.ones((3, x.size)), 2)
    box = jnp.zeros_like(x), jnp.ones_like(x)
    return propose(MovingAsymptotes(), first_asymptotes(x), x, rows, box, jnp.ones(3)).x


def ring(coupling):
    parts = {"bus": graph.coupler(coupling), "ring": graph.waveguide(1.0)}
    joins = {"bus.out1": "ring.in", "ring.out": "bus.in1"}
    return graph.joined(parts, joins, {"in": "bus.in0", "out": "bus.out0"}).values


def two_time():
    data = xpcs.TwoTime(
        np.ones((1, 20, 20)), np.array([0.0054]), np.zeros(1), 1.0 + np.arange(20)
    )
    return xpcs.two_time_problem(data, xpcs.Static(xpcs.Diffusion(9000.0, 0.0)))


def contrast(problem):
    return xpcs.two_time_fit(problem, fit.least_squares(problem)).contrast


def scores(problem):
    free = len(problem.parameters.names)
    return _summed_scores(problem, jnp.ones(free), jnp.ones(2), False)


def of_map(problem):
    free = jnp.ones(len(problem.parameters.names))
    return _of_map(problem, free, jnp.ones(2), jnp.asarray(0))


FRAMES, LABELS = jnp.ones((32, 5, 5)), np.ones((5, 5), int)

# Of each a function and its arguments, made when they are needed.
ENTRIES = {
    "poles, tape": lambda: seen(dispersive("walls"), em.LinearTape()),
    "poles, direct": lambda: seen(dispersive("walls"), em.Direct()),
    "transforms": lambda: seen(SCENES["bloch"](), em.FrequencyDomain()),
    "beam": beam,
    "far field": far_field,
    "slab": lambda: (
        jax.jacrev(lambda x: eigenpair(x, jnp.ones(9), 1)),
        jnp.arange(9.0),
    ),
    "path": lambda: (lambda x: em.Bezier(x, 0.1).vertices, jnp.eye(3, 2)),
    "fit": lambda: (robust, jnp.asarray(Y)),
    "separable fit": lambda: (jax.grad(covariance), jnp.asarray(Y)),
    "posterior": posterior,
    "stages": lambda: track(solver=particles.RK4ThreeEighths()),
    "diffrax": lambda: track(solver=particles.Diffrax(diffrax.Dopri5())),
    "wall": lambda: track(boundary=wall()),
    "slip": lambda: track(slip()),
    "cloud": lambda: track(particles.PointCloud(seeds(), seeds(), neighbours=3)),
    "light force": lambda: (light_force, jnp.ones(2)),
    "stretching": lambda: (jax.grad(lambda x: particles.ftle(x, 1.0)), jnp.eye(2)),
    "spread": lambda: (spread, jnp.asarray(seeds())),
    "asymptotes": lambda: (asymptotes, jnp.full(5, 0.5)),
    "network": lambda: (NeuralDensity.__call__, NeuralDensity((4, 4), key=KEY)),
    "circuit": lambda: (ring, jnp.asarray(0.2)),
    "two-time fit": lambda: (contrast, two_time()),
    "scores": lambda: (scores, two_time()),
    "speckles": lambda: (of_map, two_time()),
    "frames": lambda: (lambda x: xpcs.two_time_from_frames(x, LABELS), FRAMES),
    "multi-tau": lambda: (lambda x: xpcs.multi_tau(x, LABELS).g2, FRAMES),
    "positions": lambda: (
        lambda x: xpcs.two_time_from_positions(x, np.ones(3)),
        jnp.ones((4, 9, 3)),
    ),
}


def products(jaxpr):
    """Yields the products in a program and in all programs inside it."""
    inner = lambda x: isinstance(x, Jaxpr | ClosedJaxpr)  # noqa: E731
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("dot_general", "conv_general_dilated"):
            yield equation
        for part in jax.tree.leaves(list(equation.params.values()), is_leaf=inner):
            if inner(part):
                yield from products(getattr(part, "jaxpr", part))


# These take more than a second each to trace.
LONG = {
    "poles, tape",
    "poles, direct",
    "transforms",
    "beam",
    "far field",
    "separable fit",
    "posterior",
    "two-time fit",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in ENTRIES],
)
def test_each_product_is_full(name):
    function, *arguments = ENTRIES[name]()
    found = list(products(eqx.filter_make_jaxpr(function)(*arguments)[0].jaxpr))
    assert found
    full = (Precision.HIGHEST, Precision.HIGHEST)
    assert not [one for one in found if one.params["precision"] != full]


# How often files use `@`: on arrays of NumPy, on matrices of SciPy, or, in a network of
# a graph, in the precision that users choose.
AT_SIGNS = {
    "design/_simplified_loops.py": 2,
    "em/_bodies.py": 1,
    "em/_cross_section_operator.py": 6,
    "em/_cross_section_solver.py": 8,
    "em/_matrix_pencil.py": 7,
    "em/_transparent_fit.py": 2,
    "em/_vector_fit.py": 7,
    "fit/_eliminate.py": 1,
    "fit/_multistart.py": 1,
    "fit/_profile.py": 4,
    "fit/_target.py": 2,
    "graph/_perceptron.py": 1,
    "io/_vtk_xml.py": 1,
    "particles/_cell_field.py": 3,
    "xpcs/_initial_model.py": 3,
}
# The second measures products.
CALLS = {"_products.py": 4, "cli/_machine.py": 1}
OF_JAX = re.compile(
    r"\bjnp\.(dot|einsum|inner|matmul|tensordot|vdot|vecdot|convolve|correlate)\b"
)


def at_signs(source):
    nodes = ast.walk(ast.parse(source))
    return sum(isinstance(getattr(node, "op", None), ast.MatMult) for node in nodes)


def test_products_are_those_of_one_file():
    sources = {
        str(p.relative_to(PACKAGE)): p.read_text() for p in PACKAGE.rglob("*.py")
    }
    signs = {name: at_signs(source) for name, source in sources.items()}
    calls = {name: len(OF_JAX.findall(text)) for name, text in sources.items()}
    assert {name: count for name, count in signs.items() if count} == AT_SIGNS
    assert {name: count for name, count in calls.items() if count} == CALLS
