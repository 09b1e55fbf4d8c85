"""Nonlinear media: harmonics, the Kerr index, derivatives, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.runtime import Precision
from physax.units import EPSILON_0, SPEED_OF_LIGHT
from tests.em.scenes import CELL, FREQUENCIES, PULSE, at


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]

F0, INDEX, PERIOD = 2e14, 1.5, 200
WAVE = SPEED_OF_LIGHT / F0
"""In vacuum, at the first harmonic."""


def through(chi2=0.0, chi3=0.0, moment=1.0):
    """A steady wave through a slab as dense as what lies around it.

    Returns the complex amplitudes of E behind it at the first three harmonics.
    """
    cells, layer = 80, 20
    spacing = WAVE / INDEX / cells
    grid = Grid.uniform((3 * cells + 2 * layer,), spacing)
    slab = em.Structure(
        em.Box.from_corners(
            ((layer + 0.5 * cells) * spacing,), ((layer + 2.5 * cells) * spacing,)
        ),
        em.Material(INDEX**2, chi2=chi2, chi3=chi3),
    )
    sim = em.Simulation(
        grid,
        em.rasterise([slab], grid, em.Material(INDEX**2)),
        em.Boundaries.all(em.CPML(layer)),
        # So many steps to a period; the wave of vacuum would allow 60 / 1.5.
        dt=1 / F0 / PERIOD,
        steps=20 * PERIOD,
        sources={
            "wave": em.Dipole(
                "Ez",
                ((layer + 0.25 * cells) * spacing,),
                em.ContinuousWave(F0, 4.0),
                moment,
            )
        },
        monitors={
            "out": em.TimeMonitor(
                ("Ez",), ((layer + 2.75 * cells) * spacing,), (0.0,), every=1
            )
        },
    )
    found = np.ravel(em.simulate(sim).monitors["out"].values["Ez"])[-4 * PERIOD :]
    turns = np.arange(4 * PERIOD) / PERIOD
    orders = np.arange(1, 4)[:, None]
    return 2 * np.mean(found * np.exp(2j * np.pi * orders * turns), axis=1)


@pytest.mark.x64
def test_third_harmonic_and_kerr_index_are_those_of_weak_waves():
    (wave, *_), chi3, length = through(), 2e-22, 2 * WAVE / INDEX
    wave *= (moment := 1e9 / abs(wave))
    bent, _, third = through(chi3=chi3, moment=moment)
    # The wave is not used up: both grow in proportion to the length.
    k0 = 2 * np.pi / WAVE
    want = 3 * k0 * length / (2 * INDEX) * chi3 * abs(wave) ** 3 / 4
    assert abs(third) == pytest.approx(want, rel=0.01)
    n2 = 3 * chi3 / (4 * INDEX**2 * EPSILON_0 * SPEED_OF_LIGHT)
    assert float(em.kerr_susceptibility(n2, INDEX)) == pytest.approx(chi3, rel=1e-12)
    intensity = INDEX * EPSILON_0 * SPEED_OF_LIGHT / 2 * abs(wave) ** 2
    shift = np.angle(bent / wave)
    assert shift == pytest.approx(k0 * n2 * intensity * length, rel=0.01)


@pytest.mark.x64
def test_second_harmonic_is_that_of_weak_waves():
    (wave, *_), chi2, length = through(), 1e-13, 2 * WAVE / INDEX
    moment = 1e9 / abs(wave)
    _, second, _ = through(chi2=chi2, moment=moment)
    want = 2 * np.pi / WAVE * length / INDEX * chi2 * 1e18 / 2
    assert abs(second) == pytest.approx(want, rel=0.01)


def block(polarisation="Hz", adjoint=None, *, chi3=2.0, layout=None, **options):
    """A strong answer in a part of a small grid; returns a function of chi3."""
    box = ((3, 11), (2, 9))
    names = {"Hz": ("Ex", "Ey"), "Ez": ("Ez",)}[polarisation]
    shape = tuple(high - low for low, high in box)
    random = np.random.default_rng(1)
    scale = jnp.asarray(random.uniform(0.5, 1.0, shape), float)

    def value(chi3):
        one = em.Nonlinearity(
            box,
            chi2={n: 0.1 * chi3 * scale for n in names},
            chi3={n: chi3 * scale for n in names},
        )
        sim = em.Simulation(
            Grid.uniform((16, 12), CELL),
            em.Medium(2.0, conductivity=2e3, nonlinearities=one),
            em.Boundaries(x=em.Periodic(), y=em.CPML(4)),
            steps=40,
            polarisation=polarisation,
            sources={"in": em.Dipole(polarisation, at(5.5, 5.5), PULSE, 1e-7)},
            monitors={
                "out": em.FieldMonitor(names[-1:], at(8, 6), at(4, 4), FREQUENCIES)
            },
            **options,
        )
        found = em.simulate(sim, adjoint=adjoint, layout=layout)
        return jnp.sum(jnp.abs(found.monitors["out"].values[names[-1]]) ** 2) * 1e30

    return value, jnp.asarray(chi3)


@pytest.mark.x64
@pytest.mark.slow
def test_checkpointed_gradient_is_that_of_the_loop_and_of_differences():
    value, at = block(adjoint=em.Direct())
    want = jax.jit(jax.grad(value))(at)
    run = block()[0]
    found, slope = jax.jit(jax.value_and_grad(run))(at)
    assert float(slope) == pytest.approx(float(want), rel=1e-12)
    h = 1e-3 * float(at)
    near = float(run(at + h) - run(at - h))
    far = float(run(at + 2 * h) - run(at - 2 * h))
    assert float(slope) == pytest.approx((8 * near - far) / (12 * h), rel=1e-6)
    # The answer of the medium matters.
    assert abs(float(slope * at)) > 1e-3 * float(found)


@pytest.mark.parametrize(
    "adjoint", [em.LinearTape(), em.Reversible(), em.FrequencyDomain()], ids=repr
)
def test_adjoints_of_linear_runs_refuse_nonlinear_media(adjoint):
    value, at = block(adjoint=adjoint)
    with pytest.raises(ArgumentError, match=r"is nonlinear\. Take `adjoint=Checkp"):
        value(at)


def test_answers_beyond_what_a_step_can_solve_end_as_nan():
    value, _ = block(polarisation="Ez")
    with pytest.warns(PhysaxWarning, match="The fields are not finite"):
        assert np.isnan(float(value(jnp.asarray(1e12))))


def test_what_does_not_go_with_nonlinear_media_is_refused():
    one = em.Nonlinearity(((0, 4), (0, 4)), chi3=1e-20)
    grid = Grid.uniform((8, 8), CELL)

    def build(medium, **options):
        return em.Simulation(grid, medium, steps=2, polarisation="Ez", **options)

    with pytest.raises(ArgumentError, match="must not be `Bloch` around"):
        build(
            em.Medium(nonlinearities=one),
            boundaries=em.Boundaries(x=em.Bloch(1e6), y=em.PEC()),
        )
    with pytest.raises(ArgumentError, match="must not record energy in a nonlinear"):
        build(em.Medium(nonlinearities=one), monitors={"all": em.EnergyMonitor()})
    with pytest.raises(ArgumentError, match="must not overlap that of another"):
        build(em.Medium(nonlinearities=(one, one)))
    with pytest.raises(ArgumentError, match="must lie in the grid"):
        build(em.Medium(nonlinearities=em.Nonlinearity(((0, 9), (0, 4)), 1e-12)))
    partial = em.Nonlinearity(one.box, chi3={"Ex": np.zeros((4, 4))})
    with pytest.raises(ArgumentError, match="must have an entry for 'Ez'"):
        build(em.Medium(nonlinearities=partial))
    ring = em.Cylindrical.components
    medium = em.rasterise([], grid, em.Material(2.0, chi3=1e-20), ring)
    with pytest.raises(ArgumentError, match="must be linear in cylindrical"):
        em.Simulation(grid, medium, steps=2, cylindrical=em.Cylindrical(0))
    with pytest.raises(ArgumentError, match="`chi3` must be keyed .* \\['Ew'\\]"):
        em.Nonlinearity(one.box, chi3={"Ez": 1e-20, "Ew": 1e-20})
    with pytest.raises(ArgumentError, match="`storage` of .* must be float32 or"):
        build(em.Medium(nonlinearities=one), precision=Precision("float16"))
    with pytest.raises(ArgumentError, match="must be real"):
        em.Nonlinearity(one.box, chi3=1j)
    with pytest.raises(ArgumentError, match="must be finite"):
        em.Nonlinearity(one.box, chi2=np.inf)
    with pytest.raises(ArgumentError, match="or have the shape"):
        em.Nonlinearity(one.box, chi2=np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="`chi3` must be one number"):
        em.Material(2.0, chi3=[1.0, 2.0, 3.0])


def test_shapes_put_their_answer_where_they_are():
    grid = Grid.uniform((8, 6), CELL)
    rod = em.Structure(
        em.Box(at(4, 3), (2 * CELL, 2.5 * CELL)), em.Material(2.0, chi3=4e-20)
    )
    medium = em.rasterise([rod], grid, components=("Ez", "Hx", "Hy"))
    (one,) = medium.nonlinearities
    assert one.box == ((3, 6), (2, 5))
    assert float(np.sum(one.at("chi3", "Ez"))) == pytest.approx(4e-20 * 5, rel=1e-5)
    assert em.rasterise([], grid, components=("Ez", "Hx", "Hy")).nonlinearities == ()
