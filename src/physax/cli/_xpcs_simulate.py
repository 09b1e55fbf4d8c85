"""The command `physax xpcs simulate`."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._checks import ArgumentError
from ..io import APSLayout, APSULayout, NPZLayout, check_writable, write_two_time
from ..xpcs import (
    AbstractNoise,
    Diffusion,
    FrameNoise,
    LaminarFlow,
    Shear,
    Static,
    WhiteNoise,
    simulate_two_time,
)
from ._exit import ExitCode
from ._output import check_new, check_place
from ._session import Talk, double_precision, limit_threads, tell_machine
from ._xpcs_names import NAMES, names_of, with_values
from ._xpcs_parameters import with_starts
from ._xpcs_settings import (
    LAMINAR,
    LaminarSettings,
    Settings,
    StaticSettings,
    numbers,
    read_settings,
    refuse_flow_options,
)


# The case of the validation, in the units of files.
_TRUTH = {
    "D0": 12000.0,
    "alpha": -0.35,
    "D_offset": 150.0,
    "shear_rate": 3e-3,
    "beta": -0.2,
    "shear_offset": 2e-4,
    "phi0": -4.0,
}
_LAYOUTS = {"apsu": APSULayout, "aps": APSLayout, "npz": NPZLayout}


def run_simulate(options: argparse.Namespace) -> ExitCode:
    """Writes two-time maps of a model, with noise."""
    limit_threads(options.threads)
    talk = Talk(options.verbose - options.quiet)
    path = Path(options.output)
    check_place(path.parent)
    if path.suffix.lower() not in (".hdf", ".h5", ".hdf5", ".npz"):
        raise ArgumentError(
            f"`--output` must end in .hdf, .h5, .hdf5 or .npz, but is {options.output}."
        )
    if options.layout and (options.layout == "npz") != (path.suffix.lower() == ".npz"):
        raise ArgumentError(
            "`--layout` must be npz for an `--output` that ends in .npz, and else not, "
            f"but is {options.layout} for {options.output}."
        )
    check_new(path)
    with double_precision():
        tell_machine(talk)
        settings = _settings(options)
        data = _simulated(settings, options)
        layout = None if options.layout is None else _LAYOUTS[options.layout]()
        check_writable(path.parent)
        write_two_time(path, data, layout=layout)
    talk.say(f"{path}: {data.maps} maps of {data.frames} frames")
    return ExitCode.DONE


def _settings(options: argparse.Namespace) -> Settings:
    if options.config is not None:
        settings = read_settings(options.config)
        if options.mode not in (None, settings.mode):
            raise ArgumentError(
                f"`--mode` must be that of {options.config}, {settings.mode}, or be "
                f"left out, but is {options.mode}."
            )
    elif options.mode in (None, LAMINAR):
        settings = LaminarSettings(LAMINAR, "physical")
    else:
        settings = StaticSettings(options.mode)
    refuse_flow_options(settings, options)
    parameters: Any = with_starts(settings.parameters, options.set or [])
    return dataclasses.replace(settings, parameters=parameters)


def _simulated(settings: Settings, options: argparse.Namespace):
    model = _model(settings, options)
    spacing = _first(options.dt, settings.data.dt, 0.1)
    times = spacing * np.arange(options.frames)
    sizes = options.q or ([settings.data.q] if settings.data.q else [0.0054])
    # Both ends of half a turn would be the same direction twice.
    angles = np.linspace(-np.pi / 2, np.pi / 2, options.angles, endpoint=False)
    q, phi = (x.ravel() for x in np.meshgrid(sizes, angles, indexing="ij"))
    noise: list[AbstractNoise] = [WhiteNoise(options.noise)]
    if options.frame_noise is not None:
        noise.append(FrameNoise(options.frame_noise))
    data = simulate_two_time(
        model,
        times,
        q,
        phi,
        contrast=options.contrast,
        offset=options.offset,
        key=jax.random.key(options.seed),
        noise=noise,
    )
    return data


def _first(*values: float | None) -> float:
    """Returns the first that is given."""
    return next(value for value in values if value is not None)


def _model(settings: Settings, options: argparse.Namespace) -> Any:
    diffusion = Diffusion(0.0, 0.0, 0.0)
    model: Any = Static(diffusion)
    if isinstance(settings, LaminarSettings):
        gap = _first(options.gap, settings.gap)
        convention = options.convention or settings.convention
        model = LaminarFlow(diffusion, Shear(0.0, 0.0, 0.0, 0.0), gap, convention)
    given = numbers(settings)
    values = {}
    for name in names_of(model):
        start = given[name].start
        values[name] = _TRUTH[name] * NAMES[name].scale if start is None else start
    return with_values(model, values)
