"""When a run has decayed."""

from physax import em
from physax.grid import Grid


CELL = 20e-9


def test_a_wave_that_crosses_a_small_grid_is_seen_by_default():
    """Of a pulse that no look sees, noise would be compared with noise."""
    grid = Grid.uniform((120, 40), CELL)
    wave = em.PlaneWave(
        "+x",
        "Ez",
        (60 * CELL, 20 * CELL),
        (90 * CELL, 16 * CELL),
        em.Ricker(5e14),
    )
    flux = em.FluxMonitor("x", (60 * CELL, 20 * CELL), (0.0, 10 * CELL), [5e14])
    sim = em.Simulation(
        grid,
        em.Medium(1.0),
        em.Boundaries.all(em.CPML(10)),
        sources={"wave": wave},
        monitors={"flux": flux},
        polarisation="Ez",
        steps=2000,
    )
    done = em.run(sim, until=em.Decay(1e-6), progress=False)
    assert done.drive.step <= 600
    assert done.result.residual <= 1e-6
