"""Bad input: refused before anything is compiled, in words; one test per message."""

from functools import partial

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

from .faults import CELL, SHAPES, build, dipole


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


@pytest.mark.parametrize("bad", [0, -3, True])
def test_steps_must_be_positive(bad):
    message = f"`steps` must be an integer of at least 1, but is {bad}"
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


def test_a_bloch_vector_in_units_of_the_period_is_warned_of():
    # 30 cells of 20 nm: pi / 2 over the period would be 2.6e6 rad/m.
    message = r"should be in rad/m, but 0\.25 rad/m turn the phase by 1\.5e-07 over"
    with pytest.warns(PhysaxWarning, match=message):
        build(boundaries=em.Boundaries(x=em.Bloch(0.25)))
    for vector in (0.0, 2.6e6):
        build(boundaries=em.Boundaries(x=em.Bloch(vector)))


def test_a_monitor_that_records_but_the_first_step_is_warned_of():
    where = {"centre": (0.3e-6, 0.26e-6), "size": (0.0, 0.0)}
    for monitor in (
        em.TimeMonitor(("Ez",), **where, every=200),
        em.EnergyMonitor(every=200),
    ):
        with pytest.warns(PhysaxWarning, match="`every` of monitor 'a' should be at"):
            build(monitors={"a": monitor}, steps=20)
        build(monitors={"a": monitor}, steps=200)


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


def test_run_without_monitors_and_sources_is_valid():
    result = em.simulate(build(monitors={}))
    assert result.monitors == {}
    assert all(np.all(field == 0) for field in result.fields.values())


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


def test_another_type_of_arithmetic_than_of_fields_is_refused():
    message = "`compute` of the precision must be bfloat16, as its `storage`.* float32"
    with pytest.raises(ArgumentError, match=message):
        build(precision=Precision("bfloat16"))


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

    message = "`grid` must be known here, but is traced"
    with pytest.raises(ArgumentError, match=message):
        jax.jit(run)(CELL)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-8])
def test_decay_threshold_must_be_a_fraction(bad):
    with pytest.raises(
        ArgumentError, match=r"`threshold` must lie in \(0, 1\), but is"
    ):
        em.Decay(bad)


@pytest.mark.parametrize("bad", [0, 2.5, True])
def test_decay_must_look_at_whole_steps(bad):
    message = f"`check_every` must be an integer of at least 1, but is {bad}"
    with pytest.raises(ArgumentError, match=message):
        em.Decay(check_every=bad)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda t: jnp.exp(2e15j * t), "`function.times.` must be real, but has dtype"),
        (lambda t: t > 0, "`function.times.` must be numbers, but holds booleans"),
        (lambda t: jnp.ones(3), r"`function` of a pulse must map .* shape \(3,\)"),
    ],
)
def test_pulses_are_real_numbers(function, message):
    pulse = em.CustomPulse(function, 2e14, 1e-14)
    with pytest.raises(ArgumentError, match=message):
        em.simulate(build(sources=dipole(pulse=pulse)))


def test_functions_of_pulses_hold_no_traced_numbers():
    pulse = lambda f: em.CustomPulse(f, 2e14, 1e-14)  # noqa: E731
    for make in (
        lambda a: pulse(lambda t: a * jnp.sin(2e15 * t)),
        lambda a: pulse(partial(jnp.multiply, a)),
        lambda a: pulse(jax.tree_util.Partial(jnp.multiply, a)),
    ):
        make(2.0)
        with pytest.raises(ArgumentError, match="must not hold traced .* subclass of"):
            jax.jit(lambda a, make=make: make(a).length)(2.0)


@pytest.mark.parametrize("bad", ["1e-6", [1e-6, 1e-5], 1e-6j])
def test_decay_must_be_to_a_number(bad):
    with pytest.raises(ArgumentError, match="`threshold` must be"):
        em.Decay(bad)


def test_decay_is_to_a_number_of_any_library():
    for given in (np.float64(1e-6), np.asarray(1e-6), jnp.asarray(1e-6)):
        assert em.Decay(given).threshold == pytest.approx(1e-6)
        assert isinstance(hash(em.Decay(given).threshold), int)
    with pytest.raises(
        ArgumentError, match="`threshold` must be known here, .* traced"
    ):
        jax.jit(lambda x: em.Decay(x).threshold)(1e-6)


def test_steps_must_be_countable():
    message = "`steps` must be at most 1073741823, but is 1000000000000"
    with pytest.raises(ArgumentError, match=message):
        build(steps=10**12)
    with pytest.raises(ArgumentError, match=message):
        em.with_steps(build(steps=1), 10**12)


def test_every_refusal_is_a_value_error_and_a_physax_error():
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(ArgumentError, PhysaxError)
    assert issubclass(PrecisionError, TypeError)
    assert issubclass(MemoryLimitError, MemoryError)


def test_a_run_from_the_host_is_not_traced():
    def run(permittivity):
        return em.run(build(medium=em.Medium(permittivity)), progress=False).result

    with pytest.raises(ArgumentError, match="`sim` must be known.* call `simulate`"):
        jax.jit(run)(2.0)


def test_a_bad_value_is_told_in_derivatives():
    with pytest.raises(ArgumentError, match="`radius` must be positive.* is 0"):
        jax.grad(lambda r: em.Circle((0.0, 0.0), r).radius)(0.0)
