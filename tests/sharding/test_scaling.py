"""The scaling model counts what compiled programs do, and predicts from it."""

import math
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import scaling
from physax import em, runtime
from physax._checks import ArgumentError
from physax.em._program import build_program
from physax.em._state import rest
from physax.fit import LeastSquares, TrustRegion
from physax.fit._least_squares import _fit_in_memory
from physax.fit._sharded import spread
from physax.grid import Grid
from physax.runtime import Link, Machine, StepCost, predict_scaling
from tests.em.scenes import CELL, FREQUENCIES, PULSE, random_permittivity
from tests.sharding.test_em_sharding import collectives, cut, lines_of


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]


f32, x64, slow = pytest.mark.f32, pytest.mark.x64, pytest.mark.slow
FACES = {
    "walls": em.PEC(),
    "layers": em.CPML(4),
    "periods": em.Periodic(),
    "phases": em.Bloch(1e5),
    "mirrors": em.PMC(),
}
# None of the odd sizes falls into equal blocks.
SHAPES = {"1-D": (45,), "Ez": (25, 19), "Hz": (25, 19), "3-D": (11, 9, 13)}
EVEN = {"1-D": (48,), "Ez": (24, 16), "Hz": (24, 16), "3-D": (12, 8, 16)}


def scene(kind, faces, *, steps=6, **options):
    """A dipole in a random medium; periodic grids have sizes that meshes divide."""
    shape = (EVEN if faces in ("periods", "phases") else SHAPES)[kind]
    polarisation = kind if kind in ("Ez", "Hz") else None
    centre = tuple(CELL * n / 2 for n in shape)
    return em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(random_permittivity(shape)),
        em.Boundaries.all(FACES[faces]),
        polarisation=polarisation,
        steps=steps,
        sources={"dipole": em.Dipole(polarisation or "Ez", centre, PULSE)},
        **options,
    )


