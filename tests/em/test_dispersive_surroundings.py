"""Far fields, orders, forces, emission and currents in a dispersive medium.

At each frequency they are those in a medium without poles of the same permittivity.
"""

from functools import partial

import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import EPSILON_0, MICRO, MU_0, SPEED_OF_LIGHT


pytestmark = [
    pytest.mark.filterwarnings("ignore:Dispersion 0 should end"),
    pytest.mark.filterwarnings("ignore:The fields had not decayed"),
]

FREE = float("inf")
CELL = 40e-9
FREQUENCY = SPEED_OF_LIGHT / MICRO
FREQUENCIES = FREQUENCY * np.array([0.9, 1.1])
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
# One for all media, as the dispersion of the grid depends on it.
DT = 0.5 * CELL / SPEED_OF_LIGHT
POLE = em.Lorentz(0.9, 2.4 * FREQUENCY)


def medium(shape, number=None, damping=0.0, box=None, pole=None):
    """Glass with a pole, or for one of the frequencies what has its permittivity."""
    if number is not None:
        # The trapezoidal rule steps poles at another frequency.
        seen = np.tan(np.pi * FREQUENCIES[number] * DT) / (np.pi * DT)
        return em.Medium(1.4 + np.real(complex(POLE.susceptibility(seen))))
    pole = em.Lorentz(POLE.strength, POLE.frequency, damping) if pole is None else pole
    box = tuple((0, n) for n in shape) if box is None else box
    return em.Medium(1.4, dispersions=(em.Dispersion(box, (pole,)),))


def near_field(polarisation, **options):
    """Returns the near field of a source that is not in the middle of its box."""
    if polarisation is None:
        cells, shape, name = 8, (32,) * 3, "Ey"
    else:
        cells, shape = 16, (50,) * 2
        name = "Ez" if polarisation == "Ez" else "Ex"
    ndim = len(shape)
    spot = (2 * CELL,) + (-CELL,) * (ndim - 1)
    sim = em.Simulation(
        Grid.centred(shape, CELL),
        medium(shape, **options),
        em.Boundaries.all(em.CPML(8)),
        sources={"dipole": em.Dipole(name, spot, PULSE)},
        monitors={
            "box": em.NearFieldMonitor(
                (0.0,) * ndim, (cells * CELL,) * ndim, FREQUENCIES
            )
        },
        polarisation=polarisation,
        steps=700,
        dt=DT,
    )
    return em.simulate(sim).monitors["box"]


CASES = ["Ez", "Hz", pytest.param(None, marks=pytest.mark.slow)]


@pytest.mark.parametrize("polarisation", CASES)
def test_far_and_projected_fields_are_those_of_the_permittivity_at_each_frequency(
    polarisation,
):
    phi = np.radians([10.0, 100.0, 250.0])
    where = em.direction(phi, None if polarisation else np.radians([30.0, 80.0, 120.0]))
    found = near_field(polarisation)
    assert found.permittivity.shape == (2,)
    fields = em.far_field(found, where), em.project_fields(found, 3 * MICRO * where)
    for number in range(2):
        same = near_field(polarisation, number=number)
        assert same.permittivity.shape == ()
        far, near = (
            em.far_field(same, where),
            em.project_fields(same, 3 * MICRO * where),
        )
        np.testing.assert_allclose(
            fields[0].intensity[number], far.intensity[number], rtol=2e-4
        )
        for own, other in zip(fields, (far, near), strict=True):
            for name, values in other.values.items():
                scale = np.abs(values[number]).max()
                difference = np.abs(own.values[name][number] - values[number]).max()
                assert difference <= 2e-4 * scale, name


def emission(polarisation, component, **options):
    """Returns the emission of a dipole off the nodes, and the flux out of its box."""
    shape = (50,) * 2
    dipole = em.Dipole(component, (0.3 * CELL, -0.2 * CELL), PULSE)
    sim = em.Simulation(
        Grid.centred(shape, CELL),
        medium(shape, **options),
        em.Boundaries.all(em.CPML(8)),
        sources={"dipole": dipole},
        monitors={
            "seen": em.EmissionMonitor(dipole, FREQUENCIES),
            "box": em.NearFieldMonitor((0.0,) * 2, (16 * CELL,) * 2, FREQUENCIES),
        },
        polarisation=polarisation,
        steps=700,
        dt=DT,
    )
    found = em.simulate(sim).monitors
    return found["seen"], found["box"].outflow


