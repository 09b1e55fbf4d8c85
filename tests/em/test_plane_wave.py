"""The total-field, scattered-field source: what is inside its box, and outside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid, smooth_edges
from physax.units import MICRO, NANO, SPEED_OF_LIGHT


CELL = 50 * NANO
CARRIER = SPEED_OF_LIGHT / (1 * MICRO)
PULSE = em.GaussianPulse(CARRIER, CARRIER / 4)
CELLS = {1: 60, 2: 40, 3: 26}
BOX = {1: 24, 2: 14, 3: 6}
STEPS = {1: 500, 2: 500, 3: 350}


def leak_limit():
    """A few roundings of the incident wave, in either precision."""
    return 1e-12 if jnp.result_type(float) == jnp.float64 else 1e-6


EVERYWHERE = float("inf")


def inside(coordinates, half):
    """Tells which samples lie in the box, its border included."""
    masks = [np.abs(np.asarray(x)) <= half + 1e-3 * CELL for x in coordinates]
    return np.all(np.array(np.meshgrid(*masks, indexing="ij")), axis=0)


WAVES = {
    "1-D up": (1, None, ["+x Ez"]),
    "1-D down": (1, None, ["-x Ez"]),
    "2-D Ez": (2, "Ez", ["+x Ez", "-x Ez", "+y Ez", "-y Ez"]),
    "2-D Hz": (2, "Hz", ["+x Ey", "-x Ey", "+y Ex", "-y Ex"]),
    "3-D up": (3, None, ["+x Ey", "+y Ez", "+z Ex"]),
    "3-D down": (3, None, ["-x Ez", "-y Ex", "-z Ey"]),
}
SLOW = ("3-D up", "3-D down")


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=pytest.mark.slow if c in SLOW else ()) for c in WAVES],
)
def test_empty_box_leaks_nothing(case):
    # All directions at once, which a leak of any one would spoil.
    ndim, polarisation, waves = WAVES[case]
    half = BOX[ndim] / 2 * CELL
    box = (0.0,) * ndim, (2 * half,) * ndim
    names = tuple(sorted({w[3:] for w in waves}))
    sim = em.Simulation(
        Grid.centred((CELLS[ndim],) * ndim, CELL),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={w: em.PlaneWave(w[:2], w[3:], *box, PULSE, 2.0) for w in waves},
        monitors={
            "all": em.TimeMonitor(names, (0.0,) * ndim, (EVERYWHERE,) * ndim),
            "middle": em.TimeMonitor(names, (0.0,) * ndim, (0.0,) * ndim),
        },
        polarisation=polarisation,
        steps=STEPS[ndim],
    )
    found = em.simulate(sim).monitors
    for name in names:
        # In the middle all waves with one component meet in phase. Half a cell off it
        # and half a step off the peak they have lost some 5 percent.
        peak = np.abs(found["middle"].values[name]).max()
        meeting = sum(w[3:] == name for w in waves)
        assert peak == pytest.approx(2.0 * meeting, rel=0.1)
        values = np.asarray(found["all"].values[name])
        box = inside(found["all"].coordinates[name], half)
        assert np.abs(values[:, ~box]).max() <= leak_limit() * peak
        # The pulse is over: exp(-6^2 / 2), or what rounding leaves in the box.
        assert np.abs(values[-1]).max() <= 1e-5 * peak


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("direction", ["+x", "-x"])
def test_box_leaks_nothing_on_a_graded_grid(direction):
    edges = smooth_edges(
        -1.5 * MICRO,
        1.5 * MICRO,
        coarse=50 * NANO,
        fine=20 * NANO,
        region=(-0.2 * MICRO, 0.2 * MICRO),
        ratio=1.1,
    )
    wave = em.PlaneWave(direction, "Ez", (0.0,), (2 * MICRO,), PULSE)
    sim = em.Simulation(
        Grid.graded([edges]),
        boundaries=em.Boundaries.all(em.CPML(8)),
        sources={"wave": wave},
        monitors={"all": em.TimeMonitor(("Ez",), (0.0,), (EVERYWHERE,))},
        steps=1200,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.asarray(series.values["Ez"])
    box = inside(series.coordinates["Ez"], 1 * MICRO + 25 * NANO)
    peak = np.abs(values[:, box]).max()
    assert peak == pytest.approx(1.0, rel=0.05)
    assert np.abs(values[:, ~box]).max() <= leak_limit() * peak


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
@pytest.mark.parametrize("direction", ["+x", "-x"])
def test_a_box_that_ends_across_the_phase_leaks_nothing(polarisation, direction):
    component = "Ez" if polarisation == "Ez" else "Ey"
    along = 2 * np.pi * CARRIER / SPEED_OF_LIGHT * np.sin(0.6)
    middle, size = (0.0, 1.5 * CELL), (20 * CELL, 6 * CELL)
    sim = em.Simulation(
        Grid.centred((60, 12), CELL),
        boundaries=em.Boundaries(x=em.CPML(10), y=em.Bloch(along)),
        sources={"wave": em.PlaneWave(direction, component, middle, size, PULSE)},
        monitors={"all": em.TimeMonitor((component,), (0.0, 0.0), (EVERYWHERE,) * 2)},
        polarisation=polarisation,
        steps=300,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.abs(series.values[component]).max(axis=0)
    x, y = series.coordinates[component]
    ends = zip((x, y), middle, size, strict=True)
    # Faces lie on nodes, half a cell from some of the samples.
    wide = [abs(np.asarray(at) - mid) < length / 2 + CELL for at, mid, length in ends]
    outside = ~np.logical_and.outer(*wide)
    assert values.max() > 0.5
    assert values[outside].max() <= leak_limit() * values.max()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
@pytest.mark.parametrize("direction", ["+x", "-x"])
def test_oblique_sheet_sends_nothing_back(polarisation, direction):
    # 40 degrees from the normal at the carrier, by the phase of one period along y. The
    # run ends before the layer, 290 cells away, can send anything back.
    period = 4 * CELL
    along = 2 * jnp.pi * CARRIER / SPEED_OF_LIGHT * jnp.sin(jnp.radians(40.0))
    component = "Ez" if polarisation == "Ez" else "Ey"
    pulse = em.GaussianPulse(CARRIER, CARRIER / 8)
    box = (0.0, 0.0), (20 * CELL, EVERYWHERE)
    sim = em.Simulation(
        Grid.centred((600, 4), CELL),
        boundaries=em.Boundaries(x=em.CPML(10), y=em.Bloch(along)),
        sources={"wave": em.PlaneWave(direction, component, *box, pulse, exit=False)},
        monitors={"all": em.TimeMonitor((component,), (0.0, 0.0), (EVERYWHERE,) * 2)},
        polarisation=polarisation,
        steps=560,
    )
    series = em.simulate(sim).monitors["all"]
    values = np.asarray(series.values[component])
    x = np.asarray(series.coordinates[component][0]) * float(direction[0] + "1")
    total = x >= -10.1 * CELL
    peak = np.abs(values[:, total]).max()
    assert np.iscomplexobj(values)
    assert values.real.dtype == jnp.result_type(float)
    assert peak == pytest.approx(1.0, rel=0.05)
    assert np.abs(values[:, ~total]).max() <= leak_limit() * peak
    # The wave has the phase of the Bloch vector from cell to cell.
    row = values[300, np.argmin(np.abs(x))]
    turn = np.exp(1j * float(along) * period / 4)
    np.testing.assert_allclose(row[1:], row[:-1] * turn, rtol=1e-4)


def spectrum_peak(pulse):
    """Modulus of the pulse's spectrum at its carrier, in seconds."""
    tau = 1 / (2 * np.pi * float(pulse.bandwidth))
    return tau * np.sqrt(2 * np.pi) / 2


