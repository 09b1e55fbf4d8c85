"""Layers in 1-D: Fresnel, thin films, a conductor, and the bands of a crystal."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.grid import Grid
from physax.units import EPSILON_0, SPEED_OF_LIGHT


DATA = json.loads((Path(__file__).parent / "data" / "em_analytic.json").read_text())
FILMS = {row["name"]: row for row in DATA["thin_film_normal"]["rows"]}
FILMS["Fresnel 1 to 2"] = {
    "n_re": [1.0, 2.0],
    "n_im": [0.0, 0.0],
    "d_um": [None, None],
    "lambda_um": 1.0,
    "R": 1 / 9,
    "T": 8 / 9,
}
METAL = "metal 0.05+3i d=0.03"
NAMES = [name for name in FILMS if name != METAL]
LAMBDAS = sorted({film["lambda_um"] for film in FILMS.values()})

MICRO = 1e-6
# 136 cells a wavelength in the densest film, 275 or more in glass.
CELLS, WIDTH, START = 1320, 2e-3, 0.9


def covered(low, high):
    """Returns the part of each node's cell between two positions in micrometres."""
    x = np.arange(CELLS) * WIDTH
    high = np.minimum(high, x + WIDTH / 2)
    return np.clip((high - np.maximum(low, x - WIDTH / 2)) / WIDTH, 0, 1)


def stack(film):
    """Returns the permittivity and conductivity of a film, averaged over each cell."""
    omega = 2 * np.pi * SPEED_OF_LIGHT / (film["lambda_um"] * MICRO)
    epsilon = (np.array(film["n_re"]) + 1j * np.array(film["n_im"])) ** 2
    thick = [START, *film["d_um"][1:-1], np.inf]
    edges = np.r_[-np.inf, np.cumsum(thick)]
    total = sum(
        e * covered(low, high)
        for e, low, high in zip(epsilon, edges[:-1], edges[1:], strict=True)
    )
    return total.real, total.imag * omega * EPSILON_0


def metal(film):
    """Returns a film of the Drude metal that has its index at its wavelength."""
    frequency = SPEED_OF_LIGHT / (film["lambda_um"] * MICRO)
    index = film["n_re"][1] + 1j * film["n_im"][1]
    inverse = 1 / (1 - index**2)  # (f^2 + i f damping) / plasma^2
    plasma = frequency / np.sqrt(inverse.real)
    pole = em.Drude(plasma, plasma**2 * inverse.imag / frequency)
    part = covered(START, START + film["d_um"][1])
    (inside,) = np.nonzero(part)
    box = ((inside[0], inside[-1] + 1),)
    return em.Medium(dispersions=em.Dispersion(box, pole, jnp.asarray(part[inside])))


@pytest.fixture(scope="module")
def powers():
    """Returns the reflected and transmitted power of every film, of most at once."""
    frequencies = SPEED_OF_LIGHT / (np.array(LAMBDAS) * MICRO)
    grid = Grid.uniform((CELLS,), WIDTH * MICRO)
    dt = 0.99 * WIDTH * MICRO / SPEED_OF_LIGHT
    # The total field starts at 0.6 um and does not end: the exit may be a half space.
    wave = em.PlaneWave(
        "+x",
        "Ez",
        (1.2 * MICRO,),
        (1.2 * MICRO,),
        em.GaussianPulse(np.mean(frequencies), np.ptp(frequencies) / 2),
        exit=False,
    )
    monitors = {
        name: em.FluxMonitor("x", (x * MICRO,), (0.0,), frequencies)
        for name, x in {"reflected": 0.4, "through": 2.2}.items()
    }

    def run(medium):
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries.all(em.CPML(100, reflection=1e-8, alpha_max=0.0)),
            sources={"wave": wave},
            monitors=monitors,
            steps=28_000,
            dt=dt,
        )
        result = em.simulate(sim).monitors
        return result["reflected"].flux, result["through"].flux

    media = [(np.ones(CELLS), np.zeros(CELLS)), *(stack(FILMS[n]) for n in NAMES)]
    epsilon, sigma = (jnp.asarray(np.stack(part)) for part in zip(*media, strict=True))
    many = jax.vmap(lambda e, s: run(em.Medium(e, conductivity=s)))(epsilon, sigma)
    one = run(metal(FILMS[METAL]))
    reflected, through = (np.vstack(parts) for parts in zip(many, one, strict=True))
    found, names = {}, [*NAMES, METAL]
    for name, back, forth in zip(names, reflected[1:], through[1:], strict=True):
        f = LAMBDAS.index(FILMS[name]["lambda_um"])
        found[name] = -back[f] / through[0, f], forth[f] / through[0, f]
    return found