def bytes_sent(text):
    """Returns the bytes of each exchange inside the loops of a compiled program."""
    found = []
    for line in lines_of(text)[0]:
        one = re.search(r"= (\w)(\d+)\[([\d,]*)\]\S* collective-permute\(", line)
        if one:
            cells = math.prod(map(int, one[3].split(",")))
            found.append(cells * int(one[2]) // 8)
    return found


def run(sim, layout):
    def last(sim):
        result = em.simulate(sim, layout=layout)
        return result.fields, result.residual

    return jax.jit(last).lower(sim).compile()


@pytest.mark.slow(after=3)
@pytest.mark.parametrize(
    ("kind", "faces", "sizes"),
    [
        pytest.param("1-D", "layers", (8,), marks=f32),
        pytest.param("Ez", "layers", (1,), marks=f32),
        pytest.param("Ez", "walls", (2,), marks=f32),
        pytest.param("Ez", "layers", (4, 2), marks=x64),
        pytest.param("Ez", "phases", (4, 2), marks=f32),
        pytest.param("Hz", "layers", (1, 8), marks=f32),
        pytest.param("Hz", "walls", (2, 2), marks=x64),
        pytest.param("Hz", "mirrors", (4, 1), marks=f32),
        pytest.param("3-D", "walls", (1, 4), marks=f32),
        pytest.param("3-D", "layers", (2, 2, 2), marks=(f32, slow)),
        pytest.param("3-D", "periods", (2, 2, 2), marks=(x64, slow)),
        pytest.param("3-D", "layers", (8,), marks=(x64, slow)),
    ],
)
def test_step_sends_what_the_formula_says(kind, faces, sizes):
    sim, layout = scene(kind, faces), cut(sizes)
    text = run(sim, layout).as_text()
    sent, cost = bytes_sent(text), em.step_cost(sim, layout)
    assert "while(" in text
    assert len(sent) == cost.messages == collectives(text)[0]["collective-permute"]
    assert sum(sent) == cost.halo_bytes
    loop = collectives(text)[0]
    assert loop["all-gather"] == loop["all-to-all"] == loop["all-reduce"] == 0


def test_formula_is_the_planes_at_the_faces():
    # Blocks of 4 x 5 x 7 cells, four planes for each of the three axes.
    cost = em.step_cost(scene("3-D", "walls"), (3, 2, 2))
    item = jnp.dtype(float).itemsize if jnp.result_type(float) == jnp.float64 else 4
    assert cost.messages == 12
    assert cost.halo_bytes == 4 * item * (5 * 7 + 4 * 7 + 4 * 5)


@f32
@slow
@pytest.mark.parametrize(
    ("adjoint", "times"),
    [(em.LinearTape(), 2), (em.Direct(), 2), (em.Checkpointed(every=2), 3)],
)
def test_gradient_sends_as_much_back(adjoint, times):
    # A sharded permittivity needs blocks of equal size.
    layout, sim = cut((4, 2)), scene("Ez", "periods")
    eps = jax.device_put(sim.medium.permittivity, layout.sharding(2))

    def loss(eps):
        new = eqx.tree_at(lambda s: s.medium.permittivity, sim, eps)
        return jnp.sum(em.simulate(new, layout=layout, adjoint=adjoint).fields["Ez"])

    text = jax.jit(jax.grad(loss)).lower(eps).compile().as_text()
    cost = em.step_cost(sim, layout)
    assert sum(bytes_sent(text)) == times * cost.halo_bytes
    assert len(bytes_sent(text)) == times * cost.messages
    for part in collectives(text):
        assert part["all-gather"] == part["all-to-all"] == 0


@f32
def test_energy_is_summed_as_often_as_the_model_says():
    flux = em.FluxMonitor("x", (12 * CELL, 9 * CELL), (0, 8 * CELL), FREQUENCIES)
    sim = scene("Ez", "walls", steps=400, monitors={"flux": flux})
    layout = cut((2, 2))
    text = run(sim, layout).as_text()
    cost = em.step_cost(sim, layout)
    assert collectives(text)[0]["all-reduce"] == 1
    assert cost.reductions == 1 / 100
    assert cost.reduced_bytes == 4 / 100


@f32
@pytest.mark.parametrize(("factored", "gathers"), [(False, 0), (None, 1)])
def test_fit_sums_once_in_each_iteration(factored, gathers):
    x = np.linspace(0, 4, 1000, dtype=np.float32)
    mesh = runtime.mesh(4)

    def residual(p, data):
        x, y = data
        return p[0] * jnp.exp(-p[1] * x) + p[2] - y

    problem = LeastSquares(residual, np.ones(3), (x, 3 * np.exp(-x)))
    data, count = spread(problem.data, mesh)
    problem = eqx.tree_at(lambda p: p.data, problem, data)
    lowered = _fit_in_memory.lower(
        problem, TrustRegion(), 256, None, factored, mesh=mesh, count=count
    )
    loop, _ = collectives(lowered.compile().compiled.as_text())
    # One exchange: of sums, or of these with triangular factors, which cannot be added
    # up, of as many columns as parameters.
    assert loop["all-gather"] == gathers
    assert loop["all-reduce"] == 1 - gathers
    assert loop["all-to-all"] == loop["collective-permute"] == 0


@pytest.mark.parametrize("faces", ["walls", "layers", "mirrors", "phases"])
@pytest.mark.parametrize(
    ("kind", "sizes"), [("1-D", (4,)), ("Hz", (4, 2)), ("3-D", (2, 2, 2))]
)
def test_held_bytes_are_those_of_the_state(kind, sizes, faces):
    sim, layout = scene(kind, faces), cut(sizes)
    state = jax.eval_shape(lambda s: rest(build_program(s, layout)), sim)
    leaves = jax.tree.leaves((state.fields, state.psi))
    size = sum(x.size * x.dtype.itemsize for x in leaves) // layout.mesh.size
    block = next(iter(state.fields.values())).size // layout.mesh.size
    item = jnp.dtype(sim.precision.storage).itemsize
    assert em.step_cost(sim, layout).held_bytes == size + block * item


def test_components_of_an_anisotropic_medium_are_held_apart():
    sim, shape = scene("3-D", "walls"), SHAPES["3-D"]
    each = {name: random_permittivity(shape) for name in ("Ex", "Ey", "Ez")}
    box = tuple((0, n) for n in shape)
    media = {
        1: em.Medium(random_permittivity(shape)),
        3: em.Medium(each),
        4: em.Medium(each, conductivity=random_permittivity(shape)),
        0: em.Medium(2.25),
        # A region makes an array of what is a number elsewhere.
        2: em.Medium(2.25, 1.0, regions=em.DesignRegion(box, each["Ex"], each["Ey"])),
    }
    item = jnp.dtype(sim.precision.storage).itemsize
    for arrays, medium in media.items():
        cost = em.step_cost(eqx.tree_at(lambda s: s.medium, sim, medium), (1, 1, 1))
        assert cost.held_bytes == math.prod(shape) * (6 + arrays) * item


def test_a_finer_cut_costs_more_in_total_but_less_on_each_device():
    sim = scene("3-D", "layers")
    for blocks in ((2, 1, 1), (2, 2, 1), (2, 2, 2)):
        one, many = em.step_cost(sim, (1, 1, 1)), em.step_cost(sim, blocks)
        assert many.devices == math.prod(blocks)
        for name in ("flops", "memory_bytes", "held_bytes"):
            share = getattr(many, name) / getattr(one, name)
            assert 1 / many.devices < share < 1


def test_time_is_the_sum_of_its_terms():
    cost = StepCost((4, 2), 100.0, 6e6, 8e6, 0.0, 3, 1000, 0.5, 4.0)
    near, far = Link(1e-6, 1e9, 4), Link(2e-6, 5e8)
    machine = Machine(1e9, 1e9, (near, far), 1e-3)
    compute, exchange = runtime.step_seconds(cost, machine)
    assert compute == pytest.approx(1e-3 + 8e-3)
    # Three messages, and half a sum of three turns there and back.
    assert exchange == pytest.approx(6 * 2e-6 + (1000 + 8) / 5e8)
    # Without messages no link is needed, and one device sends nothing.
    quiet = StepCost((8,), 100.0, 6e6, 8e6)
    assert runtime.step_seconds(quiet, Machine(1e9)) == (8e-3, 0.0)
    alone = StepCost((1,), 100.0, 6e6, 8e6, reductions=1.0)
    assert runtime.step_seconds(alone, Machine(1e9)) == (8e-3, 0.0)


def test_particles_scale_without_loss_and_fits_until_their_sums_show():
    def tracked(count):
        return StepCost((count,), 1e6 / count, 1e8 / count, 1e8 / count)

    def fitted(count):
        cost = tracked(count)
        return eqx.tree_at(
            lambda c: (c.reductions, c.reduced_bytes), cost, (1.0, 400.0)
        )

    machine = Machine(1e10, links=(Link(1e-5, 1e10),))
    assert [r.efficiency for r in predict_scaling(tracked, machine).rows] == (
        pytest.approx([1.0] * 11)
    )
    found = [row.efficiency for row in predict_scaling(fitted, machine).rows]
    assert found == sorted(found, reverse=True)
    # 10 ms of work over 1,024 devices against ten turns of 10 us there and back.
    work, sums = 1e-2 / 1024, 20 * 1e-5 + 800 / 1e10
    assert found[-1] == pytest.approx(work / (work + sums))


def test_strong_scaling_falls_and_weak_scaling_stays():
    sim = scene("3-D", "layers")
    machine = Machine(1e12, links=(Link(1e-5, 1e11, 8), Link(2e-5, 2e10)))
    strong = em.predict_scaling(sim, machine, shape=(512, 512, 512))
    found = [row.efficiency for row in strong.rows]
    assert found[0] == 1
    assert found == sorted(found, reverse=True)
    assert [row.cost.devices for row in strong.rows][-1] == 1024
    weak = em.predict_scaling(sim, machine, shape=(128,) * 3, weak=True)
    for row in weak.rows:
        assert row.cost.cells == 128**3
    # From 32 devices on each has neighbours on all sides, across the far link.
    last = [row.efficiency for row in weak.rows if row.cost.devices >= 32]
    assert max(last) == pytest.approx(min(last))
    assert weak.rows[-1].cost.blocks == (16, 8, 8)


def test_table_has_a_line_for_each_number_of_devices():
    machine = Machine(1e12, links=(Link(1e-5, 1e11),))
    sim = scene("Ez", "walls")
    lines = str(em.predict_scaling(sim, machine, (1, 4))).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:2] == ["devices", "mesh"]
    assert lines[1].split()[:2] == ["1", "1x1"]
    assert lines[1].endswith("100.0%")
    assert lines[2].split()[0] == "4"


