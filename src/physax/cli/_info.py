"""The command `physax info`: versions, devices and a quick benchmark."""

import argparse
import json
import os

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

from ._exit import ExitCode
from ._machine import Speed, devices, measure, memory, versions


# What JAX and XLA read before a device is first used, and what holds otherwise.
_VARIABLES = {
    "JAX_PLATFORMS": "the fastest there is",
    "JAX_COMPILATION_CACHE_DIR": "no cache",
    "XLA_FLAGS": "none",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "true, a GPU's memory is taken at once",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.75 of a GPU's memory",
}


def add_info_command(commands: argparse._SubParsersAction) -> None:
    """Adds `info` to the commands of a parser."""
    command = commands.add_parser(
        "info",
        help="show versions and devices, and measure the first device",
        description="Shows versions and devices, and measures the first device.",
    )
    command.add_argument(
        "--no-benchmark", action="store_true", help="leave out the measurement"
    )
    command.add_argument("--json", action="store_true", help="write JSON instead")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> ExitCode:
    found = devices()
    speed = None if options.no_benchmark else measure(found[0])
    if options.json:
        print(json.dumps(_report(found, speed), indent=2))
    else:
        console = Console()
        for table in _tables(found, speed):
            console.print(table)
    return ExitCode.DONE


def _report(found: list[jax.Device], speed: Speed | None) -> dict:
    report: dict = {
        "versions": versions(),
        "x64": _x64(),
        "environment": {name: os.environ.get(name) for name in _VARIABLES},
        "devices": [
            {
                "name": str(device),
                "kind": device.device_kind,
                "process": device.process_index,
                "memory_bytes": memory(device),
            }
            for device in found
        ],
    }
    if speed is not None:
        report["benchmark"] = {
            "device": speed.device,
            "bandwidth_bytes_per_s": speed.bandwidth,
            "matmul_flop_per_s": speed.matmul,
        }
    return report


def _tables(found: list[jax.Device], speed: Speed | None) -> list[Table]:
    packages = Table("package", "version", title="Versions")
    for name, number in versions().items():
        packages.add_row(name, number)

    hardware = Table("device", "kind", "process", "memory", title="Devices")
    for device in found:
        limit = memory(device)
        hardware.add_row(
            str(device),
            device.device_kind,
            str(device.process_index),
            "not stated" if limit is None else f"{limit / 2**30:.1f} GiB",
        )
    precision = "on" if _x64() else "off"
    hardware.caption = f"float64 is {precision} (JAX_ENABLE_X64)"
    variables = Table("variable", "value", title="Environment, read at the start")
    for name, otherwise in _VARIABLES.items():
        variables.add_row(name, os.environ.get(name, f"not set: {otherwise}"))
    if speed is None:
        return [packages, hardware, variables]

    rates = Table("measured", "rate", title=f"Quick benchmark on {speed.device}")
    rates.add_row("memory bandwidth", f"{speed.bandwidth / 1e9:.1f} GB/s")
    rates.add_row("float32 matrix product", f"{speed.matmul / 1e9:,.0f} Gflop/s")
    return [packages, hardware, variables, rates]


def _x64() -> bool:
    # What new arrays get, however it was asked for.
    return jnp.result_type(float) == jnp.float64