@pytest.mark.parametrize("name", FILMS)
def test_film_reflects_and_transmits_as_the_transfer_matrix(powers, name):
    film, (r, t) = FILMS[name], powers[name]
    print(f"dR {r - film['R']:+.1e}, dT {t - film['T']:+.1e}")
    assert r == pytest.approx(film["R"], abs=1e-3)
    assert t == pytest.approx(film["T"], abs=1e-3)


def test_lossless_films_conserve_power(powers):
    # Fluxes do not depend on the plane. What has not yet left the film is missing: 3e-6
    # of the longest-lived Bragg stack, against 5e-9 after 48,000 steps. Rounding in
    # float32 adds up to some 1e-6.
    for name in NAMES:
        if not any(FILMS[name]["n_im"]):
            assert sum(powers[name]) == pytest.approx(1, abs=1e-5)


LAYERS = [*[(2.0, 0.125), (1.25, 0.2)] * 4, (2.0, 0.125)]
"""Index and thickness in micrometres of the layers of a mirror for 1 um."""


def reflected_by_a_mirror(frequencies, width, reach):
    """Returns R of the mirror, each layer reaching a part of its thickness too far."""
    x = -sum(d for _, d in LAYERS) / 2 * MICRO + 0.3 * width
    half, structures = -x, []
    for n, thick in LAYERS:
        end = x + thick * MICRO * (1 + reach * (len(structures) < len(LAYERS) - 1))
        box = em.Box.from_corners(x, end)
        structures.append(em.Structure(box, em.Material(permittivity=n**2)))
        x += thick * MICRO
    cells = 2 * round((half + 0.8 * MICRO) / width)
    grid = Grid.centred((cells,), width)
    dt = 0.98 * width / SPEED_OF_LIGHT
    pulse = em.GaussianPulse(np.mean(frequencies), np.ptp(frequencies) / 2)
    wave = em.PlaneWave("+x", "Ez", (0.0,), (2 * half + 0.4 * MICRO,), pulse)

    def flux(medium, place):
        sim = em.Simulation(
            grid,
            medium,
            em.Boundaries.all(em.CPML(round(0.3 * MICRO / width), reflection=1e-8)),
            sources={"wave": wave},
            monitors={"power": em.FluxMonitor("x", (place,), (0.0,), frequencies)},
            steps=round(4e-13 / dt),
            dt=dt,
        )
        return np.asarray(em.simulate(sim).monitors["power"].flux)

    back = flux(em.rasterise(structures, grid), -half - 0.27 * MICRO)
    return -back / flux(em.Medium(), half + 0.1 * MICRO)


@pytest.mark.slow
def test_layers_that_touch_inside_cells_are_of_second_order():
    frequencies = SPEED_OF_LIGHT / MICRO * np.linspace(0.8, 1.2, 21)
    exact = []
    for frequency in frequencies:
        total = np.eye(2)
        for n, thick in LAYERS:
            phase = 2 * np.pi * frequency * n * thick * MICRO / SPEED_OF_LIGHT
            sine = 1j * np.sin(phase)
            total = total @ [[np.cos(phase), -sine / n], [-n * sine, np.cos(phase)]]
        (a, b), (c, d) = total
        exact.append(abs((a + b - c - d) / (a + b + c + d)) ** 2)
    errors = []
    for width in (12.5e-9, 6.25e-9):
        found = reflected_by_a_mirror(frequencies, width, 0.0)
        over = reflected_by_a_mirror(frequencies, width, 0.5)
        assert np.max(np.abs(found - over)) < 1e-4
        errors.append(np.max(np.abs(found - exact)))
    print(f"largest errors of R {errors}")
    assert errors[1] < 5e-3
    assert np.log2(errors[0] / errors[1]) > 1.8


