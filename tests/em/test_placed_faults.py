"""Bad sources, monitors and ports: refused in words; one test per message."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning

from .faults import CELL, PORT, PULSE, SHAPES, build, dipole, probe


PLACED = {
    "dipole": lambda at: {"sources": dipole(*at)},
    "monitor": lambda at: {"monitors": probe(centre=at)},
    "time monitor": lambda at: {
        "monitors": {"out": em.TimeMonitor(("Ez",), at, (0.0, 0.0))}
    },
    "flux": lambda at: {
        "monitors": {"out": em.FluxMonitor("y", at, (1e-7, 0.0), 2e14)}
    },
    "mode": lambda at: {
        "sources": {"in": em.ModeSource(em.Port(at, 1e-7, "+y"), PULSE)}
    },
    "mode monitor": lambda at: {
        "monitors": {"out": em.ModeMonitor(em.Port(at, 1e-7, "+y"), 2e14)}
    },
    "wave": lambda at: {
        "sources": {"in": em.PlaneWave("+x", "Ez", at, (1e-7, 1e-7), PULSE)}
    },
}


@pytest.mark.parametrize("kind", PLACED)
@pytest.mark.parametrize("y", [0.6e-6, -0.1e-6, float("nan")])
def test_source_or_monitor_outside_the_domain_is_refused(kind, y):
    with pytest.raises(ArgumentError, match=r"(source 'in'|monitor 'out')"):
        build(**PLACED[kind]((0.3e-6, y)))


@pytest.mark.parametrize("kind", PLACED)
def test_source_or_monitor_in_the_layer_is_warned_of(kind):
    layers = em.Boundaries.all(em.CPML(8))
    message = r"(source 'in'|monitor 'out') lies in the absorbing layer along y"
    with pytest.warns(PhysaxWarning, match=message):
        build(boundaries=layers, **PLACED[kind]((0.3e-6, 5 * CELL)))
    build(boundaries=layers, **PLACED[kind]((0.3e-6, 13 * CELL)))


def test_point_out_of_the_domain_is_refused_with_a_remedy():
    lamp = em.Dipole(component="Ez", position=(1.0, 0.0), pulse=PULSE)
    message = (
        r"source 'in' must lie in the grid, .* along x, but is at 1 m\. "
        "Move it, make it smaller if it has a size, or take a larger grid"
    )
    with pytest.raises(ArgumentError, match=message):
        build(sources={"in": lamp})


def test_region_that_reaches_out_of_the_domain_is_refused():
    message = (
        r"monitor 'out' must lie in the grid, .* along x, but reaches from .*\. "
        "Move it, make it smaller if it has a size, or take a larger grid"
    )
    with pytest.raises(ArgumentError, match=message):
        build(monitors=probe(size=(1e-6, 0.0)))


def test_region_with_an_unknown_centre_is_refused():
    message = "monitor 'out' must lie in the grid, .* reaches from nan to nan m"
    with pytest.raises(ArgumentError, match=message):
        build(monitors=probe(centre=(float("nan"), 13 * CELL), size=(CELL, 0.0)))


def test_region_between_two_samples_is_refused():
    message = "must contain a sample along x, .* Make it larger, or of size 0"
    with pytest.raises(ArgumentError, match=message):
        build(monitors=probe(centre=(14.5 * CELL, 13 * CELL), size=(0.2 * CELL, 0.0)))


@pytest.mark.parametrize("length", [-3 * CELL, -float("inf"), float("nan")])
@pytest.mark.parametrize("make", [
    lambda *box: {"monitors": {"out": em.ForceMonitor(*box, 2e14)}},
    lambda *box: {"monitors": {"out": em.NearFieldMonitor(*box, 2e14)}},
    lambda *box: {"monitors": {"out": em.FluxMonitor("x", *box, 2e14)}},
    lambda *box: {"monitors": {"out": em.TimeMonitor(("Ez",), *box)}},
    lambda *box: {"sources": {"in": em.PlaneWave("+x", "Ez", *box, PULSE)}},
])  # fmt: skip
def test_negative_size_is_refused(make, length):
    message = rf"`size` of .* must be at least 0 along y, but is {length:g} m\. Give"
    with pytest.raises(ArgumentError, match=message):
        build(**make((0.3e-6, 0.26e-6), (4 * CELL, length)))


def test_plane_wave_without_ends_along_its_way_is_refused():
    wave = em.PlaneWave("+y", "Ez", (0.3e-6, 0.26e-6), (float("inf"),) * 2, PULSE)
    message = "`size` of source 'in' must be finite along y, .*is inf m.*`exit=False`"
    with pytest.raises(ArgumentError, match=message):
        build(sources={"in": wave})


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("way", ["+x", "-x"])
def test_offset_that_leaves_the_grid_is_named(ndim, way):
    centre = tuple(n * CELL / 2 for n in SHAPES[ndim])
    port = em.Port(centre, 0.2e-6, way, offset=0.5e-6)
    at = centre[0] + (0.5e-6 if way == "+x" else -0.5e-6)
    message = (
        "monitor 'out', at the `offset` of 5e-07 m from its port, must lie in the grid,"
        f" 0 to .* m along x, but is at {at:g} m. Make the `offset` smaller"
    )
    monitors = {"out": em.ModeMonitor(port, 2e14)}
    with pytest.raises(ArgumentError, match=message):
        build(SHAPES[ndim], monitors=monitors)


@pytest.mark.parametrize("offset", [float("nan"), float("inf"), -float("inf")])
def test_offset_that_is_not_finite_is_refused(offset):
    with pytest.raises(
        ArgumentError, match=f"`offset` must be finite, but is {offset} m"
    ):
        em.Port((0.3e-6, 0.26e-6), 0.1e-6, "+x", offset=offset)


def test_position_of_another_dimension_is_refused():
    message = "`position` of source 'in' must have one entry for each of the 2 axes"
    with pytest.raises(ArgumentError, match=message):
        build(sources={"in": em.Dipole("Ez", (0.3e-6,), PULSE)})


def test_unknown_component_is_refused():
    with pytest.raises(ArgumentError, match=r"`component` of source 'in' .* 'Hz'"):
        build(sources=dipole(component="Hz"))
    with pytest.raises(ArgumentError, match=r"`components` of monitor 'out' .* 'Ex'"):
        build(monitors=probe(("Ez", "Ex")))


SPOT = (0.3e-6, 0.26e-6), (0.0, 0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: em.Dipole("ez", SPOT[0], PULSE), r"`component` .* 'Ez', .* is 'ez'\."),
        (lambda: em.FluxMonitor("X", *SPOT, 2e14), r"`axis` .* 'r' .*, but is 'X'\."),
        (
            lambda: em.FieldMonitor(["Ez", "Bz"], *SPOT, 2e14),
            r"`components` .* 'Ez', .*, but contain 'Bz'\.",
        ),
        (lambda: em.TimeMonitor((3,), *SPOT), r"`components` .*, but contain 3\."),
    ],
)
def test_names_that_no_field_has_are_refused_before_they_are_placed(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("name", ["Ez", "Hp", "Er"])
def test_names_of_all_coordinates_are_accepted(name):
    assert em.Dipole(name, SPOT[0], PULSE).component == name
    assert em.FieldMonitor([name], *SPOT, 2e14).components == (name,)


def test_unknown_axis_of_a_flux_monitor_is_refused():
    flux = em.FluxMonitor("z", (0.3e-6, 0.26e-6), (0.0, 0.0), 2e14)
    with pytest.raises(ArgumentError, match=r"`axis` of monitor 'out' must be one of"):
        build(monitors={"out": flux})


@pytest.mark.parametrize("length", [1e-7, float("inf")])
def test_thick_flux_monitor_is_refused(length):
    flux = em.FluxMonitor("x", (0.3e-6, 0.26e-6), (length, 1e-7), 2e14)
    message = r"`size` of monitor 'out' must be 0 along its axis x, .*NearFieldMonitor"
    with pytest.raises(ArgumentError, match=message):
        build(monitors={"out": flux})


def test_one_name_for_source_and_monitor_is_refused():
    with pytest.raises(ArgumentError, match="must not have the name of a source.*'in'"):
        build(sources=dipole(), monitors={"in": probe()["out"]})


def test_a_monitor_that_came_after_the_places_is_refused():
    sim = build(sources=dipole(), monitors=probe())
    later = eqx.tree_at(lambda s: s.monitors, sim, {"later": sim.monitors["out"]})
    with pytest.raises(ArgumentError, match="'later' came later. Make a new `Sim"):
        em.simulate(later)


def test_monitor_without_components_is_refused():
    message = "`components` of monitor 'out' must name at least one component"
    with pytest.raises(ArgumentError, match=message):
        build(monitors=probe(()))


@pytest.mark.parametrize("bad", [(), [[2e14]]])
def test_monitor_without_frequencies_is_refused(bad):
    with pytest.raises(ArgumentError, match=r"`frequencies` must be one number or a l"):
        probe(at=bad)


@pytest.mark.parametrize("bad", [0.0, -2e14, float("nan")])
def test_frequency_must_be_positive(bad):
    with pytest.raises(ArgumentError, match="`frequencies` must be positive, but is"):
        probe(at=[2e14, bad])
    with pytest.raises(ArgumentError, match="`frequency` must be positive, but is"):
        em.GaussianPulse(bad, 1e13)


def test_frequency_above_half_the_sampling_rate_is_refused():
    # A step of 0.99 x 20 nm / (c sqrt 2): 1.06e16 Hz.
    build(monitors=probe(at=1.0e16))
    with pytest.raises(ArgumentError, match=r"`frequencies` of monitor 'out' must be "):
        build(monitors=probe(at=[2e14, 1.1e16]))


def test_monitor_cadence_must_be_positive():
    with pytest.raises(ArgumentError, match="`every` must be at least 1, but is 0"):
        em.TimeMonitor(("Ez",), (0.0, 0.0), (0.0, 0.0), every=0)


def test_port_is_checked():
    for options, message in (
        ({"direction": "x"}, "`direction` must be"),
        (
            {"direction": "+x", "mode": 0},
            "`mode` must be an integer of at least 1, but is 0",
        ),
        ({"direction": "+x", "width": 0.0}, "`width` must be positive, but is 0"),
    ):
        with pytest.raises(ArgumentError, match=message):
            em.Port(**{"centre": (0.0, 0.0), "width": 1e-6, **options})


def test_port_that_does_not_fit_the_dimension_is_refused():
    source = {"in": em.ModeSource(em.Port((0.0, 0.0), 1e-7, "+x"), PULSE)}
    with pytest.raises(ArgumentError, match="source 'in' must be in a 2-D or 3-D sim"):
        build(SHAPES[1], sources=source)
    with pytest.raises(ArgumentError, match="of source 'in' must have one entry for e"):
        build(SHAPES[3], sources=source)


def test_places_must_be_known():
    def place(x):
        return build(sources={"in": em.Dipole("Ez", (x, 0.26e-6), PULSE)}).dt

    with pytest.raises(ArgumentError, match="Positions and sizes.* is traced"):
        jax.jit(place)(0.3e-6)
    with pytest.raises(ArgumentError, match="Positions and sizes.* is traced"):
        jax.grad(place)(0.3e-6)


def test_whole_numbers_are_frequencies():
    monitor = em.FluxMonitor("x", (0.3e-6,), (0.0,), 200_000_000_000_000)
    assert float(monitor.frequencies[0]) == pytest.approx(2e14)
    assert em.ModeMonitor(PORT, [2 * 10**14]).frequencies.shape == (1,)


@pytest.mark.slow
def test_s_parameters_are_compiled_and_derived():
    def total(permittivity):
        medium = em.Medium(permittivity)
        sim = build(medium=medium, boundaries=em.Boundaries.all(em.CPML(8)))
        return jnp.sum(em.s_parameters(sim, {"a": PORT}, 1e-6).power)

    for transformed in (total, jax.grad(total)):
        jax.eval_shape(transformed, 2.0)
    jax.eval_shape(jax.vmap(total), jnp.full(2, 2.0))


def test_wavelengths_of_metres_are_refused():
    sim = build(boundaries=em.Boundaries.all(em.CPML(8)))
    with pytest.raises(ArgumentError, match="`wavelengths` must be in met.* is 1.55"):
        em.s_parameters(sim, {"a": PORT}, [1.55e-6, 1.55])


@pytest.mark.parametrize("band", [(1.4e-6, 1.6e-6), (190.0, 210.0)])
def test_a_frequency_in_other_units_is_refused(band):
    # A wavelength, or THz: the waves would be a million times the grid and more.
    pulse = em.band_pulse(*band)
    with pytest.raises(
        ArgumentError, match="source 'in' must be at least .* THz or a wave"
    ):
        build(sources=dipole(pulse=pulse))


@pytest.mark.slow
def test_a_pulse_that_has_not_come_is_told_where_fields_are_alive():
    sim = build(
        sources=dipole(pulse=em.GaussianPulse(2e14, 1e9)), monitors=probe(), steps=100
    )
    with pytest.warns(PhysaxWarning, match="not decayed .* before the middle of the p"):
        em.simulate(sim)


class Steady(em.AbstractPulse):
    """A pulse of one's own, whose numbers have no checks."""

    frequency: jax.Array

    def __call__(self, clock, delay):
        return jnp.sin(2 * jnp.pi * self.frequency * (clock.time - delay))

    def duration(self):
        return 1 / self.frequency

    def highest_frequency(self):
        return self.frequency


