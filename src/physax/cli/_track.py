"""The options of `physax track`: follow particles, and the template of its settings.

What they do is imported when one of them runs, so that `physax --help` stays quick.
"""

import argparse
from importlib import import_module

from ._exit import ExitCode
from ._options import add_session_options, positive


def add_track_command(commands: argparse._SubParsersAction) -> None:
    """Adds `track` to the commands of a parser."""
    command = commands.add_parser(
        "track",
        help="follow particles through winds, currents and other flows",
        description=(
            "Follows particles through a flow in NetCDF, zarr, HDF5 or npz files, and "
            "writes tracks, a map and a summary. Without --config it seeds a grid all "
            "over the data and follows it for some days."
        ),
        epilog=(
            "`physax track config` writes a template of the YAML file of --config; "
            "`physax track config --check FILE` examines one."
        ),
    )
    command.add_argument(
        "files", nargs="*", metavar="FILE|config", help="files of the flow, or `config`"
    )
    command.add_argument("--config", metavar="FILE.yaml", help="settings of the run")
    command.add_argument("--output-dir", metavar="DIR")
    command.add_argument("--u", metavar="NAME", help="variable along x, or eastward")
    command.add_argument("--v", metavar="NAME", help="variable along y, or northward")
    command.add_argument("--w", metavar="NAME", help="vertical variable (none)")
    command.add_argument(
        "--days", type=positive, help="how long to follow particles (5)"
    )
    command.add_argument(
        "--backward", action="store_true", help="follow them back from the end"
    )
    command.add_argument(
        "--animation", choices=("gif", "mp4"), help="also write an animation"
    )
    command.add_argument("--no-figures", action="store_true", help="draw nothing")
    command.add_argument(
        "--check", metavar="FILE", help="with `config`: say whether a file is valid"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="with `config`: where to write it, instead of the screen",
    )
    add_session_options(command)
    command.set_defaults(run=_track, wrong=command.error)


def _track(options: argparse.Namespace) -> ExitCode:
    if options.files == ["config"]:
        return import_module("physax.cli._track_config").run_config(options)
    if options.output_dir is None:
        options.wrong("the following arguments are required: --output-dir")
    return import_module("physax.cli._track_run").run_track(options)
