"""Diffraction orders: the plane waves that a periodic structure sends out."""

from collections.abc import Sequence
from operator import index

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Complex, Float, Int

from .._checks import ArgumentError, traced
from .._products import tensordot
from ..units import ETA_0, FEMTO, SPEED_OF_LIGHT
from ._components import AXES
from ._currents import in_one_medium
from ._near_field import NearField, recorded


class DiffractionOrders(eqx.Module):
    r"""Plane waves through a face of a periodic simulation.

    Order m along an axis of period L has the transverse wavevector
    $k_m = k_B + 2 \pi m / L$, where $k_B$ is that of the `Bloch` faces.

    Attributes:
        frequencies: In Hz.
        orders: For each transverse axis the numbers m.
        values: Electric amplitudes in V s/m by polarisation, shape (frequency, m) in
            2-D, (frequency, m, m') in 3-D; 0 where an order does not propagate. `"Ez"`
            or `"Hz"` (as `eta0 H`) in 2-D. In 3-D `"s"`, along $n \times k$, and `"p"`,
            along $s \times k$, with the outward normal n; at normal incidence k has the
            direction of the first transverse axis.
        power: By order, both polarisations together, in the unit of a flux.
        directions: Unit vectors of travel, shape (..., axes); 0 where an order does not
            propagate.
        propagating: Whether an order does.
    """

    frequencies: Float[Array, " freqs"]
    orders: tuple[Int[Array, " _"], ...]
    values: dict[str, Complex[Array, "..."]]
    power: Float[Array, "..."]
    directions: Float[Array, "..."]
    propagating: Bool[Array, "..."]


def diffraction_orders(
    near: NearField,
    orders: Sequence[int] | None = None,
    *,
    incoming: bool = False,
) -> DiffractionOrders:
    r"""Splits the fields on one face of a periodic simulation into plane waves.

    Waves that leave through the face and waves that enter are separated by E and H
    together. Everything is done with the wavevectors and impedances of the discrete
    equations, so that the powers sum to the flux to rounding, evanescent waves apart.
    Phases are those on the face, where its transverse coordinates are 0.
    Differentiable; under `jit` give `orders`.

    Args:
        near: From a `NearFieldMonitor` with one face, of size `inf` along all other
            axes, which are `Periodic` or `Bloch` and uniform.
        orders: For each transverse axis the largest number taken; by default all that
            propagate at some frequency.
        incoming: Whether to take the waves that enter instead: on a face before the
            structure, inside the box of a plane wave, the incident one.

    Returns:
        Amplitudes and powers. Efficiencies are powers over that of the incident wave.

    Raises:
        ArgumentError: If there is more than one face, an axis is not periodic, the
            material on the face is not uniform and lossless, or `orders` are needed.
    """
    _, across = _axes(recorded(near))
    near = in_one_medium(near)
    return _split(near, _bounds(near, orders, across), incoming)