@pytest.mark.parametrize(
    ("pulse", "name"),
    [
        (PULSE, "bandwidth"),
        (PULSE, "frequency"),
        (em.ContinuousWave(2e14), "rise"),
        (em.Ricker(2e14), "frequency"),
    ],
)
def test_numbers_put_into_pulses_are_checked_when_they_run(pulse, name):
    sim = build(sources=dipole(pulse=pulse))

    def run(value, how=em.simulate):
        return how(
            eqx.tree_at(lambda s: getattr(s.sources["in"].pulse, name), sim, value)
        )

    good = getattr(pulse, name)
    for how in (em.simulate, em.run):
        with pytest.raises(ArgumentError, match=f"`{name}` must be positive, but is -"):
            run(-good, how)
    status = jax.jit(jax.vmap(lambda value: run(value).status))(
        good * jnp.array([1, -1.0])
    )
    assert status.tolist() == [0, 4]
    assert jnp.array_equal(run(good).fields["Ez"], em.simulate(sim).fields["Ez"])


def test_integers_put_into_pulses_are_numbers():
    sim = build(sources=dipole(pulse=PULSE))

    def run(name, value):
        where = lambda s: getattr(s.sources["in"].pulse, name)  # noqa: E731
        return em.simulate(eqx.tree_at(where, sim, value))

    want = run("frequency", jnp.asarray(2e14)).fields["Ez"]
    assert jnp.array_equal(run("frequency", 2 * 10**14).fields["Ez"], want)
    traced = jax.jit(lambda value: run("bandwidth", value).status)
    assert traced(np.int32(-50000)) == 4


