"""The command `physax em run`: runs a simulation, writes results and draws them."""

import argparse
import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import h5py
import jax
import numpy as np

from .. import em
from .._checks import ArgumentError, warn
from .._status import Status
from ..em._run import check_run
from ..grid import AXES
from ..io import check_writable, save_npz
from ..io._whole_hdf5 import whole_hdf5
from ..runtime import Checkpointing, compile_quickly
from ._em_build import build
from ._em_figures import SCENE, check_animation, draw_results, draw_simulation
from ._em_lines import at
from ._em_settings import Settings, read_settings
from ._exit import ExitCode
from ._output import replace_summary
from ._session import Talk, double_precision, limit_threads, tell_machine


def run_em(options: argparse.Namespace) -> ExitCode:
    """Reads settings, runs the simulation, writes and draws what was seen."""
    talk = Talk(options.verbose - options.quiet)
    limit_threads(options.threads)
    compile_quickly()
    drawn = not options.no_figures
    with prepared(options.file, figures=drawn, dry=options.dry_run) as ready:
        settings, sim, figures = ready
        output = check_writable(options.output_dir)
        tell_machine(talk)
        talk.say(em.describe(sim))
        # A run that goes on has its picture, and one that is not this one keeps it.
        begun = any((output / "checkpoints").glob("*"))
        if figures and (options.dry_run or not begun):
            talk.say(str(draw_simulation(output, sim)))
        if options.dry_run:
            return ExitCode.DONE
        if settings.output.animation is not None and not figures:
            talk.say("`--no-figures`: the animation is not drawn either")
        return _run(settings, sim, output, talk, figures)


class Prepared(NamedTuple):
    """What a run needs before it makes its folder.

    Attributes:
        settings: Those of the file.
        sim: The simulation.
        figures: Whether pictures are wanted.
    """

    settings: Settings
    sim: em.Simulation
    figures: bool


@contextmanager
def prepared(path: str, *, figures: bool, dry: bool) -> Iterator[Prepared]:
    """Reads a file, makes its simulation and checks all before the folder is made.

    The precision is that of the file while the block runs.

    Args:
        path: The file.
        figures: Whether pictures may be drawn, if the file asks for them.
        dry: Whether nothing will run.

    Raises:
        PhysaxFileError: If something is refused; names the line.
        MemoryLimitError: If the run does not fit into memory.
    """
    settings, file = read_settings(path)
    wide = settings.precision == "float64"
    known = jax.config.read("jax_enable_x64") == wide
    with double_precision(wide):
        # Numbers that were read before the precision was known are read again.
        settings, file = (settings, file) if known else read_settings(path)
        sim = build(settings, file)
        figures = settings.output.figures and figures
        with at(file, "output"):
            check_animation(settings.output.animation if figures else None, sim)
        with at(file):
            if not (settings.sources or dry):
                raise ArgumentError(
                    "`sources` must have at least one entry, but is empty: nothing "
                    "would be seen. `--dry-run` needs none."
                )
            if not (settings.monitors or dry):
                warn(
                    f"{path} has no `monitors`: the run will record nothing. Add an "
                    "entry, such as a `FluxMonitor`."
                )
            check_run(sim, until=_rule(settings))
        yield Prepared(settings, sim, figures)


def _rule(settings: Settings) -> em.Decay | None:
    return None if settings.run.decay is None else em.Decay(settings.run.decay)


def _run(
    settings: Settings, sim: em.Simulation, output: Path, talk: Talk, figures: bool
) -> ExitCode:
    given = settings.run
    checkpoints = output / "checkpoints"
    there = sum(1 for _ in checkpoints.glob("*"))
    talk.detail(
        f"checkpoints   {checkpoints}, every {given.checkpoint_every} steps; "
        f"{there} there from before"
    )
    done = em.run(
        sim,
        until=_rule(settings),
        checkpoint=Checkpointing(checkpoints, given.checkpoint_every),
        progress=talk.level >= 0,
        throw=False,
    )
    status = done.drive.status
    if status is Status.INTERRUPTED:
        talk.warn(f"{status.sentence} Start it again to continue.")
        return ExitCode.CHECKPOINTED
    if status is Status.DIVERGED:
        talk.warn(f"{status.sentence} {done.drive.detail}")
        return ExitCode.DIVERGED
    monitors = done.result.monitors
    path = output / settings.output.results
    if path.suffix == ".npz":
        save_npz(path, monitors)
    else:
        write_hdf5(path, monitors)
    drawn, scene = [], []
    if figures:
        drawn = draw_results(output, sim, monitors, settings.output.animation)
        scene = [output / SCENE]
    written = [
        path,
        replace_summary(output, "em run", _summary(sim, done), scene + drawn),
        *drawn,
    ]
    # The run is complete: another one in this folder begins anew.
    shutil.rmtree(checkpoints)
    first = done.drive.first_step
    before = f", {first} of them before," if first else ""
    talk.say(
        f"{status.sentence} {done.drive.step} steps{before} in "
        f"{done.drive.seconds:.3g} s"
    )
    talk.detail(
        f"{done.drive.steps_per_second:.4g} steps per second; "
        f"{float(done.result.residual):.2g} of the largest energy left"
    )
    for one in written:
        talk.say(str(one))
    return ExitCode.DONE


def _summary(sim: em.Simulation, done: em.RunResult) -> dict[str, Any]:
    residual = float(done.result.residual)
    rate = done.drive.steps_per_second
    return {
        "cells": list(sim.grid.shape),
        "step_seconds": float(sim.dt),
        "steps": done.drive.step,
        "first_step": done.drive.first_step,
        "status": done.drive.status.name.lower(),
        "energy_left": residual if np.isfinite(residual) else None,
        "seconds": done.drive.seconds,
        "steps_per_second": rate if np.isfinite(rate) else None,
    }


def write_hdf5(path: Path, monitors: dict[str, Any]) -> None:
    """Writes what monitors saw: a group for each, and in it its attributes by name.

    Positions are in `coordinates/Ez/x`; complex numbers are pairs `r`, `i`, as h5py and
    others read them.
    """
    with whole_hdf5(path) as content, h5py.File(content, "w") as file:
        for name, result in monitors.items():
            group = file.create_group(name)
            group.attrs["type"] = type(result).__name__
            _store(group, result)


def _store(group: h5py.Group, value: Any) -> None:
    if isinstance(value, eqx.Module):
        entries = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif isinstance(value, tuple):
        entries = dict(zip(AXES, value, strict=False))
    else:
        entries = value
    for name, entry in entries.items():
        if isinstance(entry, eqx.Module | dict) or (
            isinstance(entry, tuple) and entry and np.ndim(entry[0])
        ):
            _store(group.create_group(name), entry)
        elif entry is not None and np.asarray(entry).dtype.kind in "biufc":
            group[name] = np.asarray(entry)
