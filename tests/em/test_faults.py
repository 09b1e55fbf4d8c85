"""Bad input: refused before anything is compiled, in words; one test per message."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxError, PhysaxWarning
from physax.grid import Grid
from physax.runtime import MemoryLimitError, Precision, PrecisionError
from physax.units import SPEED_OF_LIGHT


CELL = 20e-9
PULSE = em.GaussianPulse(2e14, 4e13)
PORT = em.Port((0.3e-6, 0.26e-6), 0.1e-6, "+x", offset=4e-8)
SHAPES = {1: (40,), 2: (30, 26), 3: (24, 22, 20)}


def build(shape=(30, 26), medium=None, boundaries=None, **options):
    """A valid simulation but for what a test changes."""
    grid = options.pop("grid", Grid.uniform(shape, CELL))
    if grid.ndim == 2:
        options = {"polarisation": "Ez", **options}
    return em.Simulation(grid, medium, boundaries, **{"steps": 10, **options})


def dipole(x=0.3e-6, y=0.26e-6, component="Ez", pulse=PULSE):
    return {"in": em.Dipole(component, (x, y), pulse)}


def probe(components=("Ez",), centre=(0.3e-6, 0.26e-6), size=(0.0, 0.0), at=2e14):
    return {"out": em.FieldMonitor(components, centre, size, at)}


def random_grid(rng, ndim):
    """Uniform and graded axes with widths of 5 to 50 nm."""
    shape = tuple(rng.integers(6, 16, ndim))
    widths = tuple(
        jnp.asarray(rng.uniform(5e-9, 50e-9, cells if rng.random() < 0.5 else None))
        for cells in shape
    )
    return Grid(widths, (jnp.zeros(()),) * ndim, shape)


def limit_of(grid, eps):
    """n_min / (c sqrt(sum 1 / dx^2)) with the smallest cells, in float64."""
    inverse = sum(1 / np.min(np.asarray(w, float)) ** 2 for w in grid.widths)
    return np.sqrt(np.min(eps)) / (SPEED_OF_LIGHT * np.sqrt(inverse))


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_step_above_the_courant_limit_is_refused_and_the_largest_one_told(ndim):
    rng = np.random.default_rng(ndim)
    for _ in range(5):
        grid = random_grid(rng, ndim)
        eps = rng.uniform(1.5, 4.0, grid.shape)
        limit = limit_of(grid, eps)
        medium = em.Medium(eps)
        with pytest.raises(ArgumentError, match=r"`dt` must be at most") as caught:
            build(grid=grid, medium=medium, dt=1.01 * limit)
        told = float(str(caught.value).split("at most ")[1].split(" s,")[0])
        assert told == pytest.approx(limit, rel=1e-5)
        assert build(grid=grid, medium=medium, dt=0.999 * limit).dt < limit


@pytest.mark.slow
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_step_just_below_the_limit_is_stable(ndim):
    # Random cells and medium at 0.999 of the limit; above it fields grow by e in some
    # ten steps, so that 20,000 steps leave no doubt.
    rng = np.random.default_rng(ndim)
    shape = {1: (24,), 2: (10, 8), 3: (6, 5, 4)}[ndim]
    eps = rng.uniform(1.0, 4.0, shape)
    grid = Grid.uniform(shape, CELL)
    sim = build(
        grid=grid,
        medium=em.Medium(eps),
        dt=0.999 * limit_of(grid, eps),
    )
    state = em.initial_state(sim)
    # Noise in all cells but those on the electric walls.
    inner = tuple(slice(1, None) if a < 2 else slice(None) for a in range(ndim))
    kick = np.zeros(shape)
    kick[inner] = rng.standard_normal(kick[inner].shape)
    state = eqx.tree_at(
        lambda s: s.fields["Ez"], state, jnp.asarray(kick, state.fields["Ez"].dtype)
    )
    state = em.advance(sim, state, jnp.asarray(0), jnp.asarray(20_000))
    for field in state.fields.values():
        assert np.max(np.abs(field)) < 1e2


@pytest.mark.parametrize("bad", [0.0, -1e-9, float("nan"), float("inf")])
def test_spacing_must_be_positive(bad):
    with pytest.raises(
        ArgumentError, match="must be positive and finite, but the spac"
    ):
        Grid.uniform((30, 26), bad)


def test_first_cell_of_bad_width_is_named():
    edges = np.array([0.0, 1e-8, 1e-8, 3e-8])
    with pytest.raises(ArgumentError, match=r"along x .* but cell 1 has 0 m"):
        Grid.graded([edges])


@pytest.mark.parametrize("bad", [0.0, -1e-17, float("nan")])
def test_time_step_must_be_positive(bad):
    with pytest.raises(ArgumentError, match="`dt` must be positive, but is"):
        build(dt=bad)


def test_time_step_must_be_one_number():
    with pytest.raises((ArgumentError, TypeError)) as caught:
        build(dt=jnp.full(2, 1e-17))
    # In tests the annotation may refuse it first.
    assert "dt" in str(caught.value)


@pytest.mark.parametrize("bad", [0.0, 1.01, float("nan")])
def test_courant_number_must_not_exceed_one(bad):
    with pytest.raises(ArgumentError, match=r"`courant` must lie in \(0, 1\], but is"):
        build(courant=bad)


@pytest.mark.parametrize("bad", [0, -3])
def test_steps_must_be_positive(bad):
    message = f"`steps` must be an integer and at least 1, but is {bad}"
    with pytest.raises(ArgumentError, match=message):
        build(steps=bad)


@pytest.mark.parametrize("cells", [0, 3])
def test_layer_under_4_cells_is_refused(cells):
    message = f"`cells` must be an integer of at least 4, but is {cells}"
    with pytest.raises(ArgumentError, match=message):
        em.CPML(cells)


def test_layer_may_have_an_integer_of_numpy():
    layer = em.CPML(np.int32(10))
    assert type(layer.cells) is int
    assert layer == em.CPML(10)


@pytest.mark.parametrize("cells", [13, 20])
def test_layers_that_fill_the_domain_are_refused(cells):
    message = rf"along y must leave room .* they take {2 * cells} of 26 cells"
    with pytest.raises(ArgumentError, match=message):
        build(boundaries=em.Boundaries(y=em.CPML(cells)))


def test_layer_under_8_cells_is_warned_of():
    message = r"`boundaries` along x should have layers of at least 8 cells, but .* 6"
    with pytest.warns(PhysaxWarning, match=message):
        build(boundaries=em.Boundaries(x=(em.CPML(6), em.CPML(8))))
    build(boundaries=em.Boundaries(x=em.CPML(8)))


def test_faces_of_an_axis_that_the_grid_lacks_are_refused():
    message = (
        r"`boundaries` must have faces along x, y only, .* along z\. Leave `z` out"
    )
    layer = em.CPML(8)
    for faces in (
        em.Boundaries(z=em.Bloch(1e6)),
        em.Boundaries(em.Bloch(1e6), em.Bloch(1e6), em.Bloch(2e6)),
        em.Boundaries(layer, layer, em.CPML(10)),
        em.Boundaries(layer, layer, (em.PEC(), em.PMC())),
    ):
        with pytest.raises(ArgumentError, match=message):
            build(boundaries=faces)
    with pytest.raises(ArgumentError, match=r"along x only, .* Leave `y` out"):
        build((40,), boundaries=em.Boundaries(y=em.Periodic()))
    for face in (layer, em.Bloch(1e6)):
        build(boundaries=em.Boundaries.all(face))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_bloch_vector_must_be_finite(bad):
    with pytest.raises(ArgumentError, match="`wavevector` must be finite, but is"):
        em.Bloch(bad)


def test_periodic_face_needs_its_partner():
    with pytest.raises(ArgumentError, match="`x` must be periodic at both faces"):
        em.Boundaries(x=(em.Periodic(), em.PEC()))


@pytest.mark.parametrize("bad", [None, "TE", "ez"])
def test_unknown_polarisation_is_refused(bad):
    with pytest.raises(ArgumentError, match=f"must be 'Ez' or 'Hz' in 2-D, .* {bad!r}"):
        build(polarisation=bad)


@pytest.mark.parametrize("ndim", [1, 3])
def test_polarisation_is_refused_outside_2_d(ndim):
    with pytest.raises(ArgumentError, match=f"must be None in {ndim}-D, but is 'Ez'"):
        build(SHAPES[ndim], polarisation="Ez")


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


def test_run_without_monitors_and_sources_is_valid():
    result = em.simulate(build(monitors={}))
    assert result.monitors == {}
    assert all(np.all(field == 0) for field in result.fields.values())


def test_monitor_cadence_must_be_positive():
    with pytest.raises(ArgumentError, match="`every` must be at least 1, but is 0"):
        em.TimeMonitor(("Ez",), (0.0, 0.0), (0.0, 0.0), every=0)


def carrier(cells, index=1.0):
    """A pulse with a number of cells per wavelength in a medium."""
    return em.GaussianPulse(SPEED_OF_LIGHT / (cells * CELL * index), 1e13)


def test_under_resolved_wavelength_is_refused():
    message = r"at least 4 cells per wavelength .* index 2, .* 'in', but has 3\.9\."
    with pytest.raises(ArgumentError, match=message):
        build(medium=em.Medium(4.0), sources=dipole(pulse=carrier(3.9, 2.0)))


def test_poorly_resolved_wavelength_is_warned_of():
    message = r"should have at least 10 cells per wavelength .* but has 9\.9\."
    with pytest.warns(PhysaxWarning, match=message):
        build(medium=em.Medium(4.0), sources=dipole(pulse=carrier(9.9, 2.0)))
    build(medium=em.Medium(4.0), sources=dipole(pulse=carrier(10.1, 2.0)))


def test_lengths_in_nanometres_taken_for_metres_are_refused():
    grid = Grid.uniform((30, 26), 20.0)
    with pytest.raises(ArgumentError, match="Are lengths in metres and frequencies in"):
        build(grid=grid, sources=dipole(300.0, 260.0))


def test_resolution_is_judged_cell_by_cell_on_a_graded_grid():
    # Coarse cells lie in air, fine ones in the dense medium: 12 per wavelength there.
    wave = 12 * CELL * 3
    widths = jnp.where(jnp.arange(30) < 15, CELL, 2.5 * CELL)
    eps = jnp.where(jnp.arange(30) < 15, 9.0, 1.0)
    grid = Grid((widths,), (jnp.zeros(()),), (30,))
    pulse = em.GaussianPulse(SPEED_OF_LIGHT / wave, 1e13)
    source = {"in": em.Dipole("Ez", (10 * CELL,), pulse)}
    build(grid=grid, medium=em.Medium(eps), sources=source)
    with pytest.warns(PhysaxWarning, match=r"index 3, .* has 4\.8"):
        build(grid=grid, medium=em.Medium(eps[::-1]), sources=source)


@pytest.mark.f32
def test_float64_without_x64_is_refused():
    message = "`storage` must be at most float32 while .*jax_enable_x64"
    with pytest.raises(PrecisionError, match=message):
        build(precision=Precision("float64", "float64", "float64"))


@pytest.mark.x64
def test_float64_is_the_default_with_x64():
    state = em.initial_state(build())
    assert {field.dtype for field in state.fields.values()} == {np.dtype("float64")}


@pytest.mark.f32
def test_fields_are_float32_by_default():
    sim = build(medium=em.Medium(np.full((30, 26), 2)))
    state = em.initial_state(sim)
    assert {field.dtype for field in state.fields.values()} == {np.dtype("float32")}


@pytest.mark.parametrize("cells", [20_000, 3 * 10**6])
def test_grid_larger_than_memory_is_refused_before_anything_is_allocated(cells):
    # 2.7e19 cells: their bytes do not fit an integer of 64 bits.
    sim = build((cells,) * 3, boundaries=em.Boundaries.all(em.CPML(8)))
    assert em.state_bytes(sim) >= 24 * cells**3
    with pytest.raises(
        MemoryLimitError, match=r"must fit into .* but needs .* Use a c"
    ):
        em.simulate(sim)
    with pytest.raises(MemoryLimitError, match="the state of this simulation"):
        em.run(sim, progress=False)


def test_memory_that_is_there_decides(monkeypatch):
    sim = build()
    monkeypatch.setattr("physax.runtime._memory.host_memory", lambda: 5000)
    if jax.local_devices()[0].memory_stats() is None:
        with pytest.raises(MemoryLimitError, match="5 kB, but needs"):
            em.simulate(sim)


def test_traced_grid_is_refused():
    def run(spacing):
        return build(grid=Grid.uniform((30, 26), spacing)).dt

    message = "`grid` must be known before compilation, but is traced"
    with pytest.raises(ArgumentError, match=message):
        jax.jit(run)(CELL)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-8])
def test_decay_threshold_must_be_a_fraction(bad):
    with pytest.raises(
        ArgumentError, match=r"`threshold` must lie in \(0, 1\), but is"
    ):
        em.Decay(bad)


def test_decay_must_look_at_whole_steps():
    with pytest.raises(ArgumentError, match="`check_every` must be at least 1"):
        em.Decay(check_every=0)


def test_port_is_checked():
    for options, message in (
        ({"direction": "x"}, "`direction` must be"),
        ({"direction": "+x", "mode": 0}, "`mode` must be at least 1, but is 0"),
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


def test_every_refusal_is_a_value_error_and_a_physax_error():
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(ArgumentError, PhysaxError)
    assert issubclass(PrecisionError, TypeError)
    assert issubclass(MemoryLimitError, MemoryError)


def test_places_must_be_known():
    def place(x):
        return build(sources={"in": em.Dipole("Ez", (x, 0.26e-6), PULSE)}).dt

    with pytest.raises(ArgumentError, match="Positions and sizes.* is traced"):
        jax.jit(place)(0.3e-6)
    with pytest.raises(ArgumentError, match="Positions and sizes.* is traced"):
        jax.grad(place)(0.3e-6)


def test_a_run_from_the_host_is_not_traced():
    def run(permittivity):
        return em.run(build(medium=em.Medium(permittivity)), progress=False).result

    with pytest.raises(ArgumentError, match="`sim` must be known.* call `simulate`"):
        jax.jit(run)(2.0)


def test_a_bad_value_is_told_in_derivatives():
    with pytest.raises(ArgumentError, match="`radius` must be positive.* is 0"):
        jax.grad(lambda r: em.Circle((0.0, 0.0), r).radius)(0.0)


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
        ArgumentError, match="source 'in' must be at least .* THz nor a"
    ):
        build(sources=dipole(pulse=pulse))


@pytest.mark.slow
def test_a_pulse_that_has_not_come_is_told_where_fields_are_alive():
    sim = build(
        sources=dipole(pulse=em.GaussianPulse(2e14, 1e9)), monitors=probe(), steps=100
    )
    with pytest.warns(PhysaxWarning, match="not decayed .* before the middle of the p"):
        em.simulate(sim)
