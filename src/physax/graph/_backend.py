"""Where arrays live, how precise they are, and how a compiled graph runs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
)
from jaxtyping import Array, ArrayLike, Key, Shaped

from .._auto_mesh import auto_mesh
from .._checks import optional
from ..runtime import mesh as make_mesh, shardings
from ._block import GraphError
from ._named import cut_axes, device_named, dtype_name
from ._operation import operation_named


_PRECISIONS = (
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
)
_TRANSFORMS = {
    "grad": jax.grad,
    "value_and_grad": jax.value_and_grad,
    "vjp": jax.vjp,
    "jvp": jax.jvp,
    "jacobian": jax.jacobian,
    "hessian": jax.hessian,
    "vmap": jax.vmap,
    "block_until_ready": jax.block_until_ready,
}


class Backend(eqx.Module):
    """Where arrays live, how precise they are, and how a compiled graph runs.

    Makes arrays, and offers every operation by name: one that was registered, a
    transform (`jit`, `grad`, `value_and_grad`, `vjp`, `jvp`, `jacobian`, `hessian`,
    `vmap`), `block_until_ready`, or a function of `jax.numpy`, `jax.nn` or `jax.lax`.

    Attributes:
        dtype: Of real numbers that are made without one. Where it is complex, layers
            have real parameters of the same precision.
        device: Where everything goes, as in `"gpu:1"`; None for JAX's first device.
        mesh: Devices over which arrays are cut, or None.
        precision: Of matrix products; None for JAX's default.
        compiled: Whether compiled graphs run compiled, the argument `jit`.
        debug: Whether a compiled graph looks for NaN and infinity.
    """

    dtype: str = eqx.field(static=True)
    device: str | None = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True)
    precision: str | None = eqx.field(static=True)
    compiled: bool = eqx.field(static=True)
    debug: bool = eqx.field(static=True)

    def __init__(
        self,
        dtype: Any = None,
        device: str | None = None,
        mesh: Mesh | Sequence[int] | int | None = None,
        precision: str | jax.lax.Precision | None = None,
        jit: bool = True,
        debug: bool = False,
        *,
        platform: str | None = None,
    ):
        """Makes the backend; nothing is allocated.

        Args:
            dtype: `"float16"`, `"bfloat16"`, `"float32"`, `"float64"`, `"complex64"`,
                `"complex128"`, or a dtype; by default JAX's floating point type, which
                is `"float32"` unless 64 bits are on.
            device: `"cpu"`, `"gpu"`, `"gpu:1"`; by default JAX's first device. Excludes
                `mesh`.
            mesh: Devices over which arrays are cut, or their numbers, as in `(2, 2)`.
            precision: `"default"`, `"high"`, `"highest"`, `"tensorfloat32"`,
                `"bfloat16"`, `"float32"`, or a `jax.lax.Precision`.
            jit: Whether compiled graphs run compiled. Without it they run operation by
                operation, for stepping through.
            debug: Whether a compiled graph looks for NaN and infinity in what every
                node writes, and names the first. Costs one read of each wire.
            platform: Another name for `device`.

        Raises:
            PrecisionError: If the dtype is unknown, or needs 64 bits while JAX has them
                off.
            GraphError: If the device is not there, a mesh is given too, or the
                precision is unknown.
        """
        self.dtype = dtype_name(jnp.result_type(float) if dtype is None else dtype)
        if platform is not None:
            if device is not None:
                raise GraphError(
                    f"`platform` must not come with `device`, but is {platform!r} with "
                    f"{device!r}."
                )
            device = platform
        self.device = device
        if isinstance(mesh, int):
            mesh = (mesh,)
        mesh = make_mesh(*mesh) if isinstance(mesh, Sequence) else mesh
        self.mesh = optional(auto_mesh)(mesh)
        self.precision = (
            precision.name.lower() if isinstance(precision, jax.lax.Precision)
            else precision
        )  # fmt: skip
        self.compiled = jit
        self.debug = debug
        if self.precision not in (None, *_PRECISIONS):
            raise GraphError(
                f"`precision` must be one of {', '.join(_PRECISIONS)}, but is "
                f"{self.precision!r}."
            )
        if device is not None:
            if mesh is not None:
                raise GraphError(
                    "`device` and `mesh` exclude each other, but both are given: "
                    f"{device!r} and {mesh}."
                )
            device_named(device)

    def __getattr__(self, name: str) -> Callable:
        """Finds an operation or a transform by its name."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _TRANSFORMS:
            return _TRANSFORMS[name]
        try:
            function = operation_named(name)
        except GraphError as error:
            raise AttributeError(str(error)) from None
        if self.device is None and self.precision is None:
            return function

        @functools.wraps(function)
        def here(*arguments, **options):
            device = None if self.device is None else device_named(self.device)
            with (
                jax.default_device(device),
                jax.default_matmul_precision(self.precision),
            ):
                return function(*arguments, **options)

        return here

    def with_jit(self, jit: bool) -> "Backend":
        """Returns this backend with another `jit`."""
        return Backend(
            self.dtype, self.device, self.mesh, self.precision, jit, self.debug
        )

    def placement(
        self, name: str, shape: Sequence[int], spec: PartitionSpec | None = None
    ) -> Sharding | None:
        """Returns where an array goes; None leaves it to JAX.

        Args:
            name: Of the array, for messages.
            shape: Its sizes.
            spec: Which axis of the mesh cuts each axis; by default none does.

        Returns:
            The placement.

        Raises:
            ArgumentError: If a layout comes without a mesh, or does not fit it.
        """
        if self.mesh is None:
            if spec is not None and any(spec):
                raise GraphError(
                    f"`{name}` must not be cut without a mesh, but its layout is "
                    f"{spec}. Give `Backend(mesh=...)`."
                )
            return (
                SingleDeviceSharding(device_named(self.device)) if self.device else None
            )
        if spec is None:
            return NamedSharding(self.mesh, PartitionSpec())
        struct = jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(self.dtype))
        return shardings({name: struct}, self.mesh, {"": spec})[name]

    def array(
        self, value: ArrayLike | Sequence, *, spec: PartitionSpec | None = None
    ) -> Shaped[Array, "..."]:
        """Copies values to the device.

        Args:
            value: Real floating point numbers take the dtype of the backend, others
                keep theirs.
            spec: Which axis of the mesh cuts each axis.

        Returns:
            The array.
        """
        host = value if isinstance(value, jax.Array) else np.asarray(value)
        real = jnp.issubdtype(host.dtype, jnp.floating)
        dtype = self.dtype if real else None
        return self._placed(jnp.asarray(host, dtype), spec)

    def zeros(self, *shape: int, **layout: Any) -> Shaped[Array, "..."]:
        """Returns zeros, as `full`."""
        return self.full(shape, 0, **layout)

    def ones(self, *shape: int, **layout: Any) -> Shaped[Array, "..."]:
        """Returns ones, as `full`."""
        return self.full(shape, 1, **layout)

    def full(
        self,
        shape: Sequence[int],
        value: ArrayLike,
        *,
        dtype: Any = None,
        spec: PartitionSpec | None = None,
        device_mesh: Sequence[int] | None = None,
        tensor_split: Sequence[int] | None = None,
    ) -> Shaped[Array, "..."]:
        """Returns an array of one value, each device making its own part.

        Args:
            shape: Sizes of the axes.
            value: The value.
            dtype: By default that of the backend.
            spec: Which axis of the mesh cuts each axis of the array.
            device_mesh: Instead of `spec`: into how many parts to cut, on a mesh of
                these sizes; the first number cuts axis `tensor_split[0]`.
            tensor_split: The axes that are cut; by default the first ones.

        Returns:
            The array.

        Raises:
            GraphError: If the layout does not fit the shape or the devices.
        """
        placed = self._split(shape, spec, device_mesh, tensor_split)
        return jnp.full(shape, value, self._dtype(dtype), device=placed)

    def arange(
        self, *bounds: Any, dtype: Any = None, spec: PartitionSpec | None = None
    ) -> Shaped[Array, " n"]:
        """Returns evenly spaced numbers, integers for integer bounds."""
        whole = all(isinstance(bound, (int, np.integer)) for bound in bounds)
        kind = None if dtype is None and whole else self._dtype(dtype)
        return self._placed(jnp.arange(*bounds, dtype=kind), spec)

    def linspace(
        self, start: ArrayLike, stop: ArrayLike, count: int, *, dtype: Any = None
    ) -> Shaped[Array, " count"]:
        """Returns `count` numbers from `start` to `stop`, both included."""
        made = jnp.linspace(start, stop, count, dtype=self._dtype(dtype))
        return self._placed(made, None)

    def eye(self, size: int, *, dtype: Any = None) -> Shaped[Array, "size size"]:
        """Returns the unit matrix."""
        return self._placed(jnp.eye(size, dtype=self._dtype(dtype)), None)

    def normal(
        self, key: Key[Array, ""], *shape: int, **layout: Any
    ) -> Shaped[Array, "..."]:
        """Returns standard normal numbers, the same ones for every layout.

        Args:
            key: Where they come from.
            *shape: Sizes of the axes.
            **layout: `dtype`, `spec`, `device_mesh` and `tensor_split`, as of `full`.

        Returns:
            The numbers.
        """
        return self._drawn(jr.normal, key, shape, layout)

    def uniform(
        self,
        key: Key[Array, ""],
        *shape: int,
        minval: ArrayLike = 0.0,
        maxval: ArrayLike = 1.0,
        **layout: Any,
    ) -> Shaped[Array, "..."]:
        """Returns uniform numbers in [minval, maxval), the same ones for every layout.

        Args:
            key: Where they come from.
            *shape: Sizes of the axes.
            minval: The least.
            maxval: What they stay below.
            **layout: `dtype`, `spec`, `device_mesh` and `tensor_split`, as of `full`.

        Returns:
            The numbers.
        """

        def draw(key, shape, dtype):
            return jr.uniform(key, shape, dtype, minval, maxval)

        return self._drawn(draw, key, shape, layout)

    def integers(
        self, key: Key[Array, ""], *shape: int, minval: int, maxval: int
    ) -> Shaped[Array, "..."]:
        """Returns uniform integers in [minval, maxval)."""
        return self._placed(jr.randint(key, shape, minval, maxval), None)

    def permutation(
        self, key: Key[Array, ""], values: int | Shaped[ArrayLike, "n ..."]
    ) -> Shaped[Array, "n ..."]:
        """Returns the rows of an array, or the first integers, in random order."""
        return self._placed(jr.permutation(key, values), None)

    def zeros_like(self, value: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """Returns zeros of the same shape, dtype and layout."""
        return jnp.zeros_like(value, device=value.sharding)

    def ones_like(self, value: Shaped[Array, "..."]) -> Shaped[Array, "..."]:
        """Returns ones of the same shape, dtype and layout."""
        return jnp.ones_like(value, device=value.sharding)

    def jit(self, function: Callable, **options: Any) -> Callable:
        """Compiles a function as `jax.jit` does, with this precision of products.

        Args:
            function: The function.
            **options: As of `jax.jit`.

        Returns:
            The compiled function; the function itself where the backend does not
            compile.
        """

        @functools.wraps(function)
        def precise(*arguments, **keywords):
            with jax.default_matmul_precision(self.precision):
                return function(*arguments, **keywords)

        if self.device is not None:
            options.setdefault("out_shardings", self.placement("results", ()))
        return jax.jit(precise, **options) if self.compiled else precise

    def _placed(self, value: Array, spec: PartitionSpec | None) -> Array:
        placement = self.placement("array", value.shape, spec)
        return value if placement is None else jax.device_put(value, placement)

    def _split(
        self,
        shape: Sequence[int],
        spec: PartitionSpec | None,
        device_mesh: Sequence[int] | None,
        tensor_split: Sequence[int] | None,
    ) -> Sharding | None:
        if device_mesh is None and tensor_split is None:
            return self.placement("array", shape, spec)
        if spec is not None:
            raise GraphError(
                "`spec` excludes `device_mesh` and `tensor_split`, but came with "
                f"{device_mesh} and {tensor_split}."
            )
        mesh, cut = cut_axes(self.mesh, shape, device_mesh, tensor_split)
        return Backend(self.dtype, mesh=mesh).placement("array", shape, cut)

    def _drawn(self, draw: Callable, key: Array, shape: tuple, layout: dict) -> Array:
        dtype = self._dtype(layout.pop("dtype", None))
        names = ("spec", "device_mesh", "tensor_split")
        placement = self._split(shape, *(layout.pop(name, None) for name in names))
        if layout:
            raise GraphError(f"`layout` takes dtype, {', '.join(names)}, not {layout}.")
        made = jax.jit(draw, static_argnums=(1, 2), out_shardings=placement)
        return made(key, shape, dtype)

    def _dtype(self, dtype: Any) -> Any:
        if dtype is None:
            return jnp.dtype(self.dtype)
        return jnp.dtype(dtype_name(dtype, whole=True))