@eqx.filter_jit
def _split(
    near: NearField, bounds: tuple[int, ...], incoming: bool
) -> DiffractionOrders:
    """Splits the fields into the orders up to the bounds."""
    normal, across = _axes(near)
    # What the leapfrog makes of the frequency, over the speed of light.
    seen = 2 * jnp.sin(jnp.pi * near.frequencies * near.dt) / near.dt / SPEED_OF_LIGHT
    epsilon = jnp.broadcast_to(near.permittivity, seen.shape)
    square = seen**2 * epsilon * near.permeability
    numbers = [jnp.arange(-bound, bound + 1) for bound in bounds]
    shape = (len(near.frequencies), *map(len, numbers))
    lead = (-1, *(1,) * len(across))
    seen, total = seen.reshape(lead), square.reshape(lead)
    waves = [
        near.wavevectors[axis] + 2 * jnp.pi * m / near.periods[axis]
        for axis, m in zip(across, numbers, strict=True)
    ]
    vectors: list[Array] = [jnp.zeros(shape)] * 3
    for place, (axis, wave) in enumerate(zip(across, waves, strict=True)):
        along = [-1 if a == place + 1 else 1 for a in range(len(shape))]
        step = _differenced(wave, near.spacing[axis]).reshape(along)
        vectors[axis] = jnp.broadcast_to(step, shape)
    rest = total - sum(vectors[axis] ** 2 for axis in across)
    width = 2 * jnp.abs(_gap(near, normal))
    goes = (rest > 1e-9 * total) & (rest < (2 / width) ** 2)
    kn = jnp.sqrt(jnp.where(goes, rest, total))
    half = jnp.arcsin(jnp.clip(kn * width / 2, 0.0, 1.0))
    outward = 1 if near.faces[0][0] == "+" else -1
    sign = -outward if incoming else outward
    fields = {k.split()[0]: _harmonics(near, k, across, waves) for k in near.values}
    tangent, beside = _frame(vectors, across, normal, outward, near.ndim)
    wave = jnp.exp(-1j * half) if not incoming else jnp.exp(1j * half)
    admittances = {"s": kn / (seen * near.permeability)}
    admittances["p"] = seen * epsilon.reshape(lead) / kn
    area = jnp.prod(jnp.stack([near.periods[axis] for axis in across]))
    values, power = {}, jnp.zeros(shape, near.dt.dtype)
    for name, admittance in admittances.items():
        if near.ndim == 2 and (name == "s") != ("Ez" in fields):
            continue
        e, h = _pair(fields, name, tangent, beside)
        # With waves a out and b in, e = a + b and h = Y (a q - b / q): q = exp(i half).
        flip = -1 if incoming else 1
        amplitude = (wave * e + flip * h / admittance) / (2 * jnp.cos(half))
        amplitude = jnp.where(goes, amplitude, 0)
        carried = admittance * jnp.cos(half) * jnp.abs(amplitude / FEMTO) ** 2
        power = power + area * carried / (2 * ETA_0)
        if near.ndim == 3:
            tilt = 1 if name == "s" else flip * jnp.sqrt(total) / kn
            values[name] = tilt * amplitude
        elif name == "s":
            values["Ez"] = beside[2] * amplitude
        else:
            values["Hz"] = flip * admittance * beside[2] * amplitude
    vectors[normal] = sign * kn
    units = jnp.stack(vectors[: near.ndim], axis=-1) / jnp.sqrt(total)[..., None]
    units = jnp.where(goes[..., None], units, 0)
    return DiffractionOrders(
        near.frequencies, tuple(numbers), values, power, units, goes
    )


def _axes(near: NearField) -> tuple[int, tuple[int, ...]]:
    """Returns the axis of the face, and those across it."""
    known = isinstance(near, NearField) and near.ndim > 1 and near.m is None
    if not known or len(near.faces) != 1:
        found = near.faces if isinstance(near, NearField) else type(near).__name__
        raise ArgumentError(
            "`near` must be what a `NearFieldMonitor` of a 2-D or 3-D simulation in "
            f"Cartesian coordinates recorded on one face, but has {found}. Give the "
            "monitor `faces`, such as ('+y',)."
        )
    normal = AXES.index(near.faces[0][1])
    across = tuple(axis for axis in range(near.ndim) if axis != normal)
    for axis in across:
        if axis not in near.repeated or near.cells[axis] != near.shape[axis]:
            raise ArgumentError(
                "`near` must cover a whole period along each axis across its face, but "
                f"does not along {AXES[axis]}. Use `Periodic` or `Bloch` there, and "
                "the size `inf`."
            )
        if near.spacing[axis].ndim:
            raise ArgumentError(
                "`near` must be from a grid that is uniform across its face, but this "
                f"one is graded along {AXES[axis]}. Give `Grid.graded` equally spaced "
                "NumPy edges in float64 there, or `Grid` one width."
            )
    return normal, across


def _differenced(wave: Array, width: Array) -> Array:
    """Returns what a central difference makes of a wavevector."""
    return 2 * jnp.sin(wave * width / 2) / width


