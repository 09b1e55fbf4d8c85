"""Full tensors that are refused, and what does not go with them."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import em
from physax._checks import ArgumentError, PhysaxWarning
from physax.grid import Grid
from tests.em.scenes import CELL, FREQUENCIES, PULSE, at


BOX = ((2, 9), (3, 8))


def small(inverse=0.1, box=BOX, *, polarisation="Hz", pair="xy", **options):
    entries = np.zeros([high - low for low, high in box])
    entries[1:, 1:] = inverse
    given = {"sources": {"in": em.Dipole(polarisation, at(6, 6), PULSE)}}
    keys = "sources", "monitors", "boundaries"
    given |= {key: options.pop(key) for key in keys if key in options}
    return em.Simulation(
        Grid.uniform((12, 12), CELL),
        em.Medium(2.0, off_diagonals=em.OffDiagonal(box, {pair: entries}), **options),
        steps=8,
        polarisation=polarisation,
        **given,
    )


@pytest.mark.parametrize(
    ("box", "node", "faces"),
    [
        (((2, 9), (3, 8)), (0, 2), em.PEC()),
        (((0, 9), (3, 8)), (4, 0), em.PEC()),
        (((0, 11), (0, 12)), (0, 3), em.Periodic()),
    ],
)
def test_entries_without_a_neighbour_are_refused(box, node, faces):
    entries = np.zeros([high - low for low, high in box])
    entries[node] = 0.1
    medium = em.Medium(off_diagonals=em.OffDiagonal(box, {"xy": entries}))
    with pytest.raises(
        ArgumentError, match=rf"low end of its box.* is 0\.1 at node \({node[0]}, "
    ):
        em.Simulation(
            Grid.uniform((12, 12), CELL),
            medium,
            em.Boundaries.all(faces),
            steps=2,
            polarisation="Hz",
        )


@pytest.mark.x64
def test_a_traced_entry_without_a_neighbour_spoils_the_field_also_on_a_wall():
    box = ((2, 6), (0, 7), (0, 6))

    @jax.jit
    def run(value):
        entries = jnp.zeros((4, 7, 6)).at[1:, 1:].set(0.05).at[0, 3, 0].set(value)
        return em.simulate(
            em.Simulation(
                Grid.uniform((8, 7, 6), CELL),
                em.Medium(2.0, off_diagonals=em.OffDiagonal(box, {"xy": entries})),
                steps=5,
                sources={"in": em.Dipole("Ex", at(4, 3, 3), PULSE)},
            )
        ).fields["Ex"]

    assert np.isfinite(run(0.0)).all()
    assert np.isnan(run(0.05)).any()


def test_what_is_no_sound_tensor_is_refused():
    with pytest.raises(ArgumentError, match=r"at node \(1, 1\) of its box.*most 0\.9"):
        small(0.55)
    with pytest.raises(ArgumentError, match="must be finite, but is not in cell"):
        small(np.nan)
    with pytest.raises(ArgumentError, match=r"keys of \('xy', 'xz', 'yz'\)"):
        small(pair="yx")
    with pytest.raises(ArgumentError, match="must have the shape"):
        em.OffDiagonal(BOX, {"xy": np.zeros((2, 2))})
    with pytest.raises(ArgumentError, match=r"'xz' needs \['Ez'\]"):
        small(pair="xz")
    with pytest.raises(ArgumentError, match=r"'xy' needs \['Ex', 'Ey'\]"):
        small(polarisation="Ez")
    with pytest.raises(ArgumentError, match="must be real"):
        em.OffDiagonal(BOX, {"xy": np.zeros((7, 5), complex)})


def test_what_does_not_go_with_tensors_is_refused():
    region = em.DesignRegion(((1, 4), (1, 4)), np.ones((3, 3)))
    with pytest.raises(ArgumentError, match="must not overlap a design region"):
        small(regions=region)
    with pytest.raises(ArgumentError, match="must lie in the grid"):
        small(box=((2, 20), (3, 8)))
    sim = small()
    with pytest.raises(ArgumentError, match="must not record energy"):
        em.Simulation(
            sim.grid,
            sim.medium,
            steps=2,
            polarisation="Hz",
            monitors={"all": em.EnergyMonitor()},
        )
    with pytest.raises(ArgumentError, match="cannot undo the coupling by a full"):
        em.simulate(sim, adjoint=em.Reversible())
    port = em.Port(at(5, 5), 4 * CELL, "+x")
    with pytest.raises(ArgumentError, match="The port of 'mode' must lie where"):
        small(sources={"mode": em.ModeSource(port, PULSE)})
    dot = em.Dipole("Hz", at(6, 6), PULSE)
    emission = em.EmissionMonitor(dot, FREQUENCIES)
    with pytest.raises(ArgumentError, match="The dipole of monitor 'p' must lie where"):
        small(sources={"dot": dot}, monitors={"p": emission})


def test_a_port_in_a_crystal_turned_in_its_plane_is_refused_but_not_on_slanted_walls():
    grid = Grid.uniform((6, 12, 12), CELL)
    port = em.Port(at(3, 6, 6), (9 * CELL, 9 * CELL), "+x")
    source = {"sources": {"mode": em.ModeSource(port, PULSE)}}
    monitor = {"monitors": {"mode": em.ModeMonitor(port, FREQUENCIES)}}

    def sim(entry, **parts):
        box = em.OffDiagonal(((0, 6), (1, 11), (1, 11)), {"yz": entry})
        medium = em.Medium(2.0, off_diagonals=box)
        return em.Simulation(grid, medium, steps=2, **parts)

    crystal = np.zeros((6, 10, 10))
    crystal[:, 3:6, 4:6] = 0.1
    wall = np.zeros((6, 10, 10))
    for i in range(1, 9):
        wall[:, i, i : i + 2] = 0.01 * i, 0.005 * i
    for parts in (source, monitor):
        with pytest.raises(ArgumentError, match="The port of 'mode' must lie where"):
            sim(crystal, **parts)
        assert sim(1e-6 * crystal, **parts)
        assert sim(wall, **parts)


@pytest.mark.f32
def test_near_fields_in_tensors_are_not_projected_and_not_sent():
    def seen(centre, size):
        near = em.NearFieldMonitor(centre, size, FREQUENCIES)
        open_ = em.Boundaries.all(em.CPML(4))
        with warnings.catch_warnings():
            # The layers are thin and the run is short.
            warnings.simplefilter("ignore", PhysaxWarning)
            found = em.simulate(small(monitors={"n": near}, boundaries=open_))
        return found.monitors["n"]

    near = seen(at(5, 5), at(6, 4))
    assert np.isfinite(em.absorbed_power(near)).all()
    with pytest.raises(ArgumentError, match="axes are not along the grid, .* is inf"):
        em.radiated_power(near)
    with pytest.raises(ArgumentError, match="must have its principal axes along the"):
        small(sources={"again": em.HuygensSource(near, PULSE, 0)})
    # Around all of them there is one plain medium.
    assert seen(at(6, 6), at(10, 10)).spread == 0


@pytest.mark.x64
def test_adjoint_of_the_frequency_domain_refuses_tensors():
    sim = small()
    monitors = {"out": em.FieldMonitor(("Ey",), at(6, 6), at(2, 2), FREQUENCIES)}
    sim = em.Simulation(
        sim.grid,
        sim.medium,
        steps=8,
        polarisation="Hz",
        sources=sim.sources,
        monitors=monitors,
    )

    def loss(entry):
        one = em.OffDiagonal(BOX, {"xy": entry})
        medium = em.Medium(2.0, off_diagonals=one)
        new = em.Simulation(
            sim.grid,
            medium,
            steps=8,
            polarisation="Hz",
            sources=sim.sources,
            monitors=monitors,
        )
        found = em.simulate(new, adjoint=em.FrequencyDomain(0.5))
        return jnp.sum(jnp.abs(found.monitors["out"].values["Ey"]) ** 2)

    with pytest.raises(ArgumentError, match="without off-diagonal permittivity"):
        jax.grad(loss)(jnp.full((7, 5), 0.1))
