"""A simulation from shapes and wavelengths, with defaults that it can state."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any

import jax
import numpy as np
from jaxtyping import ArrayLike, Float

from .._checks import (
    ArgumentError,
    by_name,
    instance,
    refuse_text,
    refuse_traced,
    traced,
    warn,
)
from ..grid import Grid
from ..units import SPEED_OF_LIGHT
from ._boundaries import PEC, Boundaries, layer_cells
from ._components import components
from ._cpml import CPML
from ._extent import check_fields, check_scale
from ._frame import check_point
from ._limits import largest_step
from ._materials import Material, check_range
from ._medium import Medium
from ._monitors import AbstractMonitor
from ._pulses import band_pulse
from ._rasterise import Averaging, rasterise
from ._shapes import Structure, painted
from ._simulation import Simulation
from ._sources import AbstractSource


# Cells per wavelength in the densest medium; 20 keeps the phase velocity of a plane
# wave within 0.5 %.
_CELLS = 20
# The layer is half a wavelength of the background thick, and at least this many cells.
_LEAST_LAYER = 10
# A default layer so many times longer than the scene tells of mistaken units.
_MOST_LAYER = 150
# Passages of the scene at the speed of light in its densest medium, after the pulse.
_PASSAGES = 8


def scene(
    structures: Iterable[Structure],
    size: Sequence[float],
    wavelengths: Float[ArrayLike, "..."] | Sequence[float],
    *,
    centre: Sequence[float] | None = None,
    background: Material | PEC | None = None,
    boundaries: Boundaries | None = None,
    sources: Mapping[str, AbstractSource] | None = None,
    monitors: Mapping[str, AbstractMonitor] | None = None,
    polarisation: str | None = None,
    spacing: float | None = None,
    steps: int | None = None,
    averaging: Averaging = "volume",
) -> Simulation:
    """Makes a simulation from shapes, and chooses what is not given from wavelengths.

    The spacing is a twentieth of the shortest wavelength in the densest material;
    absorbing layers half the longest wavelength thick are added outside `size`; the
    time step is 0.99 of the largest stable one; the run lasts as long as the longest
    pulse (without sources, one that covers the wavelengths) and eight passages of the
    scene. `describe` states the choices. Under `jit`, `vmap` and `grad` materials and
    shapes may be traced where `spacing` and `steps` are given, a traced background
    where `boundaries` are, too.

    Args:
        structures: Shapes with materials; later ones lie over earlier ones.
        size: Lengths of the scene in metres, without the layers; its length is the
            dimension.
        wavelengths: In vacuum, in metres: all that matter.
        centre: Middle of the scene in metres; the origin by default.
        background: What lies between the structures; vacuum by default.
        boundaries: Faces; layers on all by default. A face that is not a layer lies
            exactly where `size` ends; a layer begins within half a cell of it.
        sources: By name.
        monitors: By name.
        polarisation: In 2-D, `"Ez"` or `"Hz"`.
        spacing: Width of the cells in metres. On axes without layers it is an upper
            limit: cells are narrowed so that a whole number of them fits the length.
        steps: Number of steps.
        averaging: Of cells that an interface cuts, as for `rasterise`.

    Returns:
        The simulation.

    Raises:
        ArgumentError: If a number is out of range, the parts do not fit, or what a
            choice depends on is traced.
        MemoryLimitError: If the fields do not fit into memory.
    """
    size, waves = check_size(size, wavelengths)
    check_scale(size, waves)
    structures, ground = painted(structures, background)
    materials = [ground, *(one.material for one in structures)]
    index = 1.0
    if spacing is None or steps is None:
        index = max(map(partial(largest_index, waves), materials, places(structures)))
    else:
        # A traced index is no obstacle where nothing is chosen by it.
        for material, what in zip(materials, places(structures), strict=True):
            check_valid(waves, material, what)
    if spacing is None:
        spacing = float(waves.min()) / index / _CELLS
    width = _known(spacing, "spacing")
    if width.ndim or not (width > 0 and np.isfinite(width)):
        raise ArgumentError(
            f"`spacing` must be one positive and finite number, but is {spacing} m."
        )
    spacing = float(width)
    faces = boundaries
    if faces is not None:
        remedy = "Write `Boundaries.all(CPML(10))`."
        instance(faces, "boundaries", Boundaries, remedy)
    else:
        faces = Boundaries.all(default_layer(size, waves, ground, spacing))
    middle = check_point(
        (0.0,) * len(size) if centre is None else tuple(centre),
        len(size),
        "centre",
        "the scene",
    )
    _review_extents(structures, size, middle)
    grid = _grid(size, middle, spacing, faces, painted=bool(structures))
    names = components(grid.ndim, polarisation).names
    apart = any(not m.is_isotropic() for m in materials if isinstance(m, Material))
    medium = rasterise(
        structures,
        grid,
        ground,
        names,
        averaging,
        frequency=_middle(waves) if averaging == "polarised" and not apart else None,
    )
    sources = by_name(sources, "sources", AbstractSource)
    if steps is None:
        # Without sources it is for `s_parameters`, which adds such a pulse.
        band = band_pulse(SPEED_OF_LIGHT / waves.max(), SPEED_OF_LIGHT / waves.min())
        pulses = [one.pulse for one in sources.values()] or [band]
        refuse_traced(
            pulses, "sources", "The number of steps depends on it. Give `steps`."
        )
        passage = index * float(np.hypot.reduce(size)) / SPEED_OF_LIGHT
        duration = max(float(p.duration()) for p in pulses) + _PASSAGES * passage
        parts = components(grid.ndim, polarisation)
        dt = 0.99 * float(largest_step(grid, Medium(), parts))
        steps = ceil(duration / dt / 100) * 100
    return Simulation(
        grid,
        medium,
        faces,
        sources=sources,
        monitors=monitors,
        steps=steps,
        polarisation=polarisation,
    )


def check_size(
    size: Sequence[float], wavelengths: Float[ArrayLike, "..."] | Sequence[float]
) -> tuple[list[float], np.ndarray]:
    """Returns size and wavelengths as numbers, after checking them."""
    if not traced(size) and np.ndim(size) != 1:
        raise ArgumentError(
            "`size` must have one length in metres for each axis, such as (1e-6, "
            f"2e-6), but is {size!r}."
        )
    waves = np.atleast_1d(_known(wavelengths, "wavelengths"))
    if waves.ndim > 1:
        raise ArgumentError(
            f"`wavelengths` must be one number or a list, but has shape {waves.shape}."
        )
    lengths = [float(length) for length in _known(size, "size")]
    if not 1 <= len(lengths) <= 3:
        raise ArgumentError(f"`size` must have 1 to 3 entries, but has {len(lengths)}.")
    if not (waves.size and np.all(waves > 0) and np.all(np.isfinite(waves))):
        raise ArgumentError(f"`wavelengths` must be positive, but are {waves}.")
    if not all(length > 0 and np.isfinite(length) for length in lengths):
        raise ArgumentError(f"`size` must be positive and finite, but is {lengths}.")
    return lengths, waves


# A finite shape so many times longer than the scene tells of mistaken units.
_MOST_EXTENT = 100


def _review_extents(
    structures: Sequence[Structure], size: list[float], middle: Sequence[float]
) -> None:
    """Warns of finite shapes around all of the scene that are far larger than it."""
    ends = np.asarray(middle) + np.multiply.outer([-0.5, 0.5], size)
    for k, one in enumerate(structures):
        low, high = one.shape.bounds()
        if traced((low, high)):
            continue
        low, high = (np.asarray(end, float)[: len(size)] for end in (low, high))
        lengths = high - low
        length = np.max(lengths, where=np.isfinite(lengths), initial=0.0)
        around = np.all((low <= ends[0]) & (high >= ends[1]))
        if around and length > _MOST_EXTENT * max(size):
            warn(
                f"`structures[{k}]` contains all of the scene, which is "
                f"{max(size):.3g} m long, and should not be more than {_MOST_EXTENT} "
                f"times as long, but is {length:.3g} m long. Are its lengths in "
                "metres? Write `inf` for a shape without an end."
            )


def _known(value: Any, name: str) -> np.ndarray:
    """Returns real numbers, which the shape of a grid depends on."""
    refuse_text(value, name)
    refuse_traced(
        value,
        name,
        "The number of cells depends on it. Make the scene outside, and only "
        "rasterise inside: `em.rasterise(structures, sim.grid)`.",
    )
    host = np.asarray(value)
    if host.dtype.kind not in "iuf":
        raise ArgumentError(f"`{name}` must be real numbers, but is {value!r}.")
    return host.astype(float)


def _middle(waves: np.ndarray) -> float:
    """Returns the frequency in the middle of a band."""
    return SPEED_OF_LIGHT * (1 / waves.min() + 1 / waves.max()) / 2


def _grid(
    size: list[float],
    middle: Sequence[float],
    spacing: float,
    faces: Boundaries,
    *,
    painted: bool,
) -> Grid:
    """Returns the cells of a scene and of the layers around it."""
    shape, widths, origin = [], [], []
    for axis, (length, x) in enumerate(zip(size, middle, strict=True)):
        if length < spacing / 2:
            raise ArgumentError(
                f"`size` must be at least half a cell of {spacing:g} m, but is "
                f"{length:g} m. Are sizes and wavelengths in metres?"
            )
        cells, width, low = _axis(length, x, spacing, layer_cells(faces, axis))
        shape.append(cells)
        widths.append(width)
        origin.append(low)
    check_fields(shape, spacing, painted=painted)
    return Grid.uniform(shape, widths, origin)


def _axis(
    length: float, middle: float, spacing: float, layers: tuple[int, int]
) -> tuple[int, float, float]:
    """Returns number and width of the cells of an axis, and where the first begins.

    Walls lie at the ends of the scene, and a period equals its length, whatever the
    spacing.
    """
    low, high = layers
    if not (low or high):
        cells = ceil(length / spacing - 1e-6)
        return cells, length / cells, middle - length / 2
    inner = max(1, round(length / spacing))
    if not low:
        begin = middle - length / 2
    elif not high:
        begin = middle + length / 2 - inner * spacing
    else:
        begin = middle - inner * spacing / 2
    return low + inner + high, spacing, begin - low * spacing


def places(structures: Sequence[Structure]) -> list[str]:
    """Returns the names of the background and of all structures, for messages."""
    return ["`background`", *(f"`structures[{k}]`" for k in range(len(structures)))]


def default_layer(
    size: Sequence[float], waves: np.ndarray, ground: Material | PEC, spacing: float
) -> CPML:
    """Returns the absorbing layer of a scene whose faces are not given.

    Args:
        size: Lengths of the scene in metres.
        waves: Wavelengths in vacuum, in metres.
        ground: The background.
        spacing: Width of the cells in metres.

    Raises:
        ArgumentError: If the background is traced, or the layer would be so much
            thicker than the scene that units must be wrong.
    """
    remedy = "The thickness of absorbing layers depends on it. Give `boundaries`."
    index = largest_index(waves, ground, remedy=remedy)
    thickness, longest = waves.max() / index / 2, max(size)
    if len(size) > 1 and thickness > _MOST_LAYER * longest:
        raise ArgumentError(
            f"`wavelengths` must be at most {2 * index * _MOST_LAYER * longest:.3g} m, "
            "so that absorbing layers of half a wavelength are at most "
            f"{_MOST_LAYER} times as thick as the scene is long, but one is "
            f"{waves.max():.3g} m. Is its unit right? Else give `boundaries`."
        )
    # Whole numbers of cells should not become one more by rounding.
    return CPML(max(_LEAST_LAYER, ceil(thickness / spacing - 1e-6)))


def check_valid(waves: np.ndarray, material: Material | PEC, what: str) -> None:
    """Refuses wavelengths at which the numbers of a material do not hold.

    Args:
        waves: Wavelengths in vacuum, in metres.
        material: The material.
        what: Where it is, for the message.
    """
    if isinstance(material, Material) and material.valid is not None:
        check_range(waves, material.valid, f"the material of {what}")


def largest_index(
    waves: np.ndarray,
    material: Material | PEC,
    what: str = "`background`",
    remedy: str = "The grid depends on its index. Give `spacing` and `steps`.",
) -> float:
    """Returns the largest size of the index of a material, 1 for perfect metal.

    Args:
        waves: Wavelengths in vacuum, in metres.
        material: The material.
        what: Where it is, for the message.
        remedy: What to do if it is traced, for the message.

    Raises:
        ArgumentError: If the numbers of the material do not hold at a wavelength, or
            are traced.
    """
    if isinstance(material, PEC):
        return 1.0
    check_valid(waves, material, what)
    response = (material.permittivity, material.permeability, material.poles)
    refuse_traced(response, what.strip("`"), remedy)
    eps = np.asarray(material.permittivity)
    eps = np.linalg.eigvalsh(eps)[-1] if eps.ndim == 2 else eps
    # What is known stays known under `jit`.
    with jax.ensure_compile_time_eval():
        chi = np.asarray(material.susceptibility(SPEED_OF_LIGHT / waves))
    chi = chi if material.poles_differ() else chi[..., None]
    square = np.max(np.abs(eps + chi)) * np.max(np.asarray(material.permeability))
    return float(np.sqrt(square))
