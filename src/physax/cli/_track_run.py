"""The command `physax track`: reads a flow, follows particles, writes and draws."""

import argparse
import dataclasses
import importlib.util
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import plot
from .._checks import ArgumentError
from ..grid import Clamp
from ..io import check_writable
from ..io._netcdf_open import list_files
from ..io._read_velocity import StoredField, read_velocity
from ..io._whole_file import whole_file
from ..io._write_tracks import write_tracks
from ..particles import (
    AbstractField,
    Coast,
    OnSphere,
    ParticleStatus,
    Tracks,
    sample_along,
    seed_grid,
    track,
)
from ..runtime import compile_quickly
from ._exit import ExitCode
from ._session import Talk, double_precision, limit_threads
from ._track_settings import Settings, Timing, read_settings


DAY = 86_400.0
# Recorded times, where the settings do not say.
_ROWS = 40
# A step leads through this part of a cell at most, at the highest speed of the seeds.
_PART = 0.25
_MOST_STEPS = 100_000


class Times(NamedTuple):
    """The recorded times and the steps between them.

    Attributes:
        times: In seconds.
        steps: In all.
    """

    times: np.ndarray
    steps: int


def run_track(options: argparse.Namespace) -> ExitCode:
    """Reads a flow, follows particles, writes tracks and draws them."""
    talk = Talk(options.verbose - options.quiet)
    limit_threads(options.threads)
    compile_quickly()
    with double_precision():
        settings = _settings(options)
        # All that can be refused without data comes first.
        files = list_files(settings.velocity.files or [])
        output = check_writable(options.output_dir)
        flow = _read(settings)
        talk.say(_description(flow, files))
        seeds = _seeds(settings, flow)
        plan = _times(settings.times, flow, seeds)
        talk.detail(f"{plan.steps} steps, {plan.times.size} recorded times")
        walls = []
        if settings.coast == "strand" and flow.land is not None:
            walls = [Coast(flow.land)]
        found = track(
            flow,
            seeds,
            plan.times,
            steps=plan.steps,
            solver=settings.solver,
            boundary=walls,
        )
        summary = _summary(flow, found, plan)
        written = _write(settings, output, flow, found, summary)
    talk.say(_table(summary))
    for path in written:
        talk.say(str(path))
    return ExitCode.DONE


def _settings(options: argparse.Namespace) -> Settings:
    """Returns the settings of the file, overruled by those of the command line."""
    if options.output_dir is None:
        raise ArgumentError("`--output-dir` must be given.")
    for name in ("check", "output"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"`--{name}` must go with `physax track config`.")
    settings = Settings() if options.config is None else read_settings(options.config)
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