@pytest.mark.parametrize(
    ("polarisation", "component"), [("Ez", "Ez"), ("Hz", "Ey"), ("Ez", "Hx")]
)
def test_emission_is_that_of_the_permittivity_at_each_frequency(
    polarisation, component
):
    found, flux = emission(polarisation, component)
    np.testing.assert_allclose(found.power, flux, rtol=2e-4)
    # The error of the cells: 2 % at 20 of them in a wave.
    np.testing.assert_allclose(em.purcell(found), 1, rtol=0.04)
    near = FREQUENCIES + 1e-4 * FREQUENCY * np.array([[-1], [0], [1]])
    low, epsilon, high = 1.4 + np.real(
        np.asarray(POLE.susceptibility(np.tan(np.pi * near * DT) / (np.pi * DT)))
    )
    stored = epsilon + FREQUENCIES / 2 * (high - low) / (2e-4 * FREQUENCY)
    density = EPSILON_0 * stored if component[0] == "E" else MU_0
    np.testing.assert_allclose(
        found.ldos, 2 / np.pi * density * found.resistance, rtol=1e-4
    )
    for number in range(2):
        same, _ = emission(polarisation, component, number=number)
        for name in ("resistance", "homogeneous"):
            one, other = getattr(found, name)[number], getattr(same, name)[number]
            assert float(one) == pytest.approx(float(other), rel=2e-4), name


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_forces_are_those_of_the_permittivity_at_each_frequency(polarisation):
    shape, component = (50,) * 2, "Ez" if polarisation == "Ez" else "Ex"

    def force(**options):
        around = medium(shape, **options)
        rod = np.zeros(shape)
        rod[26:31, 22:28] = 2.0
        sim = em.Simulation(
            Grid.centred(shape, CELL),
            em.Medium(around.permittivity + rod, dispersions=around.dispersions),
            em.Boundaries.all(em.CPML(8)),
            sources={"dipole": em.Dipole(component, (-10 * CELL, CELL), PULSE)},
            monitors={
                str(width): em.ForceMonitor(
                    (3.5 * CELL, 0.0), (width * CELL,) * 2, FREQUENCIES
                )
                for width in (14, 16)
            },
            polarisation=polarisation,
            steps=900,
            dt=DT,
        )
        boxes = em.simulate(sim).monitors.values()
        return [np.stack(list(one.force.values())) for one in boxes]

    found, wider = force()
    largest = np.abs(found).max()
    assert np.abs(found - wider).max() < 1e-3 * largest
    for number in range(2):
        same = force(number=number)[0][:, number]
        assert np.abs(found[:, number] - same).max() < 1e-3 * np.abs(same).max()
    with pytest.raises(ArgumentError, match="poles that absorb or make a metal"):
        force(damping=0.5 * FREQUENCY)


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_orders_are_those_of_the_permittivity_at_each_frequency(polarisation):
    def orders(**options):
        shape = (30, 70)
        component = "Ez" if polarisation == "Ez" else "Ex"
        inside = medium(shape, **options)
        own = {"permittivity": inside.permittivity}
        own |= {"poles": inside.dispersions[0].poles} if inside.dispersions else {}
        rod = np.zeros(shape)
        rod[10:20, 40:44] = 2.0
        inside = em.Medium(inside.permittivity + rod, dispersions=inside.dispersions)
        source = em.PlaneWave(
            "+y",
            component,
            (0.0, -10 * CELL),
            (FREE, 8 * CELL),
            PULSE,
            exit=False,
            **own,
        )
        sim = em.Simulation(
            Grid.centred(shape, CELL),
            inside,
            em.Boundaries(x=em.Bloch(1e6), y=em.CPML(10)),
            sources={"wave": source},
            monitors={
                "sent": em.NearFieldMonitor(
                    (0.0, 20 * CELL), (FREE, 0.0), FREQUENCIES, ("+y",)
                ),
                "flux": em.FluxMonitor("y", (0.0, 20 * CELL), (FREE, 0.0), FREQUENCIES),
            },
            polarisation=polarisation,
            steps=9000,
            dt=DT,
        )
        seen = em.simulate(sim).monitors
        found = em.diffraction_orders(seen["sent"], (2,))
        # Orders together carry what flows.
        total = np.sum(found.power, axis=1)
        np.testing.assert_allclose(total, seen["flux"].flux, rtol=2e-3)
        return found.power / total[:, None], found.directions

    power, directions = orders()
    for number in range(2):
        # How much of the wave the sheet makes depends on its index at the pulse.
        shares, units = orders(number=number)
        np.testing.assert_allclose(directions[number], units[number], atol=1e-4)
        np.testing.assert_allclose(power[number], shares[number], atol=1e-3)


def test_media_that_differ_or_absorb_are_refused():
    half = ((0, 50), (30, 50))
    with pytest.raises(ArgumentError, match="must be the same and isotropic"):
        em.far_field(near_field("Ez", box=half), em.direction(0.0))
    with pytest.raises(ArgumentError, match="without metals, poles that absorb"):
        em.far_field(near_field("Ez", damping=FREQUENCY / 5), em.direction(0.0))
    with pytest.raises(ArgumentError, match="without metals, poles that absorb"):
        em.far_field(near_field("Ez", pole=em.Drude(3 * FREQUENCY)), em.direction(0.0))


def test_currents_of_a_record_radiate_as_what_they_replace():
    shape = (50, 50)
    near = near_field("Ez")
    spot = em.FieldMonitor(("Ez",), (12 * CELL, 5 * CELL), (0.0, 0.0), FREQUENCIES)

    def field(sources):
        sim = em.Simulation(
            Grid.centred(shape, CELL),
            medium(shape),
            em.Boundaries.all(em.CPML(8)),
            sources=sources,
            monitors={"spot": spot},
            polarisation="Ez",
            steps=700,
        )
        return np.asarray(em.simulate(sim).monitors["spot"].values["Ez"]).ravel()

    dipole = em.Dipole("Ez", (2 * CELL, -CELL), PULSE)
    expected = field({"dipole": dipole})
    for number in range(2):
        pulse = em.GaussianPulse(FREQUENCIES[number], FREQUENCY / 8)
        found = field({"box": em.HuygensSource(near, pulse, number)})
        assert found[number] == pytest.approx(expected[number], rel=1e-2)


def test_currents_want_the_permittivity_of_the_record_at_each_frequency():
    near = near_field("Ez")
    pulse = em.GaussianPulse(FREQUENCY, FREQUENCY / 8)
    replayed = partial(
        em.Simulation,
        Grid.centred((50, 50), CELL),
        em.Medium(2.49),
        em.Boundaries.all(em.CPML(8)),
        sources={"box": em.HuygensSource(near, pulse, 0)},
        polarisation="Ez",
        steps=10,
    )
    with pytest.raises(ArgumentError, match="its permittivity there must be"):
        replayed()
