"""What rasterisation paints: the parts of cells, and properties averaged over them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from itertools import compress
from math import prod
from operator import add
from typing import NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import at_once, traced, warn
from ..grid import Box, Grid
from ._boxes import cells_of, size_of
from ._combinations import covered_by_each
from ._components import components as components_of, staggered
from ._dispersion import Dispersion
from ._materials import Material
from ._medium import Property
from ._metal import Metal, outside
from ._nonlinear import COEFFICIENTS, Nonlinearity
from ._overlap import control_volumes
from ._poles import AbstractPole
from ._shapes import AbstractShape
from ._staircase import beside, equal, largest, metal_cells
from ._subpixel import mean_of
from ._visible import visible


# Of a cell; what is covered is seen by rounding only.
_SEEN = 1e-3


class Canvas(NamedTuple):
    """What is painted, and the fractions of each set of sample points once computed.

    For a staircase equal `kinds` of materials are one object, and `stepped` tells which
    are metals with poles, else it is `None`. What poles add to each material is the
    `excess`, and `shares` is what they add to the average of a component, where that
    is not the mean.
    """

    grid: Grid
    axes: tuple[str, ...]
    shapes: Sequence[AbstractShape]
    materials: Sequence[Material]
    metallic: Sequence[bool]
    kinds: Sequence[Material]
    stepped: Sequence[bool] | None
    known: dict[str, list[Array]]
    excess: Sequence[Array] | None = None
    shares: Mapping[str, Array] | None = None

    def parts(self, component: str, *, boxed: bool = False) -> list[Array]:
        """Returns what is seen of the ground and of each shape around a component.

        Args:
            component: The component.
            boxed: Whether this is for what lies in a box of its own: what can be known
                is then known under `jit`, too. For the whole grid it would be a large
                constant of the program there.
        """
        # Under `jit` any new array is traced.
        staged = not boxed and traced(jnp.zeros(()))

        def make():
            parts = self.seen(staggered(component, self.axes))
            if self.stepped is None:
                return parts
            return self.staircase(component, parts, staged)

        with nullcontext() if staged else at_once((self.grid, self.shapes)):
            return self.once(component, make, staged)

    def once(
        self, what: str, make: Callable[[], list[Array]], staged: bool
    ) -> list[Array]:
        """Makes fractions where they are first needed, apart for a program."""
        key = f"staged {what}" if staged else what
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def seen(self, stagger: tuple[float, ...]) -> list[Array]:
        """Returns what is seen of the ground and of each shape around samples."""
        cells = control_volumes(self.grid, stagger)
        ground, seen = visible(covered_by_each(self.shapes, cells))
        return [ground, *seen]

    def staircase(
        self, component: str, parts: Sequence[Array], staged: bool
    ) -> list[Array]:
        """Returns the parts of a staircase, where each cell is of one material.

        Args:
            component: The component.
            parts: What is seen of the ground and of each shape around it.
            staged: Whether this is for a program that is being made.
        """
        own = component[1]
        axis = self.axes.index(own) if own in self.axes else None
        stepped = self.stepped or ()
        metals = None
        # A field across the plane has no edges in it, and none along a normal.
        if component[0] == "E" and axis is not None and any(stepped):

            def make():
                seen = self.seen((0.5,) * self.grid.ndim)
                filled = mean_of(seen, [jnp.asarray(float(one)) for one in stepped])
                return [metal_cells(jnp.broadcast_to(filled, self.grid.shape))]

            metals = beside(self.once("cells", make, staged)[0], axis)
        return largest(parts, self.kinds, stepped, axis, metals)

    def painted(self, name: str, component: str, *, boxed: bool = False) -> Array:
        """Returns a property at the samples of a component, a number where it can.

        Args:
            name: The property.
            component: The component.
            boxed: As for `parts`.
        """
        values = [_along(getattr(m, name), component) for m in self.materials]
        pairs = zip(values, self.metallic, strict=True)
        others = [value for value, metal in pairs if not metal] or values[:1]
        if all_equal(others):
            return others[0]
        parts = self.parts(component, boxed=boxed)
        with at_once((parts, values)):
            if any(self.metallic):
                mean = _around(parts, values, self.metallic, others[0])
            else:
                mean = mean_of(parts, values)
            return jnp.broadcast_to(mean, self.grid.shape)

    def metal(self, names: Sequence[str]) -> Metal:
        """Returns what perfect metal leaves open."""
        out_of_plane = "Hz" if "Hz" in names else "Ez"
        parts = components_of(
            self.grid.ndim, out_of_plane if self.grid.ndim == 2 else None
        )
        return outside(self.shapes, self.metallic, self.grid, parts)

    def everywhere(self, name: str, names: Sequence[str]) -> Property:
        """Returns a property of several components, a number if it is the same."""
        values = {c: self.painted(name, c) for c in names}
        # Without a component of its kind, a property does not matter.
        one = list(values.values()) or [_along(getattr(self.materials[0], name), "Ex")]
        return one[0] if all_equal(one) else values

    def losses(self, name: str, names: Sequence[str]) -> Property | None:
        """Returns the same of a conductivity, `None` where there is none."""
        value = self.everywhere(name, names)
        return None if not isinstance(value, dict) and is_zero(value) else value

    def dispersions(self, names: Sequence[str]) -> tuple[Dispersion, ...]:
        """Returns the poles of each dispersive material."""
        poles = {
            c: [m.poles_along(_ENTRIES[c[1]]) for m in self.materials] for c in names
        }
        distinct = {id(one): one for own in poles.values() for one in own if one}
        found: list[Dispersion] = []
        lost = []
        for one in distinct.values():
            with at_once((self.grid, self.shapes, self.excess, self.shares)):
                chosen = {c: [p is one for p in own] for c, own in poles.items()}
                parts = {c: self.filled(x, c) for c, x in chosen.items() if any(x)}
                if (made := _boxed(one, parts, self.grid.shape)) is not None:
                    found = _with(found, made)
                else:
                    lost.append(one)
        # What equal materials have of a cell is given to one of them.
        held = [other.poles for other in found]
        gone = {id(one) for one in lost if not any(equal(one, own) for own in held)}
        if gone:
            each = zip(*poles.values(), strict=True)
            self.warn_of_lost([any(id(p) in gone for p in own) for own in each])
        return tuple(found)

    def warn_of_lost(self, chosen: Sequence[bool]) -> None:
        """Warns of structures of a metal to which a staircase gives no sample.

        Args:
            chosen: Whether the ground and each shape is of a material without any.
        """
        if not any(compress(self.stepped or (), chosen)):
            return
        with at_once((self.grid, self.shapes)):
            most = [jnp.max(part) for part in self.seen((0.5,) * self.grid.ndim)]
        for number in compress(range(len(chosen)), chosen):
            if not traced(most[number]) and (part := float(most[number])) > _SEEN:
                what = f"structures[{number - 1}]" if number else "background"
                warn(
                    f"`{what}` is of a metal and fills at most "
                    f"{part:.2g} of a cell, so that a staircase has no sample of it. "
                    "Take at least three cells across it."
                )

    def filled(self, chosen: Sequence[bool], component: str) -> Array:
        """Returns the part of each cell that holds some of the materials."""
        parts = self.parts(component, boxed=True)
        if any(self.metallic):
            own = [jnp.asarray(float(one)) for one in chosen]
            return _around(parts, own, self.metallic, jnp.zeros(()))
        if self.excess is not None and self.shares is not None:
            mean = mean_of(parts, self.excess)
            factor = self.shares[component] / jnp.where(mean > 0, mean, 1)
            factor = jnp.where(mean > 0, factor, 1)
            pairs = zip(parts, self.excess, strict=True)
            parts = [part * jnp.where(gain > 0, factor, 1) for part, gain in pairs]
        return reduce(add, compress(parts, chosen))

    def powers(self, names: Sequence[str]) -> tuple[Nonlinearity, ...]:
        """Returns nonlinear answers in the smallest box that holds them."""
        shape, whole = self.grid.shape, {}
        for prop in COEFFICIENTS:
            if not all(is_zero(getattr(m, prop)) for m in self.materials):
                whole[prop] = {c: self.painted(prop, c, boxed=True) for c in names}
        with at_once(whole):
            whole = jax.tree.map(lambda x: jnp.broadcast_to(x, shape), whole)
            box = _smallest_box(jax.tree.leaves(whole), shape) if whole else None
            if box is None:
                return ()
            cut = jax.tree.map(lambda x: x[cells_of(box)], whole)
        return (Nonlinearity(box, **cut),)


def _around(
    parts: Sequence[Array],
    values: Sequence[Array],
    metallic: Sequence[bool],
    inside: Array,
) -> Array:
    """Paints values and averages them over what metal leaves; `inside` in the metal."""
    each = zip(parts, values, metallic, strict=True)
    rest = [(part, part * value) for part, value, metal in each if not metal]
    room, total = (reduce(add, both) for both in zip(*rest, strict=True))
    return jnp.where(room > 0, total / jnp.where(room > 0, room, 1), inside)


def _smallest_box(values: Sequence[Array], shape: tuple[int, ...]) -> Box | None:
    """Returns the box around what is not zero, or the whole grid if that is traced."""
    if traced(values):
        return tuple((0, cells) for cells in shape)
    here = np.any([np.asarray(value) != 0 for value in values], axis=0)
    if not here.any():
        return None
    where = np.argwhere(here)
    ends = zip(where.min(axis=0), where.max(axis=0), strict=True)
    return tuple((int(low), int(high) + 1) for low, high in ends)


def _boxed(
    poles: tuple[AbstractPole, ...],
    fractions: dict[str, Array],
    shape: tuple[int, ...],
) -> Dispersion | None:
    """Returns poles in the smallest box that holds them, `None` without any."""
    fractions = {name: jnp.broadcast_to(f, shape) for name, f in fractions.items()}
    box = _smallest_box(list(fractions.values()), shape)
    if box is None:
        return None
    cut = {name: part[cells_of(box)] for name, part in fractions.items()}
    return Dispersion(box, poles, cut)


def _with(found: Sequence[Dispersion], one: Dispersion) -> list[Dispersion]:
    """Adds a dispersion: to one of equal poles, if a common box is no larger."""
    for k, other in enumerate(found):
        spans = zip(one.box, other.box, strict=True)
        box = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in spans)
        apart = prod(size_of(one.box)) + prod(size_of(other.box))
        # Comparing poles takes longer.
        if prod(size_of(box)) > apart or not equal(one.poles, other.poles):
            continue
        blank = jnp.zeros(size_of(box))
        whole = {
            name: reduce(add, (_put(blank, box, d, name) for d in own))
            for name in map("E".__add__, _ENTRIES)
            if (own := [d for d in (other, one) if d.covers(name)])
        }
        return [*found[:k], Dispersion(box, other.poles, whole), *found[k + 1 :]]
    return [*found, one]


def _put(blank: Array, box: Box, one: Dispersion, name: str) -> Array:
    """Returns the fraction of a component in a larger box."""
    place = tuple(
        slice(low - first, high - first)
        for (low, high), (first, _) in zip(one.box, box, strict=True)
    )
    return blank.at[place].set(one.fraction[name])


# Of a diagonal property: along x, y, z, or along r, phi, z.
_ENTRIES = {"x": 0, "y": 1, "z": 2, "r": 0, "p": 1}


def _along(value: Float[Array, "..."], component: str) -> Float[Array, ""]:
    """The entry of a diagonal property that acts on a field component."""
    # What is known stays known under `jit`.
    with jax.ensure_compile_time_eval():
        return value[_ENTRIES[component[1]]] if value.ndim else value


def is_zero(value: Float[Array, ""]) -> bool:
    return not isinstance(value, jax.core.Tracer) and float(value) == 0


def all_equal(values: Sequence[Array]) -> bool:
    """Whether the values are scalars known now, and all the same."""
    first = values[0]
    if all(value is first for value in values) and first.ndim == 0:
        return True
    if traced(values) or any(value.ndim for value in values):
        return False
    return all(np.asarray(value) == np.asarray(first) for value in values)
