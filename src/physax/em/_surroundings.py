"""What fills the samples around a face: one lossless material, or several."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import check
from ..grid import Grid
from ._boxes import cells_of, common, meet, of_cells
from ._components import Components
from ._medium import Medium, at_component
from ._monitors import Read
from ._port_medium import PortMedium
from ._setup import Setup


def across(reads: tuple[Read, ...], parts: Components) -> list[Read]:
    """Returns the samples next to each face of the components along its normal."""
    out = []
    for key, component, box, *_ in reads:
        face = key.split()[1]
        # Along the normal the other field stands where this one does.
        name = ("H" if component[0] == "E" else "E") + face[1]
        if name not in parts.names or any(r.key == name + face for r in out):
            continue
        halves = map(parts.stagger, (name, component))
        spans = tuple(
            (low, max(low + 1, high - 1)) if own > other else (low, high)
            for own, other, (low, high) in zip(*halves, box, strict=True)
        )
        out.append(Read(name + face, name, spans))
    return out


def powers(reads: Sequence[Read], medium: Medium) -> Float[Array, ""]:
    """Returns the largest nonlinear coefficient, in its unit, of some samples."""
    found = [jnp.zeros(())]
    for read in reads:
        for one in medium.nonlinearities if read.component[0] == "E" else ():
            # Such a box also holds what is linear between bodies.
            shared = cells_of(common(one.box, read.box), one.box)
            for prop in one.given():
                values = jnp.abs(one.at(prop, read.component)[shared])
                found.append(jnp.max(values, initial=0))
    return jnp.max(jnp.stack(found))


# Imaginary over real part of a permittivity, up to which poles count as lossless.
_LOSSLESS = 1e-3


def surroundings(
    reads: Sequence[Read],
    medium: Medium,
    grid: Grid,
    at: tuple[Float[Array, ""], Float[Array, ""]] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Returns mean permittivity, permeability, their spread and the largest loss.

    The loss is infinite where the medium has poles or powers of the field, the spread
    where its permittivity has off-diagonal entries.

    Args:
        reads: The samples.
        medium: The medium.
        grid: The grid.
        at: A frequency in Hz and the time step of the run: poles then belong to the
            permittivity, and the loss is infinite where they absorb or make a metal.
    """
    found: dict[str, list[Array]] = {"E": [], "H": []}
    dtype, shape = grid.widths[0].dtype, grid.shape
    losses = [jnp.where(powers(reads, medium) > 0, jnp.inf, jnp.zeros((), dtype))]
    poles = () if at is None else medium.dispersions
    plain = eqx.tree_at(lambda m: (m.dispersions, m.off_diagonals), medium, (poles, ()))
    for read in reads:
        here = plain.near(read.box, shape)
        electric = read.component[0] == "E"
        for one in medium.dispersions if at is None else ():
            filled = one.meets(read.box, read.component)
            losses.append(jnp.where(filled, jnp.inf, jnp.zeros((), dtype)))
        inertia = here.permittivity if electric else here.permeability
        loss = here.conductivity if electric else here.magnetic_conductivity
        where = tuple(
            slice(min(low, cells - 1), min(high, cells))
            for (low, high), cells in zip(read.box, shape, strict=True)
        )
        for value, out in ((inertia, found[read.component[0]]), (loss, losses)):
            entry = at_component(value, read.component)
            if entry is not None:
                out.append(jnp.ravel(entry[where] if jnp.ndim(entry) else entry))
        if electric and at is not None and medium.dispersions:
            port = PortMedium(here, read.box, shape, at[1])
            value = port.permittivity(read.component, at[0])
            lost = jnp.abs(jnp.imag(value)) > _LOSSLESS * jnp.real(value)
            losses.append(jnp.where(jnp.any(lost), jnp.inf, jnp.zeros((), dtype)))
            found["E"][-1] = jnp.ravel(jnp.real(value))
    means, spreads = [], []
    for values in found.values():
        mean = jnp.mean(jnp.stack([jnp.mean(v) for v in values]))
        least = jnp.min(jnp.stack([jnp.min(v) for v in values]))
        most = jnp.max(jnp.stack([jnp.max(v) for v in values]))
        means.append(mean)
        # Metals of poles have negative values.
        spreads.append((most - least) / jnp.abs(mean))
    for one in medium.off_diagonals:
        sound = jnp.stack([one.sound(read.box) for read in reads])
        spreads.append(jnp.where(jnp.all(sound), jnp.zeros((), dtype), jnp.inf))
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(v)) for v in losses]))
    return means[0], means[1], jnp.max(jnp.stack(spreads)), largest


def at_frequencies(
    reads: Sequence[Read],
    medium: Medium,
    grid: Grid,
    frequencies: Float[Array, " freqs"],
    dt: Float[Array, ""],
) -> tuple[Array, Array, Array, Array]:
    """Returns `surroundings` at some frequencies, as a run of a time step has them.

    Where the box of poles meets the samples the permittivity is one for each frequency,
    else one number. Of spread and loss it is the largest.
    """
    boxes = [of_cells(read.box, grid.shape) for read in reads]
    if not any(meet(one.box, box) for one in medium.dispersions for box in boxes):
        return surroundings(reads, medium, grid)
    found = jax.vmap(lambda f: surroundings(reads, medium, grid, (f, dt)))(frequencies)
    epsilons, permeabilities, spreads, losses = found
    return epsilons, permeabilities[0], jnp.max(spreads), jnp.max(losses)


# A few roundings of a permittivity that was computed.
_SAME = 1e-5


def one_medium(
    reads: tuple[Read, ...],
    setup: Setup,
    frequencies: Float[Array, " freqs"],
    same: str,
    lossless: str,
) -> Array:
    """Returns 1 if all faces lie in one linear lossless material, else raises, or NaN.

    Args:
        reads: The samples, named by component and face.
        setup: The run; metrics and phases are not asked for.
        frequencies: In Hz.
        same: What must be one material, and how to mend it.
        lossless: What must have no loss, and how to mend it.

    Raises:
        ArgumentError: If they are known not to.
    """
    seen = (*reads, *across(reads, setup.components))
    found = at_frequencies(seen, setup.medium, setup.grid, frequencies, setup.dt)
    _, _, spread, loss = found
    spread = check(
        spread,
        spread <= _SAME,
        f"{same}. The relative spread of permittivity and permeability must be 0",
    )
    loss = check(loss, loss == 0, f"{lossless}. The largest loss must be 0")
    return 1 + 0 * (spread + loss)