def at_carrier(permittivity=1.0):
    """Returns a simulation with a wave of 3 V/m that is measured inside its box."""
    pulse = em.GaussianPulse(CARRIER, CARRIER / 10)
    return em.Simulation(
        Grid.centred((60,), CELL),
        em.Medium(permittivity),
        em.Boundaries.all(em.CPML(10)),
        sources={
            "wave": em.PlaneWave(
                "+x", "Ez", (0.0,), (20 * CELL,), pulse, 3.0, permittivity
            )
        },
        monitors={"dft": em.FieldMonitor(("Ez",), (0.0,), (0.0,), CARRIER)},
        steps=1200,
    )


def amplitude(sim):
    """Returns the modulus of the spectrum at the carrier."""
    return jnp.abs(em.simulate(sim).monitors["dft"].values["Ez"]).ravel()[0]


@pytest.mark.parametrize("permittivity", [1.0, 2.25])
def test_amplitude_at_the_carrier_is_the_one_asked_for(permittivity):
    sim = at_carrier(permittivity)
    expected = 3 * spectrum_peak(sim.sources["wave"].pulse)
    assert float(amplitude(sim)) / expected == pytest.approx(1, rel=1e-3)


@pytest.mark.slow
def test_amplitude_batches_and_differentiates():
    sim = at_carrier()

    def measured(value):
        return amplitude(eqx.tree_at(lambda s: s.sources["wave"].amplitude, sim, value))

    one, two = jax.jit(jax.vmap(measured))(jnp.array([1.0, 2.0]))
    slope = jax.jit(jax.grad(measured))(jnp.array(2.0))
    assert float(two) / float(one) == pytest.approx(2, rel=1e-5)
    assert float(slope) / float(one) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "x"}, "`direction` must be one of .*, but is 'x'"),
        ({"component": "Ex"}, "`component` must be an electric component across"),
        ({"component": "Hz"}, "`component` must be an electric component across"),
        ({"component": "Eq"}, "`component` must be an electric component across"),
        ({"permittivity": 0.0}, "`permittivity` must be positive, but is 0"),
        ({"amplitude": float("inf")}, "`amplitude` must be finite, but is inf"),
        ({"amplitude": 1j}, "`amplitude` must be real, .* as `phase` of the pulse"),
    ],
)
def test_bad_waves_are_refused(change, message):
    given = {
        "direction": "+x",
        "component": "Ez",
        "centre": (0.0, 0.0),
        "size": (CELL, CELL),
        "pulse": PULSE,
    }
    with pytest.raises(ArgumentError, match=message):
        em.PlaneWave(**{**given, **change})


