"""Modes of fibres and round guides: ports across the axis."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import jn_zeros, jnp_zeros, jv, jvp, kv, kvp

from physax import ArgumentError, em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT


FREQUENCY = SPEED_OF_LIGHT / MICRO
K = 2 * np.pi / MICRO
PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 20)
CORE, GLASS = 0.875 * MICRO, 1.5


def guide(cells, m, structures, *, radius, length, steps, wall=None, **options):
    """A body of revolution, with `cells` to a micrometre."""
    cell = MICRO / cells
    shape = round(radius * cells), round(length * cells)
    grid = Grid.uniform(shape, cell, origin=(0.0, 0.0))
    return em.Simulation(
        grid,
        em.rasterise(structures, grid, components=em.Cylindrical.components),
        em.Boundaries(r=wall or em.CPML(10), z=em.CPML(12)),
        cylindrical=em.Cylindrical(m),
        steps=steps,
        **options,
    )


def fibre(cells, m, monitors, *, length=5.0, steps=1, **options):
    """A rod of glass in air."""
    rod = em.Structure(
        em.Box((0.0, 0.0), (2 * CORE, 1.0)), em.Material(options.pop("eps", GLASS**2))
    )
    return guide(
        *(cells, m, [rod]),
        radius=3.0,
        length=length,
        steps=steps,
        monitors=monitors,
        **options,
    )


def port(z, mode=1, direction="+z", **options):
    return em.Port((0.0, z * MICRO), 5.0 * MICRO, direction, mode=mode, **options)


def fibre_indices(m):
    """Solves the characteristic equation of a step-index fibre (Snyder and Love)."""

    def equation(n):
        u, w = K * CORE * np.sqrt(GLASS**2 - n**2), K * CORE * np.sqrt(n**2 - 1)
        inside, outside = jvp(m, u) / (u * jv(m, u)), kvp(m, w) / (w * kv(m, w))
        both = (inside + outside) * (GLASS**2 * inside + outside)
        return both - (m * n) ** 2 * (1 / u**2 + 1 / w**2) ** 2

    grid = np.linspace(1.001, GLASS - 1e-4, 4001)
    values = equation(grid)
    ends = np.flatnonzero(values[1:] * values[:-1] < 0)
    roots = [brentq(equation, *grid[i : i + 2]) for i in ends]
    # The poles change the sign, too.
    return [n for n in roots if abs(equation(n)) < 1e-3 and n > 1.1][::-1]


@pytest.mark.filterwarnings("ignore:Without `sources`")
@pytest.mark.parametrize("m", [0, 1, 2, 3])
def test_indices_are_those_of_the_characteristic_equation(m):
    exact = fibre_indices(m)
    assert (
        len(exact) == (2, 3, 2, 1)[m]
    )  # TE01, TM01; HE11, EH11, HE12; HE21, EH21; ...
    errors = []
    for cells in (16, 32):
        modes = range(1, len(exact) + 1)
        seen = {f"{n}": em.ModeMonitor(port(2.5, n), FREQUENCY) for n in modes}
        found = em.simulate(fibre(cells, m, seen)).monitors
        indices = [float(found[f"{n}"].effective_index[0]) for n in modes]
        errors.append(np.subtract(indices, exact))
    assert np.max(np.abs(errors[1])) < 3e-4
    assert np.max(np.abs(4 * errors[1] - errors[0])) < 5e-5


ZEROS = {
    ("TE", 0): jnp_zeros(0, 1)[0],
    ("TM", 0): jn_zeros(0, 1)[0],
    ("TE", 1): jnp_zeros(1, 1)[0],
    ("TM", 1): jn_zeros(1, 1)[0],
    ("TE", 2): jnp_zeros(2, 1)[0],
}


def step_in_a_tube(cells, kind, m):
    """S-parameters of a round metal tube that is filled with glass from half way on."""
    glass = em.Structure(em.Box((0.0, 4.5e-6), (4e-6, 3e-6)), em.Material(GLASS**2))
    sim = guide(
        *(cells, m, [glass]), radius=1.0, length=6.0, steps=150 * cells, wall=em.PEC()
    )
    others = [x for (_, number), x in ZEROS.items() if number == m]
    mode = 1 + sorted(others).index(ZEROS[kind, m])
    ports = {
        "in": em.Port((0.0, 1e-6), 2e-6, "+z", mode, offset=5e-7),
        "out": em.Port((0.0, 5e-6), 2e-6, "-z", mode, offset=5e-7),
    }
    return em.s_parameters(sim, ports, [MICRO], pulse=PULSE)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("kind", "m"), ZEROS)
def test_a_step_in_a_tube_reflects_as_its_impedances(kind, m):
    # Modes of an empty tube keep their profile where it is filled: one wave each way.
    along = [np.sqrt(eps * K**2 - (ZEROS[kind, m] / MICRO) ** 2) for eps in (1, 2.25)]
    one, other = along if kind == "TE" else (along[1] / 2.25, along[0])
    exact = abs(one - other) / (one + other)
    errors = []
    for cells in (15, 30):
        found = step_in_a_tube(cells, kind, m)
        values = np.asarray(found.values[0])
        assert np.sum(abs(values) ** 2, axis=0) == pytest.approx([1, 1], abs=1e-5)
        assert values[0, 1] == pytest.approx(values[1, 0], abs=1e-5)
        seen = found.results["in"].monitors
        indices = [seen[f"port {n}"].effective_index[0] for n in ("in", "out")]
        assert np.asarray(indices) * K == pytest.approx(along, rel=0.2 / cells**2)
        errors.append(abs(values[0, 0]) - exact)
    assert abs(errors[0]) < 0.02
    assert abs(4 * errors[1] - errors[0]) < 1e-3


@pytest.mark.parametrize(("m", "sign"), [(1, 1), (1, -1), (0, 1)])
def test_a_mode_goes_one_way(m, sign):
    start, ahead, behind = ((1.5, 3.5, 1), (3.5, 1.5, 4))[sign < 0]
    direction, back = ("+z", "-z")[::sign]
    monitors = {
        "ahead": em.ModeMonitor(port(ahead, direction=back), FREQUENCY),
        "behind": em.ModeMonitor(port(behind, direction=direction), FREQUENCY),
        "flux": em.FluxMonitor("z", (1.25e-6, ahead * MICRO), (2.5e-6, 0), FREQUENCY),
    }
    source = em.ModeSource(port(start, direction=direction), PULSE, power=2.0)
    sim = fibre(16, m, monitors, steps=1400, sources={"in": source})
    found = em.simulate(sim).monitors
    sent = np.asarray(found["ahead"].outgoing[0])
    assert sign * found["flux"].flux[0] == pytest.approx(abs(sent) ** 2, rel=1e-4)
    assert abs(found["ahead"].incoming[0] / sent) < 3e-4
    assert abs(found["behind"].outgoing[0] / sent) < 3e-4
    # The spectrum of a pulse of 2 W.
    spectrum = np.sqrt(np.pi / 2) / (2 * np.pi * float(PULSE.bandwidth)) * 1e15
    assert abs(sent) / (spectrum * np.sqrt(2)) == pytest.approx(1, rel=1e-3)


@pytest.mark.x64
@pytest.mark.slow
def test_a_joint_is_differentiable_and_reciprocal():
    def values(radius):
        thick = em.Structure(em.Box((0.0, 0.0), (2 * CORE, 1.0)), em.Material(2.25))
        thin = em.Structure(
            em.Box((0.0, 3e-6), (2 * radius * MICRO, 3e-6)), em.Material(2.25)
        )
        air = em.Structure(em.Box((0.0, 3e-6), (8e-6, 3e-6)), em.Material(1.0))
        sim = guide(*(15, 1, [thick, air, thin]), radius=3.0, length=3.5, steps=1600)
        ports = {"in": port(1.0, offset=2e-7), "out": port(2.5, 1, "-z", offset=2e-7)}
        return em.s_parameters(sim, ports, [MICRO], pulse=PULSE).values[0]

    def sent(radius):
        return abs(values(radius)[1, 0]) ** 2

    both = values(0.6)
    assert abs(both[0, 1] - both[1, 0]) < 2e-5
    slope = jax.jit(jax.grad(sent))(0.6)
    step = 1e-4
    expected = (sent(0.6 + step) - sent(0.6 - step)) / (2 * step)
    assert float(slope) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.f32
@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (
            {"direction": "+x"},
            r"'\+z' or '-z' in cylindrical coordinates, but is '\+x'",
        ),
        ({"centre": (1e-6, 5e-7)}, "`centre` .* must be 0 along r: .* 1e-06 m"),
        ({"width": 8e-6}, "must lie in the grid"),
        ({"width": 2e-7}, "at least 3 cells along r"),
        ({"offset": 1e-5}, "at the `offset` of 1e-05 m from its port"),
    ],
)
def test_ports_that_are_no_disc_are_refused(changed, match):
    given = {"centre": (0.0, 5e-7), "width": 4e-6, "direction": "+z"} | changed
    monitor = em.ModeMonitor(em.Port(**given), FREQUENCY)
    with pytest.raises(ArgumentError, match=match):
        fibre(10, 1, {"seen": monitor})


@pytest.mark.f32
def test_ports_off_the_axis_and_modes_that_do_not_travel_are_refused():
    grid = Grid.uniform((20, 20), 1e-7, origin=(1e-6, 0.0))
    faces = em.Boundaries(r=(em.PEC(), em.CPML(8)), z=em.CPML(8))
    monitors = {"seen": em.ModeMonitor(port(1.0), FREQUENCY)}
    with pytest.raises(ArgumentError, match="`origin` along r must be 0 .* 1e-06 m"):
        em.Simulation(
            grid,
            boundaries=faces,
            cylindrical=em.Cylindrical(1),
            monitors=monitors,
            steps=1,
        )
    source = em.ModeSource(port(2.5, 40), PULSE)
    with pytest.raises(
        ArgumentError, match=r"`mode` of source 'in' must propagate.*i "
    ):
        em.simulate(fibre(16, 1, {}, sources={"in": source}, steps=10))
