"""Near and far fields that are refused or warned of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, PhysaxWarning, em
from physax.grid import Grid

from .dipoles import CELL, FREQUENCY, PHI, PULSE, scene


FREE = float("inf")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_directions_in_degrees_or_of_another_length_are_refused():
    for angles, name in (((90.0,), "phi"), ((0.3, np.array([1.0, 180.0])), "theta")):
        with pytest.raises(
            ArgumentError, match=rf"`{name}` must be in radians .* 4 pi"
        ):
            em.direction(*angles)
    assert np.all(np.isfinite(em.direction(-2 * np.pi, 3 * np.pi)))
    near = em.simulate(scene("Ez", steps=3)).monitors["near"]
    for vector, length in (([0.0, 90.0], "90"), ([0.6, 0.7], "0.92"), ([0, 0], "0")):
        message = rf"length of `directions` must be 1, .* but is {length}"
        with pytest.raises(ArgumentError, match=message):
            em.far_field(near, np.array(vector))
    found = jax.jit(lambda u: em.far_field(near, u).intensity)(2 * em.direction(PHI))
    assert np.all(np.isnan(found))
    em.far_field(near, np.array([0.707, -0.707]))
    # Unit vectors of complex components, as of waves that do not travel.
    for name, make in (
        ("phi", lambda: em.direction(0.3j)),
        ("cosines", lambda: em.k_direction("+x", 0.5j)),
        ("directions", lambda: em.far_field(near, np.array([1.25**0.5, 0.5j]))),
        ("points", lambda: em.project_fields(near, np.array([3e-6 + 1e-6j, 0]))),
    ):
        with pytest.raises(ArgumentError, match=f"`{name}` must be real, but has"):
            make()


@pytest.fixture(scope="module")
def layered():
    level = jnp.ones((42, 40)).at[:, :20].set(2.1)
    return em.simulate(scene("Ez", em.Medium(level))).monitors["near"]


@pytest.mark.slow
def test_layers_are_refused_or_poisoned(layered):
    with pytest.raises(ArgumentError, match=r"such as a substrate.*but is 0\.\d"):
        em.far_field(layered, em.direction(PHI))
    found = jax.jit(lambda n: em.far_field(n, em.direction(PHI)).intensity)(layered)
    assert np.all(np.isnan(found))


@pytest.mark.slow
def test_lossy_surroundings_are_refused():
    sim = scene("Ez", em.Medium(conductivity=10.0))
    near = em.simulate(sim).monitors["near"]
    with pytest.raises(ArgumentError, match="must be lossless.*but is 10"):
        em.far_field(near, em.direction(PHI))


@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_nonlinear_surroundings_are_refused():
    def near(chi3):
        powers = em.Nonlinearity(((0, 42), (0, 40)), chi3=chi3)
        sim = scene("Ez", em.Medium(nonlinearities=powers), steps=3)
        return em.simulate(sim).monitors["near"]

    values = jnp.zeros((42, 40)).at[17:21, 18:23].set(1e-18)
    assert near(values).loss == 0
    outside = near(values.at[29].set(1e-18))
    for use in (em.far_field, em.project_fields):
        with pytest.raises(ArgumentError, match="must be lossless and linear.*is inf"):
            use(outside, em.direction(PHI))
    found = jax.jit(lambda n: em.far_field(n, em.direction(PHI)).intensity)(outside)
    assert np.all(np.isnan(found))


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ("+z", "must be among those that its box has"),
        (("+x", "+x"), "must be different ones of"),
        ("x", "must be different ones of"),
    ],
)
def test_faces_that_do_not_exist(faces, message):
    with pytest.raises(ArgumentError, match=message):
        scene(
            monitor=em.NearFieldMonitor((0.0, 0.0), (CELL * 9,) * 2, FREQUENCY, faces)
        )


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((42 * CELL, 9 * CELL), "must have its faces inside the grid"),
        ((50 * CELL, 9 * CELL), "must lie in the grid"),
        ((0.0, 9 * CELL), "must name one side of a box of size 0"),
        ((0.3 * CELL, 9 * CELL), "must be at least one cell along x"),
        ((FREE, FREE), "must have a face inside the grid"),
        ((9 * CELL,), "must have one entry for each of the 2 axes"),
    ],
)
def test_boxes_that_do_not_fit(size, message):
    with pytest.raises(ArgumentError, match=message):
        scene(monitor=em.NearFieldMonitor((0.0, 0.0), size, FREQUENCY))


def test_a_face_in_a_layer_is_warned_of():
    monitor = em.NearFieldMonitor((0.0, 0.0), (26 * CELL, 9 * CELL), FREQUENCY)
    with pytest.warns(PhysaxWarning, match=r"Face .x of monitor 'near' lies"):
        scene(monitor=monitor)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_simulations_without_a_far_field():
    walls = em.Boundaries(x=em.CPML(8), y=em.PEC())
    with pytest.raises(ArgumentError, match="has two along y"):
        em.far_field(near_of(walls), em.direction(PHI))
    periods = em.Boundaries(x=em.CPML(8), y=em.Periodic())
    with pytest.raises(ArgumentError, match=r"is periodic along \['y'\]. Take `diff"):
        em.far_field(near_of(periods), em.direction(PHI))
    near = near_of(em.Boundaries.all(em.CPML(8)))
    with pytest.raises(ArgumentError, match="must have 2 components along the last"):
        em.far_field(near, em.direction(PHI, PHI))
    with pytest.raises(ArgumentError, match="must have 2 coordinates along the last"):
        em.project_fields(near, np.zeros(3))
    plane = em.NearFieldMonitor((0.0, 0.0), (9 * CELL, 0.0), FREQUENCY, "+y")
    part = em.simulate(short(plane)).monitors["near"]
    with pytest.raises(ArgumentError, match="must cover a whole period"):
        em.diffraction_orders(part)
    with pytest.raises(ArgumentError, match="recorded on one face, but has"):
        em.diffraction_orders(near)


def short(monitor=None, boundaries=None):
    return scene(monitor=monitor, boundaries=boundaries, steps=10)


def near_of(boundaries):
    return em.simulate(short(boundaries=boundaries)).monitors["near"]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("polarisation", "medium", "face", "spread"),
    [
        ("Hz", {"permittivity": {"Ex": 1.0, "Ey": 2.0}}, "+y", 2 / 3),
        ("Hz", {"permittivity": {"Ex": 2.0, "Ey": 2.0}}, "+y", 0),
        ("Ez", {"permeability": {"Hx": 1.5, "Hy": 1.0}}, "-x", 0.4),
        ("Hz", {"permeability": 1.5}, "-x", 0),
    ],
)
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_the_material_across_a_face_is_compared(polarisation, medium, face, spread):
    size = (FREE, 0.0) if face[1] == "y" else (0.0, FREE)
    monitor = em.NearFieldMonitor((0.0, 0.0), size, FREQUENCY, face)
    sim = scene(polarisation, em.Medium(**medium), monitor, steps=10)
    near = em.simulate(sim).monitors["near"]
    assert float(near.spread) == pytest.approx(spread, rel=1e-5)
    if spread:
        with pytest.raises(ArgumentError, match="relative spread of permittivity and"):
            em.far_field(near, em.direction(PHI))
    else:
        em.far_field(near, em.direction(PHI))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fields had not decayed")
def test_three_components_on_one_face_are_compared():
    eps = {"Ex": 1.0, "Ey": 1.0, "Ez": 2.0}
    sim = em.Simulation(
        Grid.centred((6, 6, 30), CELL),
        em.Medium(eps),
        em.Boundaries(x=em.Periodic(), y=em.Periodic(), z=em.CPML(8)),
        sources={"dipole": em.Dipole("Ex", (0.0, 0.0, 0.0), PULSE)},
        monitors={
            "near": em.NearFieldMonitor((0, 0, 0), (FREE, FREE, 0), FREQUENCY, "+z")
        },
        steps=5,
    )
    near = em.simulate(sim).monitors["near"]
    with pytest.raises(ArgumentError, match=r"must be 0, but is 0\.\d"):
        em.diffraction_orders(near)
