"""A valid simulation, and parts of it that tests make invalid."""

from physax import em
from physax.grid import Grid


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
