"""Diffraction orders: Fresnel, gratings against coupled waves, sums to the flux."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import ETA_0, MICRO, SPEED_OF_LIGHT


# Waves along the layers are slow to leave: those of other orders, close to their onset.
pytestmark = pytest.mark.filterwarnings("ignore:The fields had not decayed")

# A Bloch wavevector at which all orders are at least 12 % from their onset.
TILT = 2e6
FREQUENCY = SPEED_OF_LIGHT / MICRO
FREE = float("inf")
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 16)


def planes(low, high, middle=0.0, ndim=2):
    """Returns monitors of one face each, along the last axis."""
    size = (FREE,) * (ndim - 1) + (0.0,)
    axis = "xyz"[ndim - 1]

    def one(height, face):
        centre = (middle,) * (ndim - 1) + (height,)
        return em.NearFieldMonitor(centre, size, FREQUENCY, (face + axis,))

    return {"reflected": one(low, "-"), "sent": one(high, "+")}


def grating(polarisation, depth=0.4, period=30, permittivity=4.0, cells=20, tilt=0.0):
    """Runs a rectangular grating of half its period on a substrate of index 1.5."""
    width = MICRO / cells
    layers, gap = 12, cells // 2
    # The grating begins on a node: the average then is that of whole cells, for Ez.
    start = layers + 2 * gap
    deep = round(depth * cells)
    shape = period, start + deep + gap + layers
    level = np.full(shape, 1.0)
    level[: period // 2, start : start + deep] = permittivity
    level[:, start + deep :] = 2.25
    # Values at nodes on an edge of a cell are the mean of both sides.
    if polarisation == "Ez":
        level = (level + np.roll(level, 1, 0)) / 2
        level[:, 1:] = (level[:, 1:] + level[:, :-1]) / 2
        medium = em.Medium(jnp.asarray(level))
    else:
        across = level.copy()
        across[:, 1:] = (level[:, 1:] + level[:, :-1]) / 2
        along = 2 / (1 / level + 1 / np.roll(level, 1, 0))
        medium = em.Medium({"Ex": jnp.asarray(across), "Ey": jnp.asarray(along)})
    component = "Ez" if polarisation == "Ez" else "Ex"
    middle = (layers + gap + 0.5 * gap) * width
    wave = em.PlaneWave(
        "+y", component, (0.0, middle), (FREE, gap * width), PULSE, exit=False
    )
    side = em.Periodic() if tilt == 0 else em.Bloch(tilt)
    sim = em.Simulation(
        Grid.uniform(shape, width),
        medium,
        em.Boundaries(x=side, y=em.CPML(layers)),
        sources={"wave": wave},
        monitors={
            **planes((layers + gap / 2) * width, (start + deep + gap / 2) * width),
            "flux": em.FluxMonitor(
                "y", (0.0, (start + deep + gap / 2) * width), (FREE, 0.0), FREQUENCY
            ),
            "incident": em.NearFieldMonitor(
                (0.0, (layers + 1.5 * gap) * width), (FREE, 0.0), FREQUENCY, "-y"
            ),
        },
        polarisation=polarisation,
        steps=3000,
    )
    return em.simulate(sim).monitors


def coupled_waves(polarisation, depth, period, permittivity, orders=40):
    """Returns efficiencies of the reflected and the transmitted orders.

    Rigorous coupled waves of one layer at normal incidence from vacuum, lengths in
    wavelengths: Moharam et al., J. Opt. Soc. Am. A 12, 1068 (1995), with the
    factorisation of Li, J. Opt. Soc. Am. A 13, 1870 (1996) for Hz.
    """
    m = np.arange(-orders, orders + 1)
    kx = np.diag(m / period)

    def toeplitz(inside, outside):
        n = m[:, None] - m
        safe = np.where(n == 0, 1, n)
        part = (1 - np.exp(-1j * np.pi * n)) / (2j * np.pi * safe)
        return (inside - outside) * np.where(n == 0, 0.5, part) + outside * (n == 0)

    eps, inverse = toeplitz(permittivity, 1), toeplitz(1 / permittivity, 1)
    one = np.eye(len(m))
    before = np.sqrt(1 - np.diag(kx) ** 2 + 0j)
    behind = np.sqrt(2.25 - np.diag(kx) ** 2 + 0j)
    if polarisation == "Ez":
        squares, vectors = np.linalg.eig(eps - kx @ kx)
        q = np.sqrt(squares + 0j)
        other = vectors * q
    else:
        rows = np.linalg.inv(inverse)
        squares, vectors = np.linalg.eig(rows @ (one - kx @ np.linalg.inv(eps) @ kx))
        q = np.sqrt(squares + 0j)
        other = inverse @ vectors * q
        behind = behind / 2.25
    q, phase = q, np.diag(np.exp(2j * np.pi * q * depth))
    # Unknowns: reflected, waves down and up in the layer, transmitted.
    zero = np.zeros_like(one)
    system = np.block(
        [
            [-one, vectors, vectors @ phase, zero],
            [np.diag(before), other, -other @ phase, zero],
            [zero, vectors @ phase, vectors, -one],
            [zero, other @ phase, -other, -np.diag(behind)],
        ]
    )
    source = np.zeros(4 * len(m), complex)
    source[orders], source[len(m) + orders] = 1, 1
    found = np.linalg.solve(system, source)
    r, t = found[: len(m)], found[-len(m) :]
    return abs(r) ** 2 * before.real, abs(t) ** 2 * behind.real


@pytest.mark.slow
@pytest.mark.x64
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_grating_against_coupled_waves(polarisation):
    found = grating(polarisation)
    incident = em.diffraction_orders(found["incident"], incoming=True)
    power = float(jnp.sum(incident.power))
    # 30 cells at 20 per wavelength: 1.5 wavelengths, depth 0.4.
    r, t = coupled_waves(polarisation, 0.4, 1.5, 4.0)
    assert np.sum(r) + np.sum(t) == pytest.approx(1, abs=1e-9)
    for name, exact in (("reflected", r), ("sent", t)):
        orders = em.diffraction_orders(found[name])
        m = np.asarray(orders.orders[0])
        expected = exact[m + len(exact) // 2]
        # 10 cells per wavelength in the ridges; a fourth of that at 20.
        assert np.asarray(orders.power[0]) / power == pytest.approx(expected, abs=0.012)


@pytest.mark.slow
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_orders_sum_to_the_flux(polarisation):
    found = grating(polarisation, period=20, tilt=TILT)
    orders = em.diffraction_orders(found["sent"])
    total = float(jnp.sum(orders.power))
    near = float(found["sent"].outflow[0])
    assert total == pytest.approx(near, rel=1e-4)
    assert float(found["flux"].flux[0]) == pytest.approx(near, rel=1e-4)
    # All that enters leaves.
    incident = em.diffraction_orders(found["incident"], incoming=True)
    reflected = em.diffraction_orders(found["reflected"])
    balance = total + float(jnp.sum(reflected.power))
    assert balance == pytest.approx(float(jnp.sum(incident.power)), rel=2e-3)
    # Directions: k_m over the wavenumber of the substrate.
    m = np.asarray(orders.orders[0])
    goes = np.asarray(orders.propagating[0])
    cosines = (TILT + 2 * np.pi * m / MICRO) / (2 * np.pi / MICRO * 1.5)
    assert np.asarray(orders.directions[0, goes, 0]) == pytest.approx(
        cosines[goes], rel=0.03
    )
    assert np.all(np.asarray(orders.directions[0, goes, 1]) > 0)


def slab(ndim=2, polarisation="Ez", component="Ez", bloch=None):
    """Runs a half space of index 2 from vacuum, 40 cells per wavelength."""
    width = MICRO / 40
    shape = (4,) * (ndim - 1) + (60,)
    level = np.ones(shape)
    level[..., 31:] = 4.0
    level[..., 30] = 2.5
    sides = {"x": em.Periodic()} if bloch is None else {"x": em.Bloch(bloch)}
    if ndim == 3:
        sides["y"] = em.Periodic()
    axis = "xyz"[ndim - 1]
    middle = (0.0,) * (ndim - 1)
    wave = em.PlaneWave(
        "+" + axis,
        component,
        (*middle, 20 * width),
        (FREE,) * (ndim - 1) + (6 * width,),
        PULSE,
        exit=False,
    )
    size = (FREE,) * (ndim - 1) + (0.0,)

    def plane(cell, face):
        return em.NearFieldMonitor(
            (*middle, cell * width), size, FREQUENCY, face + axis
        )

    sim = em.Simulation(
        Grid.uniform(shape, width),
        em.Medium(jnp.asarray(level)),
        em.Boundaries(**sides, **{axis: em.CPML(12)}),
        sources={"wave": wave},
        monitors={
            "incident": plane(25, "-"),
            "sent": plane(40, "+"),
            "back": plane(14, "-"),
        },
        polarisation=polarisation if ndim == 2 else None,
        steps=1600 if ndim == 2 else 1900,
    )
    return em.simulate(sim).monitors


def fresnel(near):
    """Returns amplitude and power sent into index 2 by the equations of the grid."""
    width, dt = MICRO / 40, float(near.dt)
    # Frequency over the speed of light, as the leapfrog sees it.
    seen = 2 * np.sin(np.pi * FREQUENCY * dt) / dt / SPEED_OF_LIGHT
    half = np.arcsin(np.array([1, 2]) * seen * width / 2)
    before, behind = np.exp(1j * half)
    # The row of E on the interface, of permittivity 2.5, with H half a cell beside it.
    sent = 2 * np.cos(half[0]) / (before + 2 * behind - 2.5j * seen * width)
    return abs(sent), 2 * np.cos(half[1]) / np.cos(half[0]) * abs(sent) ** 2


@pytest.mark.slow(after=1)
@pytest.mark.parametrize(
    ("ndim", "polarisation", "component", "name"),
    [(2, "Ez", "Ez", "Ez"), (2, "Hz", "Ex", "Hz"), (3, None, "Ey", "s")],
)
def test_fresnel(ndim, polarisation, component, name):
    found = slab(ndim, polarisation, component)
    sent = em.diffraction_orders(found["sent"], orders=(0,) * (ndim - 1))
    back = em.diffraction_orders(found["back"], orders=(0,) * (ndim - 1))
    into = em.diffraction_orders(found["incident"], (0,) * (ndim - 1), incoming=True)
    power = float(into.power.ravel()[0])
    passed, share = fresnel(found["sent"])
    # The films of `test_films` are off by 1.8e-5 at 500 cells per wavelength, these
    # have 40: 2.8e-3 by the second order.
    assert share == pytest.approx(8 / 9, abs=3e-3)
    assert float(sent.power.ravel()[0]) / power == pytest.approx(share, abs=1e-4)
    assert float(back.power.ravel()[0]) / power == pytest.approx(1 - share, abs=1e-4)
    # In the continuum 2/3 of E, 4/3 of eta0 H.
    amplitude = {k: abs(v.ravel()[0]) for k, v in sent.values.items()}
    arrived = abs(into.values[name].ravel()[0])
    expected = 2 * passed if name == "Hz" else passed
    assert float(amplitude[name] / arrived) == pytest.approx(expected, rel=1e-4)
    if ndim == 3:
        assert float(amplitude["p"]) < 1e-5 * arrived
        # The other order of the same plane tells nothing of the wave's direction.
        assert np.asarray(sent.directions).ravel() == pytest.approx([0, 0, 1])
        assert np.asarray(back.directions).ravel() == pytest.approx([0, 0, -1])


@pytest.mark.parametrize(("component", "name"), [("Ex", "p"), ("Ey", "s")])
def test_amplitudes_of_oblique_waves_in_3d_are_those_of_the_field(component, name):
    width, angle = MICRO / 20, np.radians(35)
    along = 2 * np.pi / MICRO * np.sin(angle)
    wave = em.PlaneWave(
        "+z", component, (0, 0, 20 * width), (FREE, FREE, 6 * width), PULSE, exit=False
    )
    at, plane = (0, 0, 35 * width), (FREE, FREE, 0)
    sim = em.Simulation(
        Grid.uniform((4, 4, 60), width),
        em.Medium(),
        em.Boundaries(x=em.Bloch(along), y=em.Periodic(), z=em.CPML(16)),
        sources={"wave": wave},
        monitors={
            "far": em.NearFieldMonitor(at, plane, FREQUENCY, "+z"),
            "near": em.FieldMonitor(("Ex", "Ey", "Ez"), at, (0, 0, 0), FREQUENCY),
        },
        steps=2500,
    )
    found = em.simulate(sim).monitors
    order = em.diffraction_orders(found["far"], orders=(0, 0))
    squares = [abs(complex(v.ravel()[0])) ** 2 for v in found["near"].values.values()]
    # In V fs/m: `approx` takes all numbers below 1e-12 as equal.
    field = np.sqrt(sum(squares)) * 1e15
    other = {"p": "s", "s": "p"}[name]
    amplitudes = {k: abs(complex(v.ravel()[0])) * 1e15 for k, v in order.values.items()}
    assert amplitudes[name] == pytest.approx(field, rel=1e-3)
    assert amplitudes[other] < 1e-6 * field
    # A wave carries E^2 / 2 eta0 through its own cross-section; on the grid 0.8 % less,
    # by the cosine of the phase over half a cell.
    flow = field**2 / (2 * ETA_0) * np.cos(angle) * (4 * width) ** 2
    power = float(order.power.ravel()[0])
    assert power / flow == pytest.approx(1, rel=1e-2)
    wanted = [np.sin(angle), 0, np.cos(angle)]
    assert np.asarray(order.directions).ravel() == pytest.approx(wanted, abs=2e-5)


def test_orders_under_jit_and_what_is_refused():
    near = slab()["sent"]
    with pytest.raises(ArgumentError, match="`orders` must be given under `jit`"):
        jax.jit(lambda n: em.diffraction_orders(n).power)(near)
    found = jax.jit(lambda n: em.diffraction_orders(n, (1,)).power)(near)
    assert found.shape == (1, 3)
    with pytest.raises(ArgumentError, match="less than half the 4 cells along x"):
        em.diffraction_orders(near, (2,))
    with pytest.raises(ArgumentError, match="one entry for each of the 1 axes"):
        em.diffraction_orders(near, (0, 0))