def complex_wavenumber(cells):
    """Returns k / k0 in a conductor of 1e4 S/m, `cells` to a vacuum wavelength."""
    wavelength, total = 1 * MICRO, 6 * cells
    width = wavelength / cells
    frequency = SPEED_OF_LIGHT / wavelength
    sigma = np.where(np.arange(total) > cells, 1e4, 0.0)
    sigma[cells] /= 2
    depth = 1.5 * MICRO
    sim = em.Simulation(
        Grid.uniform((total,), width),
        em.Medium(conductivity=jnp.asarray(sigma)),
        em.Boundaries.all(em.CPML(cells // 4)),
        sources={
            "wave": em.PlaneWave(
                "+x",
                "Ez",
                (1 * MICRO,),
                (1 * MICRO,),
                em.GaussianPulse(frequency, frequency / 8),
                exit=False,
            )
        },
        monitors={
            "field": em.FieldMonitor(
                ("Ez",), (1.5 * MICRO + depth / 2,), (depth,), frequency
            )
        },
        steps=40 * cells,
    )
    field = em.simulate(sim).monitors["field"]
    values = np.log(np.asarray(field.values["Ez"][0], complex))
    values = values.real + 1j * np.unwrap(values.imag)
    x = np.asarray(field.coordinates["Ez"][0])
    return np.polyfit(x - x[0], values, 1)[0] / (2j * np.pi / wavelength)


def test_skin_depth_of_a_conductor():
    # k = k0 sqrt(1 + i sigma / (w eps0)): the field falls to 1/e in 552.473 nm.
    omega = 2 * np.pi * SPEED_OF_LIGHT / MICRO
    exact = np.sqrt(1 + 1e4j / (omega * EPSILON_0))
    assert 1e3 / (2 * np.pi * exact.imag) == pytest.approx(552.473, abs=1e-3)
    found = complex_wavenumber(40)
    print(
        f"skin depth {found.imag / exact.imag - 1:+.1e}, phase {found / exact - 1:.1e}"
    )
    # (k dx)^2 / 24 is 1e-3 here.
    assert found.imag == pytest.approx(exact.imag, rel=2e-3)
    assert found.real == pytest.approx(exact.real, rel=2e-3)


PERIOD = 240
"""Cells of a crystal: 60 to a wavelength in the denser layer at the highest edge."""


@pytest.fixture(scope="module")
def crystal_spectra():
    """Returns frequencies in c / period, and spectra by crystal and by k = 0, pi."""
    width = MICRO / PERIOD
    x = (np.arange(PERIOD) + 0.5) / PERIOD
    media = []
    for row in DATA["band_edges_1d"]["rows"]:
        part = np.clip((row["d1"] - x) * PERIOD + 0.5, 0, 1)
        # The other face of layer 1 lies between the nodes 239 and 0.
        media.append(row["n2"] ** 2 + (row["n1"] ** 2 - row["n2"] ** 2) * part)
    steps, every = 120_000, 60

    def traces(epsilon, wavevector):
        # A kick away from the planes of symmetry excites the modes of both parities.
        pulse = em.Ricker(0.5 * SPEED_OF_LIGHT / MICRO)
        sim = em.Simulation(
            Grid.uniform((PERIOD,), width),
            em.Medium(epsilon),
            em.Boundaries.all(em.Bloch(wavevector)),
            sources={
                "kick": em.Dipole("Ez", (0.38 * MICRO,), pulse),
            },
            monitors={
                "trace": em.TimeMonitor(("Ez",), (0.5 * MICRO,), (0.6 * MICRO,), every)
            },
            steps=steps,
        )
        return em.simulate(sim).monitors["trace"].values["Ez"], sim.dt

    epsilon = jnp.asarray(np.stack(media))
    k = jnp.asarray([0.0, np.pi / MICRO])
    both = jax.vmap(jax.vmap(traces, (None, 0)), (0, None))
    values, dt = both(epsilon, k)
    # After the pulse; side lobes of this window are 1e-3 and less. Zeros fill in
    # between the bins of the spectrum.
    values = np.asarray(values, complex)[..., 50:, :]
    values = values * np.blackman(values.shape[-2])[:, None]
    count = 32 * values.shape[-2]
    spectra = np.sqrt(np.mean(np.abs(np.fft.fft(values, count, axis=-2)) ** 2, axis=-1))
    unit = SPEED_OF_LIGHT / MICRO
    frequencies = np.fft.fftfreq(count, every * float(dt[0, 0])) / unit
    keep = (frequencies > 0.05) & (frequencies < 1.25)
    return frequencies[keep], spectra[..., keep]


def peaks(frequencies, spectrum):
    top = spectrum[1:-1]
    high = (top > spectrum[:-2]) & (top >= spectrum[2:]) & (top > 2e-3 * top.max())
    return frequencies[1:-1][high]


@pytest.mark.slow
@pytest.mark.parametrize(("crystal", "peak_count"), [(0, 10), (1, 5), (2, 6)])
def test_band_edges_of_a_crystal(crystal_spectra, crystal, peak_count):
    frequencies, spectra = crystal_spectra
    edges = np.array(DATA["band_edges_1d"]["rows"][crystal]["edges"])
    found = np.concatenate([peaks(frequencies, s) for s in spectra[crystal]])
    nearest = found[np.argmin(np.abs(found[:, None] - edges), axis=0)]
    error = np.max(np.abs(nearest / edges - 1))
    print(f"largest error {error:.1e}, peaks {np.sort(found)}")
    assert error < 2e-3
    # The quarter-wave stacks have gaps of no width besides: one in the second crystal
    # (2/3), two in the third.
    assert len(found) == peak_count
