"""Scattering parameters of a straight waveguide, and of one with a scatterer."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from physax.runtime import no_recompile
from physax.units import EPSILON_0, SPEED_OF_LIGHT


CELL = 40e-9
SHAPE = (84, 60)
WAVE = 1.55e-6
# A core of 10 cells, dense enough to hold the mode well inside the ports.
GUIDE = np.ones(SHAPE)
GUIDE[:, 25:35] = 6.0


def at(*cells):
    return tuple(CELL * cell for cell in cells)


def ports(**options):
    size, offset = 36 * CELL, 4 * CELL
    return {
        "left": em.Port(at(20, 30), size, "+x", offset=offset, **options),
        "right": em.Port(at(64, 30), size, "-x", offset=offset, **options),
    }


def guide(eps=GUIDE, steps=2400, **options):
    return em.Simulation(
        Grid.uniform(SHAPE, CELL),
        em.Medium(jnp.asarray(eps, float)),
        em.Boundaries.all(em.CPML(12)),
        polarisation=options.pop("polarisation", "Ez"),
        steps=steps,
        **options,
    )


def scatterer():
    """An asymmetric block in the core."""
    eps = GUIDE.copy()
    eps[36:44, 28:38] = 2.0
    eps[44:50, 22:28] = 8.0
    return eps


@pytest.fixture(scope="module")
def straight():
    return em.s_parameters(guide(), ports(), WAVE)


@pytest.fixture(scope="module")
def scattered():
    return em.s_parameters(guide(scatterer()), ports(), WAVE)


def test_straight_waveguide_transmits_everything_and_reflects_nothing(straight):
    # What is reflected comes from the absorbing layers: less than 1e-3 in amplitude.
    for name, other in (("left", "right"), ("right", "left")):
        assert abs(abs(straight(other, name)[0]) - 1) < 1e-4
        assert abs(straight(name, name)[0]) ** 2 < 1e-6


@pytest.mark.slow
def test_phase_has_the_time_sign_and_the_index_of_the_mode(straight):
    # exp(i beta x): both planes lie half a cell before their nodes, 24 and 60.
    index = straight.results["left"].monitors["port left"].effective_index[0]
    dt = guide().dt
    seen = np.sin(np.pi * SPEED_OF_LIGHT / WAVE * dt) / (np.pi * dt)
    beta = 2 * np.arcsin(index * np.pi * seen / SPEED_OF_LIGHT * CELL) / CELL
    turn = straight("right", "left")[0] / np.exp(1j * beta * 36 * CELL)
    # The line ends 13 cells beside the core, where the mode has fallen to exp(-4): the
    # index of the mode on it is wrong by up to the square of that, times 12 radians.
    assert abs(np.angle(turn)) < 12 * np.exp(-8)


@pytest.mark.slow
def test_parameters_are_reciprocal_and_lose_power_only(scattered):
    there, back = scattered("right", "left")[0], scattered("left", "right")[0]
    assert 0.1 < abs(there) < 0.99
    # A fifth of the power is radiated, and some of that crosses the ports.
    assert abs(there - back) < 1e-3
    assert np.all(np.sum(scattered.power, axis=1) <= 1 + 1e-5)
    # The block is not its own mirror image.
    assert abs(scattered("left", "left")[0] - scattered("right", "right")[0]) > 0.01


@pytest.mark.slow
def test_ports_keep_their_order_and_names(scattered):
    turned = dict(reversed(ports().items()))
    # Not even where the other direction goes in: one program and a stack of results.
    with no_recompile(allow=2):
        one = em.s_parameters(guide(scatterer()), turned, WAVE, inputs=["left"])
    assert one.ports == ("right", "left")
    assert one.inputs == ("left",)
    assert one.values.shape == (1, 2, 1)
    assert scattered.values.shape == (1, 2, 2)
    both = np.array([scattered("right", "left"), scattered("left", "left")])
    # The order of the monitors may change the rounding of the run.
    np.testing.assert_allclose(one.values[0, :, 0], both[:, 0], atol=1e-5)
    assert set(one.results) == {"left"}


@pytest.mark.slow
def test_uncompensated_ports_show_the_error_of_averaging(straight):
    # (beta dx)^2 / 16 in amplitude, to leading order.
    bare = em.s_parameters(guide(), ports(compensate=False), WAVE, inputs=["left"])
    index = straight.results["left"].monitors["port left"].effective_index[0]
    expected = (2 * np.pi / WAVE * index * CELL) ** 2 / 16
    assert float(abs(bare("left", "left")[0])) == pytest.approx(
        float(expected), rel=0.1
    )


def hollow(steps=1000, second=44, eps=None, sigma=None, **options):
    """A guide of 12 cells between walls, and its ports."""
    shape, eps = (64, 12), np.ones((64, 12)) if eps is None else eps
    sim = em.Simulation(
        Grid.uniform(shape, CELL),
        em.Medium(jnp.asarray(eps, float), conductivity=sigma),
        em.Boundaries(x=em.CPML(12), y=em.PEC()),
        polarisation="Ez",
        steps=steps,
    )
    ends = {"a": (20, "+x"), "b": (second, "-x")}
    return sim, {
        name: em.Port(at(x, 6), np.inf, way, offset=4 * CELL, **options)
        for name, (x, way) in ends.items()
    }


@pytest.mark.slow
def test_energy_is_conserved_between_ports_of_different_index():
    # 16.2 cells per wavelength in vacuum, 10.8 in the right half: without the cosine of
    # the phase over half a cell the sums would be 1.03 and 0.97.
    eps = np.ones((64, 12))
    eps[32:] = 2.25
    sim, both = hollow(eps=eps)
    found = em.s_parameters(sim, both, 16.2 * CELL)
    # What the layers reflect.
    np.testing.assert_allclose(np.sum(found.power[0], axis=0), 1, atol=2e-3)
    assert abs(found("b", "a")[0] - found("a", "b")[0]) < 1e-3


@pytest.mark.slow
def test_several_modes_may_have_ports_at_one_place():
    sim, both = hollow(steps=10)
    both["a2"] = em.Port(both["a"].centre, np.inf, "+x", mode=2, offset=4 * CELL)
    with pytest.warns(PhysaxWarning, match="had not decayed"):
        found = em.s_parameters(sim, both, 10.9 * CELL, inputs=["a"])
    seen = found.results["a"].monitors
    assert seen["port a2"].effective_index < 0.6 * seen["port a"].effective_index


def test_ports_that_overlap_are_refused():
    sim, both = hollow(second=20)
    with pytest.raises(ArgumentError, match="Ports 'a' and 'b' must not overlap"):
        em.s_parameters(sim, both, 16.2 * CELL)


def test_ports_of_guides_side_by_side_may_share_what_is_between_them():
    # As the outputs of the published power splitter do.
    eps = np.ones(SHAPE)
    eps[:, 20:26] = eps[:, 36:42] = 12.0
    width, offset = 22 * CELL, 4 * CELL
    low, high, between = (
        em.Port(at(64, y), width, "-x", offset=offset) for y in (23, 39, 30)
    )
    with pytest.warns(PhysaxWarning, match="had not decayed|smaller than its mode"):
        found = em.s_parameters(
            guide(eps, steps=10), {"low": low, "high": high}, WAVE, inputs=["low"]
        )
    assert set(found.ports) == {"low", "high"}
    with pytest.raises(ArgumentError, match="must not overlap as far as the middle"):
        em.s_parameters(guide(eps), {"low": low, "other": between}, WAVE)


def test_a_port_in_a_conductor_is_refused():
    # A wall of copper painted into the line.
    sigma = np.zeros((64, 12))
    sigma[:, :3] = 5e7
    sim, both = hollow(sigma=jnp.asarray(sigma))
    with pytest.raises(ArgumentError, match=r"at most 0\.1 in port 'a'.*use PEC faces"):
        em.s_parameters(sim, both, 16.2 * CELL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields are not finite")
def test_a_port_in_a_conductor_is_poisoned_in_a_run():
    omega = 2 * np.pi * SPEED_OF_LIGHT / (16.2 * CELL)
    for tangent, sound in ((0.05, True), (0.2, False)):
        sim, both = hollow(steps=20, sigma=tangent * omega * EPSILON_0)
        run = em.Simulation(
            sim.grid,
            sim.medium,
            sim.boundaries,
            sources={"in": em.ModeSource(both["a"], em.GaussianPulse(omega / 6.28, 1))},
            polarisation="Ez",
            steps=20,
        )
        fields = eqx.filter_jit(em.simulate)(run).fields["Ez"]
        assert bool(jnp.all(jnp.isfinite(fields))) == sound
    with pytest.raises(ArgumentError, match=r"at most 0\.1 in source 'in'.* 0\.199"):
        em.simulate(run)


def test_a_mode_that_is_cut_off_is_refused_before_the_run(monkeypatch):
    # Half a wavelength is longer than the guide is wide.
    sim, both = hollow(steps=10)
    monkeypatch.setattr("physax.em._simulate._simulate", None)
    told = (
        "must propagate, but the effective index of mode 1 is imaginary at 1.87.*Hz.*"
    )
    with pytest.raises(ArgumentError, match=f"`mode` of port 'a' {told}shorter `wave"):
        em.s_parameters(sim, both, [20 * CELL, 40 * CELL], inputs=["a"])
    pulse = em.GaussianPulse(SPEED_OF_LIGHT / (40 * CELL), 1e13)
    driven = em.Simulation(
        sim.grid,
        sim.medium,
        sim.boundaries,
        sources={"in": em.ModeSource(both["a"], pulse)},
        polarisation="Ez",
        steps=10,
    )

    @jax.jit
    def with_power(power):
        return em.simulate(eqx.tree_at(lambda s: s.sources["in"].power, driven, power))

    for start in (em.simulate, em.run, lambda _: with_power(2.0)):
        with pytest.raises(ArgumentError, match=f"source 'in' {told}higher `freq"):
            start(driven)


def test_nonlinear_devices_want_the_power_of_the_wave():
    sim, both = hollow(steps=10)
    one = em.Nonlinearity(((30, 40), (0, 12)), chi3=1e-20)
    sim = em.Simulation(
        sim.grid,
        em.Medium(nonlinearities=one),
        sim.boundaries,
        polarisation="Ez",
        steps=10,
    )
    with pytest.raises(ArgumentError, match="`power` must be given in a nonlinear"):
        em.s_parameters(sim, both, 16.2 * CELL)


@pytest.mark.slow
def test_a_port_smaller_than_its_mode_is_warned_of(straight):
    rim = straight.results["left"].monitors["port left"].rim[0]
    assert rim < 1e-3
    small = {
        name: em.Port(one.centre, 16 * CELL, one.direction, offset=one.offset)
        for name, one in ports().items()
    }
    with pytest.warns(PhysaxWarning, match="is smaller than its mode.*Widen `width`"):
        em.s_parameters(guide(), small, WAVE, inputs=["left"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turned", "message"),
    [
        ("right", "passes port 'right' along its `direction`"),
        ("left", "None of the power of port 'left' leaves any port"),
    ],
)
def test_a_port_that_points_out_of_the_device_is_warned_of(turned, message):
    given = ports()
    way = "-x" if turned == "left" else "+x"
    given[turned] = em.Port(at(42, 30), 36 * CELL, way, offset=4 * CELL)
    with pytest.warns(PhysaxWarning, match=message):
        em.s_parameters(guide(), given, WAVE, inputs=["left"])


def test_frequency_of_a_frequency_domain_solver():
    from physax.em._s_parameters import run_frequencies

    dt, wavelengths = jnp.asarray(5e-17), jnp.array([1.0e-6, 1.5e-6])
    f = run_frequencies(wavelengths, dt, match_frequency_domain=True)
    # What the discrete derivative makes of these is the frequency asked for.
    seen = jnp.sin(jnp.pi * f * dt) / (jnp.pi * dt)
    np.testing.assert_allclose(seen, SPEED_OF_LIGHT / wavelengths, rtol=1e-6)


def test_bad_calls_are_refused():
    sim = guide(steps=10)
    driven = guide(
        steps=10,
        sources={"in": em.Dipole("Ez", at(42, 30), em.GaussianPulse(2e14, 4e13))},
    )
    watched = guide(
        steps=10,
        monitors={"port left": em.FluxMonitor("x", at(42, 30), at(0, 9), 2e14)},
    )
    flat = {"left": em.Port(at(20, 30), 36 * CELL, "+x")}
    cases = [
        ((sim, {}, WAVE), {}, "`ports` must name at least one port, but is empty"),
        ((driven, ports(), WAVE), {}, r"`sim` must have no sources, but has \['in'\]"),
        (
            (watched, ports(), WAVE),
            {},
            "must not have a monitor named 'port left'",
        ),
        ((sim, ports(), WAVE), {"inputs": ["top"]}, "`inputs` must be .* 'top'"),
        ((sim, ports(), WAVE), {"inputs": []}, "`inputs` must name at least one port"),
        ((sim, ports(), []), {}, "`wavelengths` must be one number or a list of at"),
        ((sim, ports(), [1e-6, -1e-6]), {}, "`wavelengths` must be positive, but is"),
        ((sim, flat, WAVE), {}, "`offset` of the input port 'left' must be positive"),
    ]
    for args, options, message in cases:
        with pytest.raises(ArgumentError, match=message):
            em.s_parameters(*args, **options)


def test_parameters_are_printed_as_powers():
    values = jnp.stack([jnp.full(21, 0.6), jnp.linspace(0, 0.8, 21)], 1)[..., None]
    waves = jnp.linspace(1.5e-6, 1.6e-6, 21)
    made = em.SParameters(values + 0j, waves, ("in", "out"), ("in",), {})
    first, heads, *rows, last = str(made).splitlines()
    assert first == "power from in"
    assert heads.split() == ["wavelength", "(nm)", "in", "out", "sum"]
    assert len(rows) == 9
    numbers = np.array([row.split() for row in (rows[0], rows[-1])], float)
    np.testing.assert_allclose(
        numbers, [[1500, 0.36, 0, 0.36], [1600, 0.36, 0.64, 1]], rtol=1e-3
    )
    assert last == "(9 of 21 wavelengths)"
    assert "of" not in str(jax.tree.map(lambda x: x[:3], made)).splitlines()[-1]
    shown = []
    jax.jit(lambda s: shown.append(str(s)))(made)
    assert shown[0].startswith("SParameters(")


def test_unknown_parameter_is_refused():
    made = em.SParameters(
        jnp.ones((1, 2, 1), complex), jnp.ones(1), ("a", "b"), ("a",), {}
    )
    assert made("b", "a") == 1
    with pytest.raises(ArgumentError, match=r"`output` must be one of .* but is 'c'"):
        made("c", "a")
    with pytest.raises(ArgumentError, match=r"`input` must be one of .* but is 'b'"):
        made("a", "b")
