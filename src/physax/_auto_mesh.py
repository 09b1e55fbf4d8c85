"""Meshes of devices as the solvers compute on them."""

from typing import Any

from jax.sharding import AxisType, Mesh

from ._checks import ArgumentError


def auto_mesh(mesh: Any) -> Mesh:
    """Returns the devices of a mesh along axes of JAX's kind `Auto`.

    `jax.make_mesh` makes axes of the kind `Explicit` unless told otherwise. Under these
    each operation asks where its result shall lie, and a stencil does not trace.

    Args:
        mesh: The devices, along axes of any kind.

    Raises:
        ArgumentError: If it is no mesh of devices.
    """
    if not isinstance(mesh, Mesh):
        raise ArgumentError(
            "`mesh` must be a mesh of devices, as `physax.runtime.mesh(4)`, but is "
            f"{mesh!r}."
        )
    kinds = (AxisType.Auto,) * len(mesh.axis_names)
    return Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
