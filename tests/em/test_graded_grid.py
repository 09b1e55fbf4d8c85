"""Grids whose cells follow the materials."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import MICRO


GLASS, SILICON = em.Material(2.25), em.Material(12.25)


def steps(grid, axis):
    return np.asarray(grid.cell_widths(axis))


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("seed", range(6))
def test_widths_and_their_ratios_keep_their_bounds(seed):
    random = np.random.default_rng(seed)
    ratio, cells = random.uniform(1.06, 1.9), random.uniform(5, 25)
    structures = [
        em.Structure(
            em.Box(
                tuple(random.uniform(-3, 3, 2)), tuple(10 ** random.uniform(-2, 0.5, 2))
            ),
            em.Material(random.uniform(1, 16)),
        )
        for _ in range(5)
    ]
    grid = em.graded_grid(structures, (6.0, 5.0), (1.0, 1.4), cells=cells, ratio=ratio)
    for axis, half in ((0, 3.0), (1, 2.5)):
        width, edges = steps(grid, axis), np.asarray(grid.edges(axis))
        assert np.exp(np.max(np.abs(np.diff(np.log(width))))) < ratio * (1 + 1e-9)
        assert np.max(width) <= 1.0 / cells * (1 + 1e-5)
        assert edges[0] == pytest.approx(-half)
        assert edges[-1] == pytest.approx(half)
        for one in structures:
            low, high = (np.asarray(end) for end in one.shape.bounds())
            other = 1 - axis
            if low[other] > (2.5, 3.0)[axis] or high[other] < -(2.5, 3.0)[axis]:
                continue
            ends = np.clip([low[axis], high[axis]], -half, half)
            # The box is between two lines, but for what is merged.
            near = [np.min(np.abs(edges - end)) for end in ends]
            assert max(near) < 0.011 / cells
            index = math.sqrt(float(one.material.permittivity))
            inside = (edges[1:] > ends[0] + 1e-9) & (edges[:-1] < ends[1] - 1e-9)
            middle = (edges[1:] + edges[:-1]) / 2
            inside &= (middle > ends[0]) & (middle < ends[1])
            if inside.any():
                assert np.max(width[inside]) <= 1 / index / cells * (1 + 1e-5)


def test_layers_have_equal_cells_and_lines_are_kept():
    strip = em.Structure(em.Box(0.0, (9.0, 0.22)), SILICON)
    grid = em.graded_grid(
        [strip], (2.0, 3.0), 1.55, lines=([-0.777], []), layer=7, centre=(0.0, 0.1)
    )
    for axis in (0, 1):
        for end in (steps(grid, axis)[:8], steps(grid, axis)[-8:]):
            assert np.allclose(end, end[0], rtol=1e-9, atol=0)
    assert np.min(np.abs(np.asarray(grid.edges(0)) + 0.777)) < 1e-12
    edges = np.asarray(grid.edges(1))
    assert edges[7] == pytest.approx(-1.4)
    assert np.min(np.abs(edges - 0.11)) < 1e-12
    # A box beyond the grid does not matter, nor one beside a plane grid.
    away = [
        em.Structure(em.Box((9.0, 0.0), 1.0), SILICON),
        em.Structure(em.Box((0.0, 0.0, 3.0), (1.0, 1.0, 1.0)), SILICON),
    ]
    grid = em.graded_grid(away, (2.0, 3.0), 1.0)
    assert grid.shape == (40, 60)


def test_axes_without_borders_have_equal_cells_and_layers_of_their_own():
    films = [
        em.Structure(em.Box(at, (thick, math.inf, math.inf)), material)
        for at, thick, material in ((0.0, 0.3, SILICON), (0.4, 0.11, GLASS))
    ]
    grid = em.graded_grid(
        films, (3.0, 0.7, 0.4), 1.0, layer=(9, 0, 2), cells=17, centre=(0.0, 5.1, 0.0)
    )
    assert [grid.is_uniform(axis) for axis in range(3)] == [False, True, True]
    # 17 cells in 1 / 3.5 of the wavelength, in a whole number of cells.
    assert grid.shape[1:] == (math.ceil(0.7 * 3.5 * 17), math.ceil(0.4 * 3.5 * 17) + 4)
    edges = np.asarray(grid.edges(1))
    assert edges[[0, -1]] == pytest.approx([4.75, 5.45])
    layer = np.diff(np.asarray(grid.edges(0))[:10])
    assert layer == pytest.approx(np.full(9, layer[0]))
    assert np.asarray(grid.edges(0))[9] == pytest.approx(-1.5)


@pytest.mark.slow
def test_a_tilted_wave_crosses_a_film_on_a_graded_grid():
    # Fresnel and Airy: 35 degrees, E across the plane of incidence.
    wave, thick, index = 1.0 * MICRO, 0.21 * MICRO, 2.0
    frequency, sine = 299792458.0 / wave, math.sin(math.radians(35.0))
    film = em.Structure(em.Box(0.0, (thick, math.inf)), em.Material(index**2))
    grid = em.graded_grid(
        [film], (2.0 * MICRO, 0.02 * MICRO), wave, cells=40, layer=(20, 0), ratio=1.1
    )
    assert not grid.is_uniform(0)
    assert grid.shape[1] == 2

    light = em.PlaneWave(
        "+x",
        "Ez",
        (-0.4 * MICRO, 0.0),
        (1.0 * MICRO, math.inf),
        em.GaussianPulse(frequency, frequency / 12),
        exit=False,
    )

    def plane(at, face):
        return em.NearFieldMonitor((at * MICRO, 0.0), (0, math.inf), frequency, face)

    sim = em.Simulation(
        grid,
        em.rasterise([film], grid, components=("Ez", "Hx", "Hy")),
        em.Boundaries(x=em.CPML(20), y=em.Bloch(2 * math.pi / wave * sine)),
        sources={"light": light},
        monitors={"in": plane(-0.6, "-x"), "on": plane(0.6, "+x")},
        polarisation="Ez",
        steps=4500,
    )
    found = em.simulate(sim).monitors
    incident = em.diffraction_orders(found["in"], (0,), incoming=True).power.sum()
    sent = em.diffraction_orders(found["on"], (0,)).power.sum()
    cosine, inside = math.sqrt(1 - sine**2), math.sqrt(index**2 - sine**2)
    r = (cosine - inside) / (cosine + inside)
    turn = np.exp(2j * np.pi * inside * thick / wave)
    exact = abs((1 - r**2) * turn / (1 - r**2 * turn**2)) ** 2
    # (2 pi / 40)^2 / 24 of the phase in the film, 2.5, times the slope of T by it, 1.
    assert float(sent / incident) == pytest.approx(exact, abs=4e-3)


def slab_index(grid):
    """Effective index of the first Ez mode of a slab, as a grid has it."""
    slab = em.Structure(em.Box.from_corners(-0.11 * MICRO, 0.11 * MICRO), SILICON)
    eps = em.rasterise([slab], grid, GLASS).permittivity["Ez"]
    ones = jnp.ones_like(eps)
    frequency = 299792458.0 / (1.55 * MICRO)
    widths, gaps = grid.cell_widths(0), grid.dual_widths(0)
    return float(
        em.slab_mode(
            eps, ones, ones, widths, gaps, frequency, polarisation="Ez"
        ).effective_index
    )


def exact_index():
    """The root of tan(k d / 2) = g / k, by bisection."""
    k0, half = 2 * math.pi / 1.55, 0.11
    low, high = 1.5 + 1e-9, 3.5 - 1e-9
    for _ in range(200):
        n = (low + high) / 2
        inside, outside = math.sqrt(12.25 - n**2), math.sqrt(n**2 - 2.25)
        guided = inside * math.tan(inside * k0 * half) < outside
        low, high = (low, n) if guided else (n, high)
    return low


@pytest.mark.slow
def test_a_slab_mode_is_more_exact_than_on_as_many_equal_cells():
    slab = em.Structure(em.Box.from_corners(-0.11 * MICRO, 0.11 * MICRO), SILICON)
    grid = em.graded_grid([slab], (3.1 * MICRO,), 1.55 * MICRO, background=GLASS)
    count = grid.shape[0]
    equal = Grid.centred((count,), 3.1 * MICRO / count)
    wanted = exact_index()
    error, other = (abs(slab_index(g) - wanted) for g in (grid, equal))
    assert error < 3e-3
    assert error < other / 2


BOX = em.Structure(em.Box(0.0, 1.0), SILICON)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cells": 1}, "`cells` must be at least 2 and finite, but is 1"),
        ({"ratio": 1.0}, r"`ratio` must lie in \[1.05, 2\], but is 1"),
        ({"layer": -1}, "`layer` must be an integer of at least 0, but is -1"),
        ({"size": (1.0, -2.0)}, "`size` must be positive and finite"),
        ({"size": ()}, "`size` must have 1 to 3 entries, but has 0"),
        ({"wavelengths": 0.0}, "`wavelengths` must be positive"),
        ({"lines": [[0.0]]}, r"`lines` must have one entry per axis \(2\), but has 1"),
        ({"lines": [[], [3.0]]}, "`lines` along y must lie in the grid, -1 to 1 m"),
        ({"centre": (0.0,)}, "`centre`"),
        (
            {"layer": (3,)},
            r"`layer` must be one number or one per axis \(2\), but has 1",
        ),
        ({"layer": (3, -1)}, "`layer` must be an integer of at least 0, but is -1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    arguments = {"size": (2.0, 2.0), "wavelengths": 1.0, **arguments}
    with pytest.raises(ArgumentError, match=message):
        em.graded_grid([BOX], arguments.pop("size"), **arguments)


def test_traced_shapes_are_refused():
    def run(x):
        return em.graded_grid(
            [em.Structure(em.Sphere(x, 0.2), SILICON)], (1.0,), 1.0
        ).size(0)

    with pytest.raises(ArgumentError, match="must be known when the grid is made"):
        jax.jit(run)(0.1)