def beside(medium):
    """A wave in a medium; its faces lie at the nodes 3 and 11."""
    middle, size = (7 * CELL,) * 2, (8 * CELL,) * 2
    wave = em.PlaneWave("+x", "Ey", middle, size, PULSE)
    return em.Simulation(
        Grid.uniform((14, 14), CELL),
        medium,
        polarisation="Hz",
        sources={"wave": wave},
        steps=3,
    )


INNER, ACROSS = ((4, 10), (4, 10)), ((4, 12), (4, 10))


def tensor(box, value=0.1):
    entries = jnp.zeros([b - a for a, b in box]).at[1:, 1:].set(value)
    return em.Medium(off_diagonals=em.OffDiagonal(box, {"xy": entries}))


def powers(box, value=1e-12):
    return em.Medium(nonlinearities=em.Nonlinearity(box, chi2=value))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (tensor, "meet off-diagonal entries"),
        (powers, "meet a nonlinear susceptibility"),
    ],
)
def test_faces_want_a_plain_medium(kind, told):
    beside(kind(INNER))
    beside(kind(ACROSS, 0.0))
    message = f"faces of the plane wave 'wave' .*{told}.*move the faces"
    with pytest.raises(ArgumentError, match=message):
        beside(kind(ACROSS))


def test_faces_in_a_medium_that_is_not_known_end_as_nan():
    @jax.jit
    def field(value):
        return em.simulate(beside(tensor(ACROSS, value))).fields["Hz"]

    assert np.all(np.isfinite(field(0.0)))
    assert np.any(np.isnan(field(0.1)))


OTHER = jnp.ones((14, 14))


