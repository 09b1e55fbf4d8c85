"""S-parameters of a simulation as a part of a circuit."""

from collections.abc import Mapping, Sequence

import jax.numpy as jnp

from .._checks import ArgumentError
from ..graph import Scatterer
from ._s_parameters import SParameters


def scatterer(
    parameters: SParameters, symmetries: Sequence[Mapping[str, str]] = ()
) -> Scatterer:
    r"""Makes a part of a circuit of S-parameters, over their wavelengths.

    A part needs the column of each port. Those that were not driven follow where the
    device is symmetric: if a symmetry takes port $i$ to $p(i)$, then
    $S_{p(j) p(i)} = S_{ji}$. One driven port of a directional coupler and its two
    mirror symmetries give all four columns.

    Args:
        parameters: What a simulation gave. Every input must also be an output.
        symmetries: What each symmetry of the device swaps: port by port, ports that
            stay left out, as in `{"west": "east", "east": "west"}`.

    Returns:
        The part; differentiable with respect to the S-parameters.

    Raises:
        ArgumentError: If a symmetry names other ports or does not permute them, or if a
            port has no column.
    """
    ports = parameters.ports
    columns = {
        port: parameters.values[:, :, number]
        for number, port in enumerate(parameters.inputs)
    }
    for port in columns:
        if port not in ports:
            raise ArgumentError(
                f"Each input must also be one of the outputs {ports}, but {port!r} is "
                "not."
            )
    for symmetry in symmetries:
        if sorted(symmetry) != sorted(symmetry.values()) or set(symmetry) - set(ports):
            raise ArgumentError(
                f"Each of `symmetries` must permute the ports {ports}, but one is "
                f"{dict(symmetry)}."
            )
    for _ in ports:
        for symmetry in symmetries:
            image = {port: symmetry.get(port, port) for port in ports}
            origin = [ports.index(_before(port, image)) for port in ports]
            for port, column in list(columns.items()):
                columns.setdefault(image[port], column[:, jnp.array(origin)])
    if missing := [port for port in ports if port not in columns]:
        raise ArgumentError(
            "Each port must be driven, or be the image of one that is, but "
            f"{', '.join(missing)} is not. Drive it with `s_parameters`, or give "
            "`symmetries`."
        )
    values = jnp.stack([columns[port] for port in ports], axis=-1)
    return Scatterer(values, ports)


def _before(port: str, image: Mapping[str, str]) -> str:
    return next(origin for origin, other in image.items() if other == port)
