"""Nonlinear media: harmonics, the Kerr index, losses, derivatives, and refusals."""

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
from tests.validation.stepping import advance, started


pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]

F0, INDEX, PERIOD = 2e14, 1.5, 200
WAVE = SPEED_OF_LIGHT / F0
"""In vacuum, at the first harmonic."""


def behind(moment=1.0, **powers):
    """Returns E in the last four periods of a wave behind a slab of the same index."""
    cells, layer = 80, 20
    spacing = WAVE / INDEX / cells
    grid = Grid.uniform((3 * cells + 2 * layer,), spacing)
    slab = em.Structure(
        em.Box.from_corners(
            ((layer + 0.5 * cells) * spacing,), ((layer + 2.5 * cells) * spacing,)
        ),
        em.Material(INDEX**2, **powers),
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
    return np.ravel(em.simulate(sim).monitors["out"].values["Ez"])[-4 * PERIOD :]


def through(moment=1.0, **powers):
    """Returns the complex amplitudes of `behind` at the first three harmonics."""
    found = behind(moment, **powers)
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


@pytest.mark.x64
def test_two_photons_are_absorbed_as_by_theory():
    plain, length = behind(), 2 * WAVE / INDEX
    turn = np.exp(2j * np.pi * np.arange(plain.size) / PERIOD)
    moment = 1e9 / abs(2 * np.mean(plain * turn))
    plain = plain * moment
    intensity = INDEX * EPSILON_0 * SPEED_OF_LIGHT / 2 * 1e18
    for strength in (0.01, 0.3):
        beta = strength / intensity / length
        sigma3 = float(em.two_photon_conductivity(beta, INDEX))
        found = behind(moment, sigma3=sigma3)
        # Without dispersion each value decays for itself: dE/dz = -sigma3 eta E^3 / 2.
        eta = 1 / (EPSILON_0 * SPEED_OF_LIGHT * INDEX)
        want = plain / np.sqrt(1 + sigma3 * eta * plain**2 * length)
        change = np.max(np.abs(want - plain))
        np.testing.assert_allclose(found, want, rtol=0, atol=0.015 * change)
        lost = 1 - abs(np.mean(found * turn) / np.mean(plain * turn)) ** 2
        # dI/dz = -beta I^2 leaves out the third harmonic.
        expected = strength / (1 + strength)
        assert lost == pytest.approx(expected, rel=0.01 + 0.1 * strength)


@pytest.mark.parametrize(
    "convert", [em.kerr_susceptibility, em.two_photon_conductivity]
)
def test_an_index_must_be_positive(convert):
    with pytest.raises(ArgumentError, match="`index` must be positive, but is 0"):
        convert(1e-19, 0.0)


@pytest.mark.x64
@pytest.mark.parametrize(
    ("strength", "error"), [(0.01, 1e-10), (0.1, 2e-6), (0.3, 3e-4)]
)
def test_circular_waves_of_any_strength_see_one_index(strength, error):
    cells, steps, index2, chi3 = 40, 200, 2.0, 1e-18
    box = ((0, 2), (0, 2), (0, cells))
    sim = em.Simulation(
        Grid.uniform((2, 2, cells), CELL),
        em.Medium(index2, nonlinearities=em.Nonlinearity(box, chi3=chi3)),
        em.Boundaries.all(em.Periodic()),
        dt=0.5 * CELL / SPEED_OF_LIGHT,
        steps=steps,
    )
    # |E| is the same everywhere and always: a wave of the grid with another index.
    level, index = np.sqrt([strength * index2 / chi3, index2 * (1 + strength)])
    ratio, k = SPEED_OF_LIGHT * float(sim.dt) / CELL, 2 * np.pi / cells
    turn = 2 * np.arcsin(ratio * np.sin(k / 2) / index)
    e = level * np.exp(1j * k * np.arange(cells))
    # Half a cell and half a step away.
    h = 1j * index * e * np.exp(1j * (k + turn) / 2)
    fields = {"Ex": e.real, "Ey": e.imag, "Hx": h.real, "Hy": h.imag}
    whole = {
        n: jnp.broadcast_to(jnp.asarray(f), (2, 2, cells)) for n, f in fields.items()
    }
    last = advance(sim, whole, steps)
    found = np.asarray(last["Ex"] + 1j * last["Ey"])
    want = np.broadcast_to(e * np.exp(-1j * turn * steps), found.shape)
    np.testing.assert_allclose(found, want, rtol=0, atol=error * level)


@pytest.mark.x64
def test_a_uniform_field_loses_what_its_equation_says_to_second_order():
    start, sigma3, time = (0.6e9, -0.8e9), 1e-14, 4e-15
    # |E|^2 = 1 / (1 + 2 sigma3 |E0|^2 t / epsilon) |E0|^2, along the field.
    strength = 2 * sigma3 * 1e18 * time / (2.0 * EPSILON_0)
    want = np.array(start) / np.sqrt(1 + strength)
    assert strength > 3
    errors = []
    for steps in (512, 1024):
        sim = em.Simulation(
            Grid.uniform((4, 4), CELL),
            em.Medium(
                2.0, nonlinearities=em.Nonlinearity(((0, 4),) * 2, sigma3=sigma3)
            ),
            em.Boundaries.all(em.Periodic()),
            dt=time / steps,
            steps=steps,
            polarisation="Hz",
        )
        fields = dict(zip(("Ex", "Ey"), start, strict=True))
        fields = {n: jnp.full((4, 4), v) for n, v in fields.items()}
        last = advance(sim, fields, steps)
        found = np.array([np.mean(last[n]) for n in fields])
        errors.append(np.max(np.abs(found / want - 1)))
    assert errors[1] < 1e-6
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


@pytest.mark.x64
def test_no_step_of_two_photon_absorption_adds_energy():
    shape, random = (12, 10), np.random.default_rng(3)
    sigma3 = random.uniform(0, 1e-14, shape)
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(
            2.0, nonlinearities=em.Nonlinearity(((0, 12), (0, 10)), 0, 0, sigma3)
        ),
        em.Boundaries.all(em.Periodic()),
        steps=1,
        polarisation="Hz",
    )
    fields = {n: 1e9 * random.normal(size=shape) for n in ("Ex", "Ey")}
    state = started(sim, fields)
    energies = []
    for n in range(60):
        e, h = (
            np.array([state.fields[k] for k in names])
            for names in (("Ex", "Ey"), ("Hz",))
        )
        state = em.advance(sim, state, jnp.asarray(n), jnp.asarray(n + 1))
        # That of magnetic fields is the product of those half a step before and after.
        energies.append(np.sum(2 * e**2) + np.sum(h * np.asarray(state.fields["Hz"])))
    assert np.all(np.diff(energies) < 0)
    assert energies[-1] < 0.8 * energies[0]


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
            sigma3={n: 3e4 * chi3 * scale for n in names},
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
    with pytest.raises(ArgumentError, match="must not record energy .* nonlinear"):
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
        build(em.Medium(nonlinearities=one), precision=Precision("float16", "float16"))
    with pytest.raises(ArgumentError, match="must be real"):
        em.Nonlinearity(one.box, chi3=1j)
    with pytest.raises(ArgumentError, match="must be finite"):
        em.Nonlinearity(one.box, chi2=np.inf)
    with pytest.raises(ArgumentError, match="or have the shape"):
        em.Nonlinearity(one.box, chi2=np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="`sigma3`.* at least 0, .*, but is -1e-20"):
        em.Nonlinearity(one.box, sigma3=-1e-20)
    with pytest.raises(ArgumentError, match="`sigma3` .* shape"):
        em.Nonlinearity(one.box, sigma3=np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="`sigma3` must be finite and at least 0"):
        em.Material(2.0, sigma3=-1e-20)
    traced = jax.jit(lambda x: em.Nonlinearity(one.box, sigma3=x).at("sigma3", "Ez"))
    assert np.all(np.isnan(traced(-1e-20)))
    with pytest.raises(ArgumentError, match="`chi3` must be one number"):
        em.Material(2.0, chi3=[1.0, 2.0, 3.0])


