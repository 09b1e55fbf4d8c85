"""Programs as bytes, for processes that have neither the graph nor its blocks."""

from collections.abc import Sequence
from typing import Any

import jax

from .. import runtime
from ._program import Program


def export(
    program: Program,
    *,
    frozen: bool = False,
    platforms: Sequence[str] | None = None,
    vjp_order: int = 1,
) -> bytes:
    """Turns a program into bytes that another process runs without its graph.

    Constants are in them. Sizes that are symbols stay open. `runtime.load_exported`
    brings the program back, to be called with parameters and inputs as
    `Program.evaluate` is; it returns the same bits.

    Args:
        program: The program.
        frozen: Whether its parameters are in the bytes too; it then takes the inputs
            alone.
        platforms: Where it is to run, as of `runtime.export`.
        vjp_order: How many times it may be differentiated.

    Returns:
        The bytes.

    Raises:
        ArgumentError: If a platform is unknown, or `vjp_order` is negative.
        ExportError: If the package flatbuffers is missing, or an input or an output is
            a module.
    """

    def run(params: dict[str, Any], inputs: dict[str, Any]) -> dict[str, Any]:
        constants = jax.lax.optimization_barrier(program.constants)
        return program.forward(params, constants, inputs)

    def run_frozen(inputs: dict[str, Any]) -> dict[str, Any]:
        # Without the barriers XLA would fold constants into what reads them, and the
        # last bits would be others than those of `Program.evaluate`.
        return run(jax.lax.optimization_barrier(program.params), inputs)

    inputs = {wire: program.wiring.structs[wire] for wire in program.inputs}
    options: dict[str, Any] = {"platforms": platforms, "vjp_order": vjp_order}
    if frozen:
        return runtime.export(run_frozen, inputs, **options)
    return runtime.export(run, program.params, inputs, **options)