@pytest.mark.parametrize(
    ("medium", "told"),
    [
        (em.Medium(OTHER.at[3, 5].set(1.01)), r"must be 1, .* 1\.01 in cell \(3, 5\)"),
        # Along the upper face, where E is across it, and beside the far one.
        (em.Medium(OTHER.at[5, 11].set(0.9)), r"is 0\.9 in cell \(5, 11\)"),
        (
            em.Medium(OTHER.at[11:].set(2.0)),
            "is 2 in .*give it as .*leaves out the far",
        ),
        (em.Medium(2.25), "`permittivity` .* the plane wave 'wave' .* is 2.25: light"),
        (em.Medium({"Ex": 1.0, "Ey": 2.0}), "`permittivity` .* is 2: light"),
        (em.Medium(permeability=1.5), "`permeability` .* is 1.5: .* Move the faces"),
        (em.Medium(conductivity=1e3), "`conductivity` .* must be 0, .* is 1000"),
        (em.Medium(magnetic_conductivity=1.0), "`magnetic_conductivity` .* is 1: "),
        (
            em.Medium(regions=em.DesignRegion(((2, 4), (5, 7)), jnp.full((2, 2), 3.0))),
            r"is 3 in cell \(3, 5\)",
        ),
    ],
)
def test_faces_want_the_permittivity_of_the_wave(medium, told):
    with pytest.raises(ArgumentError, match=told):
        beside(medium)


def film(thick=slice(7, 9), sides=None, **options):
    """Cells of glass across the whole period, in the way of a wave from vacuum."""
    options = {"size": (8 * CELL, EVERYWHERE), **options}
    wave = em.PlaneWave("+x", "Ez", (7 * CELL,) * 2, pulse=PULSE, **options)
    return em.Simulation(
        Grid.uniform((30, 14), CELL),
        em.Medium(jnp.ones((30, 14)).at[thick].set(2.25)),
        em.Boundaries(y=em.Periodic() if sides is None else sides),
        polarisation="Ez",
        sources={"wave": wave},
        steps=3,
    )


def test_films_and_half_spaces_may_cross_a_wave_without_side_faces():
    film()
    film(slice(7, None), exit=False)
    # Within the tolerance, outside of the box, and on the way of what has left it.
    film(slice(12, 16))
    beside(em.Medium(OTHER.at[3, 5].set(1.0005)))
    beside(em.Medium({"Ex": 2.0, "Ey": 1.0}))
    with pytest.raises(ArgumentError, match="is 2.25 in cell"):
        film(slice(7, None))
    with pytest.raises(ArgumentError, match="is 2.25 in cell"):
        film(size=(8 * CELL, 8 * CELL))


def test_a_tilted_wave_asks_for_the_medium_of_what_it_carries():
    # Across one Bloch vector E stays as it is; along it E and the wave turn.
    shape, size = (4, 6, 40), (EVERYWHERE, EVERYWHERE, 16 * CELL)

    def tilted(component, medium):
        wave = em.PlaneWave("+z", component, (0.0,) * 3, size, PULSE, permittivity=2.0)
        faces = em.Boundaries(x=em.Periodic(), y=em.Bloch(2e6), z=em.CPML(8))
        grid = Grid.centred(shape, CELL)
        return em.Simulation(grid, medium, faces, sources={"wave": wave}, steps=3)

    crystal = em.Medium({"Ex": 2.0, "Ey": 2.0, "Ez": 2.5})
    tilted("Ex", crystal)
    with pytest.raises(ArgumentError, match="`permittivity` .* is 2.5: light"):
        tilted("Ey", crystal)
    magnetic = em.Medium(2.0, {"Hx": 1.0, "Hy": 1.0, "Hz": 1.2})
    tilted("Ey", magnetic)
    with pytest.raises(ArgumentError, match="`permeability` .* is 1.2: light"):
        tilted("Ex", magnetic)


def test_sides_do_not_reach_the_end_of_the_grid():
    # In it the wave decays, what the sides add does not: a tenth of the wave got out.
    # Before a wall there was a beam instead of a wave, and no reflection outside.
    def beam(face):
        size = (20 * CELL, 20 * CELL)
        wave = em.PlaneWave("+x", "Ez", (0.0, 0.0), size, PULSE, exit=False)
        return em.Simulation(
            Grid.centred((60, 60), CELL),
            boundaries=em.Boundaries(x=(em.CPML(8), face), y=em.CPML(8)),
            sources={"wave": wave},
            polarisation="Ez",
            steps=3,
        )

    for layer in (em.CPML(8), em.Absorber(20), em.PEC()):
        with pytest.raises(ArgumentError, match="`exit` .* True where .* has sides"):
            beam(layer)


def test_faces_in_a_traced_medium_are_not_compared():
    jax.jit(lambda value: beside(em.Medium(value)).dt)(2.0)


