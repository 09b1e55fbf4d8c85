"""Reads the command line, runs the command, turns failures into exit codes."""

import argparse
import sys
from collections.abc import Sequence

import jax

import physax

from .._checks import PhysaxError
from .._status import RunError, Status
from ._em import add_em_command
from ._exit import ExitCode
from ._info import add_info_command
from ._launch import add_launch_command
from ._machine import DeviceError
from ._session import plain_warnings
from ._track import add_track_command
from ._words import words_of
from ._xpcs import add_xpcs_command


_EPILOG = "exit codes: " + ", ".join(
    f"{code.value} {code.name.lower()}" for code in ExitCode
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the `physax` command.

    Args:
        arguments: The words after `physax`; by default those of this process.

    Returns:
        The exit code, an `ExitCode`.

    Raises:
        SystemExit: If the command line is wrong, or only asks for help.
    """
    options = _parser().parse_args(arguments)
    try:
        with plain_warnings():
            return options.run(options)
    except DeviceError as error:
        return _fail(str(error), ExitCode.RESOURCES)
    except MemoryError as error:
        known = isinstance(error, PhysaxError)
        return _fail(str(error) if known else _MEMORY_ADVICE, ExitCode.RESOURCES)
    except RunError as error:
        stopped = error.status is Status.INTERRUPTED
        code = ExitCode.INTERRUPTED if stopped else ExitCode.REFUSED
        return _fail(words_of(error), code)
    except (PhysaxError, OSError) as error:
        return _fail(words_of(error), ExitCode.REFUSED)
    except jax.errors.JaxRuntimeError as error:
        # Out of memory on a device comes as this class, and so do faults of ours,
        # which must stay visible.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        return _fail(_MEMORY_ADVICE, ExitCode.RESOURCES)
    except KeyboardInterrupt:
        return _fail("interrupted", ExitCode.INTERRUPTED)


_MEMORY_ADVICE = (
    "out of memory: take less data, a coarser grid, fewer monitors or more devices"
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="physax", description=physax.__doc__, epilog=_EPILOG
    )
    parser.add_argument(
        "--version", action="version", version=f"physax {physax.__version__}"
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_em_command(commands)
    add_info_command(commands)
    add_launch_command(commands)
    add_track_command(commands)
    add_xpcs_command(commands)
    return parser


def _fail(message: str, code: ExitCode) -> ExitCode:
    print(f"physax: {message}", file=sys.stderr)
    return code