def test_prediction_uses_the_fastest_mesh():
    # Latency alone: one cut axis has the fewest messages. Without it, the smallest
    # faces are best.
    sim = scene("3-D", "walls")
    for link, blocks in ((Link(1.0, 1e30), (64, 1, 1)), (Link(0.0, 1.0), (4, 4, 4))):
        machine = Machine(1e12, links=(link,))
        found = em.predict_scaling(sim, machine, (64,), shape=(64, 64, 64))
        assert found.rows[0].cost.blocks == blocks


@f32
def test_compiler_counts_no_less_than_the_model():
    sim = scene("Ez", "layers")
    cost = em.step_cost(sim, (1, 1))
    found = run(sim, None).cost_analysis()
    # It counts what is read for the neighbour's sake twice, and the ends of the run.
    assert 1 < found["bytes accessed"] / cost.memory_bytes < 4
    assert 0.8 < found["flops"] / cost.flops < 4


@f32
def test_benchmark_predicts_up_to_1024_devices():
    for _, table in scaling.predictions():
        assert [row.cost.devices for row in table.rows] == [2**n for n in range(11)]
        assert all(0 < row.efficiency <= 1 for row in table.rows)
    # Two virtual devices on the same cores have half the rate each.
    link = Link(1e-5, 1e9)
    assert scaling.shared(Machine(8e9), link, 4).memory_rate == 2e9
    measured, model = scaling.compared("a", 2.0, 1.0, rounds=3)
    assert (measured.value, model.value, model.ratio_to_best_peer) == (2.0, 1.0, 0.5)