def test_shapes_put_their_answer_where_they_are():
    grid = Grid.uniform((8, 6), CELL)
    rod = em.Structure(
        em.Box(at(4, 3), (2 * CELL, 2.5 * CELL)),
        em.Material(2.0, chi3=4e-20, sigma3=3e-14),
    )
    medium = em.rasterise([rod], grid, components=("Ez", "Hx", "Hy"))
    (one,) = medium.nonlinearities
    assert one.box == ((3, 6), (2, 5))
    assert float(np.sum(one.at("chi3", "Ez"))) == pytest.approx(4e-20 * 5, rel=1e-5)
    assert float(np.sum(one.at("sigma3", "Ez"))) == pytest.approx(3e-14 * 5, rel=1e-5)
    assert em.rasterise([], grid, components=("Ez", "Hx", "Hy")).nonlinearities == ()


@pytest.mark.x64
def test_spectra_of_harmonics_are_sums_over_all_steps():
    spacing = WAVE / INDEX / 40
    place, frequencies = (45 * spacing,), F0 * np.array([1.0, 2.0])
    wave = em.Dipole("Ez", (15 * spacing,), em.GaussianPulse(F0, 0.16 * F0), 1e6)
    sim = em.Simulation(
        Grid.uniform((60,), spacing),
        em.Medium(
            INDEX**2,
            nonlinearities=em.Nonlinearity(((25, 40),), chi2=1e-10, chi3=1e-18),
        ),
        em.Boundaries.all(em.CPML(10)),
        steps=1600,
        sources={"wave": wave},
        monitors={
            "all": em.TimeMonitor(("Ez",), place, (0.0,), every=1),
            "found": em.FieldMonitor(("Ez",), place, (0.0,), frequencies),
        },
    )
    seen = em.simulate(sim).monitors
    turns = np.exp(2j * np.pi * frequencies[:, None] * seen["all"].times["Ez"])
    want = turns @ np.ravel(seen["all"].values["Ez"]) * float(sim.dt)
    # The harmonics matter.
    assert abs(want[1]) > 1e-3 * abs(want[0])
    found = np.ravel(seen["found"].values["Ez"])
    # Roundings of 1600 terms.
    np.testing.assert_allclose(found, want, rtol=1e-11)
