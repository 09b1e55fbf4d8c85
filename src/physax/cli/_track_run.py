"""The command `physax track`: reads a flow, follows particles, writes and draws."""

import argparse
import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from .. import plot
from .._checks import ArgumentError
from .._whole_file import whole_file
from ..grid import Clamp
from ..io import (
    PhysaxFileError,
    StoredField,
    check_writable,
    read_velocity,
    read_yaml,
    write_tracks,
)
from ..io._netcdf_open import list_files
from ..io._snapshot_series import UnnamedComponentError
from ..particles import (
    RK4,
    Coast,
    OnSphere,
    ParticleStatus,
    Tracks,
    sample_along,
    track,
)
from ..particles._axis import PeriodError
from ..particles._sphere import unfolded
from ..runtime import compile_quickly
from ._em_lines import at
from ._exit import ExitCode
from ._output import check_place, replace_summary
from ._session import Talk, double_precision, limit_threads, tell_machine
from ._track_seeds import place_seeds
from ._track_settings import Settings, read_settings
from ._track_times import DAY, Plan, plan_times


def run_track(options: argparse.Namespace) -> ExitCode:
    """Reads a flow, follows particles, writes tracks and draws them."""
    talk = Talk(options.verbose - options.quiet)
    limit_threads(options.threads)
    compile_quickly()
    with double_precision():
        tell_machine(talk)
        settings = _settings(options)
        # All that can be refused without data comes first.
        files = list_files(settings.velocity.files or [])
        output = check_place(options.output_dir)
        flow = _read(settings, options.config)
        talk.say(_description(flow, files))
        summary, written = _run(settings, flow, output, talk)
    talk.say(_table(summary))
    for path in written:
        talk.say(str(path))
    return ExitCode.DONE


def _run(
    settings: Settings, flow: StoredField, output: Path, talk: Talk
) -> tuple[dict[str, Any], list[Path]]:
    """Follows the particles; returns what came of it, and the files written."""
    seeds = place_seeds(settings, flow)
    plan = plan_times(settings.times, flow, settings.velocity.period)
    talk.say(plan.sentence())
    talk.detail(f"stepped by {type(settings.solver or RK4()).__name__}")
    walls = []
    if settings.coast == "strand" and flow.land is not None:
        walls = [Coast(flow.land)]
    check_writable(output)
    found = track(
        flow,
        seeds,
        plan.times,
        steps=plan.steps,
        solver=settings.solver,
        boundary=walls,
    )
    summary = _summary(flow, found, plan)
    return summary, _write(settings, output, flow, found, summary)


def _settings(options: argparse.Namespace) -> Settings:
    """Returns the settings of the file, overruled by those of the command line."""
    for name in ("check", "output"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"`--{name}` must go with `physax track config`.")
    settings = Settings()
    if options.config is not None:
        try:
            settings = read_settings(options.config)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"`--config`: {error}") from error
    changes: dict[str, Any] = {
        name: getattr(options, name)
        for name in ("u", "v", "w")
        if getattr(options, name) is not None
    }
    if options.files:
        changes["files"] = options.files
    velocity = dataclasses.replace(settings.velocity, **changes)
    if not velocity.files:
        raise ArgumentError(
            "`FILE` must be given, or `velocity.files` in the YAML file, but neither "
            "is. `physax track config` writes a template."
        )
    times, output = settings.times, settings.output
    if options.days is not None:
        try:
            times = dataclasses.replace(times, duration=options.days * DAY)
        except ArgumentError as error:
            raise ArgumentError(f"`--days`: {error}") from error
    if options.backward:
        times = dataclasses.replace(times, backward=True)
    if options.animation is not None:
        output = dataclasses.replace(output, animation=options.animation)
    if options.no_figures:
        output = dataclasses.replace(output, figures=False, animation=None)
    return dataclasses.replace(settings, velocity=velocity, times=times, output=output)


def _read(settings: Settings, config: str | None) -> StoredField:
    """Reads the flow; `config` is the file that the settings are from."""
    given = settings.velocity
    try:
        return read_velocity(
            given.files or [],
            given.u,
            given.v,
            given.w,
            axes=given.axes,
            time=given.time,
            select=given.select,
            scale=given.scale,
            gaps=given.gaps,
            slip=given.slip,
            time_period=given.period,
            time_outside=Clamp() if given.hold else None,
        )
    except UnnamedComponentError as error:
        name = error.argument
        reason = error.reason.replace(f"`{name}=...`", f"`--{name} NAME`")
        raise PhysaxFileError(error.path, reason) from error
    except PeriodError as error:
        if config is None or given.period is None or error.name != "times":
            raise
        with at(read_yaml(config), "velocity"):
            raise _other_period(given.period, error.span) from error


def _other_period(period: float, span: float | None) -> ArgumentError:
    if span is None:
        return ArgumentError(
            "`period` must be left out, as the files have one instant only, of which "
            f"nothing repeats, but is {period / DAY:g} days."
        )
    return ArgumentError(
        f"`period` must be longer than the data, which span {span / DAY:g} days, but "
        f"is {period / DAY:g} days. If the last instant repeats the first, leave it "
        "out of the files."
    )


