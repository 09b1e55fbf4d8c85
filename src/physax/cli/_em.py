"""The options of `physax em`: run a simulation of light, and the template of its file.

What they do is imported when one of them runs, so that `physax --help` stays quick.
"""

import argparse
from importlib import import_module

from ._exit import ExitCode
from ._options import add_session_options


def add_em_command(commands: argparse._SubParsersAction) -> None:
    """Adds `em` to the commands of a parser."""
    command = commands.add_parser(
        "em",
        help="simulate light in the time domain (FDTD)",
        description="Simulates light by finite differences in time.",
    )
    words = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(words)
    _add_config(words)


def _add_run(words: argparse._SubParsersAction) -> None:
    run = words.add_parser(
        "run",
        help="run a simulation, and write results and pictures",
        description=(
            "Runs the simulation of a YAML file, and writes what its monitors saw, "
            "pictures and a summary. An interrupted run continues when it is started "
            "again with the same file and folder."
        ),
        epilog="`physax em config` writes a template of FILE.yaml.",
    )
    run.add_argument("file", metavar="FILE.yaml", help="settings of the run")
    run.add_argument("--output-dir", required=True, metavar="DIR")
    run.add_argument(
        "--dry-run", action="store_true", help="describe and draw the simulation only"
    )
    run.add_argument(
        "--no-figures", action="store_true", help="draw nothing, nor an animation"
    )
    add_session_options(run)
    run.set_defaults(run=_run)


def _add_config(words: argparse._SubParsersAction) -> None:
    config = words.add_parser(
        "config", help="write a template of the YAML file of a run, or check one"
    )
    config.add_argument("--check", metavar="FILE", help="say whether a file is valid")
    config.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write it, instead of the screen",
    )
    config.set_defaults(run=_config)


def _run(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._em_run").run_em(options)


def _config(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._em_config").run_config(options)