@pytest.mark.parametrize(
    ("component", "wall", "fits"),
    [("Ez", em.PEC(), em.PMC()), ("Ey", em.PMC(), em.PEC())],
)
def test_walls_that_short_the_wave_are_refused(component, wall, fits):
    def between(low, high, size=EVERYWHERE):
        return em.Simulation(
            Grid.uniform((30, 14), CELL),
            boundaries=em.Boundaries(y=(low, high)),
            polarisation="Ez" if component == "Ez" else "Hz",
            sources={
                "wave": em.PlaneWave(
                    "+x", component, (7 * CELL,) * 2, (8 * CELL, size), PULSE
                )
            },
            steps=3,
        )

    names = type(wall).__name__, type(fits).__name__
    message = rf"`boundaries` along y must not short .* `{names[0]}` .*or `{names[1]}\("
    for faces in ((wall, wall), (fits, wall), (wall, em.CPML(8))):
        with pytest.raises(ArgumentError, match=message):
            between(*faces)
    between(fits, fits)
    between(wall, wall, 6 * CELL)


def tilted(wavevector, **options):
    """A wave in a medium of index 1.5 that a Bloch vector along y tilts."""
    box = (0.0, 0.0), (20 * CELL, EVERYWHERE)
    options = {"grid": Grid.centred((100, 30), CELL), **options}
    return em.Simulation(
        options["grid"],
        em.Medium(2.25),
        em.Boundaries(x=em.CPML(10), y=em.Bloch(wavevector)),
        sources={
            "wave": em.PlaneWave("+x", "Ez", *box, PULSE, permittivity=2.25, exit=False)
        },
        monitors={"line": em.TimeMonitor(("Ez",), (0.0, 0.0), (0.0, EVERYWHERE))},
        polarisation="Ez",
        steps=options.get("steps", 3),
    )


def test_bloch_vectors_above_the_light_line_are_refused():
    limit = 1.5 * 2 * np.pi * CARRIER / SPEED_OF_LIGHT
    tilted(0.999 * limit)
    message = r"`wavevector` of the `Bloch` faces .* less than 9\.42478e.06 rad/m"
    for bad in (limit, -1.1 * limit):
        with pytest.raises(ArgumentError, match=message):
            tilted(bad)


@pytest.mark.parametrize("by", ["wavevector", "frequency", "permittivity"])
def test_traced_waves_above_the_light_line_are_nan_and_others_are_as_they_were(by):
    # (c k)^2 < (2 pi f)^2 eps is all that lets it travel; the factors leave it at 0.5
    # and 0.99 of the light line, and put it at 1.01 and 2.
    base = tilted(0.5 * 1.5 * 2 * np.pi * CARRIER / SPEED_OF_LIGHT, steps=200)
    share = jnp.asarray([0.5, 0.99, 1.01, 2.0])
    of, power = {
        "wavevector": (lambda sim: sim.boundaries.y[0].wavevector, 1),
        "frequency": (lambda sim: sim.sources["wave"].pulse.frequency, -1),
        "permittivity": (lambda sim: sim.sources["wave"].permittivity, -2),
    }[by]

    def run(factor):
        new = eqx.tree_at(of, base, of(base) * factor)
        result = em.simulate(new)
        return result.fields["Ez"], result.status

    factors = (2 * share) ** power
    fields, status = jax.jit(jax.vmap(run))(factors)
    assert status.tolist() == [0, 0, 4, 4]
    # From the faces on, a cell a step.
    assert np.isnan(fields[2:, 50]).all()
    single, code = jax.jit(run)(factors[1])
    assert int(code) == 0
    np.testing.assert_allclose(single, fields[1], atol=1e-5 * np.abs(single).max())
    assert np.abs(single).max() > 0.01
    assert int(jax.jit(run)(factors[2])[1]) == 4


def test_tilted_waves_want_equal_cells_across():
    widths = jnp.full(30, CELL).at[3].set(0.9 * CELL)
    start = jnp.asarray(-50 * CELL), jnp.asarray(-15 * CELL)
    grid = Grid((jnp.asarray(CELL), widths), start, (100, 30))
    message = "`grid` must have cells of one width al.* `Grid.graded` equally spaced"
    with pytest.raises(ArgumentError, match=message):
        tilted(1e6, grid=grid)


