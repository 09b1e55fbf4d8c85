"""Dispersive media: what poles answer, and what derivatives cost no more for them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.em._poles import recursion
from physax.grid import Grid
from physax.runtime import Precision
from tests.em.scenes import dispersive
from tests.em.test_linear_tape import check, gradient


# The layers are thin, and the runs short, on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should have layers of at least 8 cells"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
    # They end long before a wave could grow.
    pytest.mark.filterwarnings("ignore:Dispersion 1 should end before the abs"),
]

POLES = [
    em.Lorentz(2.0, 4e14, 3e13),
    em.Lorentz(0.5, 4e14),
    em.Drude(2e15, 1e13),
    em.Drude(2e15),
    em.Debye(3.0, 1e-15),
    em.PoleResidue(-1e14 + 3e15j, 2e13 - 5e14j),
    em.PoleResidue(-2e15, 8e14),
    em.PoleResidue(0.0, 2e15),
]


@pytest.mark.slow(after=2)
@pytest.mark.x64
@pytest.mark.parametrize("pole", POLES, ids=lambda pole: type(pole).__name__)
def test_recursion_answers_with_the_permittivity_of_the_trapezoidal_rule(pole):
    # By the z transform of the recursion, at z = exp(-i w dt): the rule replaces w by
    # 2 tan(w dt / 2) / dt and changes nothing else.
    dt, frequency = 2e-17, 3.3e14
    one = recursion(pole, jnp.asarray(dt))
    z = np.exp(-2j * np.pi * frequency * dt)
    states = np.linalg.solve(
        z * np.eye(len(one.inflow)) - np.asarray(one.matrix),
        np.asarray(one.inflow) * (1 + z),
    )
    change = np.asarray(one.outflow) @ states + float(one.inertia) * (1 + z)
    warped = np.tan(np.pi * frequency * dt) / (np.pi * dt)
    want = complex(pole.susceptibility(warped))
    assert complex(one.amplitude) * change / (z - 1) == pytest.approx(want, rel=1e-9)


@pytest.mark.x64
@pytest.mark.parametrize("c", [0.0, 3e13 - 6e14j])
def test_a_pole_without_a_residue_has_a_derivative_by_it(c):
    # What a step adds at once is linear in the residue: its derivative is the same.
    def added(parts):
        one = recursion(em.PoleResidue(-1e14 + 2e15j, c + parts[0] + 1j * parts[1]), dt)
        return one.amplitude * (one.inertia + one.outflow @ one.inflow)

    dt, steps = jnp.asarray(2e-17), 1e12 * np.eye(2)
    found = jax.grad(added)(jnp.zeros(2))
    want = [(added(step) - added(-step)) / 2e12 for step in steps]
    np.testing.assert_allclose(found, want, rtol=1e-9)
    assert np.all(np.abs(found) > 1e-18)


@pytest.mark.x64
def test_pairs_of_poles_are_the_named_ones():
    # Partial fractions of a damped resonance and of a relaxation.
    f0, gamma, strength = 4e14, 3e13, 2.0
    damped = np.pi * gamma
    turn = np.sqrt((2 * np.pi * f0) ** 2 - damped**2)
    residue = 0.5j * strength * (2 * np.pi * f0) ** 2 / turn
    pair = em.PoleResidue(-damped - 1j * turn, residue)
    f = np.linspace(1e14, 9e14, 7)
    want = em.Lorentz(strength, f0, gamma).susceptibility(f)
    np.testing.assert_allclose(pair.susceptibility(f), want, rtol=1e-12)
    slow = em.PoleResidue(-1e15, 1.5e15)
    np.testing.assert_allclose(
        slow.susceptibility(f), em.Debye(3.0, 1e-15).susceptibility(f), rtol=1e-12
    )


@pytest.mark.x64
def test_free_charges_are_a_pole_at_zero_and_one_beside_it():
    plasma, damping = 2 * np.pi * 2e15, 2 * np.pi * 1e14
    size = plasma**2 / (2 * damping)
    pairs = (em.PoleResidue(0.0, size), em.PoleResidue(-damping, -size))
    material = em.Material(poles=pairs)
    want = em.complex_permittivity(em.Material(poles=em.Drude(2e15, 1e14)), 4e14)
    assert complex(em.complex_permittivity(material, 4e14)) == pytest.approx(
        complex(want), rel=1e-9
    )


@pytest.mark.x64
def test_what_is_traced_turns_to_nan_where_it_would_amplify():
    box, drude = ((2, 8), (2, 8)), em.Drude(2e15, 1e13)

    @jax.jit
    def last(fraction, growth):
        poles = (drude, em.PoleResidue(growth + 2e15j, 1e13j), em.Debye(0.1, 1e-15))
        # Constants stay known, and are checked, inside `jit`.
        fixed = em.PoleResidue(-1e13 + 1e15j, 1e13j)
        sim = em.Simulation(
            Grid.uniform((10, 10), 1e-8),
            em.Medium(dispersions=em.Dispersion(box, (*poles, fixed), fraction)),
            steps=4,
            polarisation="Ez",
            sources={"in": em.Dipole("Ez", (5e-8, 5e-8), em.GaussianPulse(4e14, 1e14))},
        )
        return jnp.sum(em.simulate(sim).fields["Ez"])

    assert np.isfinite(last(0.5, -1e13))
    assert np.isnan(last(-0.5, -1e13))
    assert np.isnan(last(0.5, 1e13))


@pytest.mark.x64
def test_permittivity_has_losses_as_positive_imaginary_parts():
    gold = em.Material(9.5, conductivity=1e3, poles=em.Drude(2.2e15, 1.7e13))
    eps = complex(em.complex_permittivity(gold, 4e14))
    x = 4e14
    by_hand = 9.5 - 2.2e15**2 / (x * (x + 1.7e13j))
    by_hand += 1e3j / (2 * np.pi * x * 8.8541878188e-12)
    assert eps == pytest.approx(by_hand, rel=1e-9)
    along = em.Material([2.0, 3.0, 4.0], poles=em.Debye(1.0, 1e-15))
    assert em.complex_permittivity(along, [1e14, 2e14]).shape == (2, 3)


@pytest.mark.slow(after=1)
@pytest.mark.x64
@pytest.mark.parametrize("scene", ["walls", "bloch", "3-D", "axial"])
def test_tape_agrees_with_the_loop_itself(scene):
    sim = dispersive(scene)
    want = gradient(sim, em.Direct())
    assert ("fraction 1Ey" if scene == "axial" else "fraction 1") in want
    assert "strength 0" in want
    check(gradient(sim, em.LinearTape()), want)
    if scene == "bloch":
        check(gradient(sim, em.LinearTape(every=7)), want)


@pytest.mark.x64
@pytest.mark.slow
def test_gradient_by_fractions_is_that_of_differences():
    sim = dispersive("walls")
    fraction = sim.medium.dispersions[0].fraction
    direction = jnp.asarray(np.random.default_rng(3).normal(size=fraction.shape))

    @jax.jit
    @jax.value_and_grad
    def value(fraction):
        where = lambda s: s.medium.dispersions[0].fraction  # noqa: E731
        result = em.simulate(eqx.tree_at(where, sim, fraction))
        return jnp.sum(jnp.abs(result.monitors["fields"].values["Ey"]) ** 2) * 1e20

    # The remainder falls by four when the step is halved.
    at, slope = value(fraction)
    steps = 1e-2 / 2.0 ** np.arange(4)
    rest = [
        abs(
            float(
                value(fraction + h * direction)[0] - at - h * jnp.vdot(slope, direction)
            )
        )
        for h in steps
    ]
    orders = np.log2(np.array(rest[:-1]) / rest[1:])
    np.testing.assert_allclose(orders, 2, atol=0.05)


@pytest.mark.x64
@pytest.mark.slow
def test_frequency_domain_serves_what_lies_beside_poles():
    sim = em.Simulation(
        Grid.uniform((40, 30), 2e-8),
        em.Medium(
            2.0,
            conductivity=2e4,
            regions=em.DesignRegion(((15, 20), (10, 20)), jnp.full((5, 10), 3.0)),
            dispersions=em.Dispersion(
                ((22, 30), (8, 22)), em.Lorentz(1.0, 4e14, 1e14), 0.7
            ),
        ),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=2500,
        sources={"in": em.Dipole("Ez", (2.4e-7, 3e-7), em.GaussianPulse(4e14, 1e14))},
        monitors={"out": em.FieldMonitor(("Ez",), (6.2e-7, 3e-7), (0, 0), 4e14)},
    )

    def slope(adjoint):
        def value(eps):
            where = lambda s: s.medium.regions[0].permittivity  # noqa: E731
            moved = eqx.tree_at(where, sim, eps)
            out = em.simulate(moved, adjoint=adjoint).monitors["out"]
            return jnp.sum(jnp.abs(out.values["Ez"]) ** 2) * 1e20

        return jax.jit(jax.grad(value))(sim.medium.regions[0].permittivity)

    want = slope(em.LinearTape())
    gap = jnp.linalg.norm(slope(em.FrequencyDomain()) - want)
    assert gap <= 1e-3 * jnp.linalg.norm(want)


@pytest.mark.slow
@pytest.mark.x64
def test_adjoints_refuse_what_they_cannot_do():
    sim = dispersive("walls")

    def slope(where, adjoint):
        def value(leaf):
            result = em.simulate(eqx.tree_at(where, sim, leaf), adjoint=adjoint)
            return jnp.sum(jnp.abs(result.monitors["fields"].values["Ey"]) ** 2)

        return jax.grad(value)(where(sim))

    with pytest.raises(ArgumentError, match=r"resonances, dampings.*Checkpointed"):
        slope(lambda s: s.medium.dispersions[0].poles[0].frequency, em.LinearTape())
    with pytest.raises(ArgumentError, match=r"cannot undo the poles.*LinearTape"):
        slope(lambda s: s.medium.permittivity, em.Reversible())
    with pytest.raises(ArgumentError, match="with respect to a dispersion.*LinearTape"):
        slope(lambda s: s.medium.dispersions[0].fraction, em.FrequencyDomain())


@pytest.mark.x64
@pytest.mark.slow
def test_resonance_is_differentiated_by_replay():
    sim = dispersive("walls")

    @jax.jit
    @jax.value_and_grad
    def value(frequency):
        where = lambda s: s.medium.dispersions[0].poles[0].frequency  # noqa: E731
        moved = eqx.tree_at(where, sim, frequency)
        result = em.simulate(moved, adjoint=em.Checkpointed())
        return jnp.sum(jnp.abs(result.monitors["fields"].values["Ey"]) ** 2) * 1e20

    f, h = 3e14, 1e9
    difference = (value(f + h)[0] - value(f - h)[0]) / (2 * h)
    assert float(value(f)[1]) == pytest.approx(float(difference), rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*at the surface of a dispersive metal")
def test_structures_with_poles_fill_the_box_around_them():
    grid = Grid.uniform((30, 20), 1e-8)
    metal = em.Material(poles=em.Drude(2e15, 1e13))
    ball = em.Structure(em.Circle((1.5e-7, 1e-7), 3e-8), metal)
    cut = em.Structure(em.Box((1.5e-7, 1e-7, 0), (2e-8, 1, 1)), em.Material(2.0))
    medium = em.rasterise([ball, cut], grid, components=("Hz", "Ex", "Ey"))
    (one,) = medium.dispersions
    assert one.poles == metal.poles
    (left, right), (low, high) = one.box
    assert 11 <= left < right <= 19
    assert 6 <= low < high <= 14
    area = float(jnp.sum(one.fraction["Ex"])) * 1e-16
    # What the box of glass has taken is no metal any more.
    slab = 2 * (1e-8 * np.sqrt(9e-16 - 1e-16) + 9e-16 * np.arcsin(1 / 3))
    assert area == pytest.approx(np.pi * 9e-16 - slab, rel=1e-4)
    nothing = em.rasterise([cut], grid, components=("Hz", "Ex", "Ey"))
    assert nothing.dispersions == ()
    whole = em.rasterise([], grid, background=metal, components=("Hz", "Ex", "Ey"))
    assert whole.dispersions[0].box == ((0, 30), (0, 20))


AVERAGED = "[0-9]+ samples at the surface of a disp.*by volume.*averaging='staircase'"


@pytest.mark.parametrize("averaging", ["volume", "polarised"])
def test_averages_across_the_surface_of_a_metal_are_warned_of(averaging):
    metal = em.Material(poles=em.Drude(2e15, 1e13))
    ball = em.Structure(em.Circle((1.5e-7, 1e-7), 3e-8), metal)
    grid, names = Grid.uniform((30, 20), 1e-8), ("Hz", "Ex", "Ey")
    with pytest.warns(PhysaxWarning, match=AVERAGED):
        em.rasterise([ball], grid, components=names, averaging=averaging)
    for thickness in (2.5e-8, 5e-9):
        film = em.Structure(em.Box((1.5e-7, 1e-7), (thickness, 1)), metal)
        with pytest.warns(PhysaxWarning, match=AVERAGED):
            em.rasterise([film], grid, components=names, averaging=averaging)


def test_what_is_not_averaged_across_a_metal_is_not_warned_of(recwarn):
    metal = em.Material(poles=em.Drude(2e15, 1e13))
    glass = em.Material(2.0, poles=em.Lorentz(0.3, 5e14, 1e13))
    grid, names = Grid.uniform((30, 20), 1e-8), ("Hz", "Ex", "Ey")
    ball = em.Circle((1.5e-7, 1e-7), 3e-8)
    film = em.Structure(em.Box((1.5e-7, 1e-7), (4e-8, 1)), metal)
    em.rasterise([em.Structure(ball, metal)], grid, None, names, "staircase")
    em.rasterise([em.Structure(ball, glass)], grid, None, names)
    narrow = em.Structure(em.Box((1.1e-7, 1e-7), (2e-8, 1e-7)), metal)
    em.rasterise([narrow], grid, None, names, "staircase")
    # Faces on nodes: what they cut are fields along them.
    em.rasterise([film], grid, None, names)
    block = em.Structure(em.Box((1.5e-7, 1e-7), (4e-8, 8e-8)), metal)
    em.rasterise([block], grid, None, names)
    # A seam inside of metal, and cells that two metals share.
    ends = (1e-7, 1.43e-7, 2e-7)
    seam = [
        em.Structure(em.Box.from_corners((low, -1), (high, 1)), em.library(metal))
        for low, high, metal in zip(ends, ends[1:], ("Au", "Cr"), strict=False)
    ]
    em.rasterise(seam, grid, None, names)
    em.rasterise([em.Structure(ball, metal)], grid, None, ("Ez", "Hx", "Hy"))
    assert not recwarn.list


def test_mistakes_are_told():
    box = ((2, 6), (2, 6))
    drude = em.Drude(2e15, 1e13)
    with pytest.raises(ArgumentError, match=r"`pole` must have a real part of at most"):
        em.PoleResidue(1e13 + 1e15j, 1e14)
    with pytest.raises(ArgumentError, match=r"`poles` must not amplify.*400 THz"):
        em.Material(poles=em.Lorentz(-1.0, 4e14, 1e13))
    # Without damping the loss is zero beside the resonance, and infinite on it.
    with pytest.raises(ArgumentError, match=r"`poles` must not amplify.*500 THz"):
        em.Material(poles=em.Lorentz(-0.5, 5e14))
    with pytest.raises(ArgumentError, match=r"`damping` must be finite and at least 0"):
        em.Lorentz(1.0, 4e14, -1e13)
    with pytest.raises(ArgumentError, match=r"`frequency` must be finite and above 0"):
        em.Drude(0.0)
    with pytest.raises(ArgumentError, match=r"`strength` must be one real number"):
        em.Lorentz([1.0, 2.0], 4e14)
    with pytest.raises(ArgumentError, match=r"`pole` must be one number"):
        em.PoleResidue([1j, 2j], 1e14)
    with pytest.raises(ArgumentError, match=r"`fraction` must be finite and at least"):
        em.Dispersion(box, drude, -0.1)
    with pytest.raises(ArgumentError, match=r"`fraction` must be a number or have"):
        em.Dispersion(box, drude, jnp.ones((3, 3)))
    with pytest.raises(ArgumentError, match=r"`fraction` must be keyed by comp.*'ez'"):
        em.Dispersion(box, drude, {"ez": 1.0})
    with pytest.raises(ArgumentError, match=r"`fraction` must be real"):
        em.Dispersion(box, drude, 1j)
    with pytest.raises(ArgumentError, match=r"`poles` of a dispersion must not be emp"):
        em.Dispersion(box, ())
    with pytest.raises(ArgumentError, match=r"`poles` must be a pole or a tuple"):
        em.Dispersion(box, "gold")
    with pytest.raises(ArgumentError, match=r"`dispersions` must be a `Dispersion`"):
        em.Medium(dispersions=drude)


@pytest.mark.slow
def test_dispersions_that_do_not_fit_a_simulation_are_refused():
    drude, whole = em.Drude(2e15, 1e13), ((0, 20), (0, 20))
    port = em.Port((1e-7, 1e-7), 1.6e-7, "+x")
    source = em.ModeSource(port, em.GaussianPulse(4e14, 1e14))

    def build(one, polarisation="Ez", **options):
        return em.Simulation(
            Grid.uniform((20, 20), 1e-8),
            em.Medium(dispersions=one),
            steps=1,
            polarisation=polarisation,
            **options,
        )

    with pytest.raises(ArgumentError, match=r"`box` of dispersion 0 must lie in the"):
        build(em.Dispersion(((0, 21), (0, 20)), drude))
    with pytest.raises(ArgumentError, match=r"of dispersion 0 must have an entry.*Ez"):
        build(em.Dispersion(whole, drude, {"Ex": 1.0, "Ey": 1.0}))
    sim = build(em.Dispersion(whole, drude), sources={"in": source})
    with pytest.raises(ArgumentError, match="permittivity must be positive in source"):
        em.simulate(sim)
    energy = {"energy": em.EnergyMonitor(every=1)}
    with pytest.raises(ArgumentError, match="'energy' must not record energy"):
        build(em.Dispersion(whole, drude), monitors=energy)
    layers, metal = (
        em.Boundaries.all(em.CPML(8)),
        em.Dispersion(((5, 12), (9, 12)), drude),
    )
    with pytest.warns(PhysaxWarning, match="Dispersion 0 should end before the abs"):
        build(metal, "Hz", boundaries=layers)
    # A field along all surfaces drives none of their waves.
    build(metal, "Ez", boundaries=layers)
    # The box of a traced fraction is the whole grid, wherever it has some.
    jax.eval_shape(
        lambda f: build(em.Dispersion(whole, drude, f), "Hz", boundaries=layers).dt, 0.1
    )
    narrow = Precision("bfloat16", "bfloat16", "float32")
    with pytest.raises(ArgumentError, match="`storage` of the precision must be"):
        build(em.Dispersion(whole, drude), precision=narrow)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:`grid` should have")
def test_undamped_poles_stay_bounded(seed):
    # A closed box without any loss, stepped at 0.99 of the limit of the high-frequency
    # permittivity: the trapezoidal rule neither adds energy nor takes it.
    random = np.random.default_rng(seed)
    poles = (
        em.Lorentz(random.uniform(0.1, 5), random.uniform(1e15, 3e15)),
        em.Drude(random.uniform(1e14, 4e15)),
    )
    sim = em.Simulation(
        Grid.uniform((24, 24), 2e-8),
        em.Medium(
            jnp.asarray(random.uniform(1, 3, (24, 24)), float),
            dispersions=em.Dispersion(((4, 20), (6, 24)), poles, 0.8),
        ),
        polarisation="Hz",
        steps=4000,
        sources={"in": em.Dipole("Hz", (1e-7, 1e-7), em.GaussianPulse(6e14, 3e14))},
        monitors={"at": em.TimeMonitor(("Hz",), (3e-7, 3e-7), (0, 0), every=20)},
    )
    values = np.abs(np.asarray(em.simulate(sim).monitors["at"].values["Hz"])).ravel()
    first, last = values[20:100].max(), values[-80:].max()
    assert last < 2 * first
