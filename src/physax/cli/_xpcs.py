"""The options of `physax xpcs`: fit, config, simulate, plot, convert.

What they do is imported when one of them runs, so that `physax --help` stays quick.
"""

import argparse
from importlib import import_module

from ._exit import ExitCode
from ._options import (
    SEEDS,
    add_session_options,
    finite,
    not_negative,
    positive,
    whole,
)


# As `xpcs.MODES`, which would load all of it.
MODES = ("static_isotropic", "static_anisotropic", "laminar_flow")
CONVENTIONS = ("physical", "homodyne")


def add_xpcs_command(commands: argparse._SubParsersAction) -> None:
    """Adds `xpcs` to the commands of a parser."""
    command = commands.add_parser(
        "xpcs",
        help="fit, simulate and draw X-ray photon correlations",
        description="Analyses two-time correlations of X-rays. Angles are in degrees.",
    )
    words = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_fit(words)
    _add_config(words)
    _add_simulate(words)
    _add_plot(words)
    _add_convert(words)


def _add_fit(words: argparse._SubParsersAction) -> None:
    fit = words.add_parser(
        "fit",
        help="fit two-time maps, and write results and pictures",
        description=(
            "Fits two-time maps. Without --config and --mode it makes a first report: "
            "a fit without flow and, if there are more than two directions, one with."
        ),
        epilog="A folder is fitted file by file; what is done is skipped next time.",
    )
    fit.add_argument("file", nargs="?", help="HDF5 or npz file, or a folder of them")
    fit.add_argument("--config", metavar="FILE.yaml", help="settings of the fit")
    fit.add_argument("--output-dir", required=True, metavar="DIR")
    fit.add_argument("--method", choices=("nlsq", "nuts", "both"))
    fit.add_argument("--mode", choices=MODES)
    fit.add_argument(
        "--convention",
        choices=CONVENTIONS,
        help="convention of the shear factor (physical)",
    )
    fit.add_argument("--gap", type=positive, metavar="L", help="gap in angstrom (2e6)")
    _add_data_choice(fit)
    fit.add_argument("--sigma", type=positive, help="standard deviation of one value")
    fit.add_argument(
        "--errors",
        choices=("pairs", "speckles"),
        help="for noise that is independent from pair to pair (default), or that of "
        "speckles",
    )
    fit.add_argument(
        "--set",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help="starts, such as D0=1e4 phi0=-4",
    )
    fit.add_argument(
        "--starts",
        type=whole(1),
        metavar="N",
        help="how many are found in the data (3)",
    )
    fit.add_argument(
        "--max-evaluations",
        type=whole(1),
        metavar="N",
        help="passes over the data (300)",
    )
    fit.add_argument("--pattern", help="pattern of the files in a folder (*.hdf)")
    fit.add_argument(
        "--compile-cache", metavar="DIR", help="keep compiled programs for next time"
    )
    _add_figures(fit)
    add_session_options(fit)
    fit.set_defaults(run=_fit)


def _add_data_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--q", type=positive, help="wavevector in 1/angstrom; takes the nearest"
    )
    parser.add_argument(
        "--phi",
        type=finite,
        nargs=2,
        action="append",
        metavar=("LOW", "HIGH"),
        help="a range of angles in degrees; repeat for more",
    )
    parser.add_argument(
        "--frames",
        type=whole(1),
        nargs=2,
        metavar=("FIRST", "LAST"),
        help="counted from 1",
    )
    parser.add_argument(
        "--keep-times",
        action="store_true",
        help="with --frames: their times do not begin at 0 (for samples that age)",
    )
    parser.add_argument(
        "--without",
        type=whole(1),
        nargs="+",
        metavar="FRAME",
        help="frames to leave out",
    )
    parser.add_argument("--dt", type=positive, help="seconds between frames")


def _add_figures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--figures",
        type=whole(0),
        default=3,
        metavar="N",
        help="how many maps are drawn (3)",
    )


def _add_config(words: argparse._SubParsersAction) -> None:
    config = words.add_parser(
        "config", help="write a template of the YAML file of a fit, or check one"
    )
    what = config.add_mutually_exclusive_group(required=True)
    what.add_argument("--mode", choices=MODES, help="write the template of a mode")
    what.add_argument("--check", metavar="FILE", help="say whether a file is valid")
    config.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write it, instead of the screen",
    )
    config.set_defaults(run=_config)


def _add_simulate(words: argparse._SubParsersAction) -> None:
    simulate = words.add_parser(
        "simulate",
        help="write two-time maps as an experiment would measure them",
        description="Draws two-time maps of a model, with noise.",
    )
    simulate.add_argument(
        "--config", metavar="FILE.yaml", help="settings; starts are the true values"
    )
    simulate.add_argument("-o", "--output", required=True, metavar="FILE.hdf|.npz")
    simulate.add_argument("--mode", choices=MODES)
    simulate.add_argument("--convention", choices=CONVENTIONS)
    simulate.add_argument(
        "--gap", type=positive, metavar="L", help="gap in angstrom (2e6)"
    )
    simulate.add_argument(
        "--set",
        nargs="+",
        action="extend",
        metavar="NAME=VALUE",
        help="true values of parameters",
    )
    simulate.add_argument(
        "--q", type=positive, nargs="+", help="wavevectors in 1/angstrom (0.0054)"
    )
    simulate.add_argument(
        "--angles", type=whole(1), default=5, metavar="N", help="how many (5)"
    )
    simulate.add_argument(
        "--frames", type=whole(2), default=100, metavar="N", help="how many (100)"
    )
    simulate.add_argument("--dt", type=positive, help="seconds between frames (0.1)")
    simulate.add_argument("--contrast", type=not_negative, default=0.25, help="(0.25)")
    simulate.add_argument("--offset", type=finite, default=1.0, help="(1)")
    simulate.add_argument(
        "--noise",
        type=positive,
        default=0.01,
        help="standard deviation of a value (0.01)",
    )
    simulate.add_argument(
        "--frame-noise",
        type=positive,
        help="standard deviation of noise that pairs of a frame share (none)",
    )
    simulate.add_argument("--seed", type=whole(0, SEEDS), default=0, help="(0)")
    simulate.add_argument("--layout", choices=("apsu", "aps", "npz"), help="(apsu)")
    add_session_options(simulate)
    simulate.set_defaults(run=_simulate)


def _add_plot(words: argparse._SubParsersAction) -> None:
    plot = words.add_parser(
        "plot", help="draw a result again, or the maps of a data file"
    )
    plot.add_argument("what", metavar="RESULT_DIR|FILE")
    plot.add_argument(
        "--output-dir", metavar="DIR", help="where to write (next to the input)"
    )
    _add_data_choice(plot)
    _add_figures(plot)
    add_session_options(plot)
    plot.set_defaults(run=_plot)


def _add_convert(words: argparse._SubParsersAction) -> None:
    convert = words.add_parser(
        "convert",
        help="convert a YAML file for homodyne, and list what has no counterpart",
    )
    convert.add_argument("old", metavar="OLD.yaml")
    convert.add_argument("-o", "--output", required=True, metavar="NEW.yaml")
    convert.set_defaults(run=_convert)


def _fit(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._xpcs_fit").run_fit(options)


def _config(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._xpcs_config").run_config(options)


def _simulate(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._xpcs_simulate").run_simulate(options)


def _plot(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._xpcs_plot").run_plot(options)


def _convert(options: argparse.Namespace) -> ExitCode:
    return import_module("physax.cli._xpcs_convert").run_convert(options)