def _gap(near: NearField, normal: int) -> Array:
    """Returns the distance of E and H along the normal, in metres."""
    places = {key[0]: where[normal][0] for key, where in near.coordinates.items()}
    return places["H"] - places["E"]


def _bounds(
    near: NearField, orders: Sequence[int] | None, across: tuple[int, ...]
) -> tuple[int, ...]:
    """Returns the largest order along each axis."""
    if orders is None:
        known = (near.frequencies, near.permittivity, *near.periods, *near.wavevectors)
        if traced(known):
            raise ArgumentError(
                "`orders` must be given under `jit`: the largest order for each axis "
                "across the face, such as (3,)."
            )
        eps, mu = np.asarray(near.permittivity), float(near.permeability)
        waves = np.asarray(near.frequencies) * np.sqrt(eps * mu) / SPEED_OF_LIGHT
        largest = 2 * np.pi * float(np.max(waves))
        bounds = []
        for axis in across:
            unit = 2 * np.pi / float(near.periods[axis])
            shift = abs(float(near.wavevectors[axis]))
            # Waves of a grid are shorter, at 4 cells per wavelength by 15 %.
            bounds.append(int((1.2 * largest + shift) / unit))
        bounds = [
            min(bound, (near.shape[axis] - 1) // 2)
            for bound, axis in zip(bounds, across, strict=True)
        ]
    else:
        bounds = list(map(index, orders))
        if len(bounds) != len(across):
            raise ArgumentError(
                f"`orders` must have one entry for each of the {len(across)} axes "
                f"across the face, but is {tuple(orders)}."
            )
    for bound, axis in zip(bounds, across, strict=True):
        if not 0 <= 2 * bound < near.shape[axis]:
            raise ArgumentError(
                "`orders` must be at least 0 and less than half the "
                f"{near.shape[axis]} cells along {AXES[axis]}, but are {bound}."
            )
    return tuple(bounds)


def _harmonics(
    near: NearField, key: str, across: tuple[int, ...], waves: list[Array]
) -> Complex[Array, "..."]:
    """Returns the Fourier coefficients of a component on the face."""
    normal = AXES.index(key[-1])
    values = jnp.squeeze(near.values[key], axis=1 + normal)
    for axis, wave in zip(across, waves, strict=True):
        points = near.coordinates[key][axis]
        turn = jnp.exp(-1j * wave[:, None] * points) / len(points)
        # The axis that is summed is always the second: its order goes to the end.
        values = tensordot(values, turn, (1, 1))
    return values


def _frame(
    vectors: list[Array],
    across: tuple[int, ...],
    normal: int,
    outward: int,
    ndim: int,
) -> tuple[list[Array], list[Array]]:
    """Returns the unit vectors along the transverse wavevector, and beside it."""
    tangent: list[Array] = [jnp.zeros(())] * 3
    first = across[0]
    if ndim == 2:
        tangent[first] = jnp.ones(())
    else:
        square = sum(vectors[axis] ** 2 for axis in across)
        none = square == 0
        length = jnp.sqrt(jnp.where(none, 1, square))
        for axis in across:
            rest = float(axis == first)
            tangent[axis] = jnp.where(none, rest, vectors[axis] / length)
    # The cross product of the outward normal with it.
    j, k = (normal + 1) % 3, (normal + 2) % 3
    beside: list[Array] = [jnp.zeros(())] * 3
    beside[k], beside[j] = outward * tangent[j], -outward * tangent[k]
    return tangent, beside


def _pair(
    fields: dict[str, Array], name: str, tangent: list[Array], beside: list[Array]
) -> tuple[Array, Array]:
    """Returns E and H of a polarisation, H with the sign of an outgoing wave."""

    def part(letter, vector):
        found = [jnp.zeros(())]
        for axis, along in zip(AXES, vector, strict=True):
            if letter + axis in fields:
                found.append(fields[letter + axis] * along)
        return sum(found[1:], found[0])

    if name == "s":
        return part("E", beside), -part("H", tangent)
    return part("E", tangent), part("H", beside)
