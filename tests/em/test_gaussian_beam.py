"""Gaussian beams: radius, direction, power and polarisation, and nothing goes back."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, PhysaxWarning, em
from physax.grid import Grid
from physax.units import ETA_0, FEMTO, MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 12)
FREE = float("inf")
# The spectrum of the pulse: what a power at its peak becomes, in fs^2.
UNIT = 2 * np.pi / (2 * np.pi * FREQUENCY / 12) ** 2 / 4 / FEMTO**2


def paraxial(waist, distance):
    """The radius of a Gaussian beam in vacuum at a distance from its waist."""
    return waist * np.hypot(1, distance / (np.pi * waist**2 / MICRO))


def transverse(field, cell, axis=0, index=1.0):
    """Returns the mean of a wavevector, by the flow of each wave through the plane."""
    total = 2 * np.pi * index / MICRO
    k = np.meshgrid(
        *(2 * np.pi * np.fft.fftfreq(n, cell) for n in field.shape), indexing="ij"
    )
    across = np.sqrt(np.maximum(total**2 - sum(one**2 for one in k), 0))
    flow = np.abs(np.fft.fftn(field)) ** 2 * across
    return np.sum(flow * k[axis]) / np.sum(flow) / total


def glass(index, shape):
    """A medium with a resonance at 2.4 times the frequency, of an index at this."""
    whole, known = tuple((0, n) for n in shape), 1.2
    pole = em.Lorentz((index**2 - known) * (1 - 1 / 2.4**2), 2.4 * FREQUENCY)
    return em.Medium(known, dispersions=(em.Dispersion(whole, (pole,)),))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
@pytest.mark.parametrize("dispersive", [False, True], ids=["plain", "dispersive"])
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_tilted_beam_goes_where_it_is_sent(polarisation, dispersive):
    cell, index, tilt = MICRO / 20, 1.3, np.radians(20)
    waist, ahead = 1.6 * MICRO, 1.5 * MICRO
    # Its axis crosses y = 0 at the waist.
    port = em.Port((-1.1 * MICRO, -np.sin(tilt) * ahead), 7.6 * MICRO, "+x")
    line = em.FieldMonitor((polarisation,), (0.9 * MICRO, 0), (0, FREE), FREQUENCY)
    sim = em.Simulation(
        Grid.centred((72, 190), cell),
        glass(index, (72, 190)) if dispersive else em.Medium(index**2),
        em.Boundaries.all(em.CPML(10)),
        sources={"beam": em.GaussianBeam(port, PULSE, waist, ahead, tilt, power=2.0)},
        monitors={
            "line": line,
            "sent": em.FluxMonitor("x", (0.9 * MICRO, 0), (0, FREE), FREQUENCY),
            "back": em.FluxMonitor("x", (-1.2 * MICRO, 0), (0, FREE), FREQUENCY),
        },
        polarisation=polarisation,
        steps=900,
    )
    found = em.simulate(sim).monitors
    assert float(found["sent"].flux[0]) / UNIT == pytest.approx(2.0, rel=5e-3)
    # What the ends of the port cut off goes both ways.
    assert abs(float(found["back"].flux[0])) / UNIT < 1e-4
    field = np.asarray(found["line"].values[polarisation])[0, 0]
    k = transverse(field, cell, index=index)
    # The waves of the beam lie around its axis: 1 - (half of the divergence)^2 / 2.
    divergence = MICRO / (np.pi * waist * index)
    sine = k / (1 - divergence**2 / 8)
    assert np.degrees(np.arcsin(sine)) == pytest.approx(20, abs=0.2)


def test_radius_along_the_beam_is_that_of_gaussian_optics():
    cell, waist, ahead = MICRO / 14, 1.6 * MICRO, 1.0 * MICRO
    port = em.Port((0.0, -2.9 * MICRO), 10.2 * MICRO, "+y")
    places = np.array([-2.6, -1.9, 1.0, 2.9])
    sim = em.Simulation(
        Grid.centred((166, 106), cell),
        boundaries=em.Boundaries.all(em.CPML(10)),
        sources={"beam": em.GaussianBeam(port, PULSE, waist, ahead)},
        monitors={
            str(y): em.FieldMonitor(("Ez",), (0, y * MICRO), (FREE, 0), FREQUENCY)
            for y in places
        },
        polarisation="Ez",
        steps=900,
    )
    found = em.simulate(sim).monitors
    for y in places:
        line = found[str(y)]
        x = np.asarray(line.coordinates["Ez"][0])
        profile = np.abs(np.asarray(line.values["Ez"])[0, :, 0]) ** 2
        width = 2 * np.sqrt(np.sum(x**2 * profile) / np.sum(profile))
        want = paraxial(waist, (y + 2.9) * MICRO - ahead)
        # The grid, and waves beyond the paraxial ones, widen it by 0.7 % each.
        assert width == pytest.approx(want, rel=0.02)


def resonant(cells, cell, number, dt):
    """The frequency at which a wave of twice a port's length is almost grazing.

    On the grid, `number` periods of it: the rectangle rule over wavevectors has a node
    here where 1 / k_parallel is 100 / k.
    """
    seen = 2 / cell * np.sin(np.pi * number / cells / 2) / np.sqrt(1 - 1.1e-4)
    return np.arcsin(seen * SPEED_OF_LIGHT * dt / 2) / (np.pi * dt)


def spectrum(frequency, waist, tilt, cosine, sine):
    """Amplitude by angle of a beam, over dk / k_parallel; sine towards its tilt."""
    k = 2 * np.pi * frequency / SPEED_OF_LIGHT
    forward = np.cos(tilt) * cosine + np.sin(tilt) * sine
    envelope = np.exp(-((waist * k) ** 2) * (1 - forward**2) / 4)
    return np.where(forward > 0, forward * envelope, 0), k


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_power_and_focus_hold_where_a_grazing_wave_fits_on_the_port(polarisation):
    cell, cells, tilt, waist = MICRO / 14, 42, 0.35, 0.5 * MICRO
    port = em.Port((-10 * cell, 0.0), cells * cell, "+x")
    frequency = resonant(cells, cell, 6, cell / SPEED_OF_LIGHT * 0.99 / np.sqrt(2))
    pulse = em.GaussianPulse(frequency, frequency / 12)
    ahead = 8 * cell
    beam = em.GaussianBeam(port, pulse, waist, ahead / np.cos(tilt), tilt)
    focus = (ahead - 10 * cell, ahead * np.tan(tilt))
    sim = em.Simulation(
        Grid.centred((40, cells + 30), cell),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"beam": beam},
        monitors={
            "sent": em.FluxMonitor("x", (-8 * cell, 0), (0, FREE), frequency),
            "focus": em.FieldMonitor((polarisation,), focus, (0, 0), frequency),
        },
        polarisation=polarisation,
        steps=450,
    )
    found = em.simulate(sim).monitors
    unit = UNIT * (FREQUENCY / frequency) ** 2
    # By angles to the port, in 1 W/m.
    angle = np.linspace(-np.pi / 2, np.pi / 2, 4001)
    step = angle[1] - angle[0]
    amplitude, k = spectrum(frequency, waist, tilt, np.cos(angle), np.sin(angle))
    x, y = (float(c[0]) for c in found["focus"].coordinates[polarisation][:2])
    path = np.cos(angle) * (x - focus[0]) + np.sin(angle) * (y - focus[1])
    field = abs(np.sum(amplitude * np.exp(1j * k * path)) * step) ** 2
    # Magnetic fields are times eta0.
    want = field * ETA_0 * k / (np.pi * np.sum(amplitude**2) * step)
    got = np.ravel(found["focus"].values[polarisation])[0]
    assert float(found["sent"].flux[0]) / unit == pytest.approx(1.0, abs=0.01)
    # The ends of the port take 4 % (Kirchhoff's integral), such a grid adds 3 %.
    assert abs(got) ** 2 / FEMTO**2 / unit == pytest.approx(want, rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`width` of the port of source 'beam' should hold")
def test_power_in_3d_is_smooth_where_a_grazing_wave_fits_on_the_port():
    cell, cells = MICRO / 12, 18
    port = em.Port((0, 0, -4 * cell), cells * cell, "+z")
    best = resonant(cells, cell, 3, cell / SPEED_OF_LIGHT * 0.99 / np.sqrt(3))

    def sent(frequency):
        pulse = em.GaussianPulse(frequency, frequency / 6)
        beam = em.GaussianBeam(port, pulse, 0.5 * MICRO, tilt=0.5, azimuth=0.6)
        plane = em.FluxMonitor("z", (0, 0, -2 * cell), (FREE, FREE, 0), frequency)
        sim = em.Simulation(
            Grid.centred((42, 42, 28), cell),
            boundaries=em.Boundaries.all(em.CPML(8)),
            sources={"beam": beam},
            monitors={"sent": plane},
            steps=320,
        )
        flux = float(em.simulate(sim).monitors["sent"].flux[0])
        return flux / (UNIT / 4 * (FREQUENCY / frequency) ** 2)

    low, middle, high = (sent(part * best) for part in (0.99, 1.0, 1.01))
    assert middle == pytest.approx((low + high) / 2, abs=5e-3)
    # A port of 3 waists cuts off some.
    assert 0.9 < middle < 1


@pytest.mark.slow
def test_beam_in_3d():
    cell, waist = MICRO / 10, 0.9 * MICRO
    tilt, azimuth, angle = np.radians([12.0, 30.0, 15.0])
    grid = Grid.centred((56, 56, 44), cell)
    port = em.Port((-0.2 * MICRO, -0.1 * MICRO, -1.1 * MICRO), 4 * MICRO, "+z")
    names = ("Ex", "Ey", "Ez")
    monitors = {
        str(z): em.FieldMonitor(names, (0, 0, z * MICRO), (FREE, FREE, 0), FREQUENCY)
        for z in (-0.9, 0.3)
    }
    size = (FREE, FREE, 0)
    monitors["sent"] = em.FluxMonitor("z", (0, 0, 0.5 * MICRO), size, FREQUENCY)
    monitors["back"] = em.FluxMonitor("z", (0, 0, -1.3 * MICRO), size, FREQUENCY)
    beam = em.GaussianBeam(
        port,
        PULSE,
        waist,
        0.5 * MICRO,
        tilt,
        azimuth=azimuth,
        polarisation=angle,
    )
    sim = em.Simulation(
        grid,
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"beam": beam},
        monitors=monitors,
        steps=520,
    )
    found = em.simulate(sim).monitors
    assert float(found["sent"].flux[0]) / UNIT == pytest.approx(1.0, rel=0.01)
    assert abs(float(found["back"].flux[0])) / UNIT < 1e-4

    ahead = np.array(
        [np.sin(tilt) * np.cos(azimuth), np.sin(tilt) * np.sin(azimuth), np.cos(tilt)]
    )
    inside = np.array(
        [np.cos(tilt) * np.cos(azimuth), np.cos(tilt) * np.sin(azimuth), -np.sin(tilt)]
    )
    aside = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    e = np.cos(angle) * inside + np.sin(angle) * aside
    for z in (-0.9, 0.3):
        plane = found[str(z)]
        # All components: each alone favours waves to one side.
        fields = [np.asarray(plane.values[n])[0, :, :, 0] for n in names]
        power = np.array([np.sum(np.abs(f) ** 2) for f in fields])
        share = power / np.sum(power)
        # Within 0.2 degrees, once the spread of the waves is counted.
        spread = 1 - (MICRO / (np.pi * waist)) ** 2 / 4
        for axis in range(2):
            k = sum(
                part * transverse(field, cell, axis)
                for part, field in zip(share, fields, strict=True)
            )
            assert abs(k / spread - ahead[axis]) < np.radians(0.2)
        # Across the plane of the tilt, where the plane cuts it at right angles, of a
        # large component: the third has lobes.
        x, y = (np.asarray(c) for c in plane.coordinates["Ey"][:2])
        across = aside[0] * x[:, None] + aside[1] * y
        profile = np.abs(fields[1]) ** 2 / power[1]
        middle = np.sum(profile * across)
        width = 2 * np.sqrt(np.sum(profile * (across - middle) ** 2))
        along = (z + 1.1) * MICRO / np.cos(tilt) - 0.5 * MICRO
        want = paraxial(waist, along)
        assert width == pytest.approx(want, rel=0.03)
        # With the sign, which a polarisation angle of -15 degrees would turn.
        ratio = np.sum(fields[0] * np.conj(fields[1])) / np.sum(np.abs(fields[1]) ** 2)
        assert ratio.real == pytest.approx(e[0] / e[1], rel=0.05)


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(("direction", "polarisation"), [("+x", "Ez"), ("-x", "Hz")])
def test_the_waist_is_told_from_the_port_also_between_nodes(direction, polarisation):
    # With the waist at the same place the field at the carrier is the same.
    cell, sign, tilt = MICRO / 14, 1 if direction == "+x" else -1, 0.2
    point = (sign * 0.6 * MICRO, 0.1 * MICRO)

    def seen(part):
        ahead = part * cell
        centre = (sign * (ahead - 10 * cell), ahead * np.tan(tilt))
        distance = 0.4 * MICRO - ahead / np.cos(tilt)
        port = em.Port(centre, 2.3 * MICRO, direction)
        beam = em.GaussianBeam(port, PULSE, 0.6 * MICRO, distance, tilt)
        probe = em.FieldMonitor((polarisation,), point, (0, 0), FREQUENCY)
        sim = em.Simulation(
            Grid.centred((40, 50), cell),
            boundaries=em.Boundaries.all(em.CPML(8)),
            sources={"beam": beam},
            monitors={"at": probe},
            polarisation=polarisation,
            steps=450,
        )
        return np.ravel(em.simulate(sim).monitors["at"].values[polarisation])[0]

    assert abs(seen(0.45) / seen(0.0) - 1) < 1e-6


@pytest.mark.slow
def test_gradient_by_all_numbers_of_a_beam():
    cell = MICRO / 14
    port = em.Port((-0.7 * MICRO, 0.0), 2.3 * MICRO, "+x")
    probe = em.FieldMonitor(("Ez",), (0.6 * MICRO, 0.1 * MICRO), (0, 0), FREQUENCY)

    def sim(numbers):
        waist, distance, tilt, power = numbers
        beam = em.GaussianBeam(
            port, PULSE, waist * MICRO, distance * MICRO, tilt, power=power
        )
        return beam

    base = jnp.array([0.6, 0.4, 0.2, 1.0])
    built = em.Simulation(
        Grid.centred((40, 50), cell),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"beam": sim(base)},
        monitors={"probe": probe},
        polarisation="Ez",
        steps=450,
    )

    @jax.jit
    def loss(numbers):
        here = em.Simulation(
            built.grid,
            boundaries=built.boundaries,
            sources={"beam": sim(numbers)},
            monitors={"probe": probe},
            polarisation="Ez",
            steps=450,
            dt=float(built.dt),
        )
        return 1e28 * jnp.sum(
            jnp.abs(em.simulate(here).monitors["probe"].values["Ez"]) ** 2
        )

    way = jnp.array([0.3, 0.5, -0.7, 0.2])
    slope = jnp.sum(jax.grad(loss)(base) * way)
    want = (loss(base + 1e-4 * way) - loss(base - 1e-4 * way)) / 2e-4
    assert float(slope) == pytest.approx(float(want), rel=1e-5)


def small(medium=None, ndim=2, width=3 * MICRO, grid=(26, 46), **options):
    cell = MICRO / 12
    centre = (0.0,) * ndim
    beam = em.GaussianBeam(
        em.Port(centre, width, "+x"),
        PULSE,
        options.pop("waist", 0.6 * MICRO),
        **options,
    )
    return em.Simulation(
        Grid.centred(grid, cell),
        medium,
        sources={"beam": beam},
        polarisation="Ez" if ndim == 2 else None,
        steps=20,
    )


def test_angles_out_of_range_and_those_that_2d_has_not_are_refused():
    for options, message in (
        ({"tilt": np.pi / 2}, r"`tilt` must lie in \(-1.5708, 1.5708\), but is 1.57"),
        ({"tilt": np.pi}, "`tilt` must lie in"),
        ({"tilt": np.nan}, "`tilt` must lie in .* but is nan"),
        ({"azimuth": np.nan}, "`azimuth` must lie in .* but is nan"),
        ({"polarisation": np.nan}, "`polarisation` must lie in .* but is nan"),
        ({"distance": np.inf}, "`distance` must lie in .* but is inf"),
        ({"azimuth": 0.3}, "`azimuth` of source 'beam' must be left out in 2-D"),
        ({"polarisation": 1.0}, "`polarisation` of source 'beam' must be left out"),
    ):
        with pytest.raises(ArgumentError, match=message):
            small(**options)
    with pytest.raises(ArgumentError, match="in a 2-D or 3-D simulation, but"):
        small(ndim=1, grid=(26,))


@pytest.mark.parametrize(
    ("half", "waist"), [(1.3 * MICRO, 3 * MICRO), (0.5 * MICRO, 0.4 * MICRO)]
)
def test_what_a_port_cuts_off_is_told(half, waist):
    # Of exp(-2 x^2 / w^2), by the nodes of the port.
    with pytest.warns(PhysaxWarning, match="of source 'beam' should hold") as told:
        small(width=2 * half, waist=waist)
    x = np.linspace(-20 * MICRO, 20 * MICRO, 400001)
    power = np.exp(-2 * (x / waist) ** 2)
    want = np.sum(power[np.abs(x) > half]) / np.sum(power)
    found = float(str(told[0].message).split("cuts off ")[1].split()[0])
    assert found == pytest.approx(want, rel=0.12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`grid` should have at least 10 cells")
@pytest.mark.filterwarnings("ignore:`grid` should have cells below the skin depth")
@pytest.mark.filterwarnings("ignore:Dispersion 0 should end")
def test_a_port_in_several_or_lossy_media_is_refused():
    level = jnp.ones((26, 46))

    def poles(box, damping=0.0):
        pole = em.Lorentz(0.5, 2.4 * FREQUENCY, damping)
        return em.Medium(dispersions=(em.Dispersion(box, (pole,)),))

    drude = em.Dispersion(((0, 26), (0, 46)), (em.Drude(3 * FREQUENCY),))
    metal = em.Medium(dispersions=(drude,))
    for medium, message in (
        (em.Medium(level.at[:, 30:].set(1.4)), "must lie in one isotropic medium"),
        (em.Medium(1.0, {"Hx": 1.0, "Hy": 1.3}), "must lie in one isotropic medium"),
        (em.Medium(1.0, conductivity=1e5), "must lie in a medium without cond"),
        (poles(((0, 26), (20, 46))), "must lie in one isotropic medium"),
        (poles(((0, 26), (0, 46)), FREQUENCY / 9), ".* poles that absorb and metals"),
        (metal, ".* poles that absorb and metals"),
    ):
        with pytest.raises(ArgumentError, match=f"of source 'beam' {message}"):
            small(medium)
    tensor = em.Medium({"Ex": 1.4, "Ey": 1.0, "Ez": 1.0})
    with pytest.raises(ArgumentError, match="must lie in one isotropic medium"):
        small(tensor, 3, grid=(8, 42, 42))
    # Elsewhere anything may lie.
    known = small(em.Medium(level.at[20:].set(1.4)))

    @jax.jit
    def status(epsilon):
        here = eqx.tree_at(lambda s: s.medium.permittivity, known, epsilon)
        return em.simulate(here).status

    found = [int(status(e)) for e in (level, level.at[:, 30:].set(4.0))]
    assert found == [0, 4]
