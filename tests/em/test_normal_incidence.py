"""Ports, sources and beams where a wave meets a plane at right angles, to the sign."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT


pytestmark = [
    pytest.mark.x64,
    # A plane wave fills its port, and is no guided mode.
    pytest.mark.filterwarnings("ignore:.*is not guided"),
    pytest.mark.filterwarnings("ignore:None of the power of port"),
]

WAVE = 1e-6
CELL = WAVE / 30
FREQUENCY = SPEED_OF_LIGHT / WAVE
KINDS = ["Ez", "Hz", "3-D, Ey", "3-D, Ez"]


def faces(kind, last):
    across = {"y": em.Periodic()}
    if kind == "3-D, Ey":
        across = {"y": em.PEC(), "z": em.PMC()}
    if kind == "3-D, Ez":
        across = {"y": em.PMC(), "z": em.PEC()}
    return em.Boundaries(x=(em.CPML(12), last), **across)


def channel(kind, shape, permittivity, last, **options):
    """A strip or a duct along x in which plane waves travel."""
    solid = kind.startswith("3-D")
    grid = Grid.uniform((shape, 4, 4) if solid else (shape, 4), CELL)
    spread = {
        name: np.broadcast_to(
            np.reshape(values, (-1, 1, 1) if solid else (-1, 1)), grid.shape
        )
        for name, values in permittivity.items()
    }
    options |= {} if solid else {"polarisation": kind}
    return em.Simulation(grid, em.Medium(spread), faces(kind, last), **options)


def port(kind, cell, direction, offset=0.0):
    middle = (cell * CELL, 2 * CELL, 2 * CELL)
    middle = middle if kind.startswith("3-D") else middle[:2]
    return em.Port(middle, 4 * CELL, direction, offset=offset * CELL)


def filled(kind, cells, glass=None):
    """Vacuum, with an index of 1.5 from a node on."""
    inner, node = np.ones(cells), np.ones(cells)
    if glass is not None:
        inner[glass:] = node[glass:] = 2.25
        node[glass] = (1 + 2.25) / 2
    names = {"Ez": ["Ez"], "Hz": ["Ex", "Ey"]}.get(kind, ["Ex", "Ey", "Ez"])
    return {name: inner if name == "Ex" else node for name in names}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("glass", "last", "reflection"),
    [
        (70, em.CPML(12), -0.2),
        (None, em.PEC(), -1.0),
        (None, em.PMC(), 1.0),
    ],
    ids=["glass", "PEC", "PMC"],
)
def test_reflections_have_the_sign_of_the_electric_field(kind, glass, last, reflection):
    cells = 100 if glass else 70
    sim = channel(kind, cells, filled(kind, cells, glass), last, steps=4000)
    ports = {"in": port(kind, 20, "+x", offset=10)}
    found = em.s_parameters(sim, ports, WAVE, until=em.Decay(1e-8))("in", "in")[0]
    # The plane of a port is half a cell before its node.
    travelled = 2 * (70 - 29.5) * CELL
    turned = complex(found) * np.exp(-2j * np.pi / WAVE * travelled)
    # Numerical dispersion turns it by 0.03.
    assert abs(turned - reflection) < 0.04 * abs(reflection)


@pytest.mark.parametrize("kind", KINDS)
def test_waves_arrive_with_the_sign_they_had(kind):
    cells = 70
    sim = channel(kind, cells, filled(kind, cells), em.CPML(12), steps=3000)
    ports = {"left": port(kind, 20, "+x", 5), "right": port(kind, 50, "-x", 5)}
    found = em.s_parameters(sim, ports, WAVE, until=em.Decay(1e-8))
    for way in (("right", "left"), ("left", "right")):
        turned = complex(found(*way)[0]) * np.exp(-2j * np.pi / WAVE * 20 * CELL)
        assert abs(turned - 1) < 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_the_square_of_an_amplitude_is_the_power(kind):
    seen = port(kind, 40, "+x")
    size = (0.0,) + (float("inf"),) * (len(seen.centre) - 1)
    sim = channel(
        kind,
        70,
        filled(kind, 70),
        em.CPML(12),
        sources={"in": em.ModeSource(port(kind, 25, "+x"), PULSE)},
        monitors={
            "mode": em.ModeMonitor(seen, [FREQUENCY]),
            "flux": em.FluxMonitor("x", seen.centre, size, [FREQUENCY]),
        },
        steps=3000,
    )
    found = em.simulate(sim, until=em.Decay(1e-9)).monitors
    power = abs(complex(found["mode"].incoming[0])) ** 2
    # Without the half cells between E and H they would be 0.5 % apart.
    assert power == pytest.approx(float(found["flux"].flux[0]), rel=2e-4)
    assert abs(complex(found["mode"].outgoing[0])) ** 2 < 1e-6 * power


def nodes_of(direction, *, ratio):
    """Cells that are so much shorter from the node of the source on."""
    widths = np.concatenate([np.full(50, CELL), np.full(60, CELL / ratio)])
    widths = widths if direction == "+x" else widths[::-1]
    return np.concatenate([[0], np.cumsum(widths)]), 50 if direction == "+x" else 60


def powers(grid, source, polarisation, boundaries, width):
    """Returns what goes backward over what goes forward, and that, at the carrier."""
    nodes, middle = np.asarray(grid.edges(0)), float(jnp.mean(grid.edges(1)))
    seen = {
        str(side): em.FluxMonitor(
            "x", (float(nodes[cell]), middle), (0.0, width), [FREQUENCY]
        )
        for side, cell in ((-1, 25), (1, len(nodes) - 26))
    }
    sim = em.Simulation(
        grid,
        em.Medium(),
        boundaries,
        polarisation=polarisation,
        sources={"source": source},
        monitors=seen,
        steps=3000,
    )
    spectra = em.simulate(sim, until=em.Decay(1e-9)).monitors
    out = {side: int(side) * float(found.flux[0]) for side, found in spectra.items()}
    sign = source.port.sign
    return abs(out[str(-sign)] / out[str(sign)]), out[str(sign)]


PULSE = em.GaussianPulse(FREQUENCY, FREQUENCY / 10)


def mode_source(polarisation, direction, ratio):
    x, node = nodes_of(direction, ratio=ratio)
    grid = Grid.graded((x, np.arange(5) * CELL))
    port = em.Port((float(x[node]), 2 * CELL), 4 * CELL, direction)
    walls = em.Boundaries(x=em.CPML(12), y=em.Periodic())
    source = em.ModeSource(port, PULSE)
    return powers(grid, source, polarisation, walls, 4 * CELL)


def beam(polarisation, direction, ratio):
    x, node = nodes_of(direction, ratio=ratio)
    grid = Grid.graded((x, np.arange(151) * CELL))
    port = em.Port((float(x[node]), 75 * CELL), 120 * CELL, direction)
    source = em.GaussianBeam(port, PULSE, 0.7 * WAVE)
    walls = em.Boundaries.all(em.CPML(12))
    return powers(grid, source, polarisation, walls, 125 * CELL)


@pytest.mark.parametrize("direction", ["+x", "-x"])
@pytest.mark.parametrize(
    ("send", "polarisation"),
    [(mode_source, "Ez"), (mode_source, "Hz"), (beam, "Ez")],
)
def test_a_source_where_cells_change_sends_one_way(send, polarisation, direction):
    """E and H lie half a cell apart: of the cell behind the source, not before it."""
    _, whole = send(polarisation, direction, 1)
    back, sent = send(polarisation, direction, 2)
    assert back < 1e-4
    assert sent == pytest.approx(whole, rel=4e-4)


@pytest.mark.parametrize("polarisation", ["Ez", "Hz"])
def test_a_port_where_cells_change_sees_what_one_before_sees(polarisation):
    """The change reflects a little, and E is averaged over the cell of H."""
    x, node = nodes_of("+x", ratio=2)
    sim = em.Simulation(
        Grid.graded((x, np.arange(5) * CELL)),
        em.Medium(),
        em.Boundaries(x=em.CPML(12), y=em.Periodic()),
        polarisation=polarisation,
        steps=3000,
    )
    seen = []
    for away in (10, node - 30):
        one = em.Port(
            (float(x[30]), 2 * CELL), 4 * CELL, "+x", offset=float(x[30 + away] - x[30])
        )
        found = em.s_parameters(sim, {"in": one}, WAVE, until=em.Decay(1e-9))
        seen.append(abs(complex(found("in", "in")[0])))
    assert seen[1] == pytest.approx(seen[0], rel=1e-4)


def test_a_port_at_bloch_faces_is_refused():
    walls = em.Boundaries(x=em.CPML(12), y=em.Bloch(1e6))
    source = em.ModeSource(em.Port((30 * CELL, 2 * CELL), 4 * CELL, "+x"), PULSE)
    with pytest.raises(ArgumentError, match="before the `Bloch` faces along y"):
        em.Simulation(
            Grid.uniform((60, 4), CELL),
            em.Medium(),
            walls,
            polarisation="Ez",
            sources={"source": source},
            steps=10,
        )