def test_a_wave_has_the_whole_bloch_vector_over_a_long_period():
    # 50 degrees in glass: 1.7 turns over the period of 1.5 um, not their remainder.
    along = 1.5 * 2 * np.pi * CARRIER / SPEED_OF_LIGHT * np.sin(np.radians(50.0))
    sim = tilted(along, steps=300)
    row = np.asarray(em.simulate(sim).monitors["line"].values["Ez"])[-1].ravel()
    assert np.abs(row[0]) > 0.01
    np.testing.assert_allclose(row[1:], row[:-1] * np.exp(1j * along * CELL), rtol=1e-4)


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
@pytest.mark.parametrize("direction", ["+x", "-x"])
@pytest.mark.parametrize("start", [0.0, 0.37 * MICRO])
def test_phase_of_a_tilted_wave_is_that_of_its_pulse_at_coordinate_zero(
    polarisation, direction, start
):
    # E = f(x, t) exp(i k y), f real like the pulse, wherever the grid begins and for
    # samples on nodes (Ez) as for those between them (Ey).
    along = 2 * np.pi * CARRIER / SPEED_OF_LIGHT * np.sin(np.radians(40.0))
    component = "Ez" if polarisation == "Ez" else "Ey"
    middle, pulse = (0.0, start + 2 * CELL), em.GaussianPulse(CARRIER, CARRIER / 8)
    sim = em.Simulation(
        Grid.uniform((60, 4), CELL, (-30 * CELL, start)),
        boundaries=em.Boundaries(x=em.CPML(10), y=em.Bloch(along)),
        sources={
            "wave": em.PlaneWave(
                direction, component, middle, (20 * CELL, EVERYWHERE), pulse
            )
        },
        monitors={"all": em.TimeMonitor((component,), middle, (0.0, EVERYWHERE))},
        polarisation=polarisation,
        steps=350,
    )
    series = em.simulate(sim).monitors["all"]
    y = np.asarray(series.coordinates[component][1])
    values = np.asarray(series.values[component]) * np.exp(-1j * along * y)
    assert np.abs(values.real).max() == pytest.approx(1.0, rel=0.1)
    assert np.abs(values.imag).max() < 10 * leak_limit()


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("azimuth", [25.0, 121.0])
@pytest.mark.parametrize("kind", ["s", "p"])
def test_two_sources_make_s_or_p_at_any_azimuth(kind, azimuth):
    # 30 degrees from the normal, by the table in the docs.
    k = 2 * np.pi * CARRIER / SPEED_OF_LIGHT
    kt, kz = k * np.sin(np.radians(30.0)), k * np.cos(np.radians(30.0))
    kx, ky = kt * np.cos(np.radians(azimuth)), kt * np.sin(np.radians(azimuth))
    turn = (-ky, kx) if kind == "s" else (kx * k / kz, ky * k / kz)
    pulse = em.GaussianPulse(CARRIER, CARRIER / 8)
    box = (0.0, 0.0, 0.0), (EVERYWHERE, EVERYWHERE, 20 * CELL)
    names = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")
    sim = em.Simulation(
        Grid.centred((1, 1, 80), CELL),
        boundaries=em.Boundaries(em.Bloch(kx), em.Bloch(ky), em.CPML(20)),
        sources={
            name: em.PlaneWave(
                "+z", name, *box, pulse, amplitude=(1 - own**2 / k**2) * part / kt
            )
            for name, own, part in zip(names, (kx, ky), turn, strict=False)
        },
        monitors={"eye": em.FieldMonitor(names, (0.0,) * 3, (0.0,) * 3, CARRIER)},
        steps=1600,
    )
    values = em.simulate(sim).monitors["eye"].values
    found = {name: abs(complex(np.ravel(values[name])[0])) for name in names}
    size = np.hypot.reduce([found[name] for name in names[:3]])
    # Amplitudes of the continuum: on the grid k is off by (k dx)^2 / 24, here 1e-3 for
    # kt, of which the difference between x and y makes the other polarisation.
    assert found["Ez" if kind == "s" else "Hz"] < 5e-4 * size
    assert found["Hz" if kind == "s" else "Ez"] == pytest.approx(size / 2, rel=2e-3)
    assert size == pytest.approx(spectrum_peak(pulse), rel=1e-3)