def _read(settings: Settings) -> StoredField:
    given = settings.velocity
    return read_velocity(
        given.files or [],
        given.u,
        given.v,
        given.w,
        axes=given.axes,
        time=given.time,
        select=given.select,
        scale=given.scale,
        slip=given.slip,
        time_period=given.period,
        time_outside=Clamp() if given.hold else None,
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
    return f"{names}{more}: " + ", ".join(parts)


def _seeds(settings: Settings, flow: StoredField) -> jax.Array:
    ndim = flow.low.size
    if settings.seeds is None:
        seeds = _everywhere(flow)
    else:
        seeds = settings.seeds.place()
        if seeds.shape[1] != ndim:
            raise ArgumentError(
                f"`seeds` must have {ndim} coordinates, {', '.join(flow.names)}, but "
                f"have {seeds.shape[1]}."
            )
    if flow.spherical and not flow.periodic[0]:
        # West may be 350 in one place and -10 in another.
        turns = jnp.floor((seeds[:, 0] - flow.low[0]) / 360)
        seeds = seeds.at[:, 0].add(-360 * turns)
    if flow.land is not None and settings.coast == "strand":
        seeds = seeds[~np.asarray(flow.land.covers(seeds))]
    if not len(seeds):
        raise ArgumentError("`seeds` must lie at sea somewhere, but all are on land.")
    return seeds


def _everywhere(flow: StoredField) -> jax.Array:
    """Seeds a grid all over the data."""
    low, high = np.asarray(flow.low, float), np.asarray(flow.high, float)
    extent = high - low
    shape = [36, 17, 1][: low.size]
    if extent[1] > extent[0]:
        shape[:2] = shape[1::-1]
    inset = extent / np.array([2 * n for n in shape])
    return seed_grid(low + inset, high - inset, shape)


def _metres(flow: StoredField) -> AbstractField:
    """Returns the velocity in m/s."""
    return flow.field.velocity if isinstance(flow.field, OnSphere) else flow.field


@eqx.filter_jit
def _fastest(velocity: AbstractField, t, seeds):
    speeds = jax.vmap(lambda x: jnp.abs(velocity(t, x)))(seeds)
    return jnp.nanmax(speeds[:, :2], initial=0.0)


def _times(timing: Timing, flow: StoredField, seeds: jax.Array) -> Times:
    """Finds the times that are recorded and the steps between them."""
    instants = np.zeros(1) if flow.times is None else np.asarray(flow.times, float)
    sign = -1.0 if timing.backward else 1.0
    begin = instants[-1] if timing.backward else instants[0]
    begin = float(begin) if timing.start is None else timing.start
    speed = float(_fastest(_metres(flow), jnp.asarray(begin), seeds))
    size = np.asarray(flow.high - flow.low, float)[:2]
    if flow.spherical:
        size = np.radians(size) * float(flow.field.radius)  # pyright: ignore
    duration = timing.duration
    if duration is None:
        duration = 5 * DAY if flow.spherical else float(size.max()) / (speed or 1.0)
        if flow.times is not None and not _goes_on(flow):
            room = instants[-1] - begin if sign > 0 else begin - instants[0]
            duration = min(duration, room) if room > 0 else duration
    every = timing.record_every or duration / _ROWS
    rows = max(round(duration / every), 1)
    every = duration / rows
    step = timing.step
    if step is None:
        cells = np.array(flow.cells[:2], float)
        step = _PART * float((size / cells).min()) / speed if speed > 0 else every
    stride = max(math.ceil(every / step * (1 - 1e-9)), 1)
    if timing.step is None:
        stride = min(stride, max(_MOST_STEPS // rows, 1))
    times = begin + sign * every * np.arange(rows + 1)
    return Times(times, stride * rows)


def _goes_on(flow: StoredField) -> bool:
    return bool(np.isinf(float(flow.span()[1])))


def _summary(flow: StoredField, found: Tracks, plan: Times) -> dict[str, Any]:
    speeds = np.asarray(jnp.linalg.norm(sample_along(_metres(flow), found), axis=-1))
    known = speeds[np.isfinite(speeds)]
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
        "speed": {
            name: float(of(known)) if known.size else None
            for name, of in (("least", np.min), ("mean", np.mean), ("most", np.max))
        },
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
        lines.append(f"  speed       {least:8.3g} to {most:.3g} m/s, mean {mean:.3g}")
    return "\n".join(lines)


def _write(
    settings: Settings,
    output: Path,
    flow: StoredField,
    found: Tracks,
    summary: dict[str, Any],
) -> list[Path]:
    given = settings.output
    written = [output / (given.tracks or _best_file())]
    write_tracks(written[0], found, flow, ragged=given.ragged)
    written.append(output / "summary.json")
    with whole_file(written[-1]) as file:
        file.write(json.dumps(summary, indent=2, allow_nan=False).encode())
    look: dict[str, Any] = {"spherical": flow.spherical, "west": given.west}
    land = flow.land
    if given.figures:
        axes = plot.tracks(found, land=land, **look)
        written.append(output / "tracks.png")
        with whole_file(written[-1]) as file:
            axes.get_figure(root=True).savefig(file, format="png")  # pyright: ignore
    if given.animation is not None:
        path = output / f"tracks.{given.animation}"
        written.append(plot.animate_tracks(found, path, land=land, **look))
    return written


def _best_file() -> str:
    """Returns the name of a file for which all packages are there."""
    engines = ("h5netcdf", "netCDF4")
    there = importlib.util.find_spec("xarray") is not None and any(
        importlib.util.find_spec(name) is not None for name in engines
    )
    return "tracks.nc" if there else "tracks.npz"