class Terahertz(Steady):
    """A pulse of one's own, in a unit of its own."""

    frequency: jax.Array = eqx.field(converter=lambda f: jnp.asarray(f) * 1e12)


class Decades(Steady):
    """Another, whose unit cannot be changed twice."""

    frequency: jax.Array = eqx.field(converter=lambda f: _power_of_ten(f))


def _power_of_ten(f):
    if not isinstance(f, jax.core.Tracer) and not f < 30:
        raise ValueError("the exponent must be less than 30")
    return 10 ** jnp.asarray(f)


def test_the_unit_of_a_pulse_is_changed_once():
    pulses = Steady(jnp.asarray(2e14)), Terahertz(200.0), Decades(14.30103)
    sims = [build(sources=dipole(pulse=p)) for p in pulses]
    run = jax.jit(lambda sim: em.simulate(sim).fields["Ez"])
    want = em.simulate(sims[0]).fields["Ez"]
    assert jnp.max(jnp.abs(want)) > 0
    for sim in sims[1:]:
        for found in (em.simulate(sim).fields["Ez"], run(sim)):
            assert jnp.allclose(
                found, want, rtol=1e-5, atol=1e-5 * jnp.max(jnp.abs(want))
            )


def test_pulses_without_checks_run():
    sim = build(sources=dipole(pulse=Steady(jnp.asarray(2e14))))
    assert em.simulate(sim).status == 0
