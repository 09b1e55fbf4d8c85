"""Half a symmetric scene behind a mirror gives the half of the whole, to rounding."""

import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax.em._components import components, stagger
from physax.grid import Grid
from physax.units import SPEED_OF_LIGHT
from tests.validation.stepping import advance, stored_shape


pytestmark = pytest.mark.x64

HALF, WIDTH, STEPS = 9, 20e-9, 150
OTHERS = (7, 6)
"""Cells along the axes beside the mirrored one."""


def reflected(values, axis, half):
    """Mirrors samples of the grid about its middle node; node 0 has no partner."""
    if half:
        return np.flip(values, axis)
    out = np.array(values)
    inner = [slice(None)] * values.ndim
    inner[axis] = slice(1, None)
    out[tuple(inner)] = np.flip(values[tuple(inner)], axis)
    return out


def parity(name, axis, mirror):
    """Returns the sign a component takes on under the mirror.

    An electric wall makes the tangential E and the normal H odd, a magnetic wall the
    tangential H and the normal E.
    """
    odd_at_pec = (name[0] == "E") != (name[1] == "xyz"[axis])
    return -1 if odd_at_pec == (mirror == "PEC") else 1


class Scene:
    """Random, symmetric fields and permittivity in a box of conductors."""

    def __init__(self, ndim, polarisation, axis, mirror, powers):
        self.ndim, self.axis, self.powers = ndim, axis, powers
        self.polarisation, self.mirror = polarisation, mirror
        self.names = components(ndim, polarisation).names
        shape = list(OTHERS[: ndim - 1])
        shape.insert(axis, 2 * HALF)
        rng = np.random.default_rng(5)
        self.epsilon, self.fields = {}, {}
        for name in self.names:
            halves = stagger(name, ndim)
            sign = parity(name, axis, mirror)
            value = rng.uniform(1, 5, shape)
            # Arrays have no entry for the node on a high wall: it takes its
            # neighbour's. Here the middle is uniform, so that nothing is lost.
            where = [slice(None)] * ndim
            where[axis] = slice(HALF - 2, HALF + 2)
            value[tuple(where)] = 2.0
            if name[0] == "E":
                self.epsilon[name] = value + reflected(value, axis, halves[axis])
            field = np.zeros(shape)
            inner = tuple(slice(2, -2) for _ in shape)
            field[inner] = rng.normal(size=field[inner].shape)
            self.fields[name] = field + sign * reflected(field, axis, halves[axis])

    def boundaries(self, low, high):
        faces = [em.PEC(), em.PEC(), em.PEC()]
        faces[self.axis] = (low, high)
        return em.Boundaries(*faces)

    def run(self, part, boundaries):
        """Steps the samples `part` of the mirrored axis as a simulation."""
        cut = [slice(None)] * self.ndim
        cut[self.axis] = part
        epsilon = {n: jnp.asarray(v[tuple(cut)]) for n, v in self.epsilon.items()}
        shape = next(iter(epsilon.values())).shape
        box = tuple((0, n) for n in shape)
        nonlinear = em.Nonlinearity(box, chi3=2e-3, sigma3=1.0)
        sim = em.Simulation(
            Grid.uniform(shape, WIDTH),
            em.Medium(epsilon, nonlinearities=nonlinear if self.powers else ()),
            boundaries,
            polarisation=self.polarisation,
            steps=STEPS,
            dt=0.5 * WIDTH / SPEED_OF_LIGHT,
        )
        stored = stored_shape(sim)
        start = {}
        for name, value in self.fields.items():
            value = value[tuple(cut)]
            if stored != shape:
                # The samples on the node of the high wall belong to the next cell.
                plane = [slice(None)] * self.ndim
                plane[self.axis] = slice(HALF, HALF + 1)
                wall = self.fields[name][tuple(plane)]
                if stagger(name, self.ndim)[self.axis]:
                    wall = np.zeros_like(wall)
                value = np.concatenate([value, wall], self.axis)
            start[name] = jnp.asarray(value)
        return {n: np.asarray(v) for n, v in advance(sim, start, STEPS).items()}


@pytest.mark.slow(after=3)
@pytest.mark.parametrize("mirror", ["PMC", "PEC"])
@pytest.mark.parametrize(
    ("ndim", "polarisation", "axis", "powers"),
    [
        (3, None, 1, False),
        (2, "Ez", 0, False),
        (2, "Ez", 1, False),
        (2, "Hz", 0, False),
        (2, "Hz", 1, False),
        (1, None, 0, False),
        (3, None, 1, True),
        (2, "Hz", 0, True),
        (2, "Hz", 1, True),
    ],
)
def test_half_a_scene_behind_a_mirror_is_the_half_of_the_whole(
    ndim, polarisation, axis, powers, mirror
):
    scene = Scene(ndim, polarisation, axis, mirror, powers)
    wall = em.PMC() if mirror == "PMC" else em.PEC()
    whole = scene.run(slice(None), scene.boundaries(em.PEC(), em.PEC()))
    upper = scene.run(slice(HALF, None), scene.boundaries(wall, em.PEC()))
    lower = scene.run(slice(0, HALF), scene.boundaries(em.PEC(), wall))
    for name in scene.names:
        size = np.max(np.abs(whole[name]))
        assert size > 0.1
        for half, start in ((upper, HALF), (lower, 0)):
            # Where the wall stores its own node there is one sample more.
            count = half[name].shape[axis]
            count -= count > HALF and bool(stagger(name, ndim)[axis])
            take = np.arange(count)
            same = np.take(whole[name], start + take, axis)
            change = np.max(np.abs(np.take(half[name], take, axis) - same))
            assert change < 1e-13 * size, (name, start)