def _description(flow: StoredField, files: list[Path]) -> str:
    parts = []
    for name, unit, low, high in zip(
        flow.names, flow.units, flow.low, flow.high, strict=True
    ):
        parts.append(f"{name} {float(low):g} to {float(high):g} {unit}")
    if flow.times is not None:
        span = float(flow.times[-1] - flow.times[0]) / DAY
        begin = "" if flow.epoch is None else f" from {flow.epoch.date}"
        parts.append(f"{flow.times.size} instants{begin} over {span:g} days")
    names = ", ".join(path.name for path in files[:3])
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    lines = [f"{names}{more}: " + ", ".join(parts)]
    if flow.unitless:
        have = "has" if len(flow.unitless) == 1 else "have"
        lines.append(
            f"{', '.join(flow.unitless)} {have} no units in the file: taken to be in "
            "m/s, as `scale: 1`"
        )
    return "\n".join(lines)


def _speeds(flow: StoredField, found: Tracks) -> dict[str, Any]:
    """Returns the range of speeds in m/s along the tracks, and of which components."""
    field = flow.field
    if isinstance(field, OnSphere):
        # In degrees per second it would know of the poles.
        field = field.velocity
        found = dataclasses.replace(found, positions=unfolded(found.positions)[0])
    velocity = np.asarray(sample_along(field, found))
    # A rate of change of pressure is no speed.
    flat = flow.units[2:] == ("Pa",)
    speeds = np.linalg.norm(velocity[..., :2] if flat else velocity, axis=-1)
    known = speeds[np.isfinite(speeds)]
    ends = (("least", np.min), ("mean", np.mean), ("most", np.max))
    return {
        "components": "horizontal" if flat else "all",
        **{name: float(of(known)) if known.size else None for name, of in ends},
    }


def _summary(flow: StoredField, found: Tracks, plan: Plan) -> dict[str, Any]:
    start = float(plan.times[0])
    return {
        "particles": int(found.status.size),
        "counts": found.counts(),
        "start_seconds": start,
        "epoch": None if flow.epoch is None else flow.epoch.date,
        "calendar": None if flow.epoch is None else flow.epoch.calendar,
        "duration_seconds": float(abs(plan.times[-1] - start)),
        "backward": bool(plan.times[-1] < start),
        "steps": plan.steps,
        "step_seconds": float(abs(plan.times[-1] - start)) / plan.steps,
        "speed": _speeds(flow, found),
    }


def _table(summary: dict[str, Any]) -> str:
    days = summary["duration_seconds"] / DAY
    length = f"{days:g} days" if days >= 0.1 else f"{summary['duration_seconds']:g} s"
    way = "backward" if summary["backward"] else "forward"
    lines = [
        f"{summary['particles']} particles, {length} {way}, {summary['steps']} steps "
        f"of {summary['step_seconds']:g} s"
    ]
    for status in ParticleStatus:
        count = summary["counts"][status.name.lower()]
        if count:
            lines.append(f"  {status.name.lower():<12}{count:>8}  {status.sentence}")
    if summary["speed"]["mean"] is not None:
        least, mean, most = (summary["speed"][n] for n in ("least", "mean", "most"))
        lines.append(
            f"  speed       {least:8.3g} to {most:.3g} m/s, mean {mean:.3g}, of "
            f"{summary['speed']['components']} components"
        )
    return "\n".join(lines)


def _write(
    settings: Settings,
    output: Path,
    flow: StoredField,
    found: Tracks,
    summary: dict[str, Any],
) -> list[Path]:
    given = settings.output
    path = output / (given.tracks or _best_file())
    write_tracks(path, found, flow, ragged=given.ragged)
    west = _west(flow) if given.west is None else given.west
    look: dict[str, Any] = {"spherical": flow.spherical, "west": west}
    land = flow.land
    drawn = []
    if given.figures:
        axes = plot.tracks(found, land=land, **look)
        drawn.append(output / "tracks.png")
        with whole_file(drawn[-1]) as file:
            axes.get_figure(root=True).savefig(file, format="png")  # pyright: ignore
    if given.animation is not None:
        moving = output / f"tracks.{given.animation}"
        drawn.append(plot.animate_tracks(found, moving, land=land, **look))
    return [path, replace_summary(output, "track", summary, drawn), *drawn]


def _west(flow: StoredField) -> float:
    """Returns the smallest longitude of a map whose edge does not cut the data."""
    if flow.periodic[0]:
        return -180.0
    return float(flow.low[0] + flow.high[0]) / 2 - 180


def _best_file() -> str:
    """Returns the name of a file for which all packages are there."""
    there = map(importlib.util.find_spec, ("xarray", "h5netcdf"))
    return "tracks.nc" if all(there) else "tracks.npz"
