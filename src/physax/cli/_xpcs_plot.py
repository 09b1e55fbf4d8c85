"""The command `physax xpcs plot`."""

import argparse
from pathlib import Path

from ..io import PhysaxFileError, check_writable
from ..xpcs import check_quality
from ._exit import ExitCode
from ._session import Talk, double_precision, limit_threads, tell_machine
from ._xpcs_figures import draw_data, draw_results
from ._xpcs_results import FITTED, read_results
from ._xpcs_settings import DataChoice


def run_plot(options: argparse.Namespace) -> ExitCode:
    """Draws a result again, or the maps of a data file."""
    limit_threads(options.threads)
    talk = Talk(options.verbose - options.quiet)
    what = Path(options.what)
    with double_precision():
        tell_machine(talk)
        made = _results(what, options) if what.is_dir() else _data(what, options)
    talk.say("\n".join(map(str, made)))
    return ExitCode.DONE


def _results(folder: Path, options: argparse.Namespace) -> list[Path]:
    found = sorted(path.parent for path in folder.rglob(FITTED))
    if not found:
        raise PhysaxFileError(
            folder,
            f"It must hold results of a fit ({FITTED}), but does not. Give the "
            "`--output-dir` of `physax xpcs fit`, or a data file.",
        )
    made = []
    for place in found:
        output = place
        if options.output_dir is not None:
            output = Path(options.output_dir) / place.relative_to(folder)
        stored = read_results(place)
        made += draw_results(check_writable(output), stored, options.figures)
    return made


def _data(path: Path, options: argparse.Namespace) -> list[Path]:
    choice = DataChoice(
        q=options.q,
        phi_ranges_degrees=options.phi and [tuple(pair) for pair in options.phi],
        frames=options.frames and tuple(options.frames),
        keep_times=options.keep_times,
        without=options.without,
        dt=options.dt,
    )
    place = options.output_dir or path.parent / f"{path.stem}_figures"
    data = choice.read(path, choice.q)
    report = check_quality(data)
    return draw_data(check_writable(place), data, report, options.figures)
