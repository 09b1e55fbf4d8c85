"""Scenes from shapes: the defaults that the docstring promises, and the printout."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.em import _extent
from physax.runtime import MemoryLimitError
from physax.units import SPEED_OF_LIGHT


SIZES = {1: (4e-6,), 2: (3e-6, 2e-6), 3: (1.2e-6, 1.0e-6, 0.8e-6)}
POLARISATIONS = {1: None, 2: "Ez", 3: None}
GLASS = em.Material(permittivity=2.25)


def block(ndim, half=0.25e-6, centre=0.1e-6):
    """A block of a known size, its middle off the origin."""
    low, high = (centre - half,) * ndim, (centre + half,) * ndim
    sizes = tuple(b - a for a, b in zip(low, high, strict=True))
    return em.Structure(em.Box((centre,) * ndim, sizes), GLASS)


def made(ndim=2, structures=None, wavelengths=(1.5e-6,), **options):
    return em.scene(
        [block(ndim)] if structures is None else structures,
        SIZES[ndim],
        wavelengths,
        polarisation=POLARISATIONS[ndim],
        **options,
    )


WAVES = (1.5e-6, 1.2e-6)
BAND = em.band_pulse(SPEED_OF_LIGHT / 1.5e-6, SPEED_OF_LIGHT / 1.2e-6)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_defaults_are_those_of_the_docstring(ndim):
    sim = made(ndim, wavelengths=WAVES)
    # A twentieth of the shortest wavelength in the densest medium, of index 1.5.
    spacing = 1.2e-6 / 1.5 / 20
    assert all(float(w) == pytest.approx(spacing, rel=1e-6) for w in sim.grid.widths)
    # Half the longest wavelength in the background.
    layer = int(np.ceil(1.5e-6 / 2 / spacing))
    for axis in range(ndim):
        assert [face.cells for face in sim.boundaries.axis(axis)] == [layer, layer]
        inner = round(SIZES[ndim][axis] / spacing)
        assert sim.grid.shape[axis] == inner + 2 * layer
        # The middle of the scene is the origin.
        middle = sim.grid.origin[axis] + sim.grid.size(axis) / 2
        assert abs(float(middle)) < 1e-3 * spacing
    limit = spacing / SPEED_OF_LIGHT / np.sqrt(ndim)
    assert float(sim.dt) == pytest.approx(0.99 * limit, rel=1e-5)
    passage = 1.5 * np.hypot.reduce(SIZES[ndim]) / SPEED_OF_LIGHT
    # Without sources there is room for the pulse of `s_parameters`.
    least = 8 * passage + float(BAND.duration())
    assert least <= sim.steps * float(sim.dt) < least + 101 * float(sim.dt)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_structures_lie_where_they_should(ndim):
    sim = made(ndim)
    eps = sim.medium.permittivity["Ez"]
    filled = (np.asarray(eps) - 1) / 1.25
    spacing = float(sim.grid.widths[0])
    # Volume average: the volume and the first moment are exact to rounding.
    assert filled.sum() * spacing**ndim == pytest.approx(0.5e-6**ndim, rel=1e-4)
    for axis in range(ndim):
        half = 0.5 if (axis, ndim) == (2, 3) else 0.0
        x = np.asarray(sim.grid.coordinates(axis, half))
        rest = tuple(a for a in range(ndim) if a != axis)
        # A border cell counts at its sample, half a cell off at most.
        centre = (filled.sum(axis=rest) * x).sum() / filled.sum()
        assert centre == pytest.approx(0.1e-6, abs=0.1 * spacing)


def test_pulse_counts_towards_the_run_time():
    pulse = em.GaussianPulse(2e14, 1e13)
    driven = made(wavelengths=WAVES, sources={"in": em.Dipole("Ez", (0.0, 0.0), pulse)})
    extra = (driven.steps - made(wavelengths=WAVES).steps) * float(driven.dt)
    longer = float(pulse.duration() - BAND.duration())
    assert extra == pytest.approx(longer, abs=101 * float(driven.dt))


def test_what_is_given_is_kept():
    faces = em.Boundaries(x=em.Periodic(), y=(em.PMC(), em.CPML(15)))
    sim = made(
        boundaries=faces,
        spacing=50e-9,
        steps=123,
        centre=(1e-6, -2e-6),
        background=GLASS,
    )
    # No layers along x; one above y.
    assert sim.grid.shape == (60, 40 + 15)
    assert sim.steps == 123
    assert float(sim.grid.origin[0]) == pytest.approx(-0.5e-6, abs=1e-12)
    assert float(sim.grid.origin[1]) == pytest.approx(-3e-6, abs=1e-12)
    assert float(jnp.max(sim.grid.widths[1])) == pytest.approx(50e-9)


@pytest.mark.parametrize("face", [em.Periodic(), em.Bloch(1e5), em.PEC()])
@pytest.mark.parametrize("length", [0.6e-6, 0.63e-6, 0.66e-6])
def test_a_period_is_as_long_as_given(face, length):
    sim = em.scene(
        [block(2)],
        (length, 1e-6),
        [1.5e-6],
        polarisation="Ez",
        centre=(0.2e-6, 0.0),
        boundaries=em.Boundaries(x=face, y=em.CPML(10)),
        spacing=25e-9,
    )
    assert float(sim.grid.size(0)) == pytest.approx(length, rel=1e-6)
    low = float(sim.grid.origin[0])
    assert low == pytest.approx(0.2e-6 - length / 2, rel=1e-6)
    assert 24e-9 < float(sim.grid.widths[0]) < 25.001e-9
    assert float(sim.grid.widths[1]) == pytest.approx(25e-9)


@pytest.mark.parametrize("length", [1.0e-6, 1.01e-6, 1.02e-6])
def test_a_mirror_lies_where_the_scene_ends(length):
    below, above = (em.PMC(), em.CPML(10)), (em.CPML(10), em.PEC())
    sim = em.scene(
        [block(2)],
        (length, length),
        [1.5e-6],
        polarisation="Ez",
        centre=(length / 2, -length / 2),
        boundaries=em.Boundaries(x=below, y=above),
        spacing=30e-9,
    )
    ends = [float(o + sim.grid.size(a)) for a, o in enumerate(sim.grid.origin)]
    assert abs(float(sim.grid.origin[0])) < 1e-12
    assert abs(ends[1]) < 1e-12
    # The layers begin within half a cell of the other end.
    assert abs(ends[0] - 10 * 30e-9 - length) < 15.1e-9
    assert abs(float(sim.grid.origin[1]) + 10 * 30e-9 + length) < 15.1e-9


def test_cells_at_interfaces_are_averaged_as_by_rasterise():
    disc = em.Structure(em.Circle((0.0, 0.0), 0.3e-6), GLASS)
    sim = em.scene(
        [disc], (1e-6, 1e-6), [1.5e-6], polarisation="Hz", averaging="polarised"
    )
    names = sim.components.names
    expected = em.rasterise([disc], sim.grid, None, names, "polarised")
    assert expected.off_diagonals
    assert eqx.tree_equal(sim.medium, expected)


def test_layer_has_at_least_10_cells():
    sim = made(spacing=200e-9)
    assert sim.boundaries.x[0].cells == 10


def test_scene_runs_and_decays():
    pulse = em.GaussianPulse(2e14, 4e13)
    sim = made(
        sources={"in": em.Dipole("Ez", (-1e-6, 0.0), pulse)},
        monitors={"out": em.FluxMonitor("x", (1e-6, 0.0), (0.0, 1e-6), 2e14)},
    )
    # Warnings are errors here: the default run time is enough.
    assert em.simulate(sim).monitors["out"].flux[0] > 0


@pytest.mark.parametrize("bad", [[], [0.0], [-1e-6], [1e-6, float("nan")]])
def test_wavelengths_must_be_positive(bad):
    with pytest.raises(ArgumentError, match="`wavelengths` must be positive, but are"):
        made(wavelengths=bad)


def test_wavelengths_must_be_a_list():
    message = r"`wavelengths` must be one number or a list, but has shape \(2, 2\)"
    with pytest.raises(ArgumentError, match=message):
        made(wavelengths=np.full((2, 2), 1.5e-6))


def test_a_shape_in_another_unit_is_warned_of():
    corners = ((-0.5, -0.2), (0.5, -0.2), (0.0, 0.2))
    one, other = (
        em.Structure(em.Polygon(np.multiply(corners, unit)), GLASS)
        for unit in (1.0, 1e-6)
    )
    with pytest.warns(
        PhysaxWarning, match=r"`structures\[1\]` contains all of the scene"
    ):
        made(structures=[other, one])
    made(structures=[other, em.Structure(em.Box((0.0, 0.0), (np.inf, 1e-6)), GLASS)])


@pytest.mark.parametrize("make", [em.scene, em.graded_grid])
def test_materials_of_the_library_have_a_range(make):
    silicon = em.Structure(em.Box((0.0,), (0.5e-6,)), em.library("Si"))
    message = (
        "`wavelengths` must lie between 1.357 and 11.04 µm for the material of "
        r"`structures\[0\]`, but one is 0.633 µm"
    )
    with pytest.raises(ArgumentError, match=message):
        make([silicon], (2e-6,), [1.55e-6, 0.633e-6])
    with pytest.raises(ArgumentError, match="1.357 and 11.04 µm"):
        make([], (2e-6,), [0.633e-6], background=em.library("Si"))
    make([silicon], (2e-6,), [1.55e-6])


@pytest.mark.parametrize("bad", [0.0, -1e-6, float("inf")])
def test_size_must_be_positive(bad):
    with pytest.raises(ArgumentError, match="`size` must be positive and finite, but"):
        em.scene([], (1e-6, bad), [1e-6], polarisation="Ez")


@pytest.mark.parametrize("waves", [[200.0], [2e14], [1.5], [1550.0]])
def test_wavelengths_in_other_units_are_refused(waves):
    with pytest.raises(ArgumentError, match=r"`wavelengths` must make the scene 1e-05"):
        em.scene([], SIZES[2], waves, polarisation="Ez", spacing=5e-8)
    with pytest.raises(ArgumentError, match="`wavelengths` must make the scene"):
        em.graded_grid([], SIZES[2], waves)


def test_what_fits_into_no_memory_is_refused_before_it_is_made():
    with pytest.raises(ArgumentError, match="`size` must make the scene"):
        em.scene([], (3.0, 2.0), [1.5e-6], polarisation="Ez")
    with pytest.raises(
        MemoryLimitError, match=r"`spacing` makes 400+\d+ x 300+\d+ cells"
    ):
        em.scene([], (4e-2, 3e-2), [1.5e-6], polarisation="Ez", spacing=1e-8)


@pytest.mark.parametrize("bad", [0.0, -1e-8, float("nan")])
def test_spacing_must_be_positive(bad):
    told = "`spacing` must be one positive and finite number, but is"
    with pytest.raises(ArgumentError, match=told):
        made(spacing=bad)


def test_size_and_centre_must_agree():
    with pytest.raises(
        ArgumentError, match="`centre` of the scene must have one entry for each of"
    ):
        made(centre=(0.0,))
    with pytest.raises(ArgumentError, match="`size` must have 1 to 3 entries, but has"):
        em.scene([], (), [1e-6])


def test_printout_states_the_choices():
    pulse = em.GaussianPulse(SPEED_OF_LIGHT / 1.5e-6, 4e13)
    sim = made(
        sources={"lamp": em.Dipole("Ez", (0.0, 0.0), pulse)},
        monitors={"eye": em.FluxMonitor("x", (1e-6, 0.0), (0.0, 1e-6), 2e14)},
    )
    lines = {line.split()[0]: line for line in em.describe(sim).splitlines()}
    cells = " x ".join(map(str, sim.grid.shape))
    assert f"{cells} cells" in lines["grid"]
    assert "cells of 50, 50 nm" in lines["grid"]
    assert "Ez Hx Hy" in lines["components"]
    assert lines["permittivity"].split()[1:] == ["1", "to", "2.25"]
    assert "0.990 of the Courant limit" in lines["time"]
    assert f"{sim.steps} steps" in lines["run"]
    assert "kB of state" in lines["memory"]
    assert "CPML of 15 cells" in em.describe(sim)
    assert "lamp: Dipole, 1500 nm (199.86 THz), 20 cells" in lines["source"]
    assert "eye: FluxMonitor" in lines["monitor"]


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_printout_works_in_any_dimension(ndim):
    text = em.describe(made(ndim))
    assert text.count("faces") == ndim


LAYERS = em.Boundaries.all(em.CPML(8))


def film(permittivity, **options):
    """A lamp beside a film, of which all but the material is given."""
    bar = em.Structure(em.Box((0.0, 0.0), (np.inf, 0.25e-6)), em.Material(permittivity))
    given = {"spacing": 50e-9, "steps": 150, **options}
    pulse = em.GaussianPulse(2e14, 6e13)
    return em.scene(
        given.pop("structures", [bar]),
        (0.8e-6, 0.6e-6),
        [1.5e-6],
        polarisation="Ez",
        boundaries=LAYERS,
        sources={"in": em.Dipole("Ez", (-0.2e-6, 0.0), pulse)},
        **given,
    )


def ground(permittivity):
    return film(1.0, structures=[], background=em.Material(permittivity))


def brightness(sim):
    return jnp.sum(jnp.abs(em.simulate(sim).fields["Ez"]) ** 2)


@pytest.mark.x64  # a finite difference
@pytest.mark.parametrize("make", [film, ground])
def test_a_scene_has_derivatives_by_its_materials(make):
    @jax.jit
    def seen(permittivity):
        return brightness(make(permittivity))

    step = 1e-4
    slope = float(seen(4.0 + step) - seen(4.0 - step)) / (2 * step)
    # The truncation of the difference is of the order of step squared.
    assert jax.grad(seen)(4.0) == pytest.approx(slope, rel=1e-6)
    both = np.asarray(jax.vmap(seen)(jnp.asarray([4.0, 5.0])))
    assert both == pytest.approx([float(seen(4.0)), float(seen(5.0))], rel=1e-9)


CHOICES = {
    "spacing": (lambda e: film(e, spacing=None), r"`structures\[0\]` must be known "
                "here, but is traced .* Give `spacing` and `steps`"),
    "steps": (lambda e: film(e, steps=None), r"`structures\[0\]` must be known here"),
    "layers": (lambda e: em.scene([], (1e-6,), [1.5e-6], spacing=5e-8, steps=9,
                                  background=em.Material(e)),
               "`background` must be known here, but is traced .* Give `boundaries`"),
    "grid": (lambda e: em.graded_grid([], (1e-6,), [1.5e-6],
                                      background=em.Material(e)).edges(0),
             "`background` must be known here, but is traced .* Make the grid outside"),
    "pulse": (lambda f: em.scene([], (1e-6,), [1.5e-6], spacing=5e-8, sources={
        "in": em.Dipole("Ez", (0.0,), em.GaussianPulse(f * 5e13, 1e13))}),
        "`sources` must be known here, but is traced .* Give `steps`"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_what_a_choice_depends_on_must_not_be_traced(name):
    make, message = CHOICES[name]
    with pytest.raises(ArgumentError, match=message):
        jax.jit(make)(4.0)


def test_layers_that_dwarf_the_scene_tell_of_wavelengths_in_another_unit():
    # 1550 nm, given as if they were in um.
    message = (
        r"`wavelengths` must be at most 0.0006 m, .* but one is 0.00155 m\. Is its "
        "unit right"
    )
    with pytest.raises(ArgumentError, match=message):
        em.scene([], (2e-6, 1e-6), [1.55e-3], polarisation="Ez", spacing=4e-8)
    em.scene([], (2e-6,), [1.55e-4], spacing=1e-6, boundaries=LAYERS, steps=9)


def test_structures_count_in_what_a_scene_needs(monkeypatch):
    size, options = (1e-6, 1e-6), {"polarisation": "Ez", "boundaries": LAYERS}
    asked = []
    monkeypatch.setattr(_extent, "check_memory", lambda n, what: asked.append(n))
    for structures in ([], [block(2)]):
        em.scene(structures, size, [1.5e-6], spacing=1e-8, steps=9, **options)
    width = jnp.zeros(()).dtype.itemsize
    assert asked == [116 * 116 * width * 3, 116 * 116 * width * 5]