def test_measured_link_is_a_positive_rate():
    link = runtime.measure_link(runtime.mesh(2), large=1 << 20, repeats=3)
    assert link.reach == 2
    assert link.latency >= 0
    assert 0 < link.rate < 1e12


def refused(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_mistaken_arguments_are_refused():
    sim = scene("Ez", "periods")
    machine = Machine(1e12, links=(Link(1e-5, 1e11, 8),))
    refused(lambda: Link(-1.0, 1e9), "`latency` must be at least 0 s, but is -1")
    refused(lambda: Link(1e-6, 0.0), "`rate` must be positive, but is 0")
    refused(
        lambda: Link(1e-6, 1e9, 1), "`reach` must be an integer of at least 2, but is 1"
    )
    refused(lambda: Machine(0.0), "`memory_rate` must be positive, but is 0")
    refused(lambda: Machine(1.0, 0.0), "`flop_rate` must be positive, but is 0")
    refused(lambda: Machine(1.0, overhead=-1.0), "`overhead` must be at least 0 s")
    links = Link(1e-5, 1e9), Link(1e-6, 1e9, 8)
    refused(lambda: Machine(1.0, links=links), "shortest reach first")
    refused(lambda: em.step_cost(sim, (2,)), "`blocks` must have 2 entries")
    refused(lambda: em.step_cost(sim, (2, 0)), "`blocks` must have 2 entries")
    refused(lambda: em.step_cost(sim, (32, 1)), "`blocks` along x must be at most 24")
    refused(lambda: em.step_cost(sim, (5, 1)), "periodic axis x must be a multiple of")
    refused(
        lambda: em.predict_scaling(sim, machine, (0,)),
        r"`devices\[0\]` must be an integer of at least 1, but is 0",
    )
    refused(
        lambda: em.predict_scaling(sim, machine, (7,)),
        "`devices` must cut the grid .* but has 7",
    )
    refused(
        lambda: em.predict_scaling(sim, machine, (16,)),
        "`links` of the machine must reach 16 devices, but reach 8",
    )
    refused(lambda: runtime.measure_link(runtime.mesh(1)), "must have at least 2 dev")
    refused(
        lambda: runtime.measure_link(runtime.mesh(2), large=8), "`large` must be above"
    )
