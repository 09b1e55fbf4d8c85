"""The command `physax xpcs fit`."""

import argparse
import dataclasses
import itertools
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from .._checks import ArgumentError, PhysaxError
from .._status import Status
from ..fit._fit_result import with_error
from ..io import check_writable, two_time_files
from ..runtime import (
    MemoryLimitError,
    Progress,
    compile_quickly,
    enable_compile_cache,
)
from ..runtime._progress import show_progress
from ..runtime._signals import Interruption, catch_signals
from ..xpcs import MODES, QualityReport, TwoTime, check_quality
from ._exit import ExitCode
from ._output import check_place
from ._session import Talk, double_precision, limit_threads, tell_machine
from ._words import words_of
from ._xpcs_job import Outcome, fit_data
from ._xpcs_jobs import Job, Request, jobs_of
from ._xpcs_parameters import refuse_negative, with_starts
from ._xpcs_results import (
    bic,
    noise_of,
    parameters_of,
    read_results,
    summary_of,
    write_results,
)
from ._xpcs_sample import check_sampler, write_posterior
from ._xpcs_settings import (
    LAMINAR,
    LaminarSettings,
    Settings,
    StaticSettings,
    read_settings,
    refuse_flow_options,
)
from ._xpcs_table import ResultTable


_BAD = (Status.DIVERGED, Status.INVALID)
# A correlation of residuals that noise does not make, in standard deviations.
_SEEN = 5
# Modes are fitted side by side to data with fewer values.
_SMALL = 2_000_000


def run_fit(options: argparse.Namespace) -> ExitCode:
    """Reads data, examines them, fits them, writes results and pictures."""
    limit_threads(options.threads)
    compile_quickly()
    talk = Talk(options.verbose - options.quiet)
    # All that can be refused without data comes first.
    output = check_place(options.output_dir)
    # Numbers of the settings are arrays, too.
    with double_precision(), catch_signals() as interruption:
        tell_machine(talk)
        request = _request(options, output)
        if options.compile_cache is not None:
            enable_compile_cache(options.compile_cache)
        for settings in request.settings.values():
            check_sampler(settings.fit.method)
        return _Run(request, talk, interruption, options.figures).all()


def _request(options: argparse.Namespace, output: Path) -> Request:
    automatic = options.config is None and options.mode is None
    if options.config is not None:
        found = read_settings(options.config)
        if options.mode not in (None, found.mode):
            raise ArgumentError(
                f"`--mode` must be that of {options.config}, {found.mode}, or be left "
                f"out, but is {options.mode}."
            )
        chosen = [found]
    else:
        wanted = MODES if options.mode is None else (options.mode,)
        chosen = [_plain_settings(mode) for mode in wanted]
    settings = {s.mode: _overruled(s, options) for s in chosen}
    given = options.file or next(iter(settings.values())).data.file
    if given is None:
        raise ArgumentError(
            "`FILE` must be given, or `data.file` in the YAML file, but neither is."
        )
    place = Path(given)
    if place.suffix in (".yaml", ".yml"):
        raise ArgumentError(
            f"`FILE` must be data, HDF5 or npz, but is {given!r}. Give settings as "
            "`--config`."
        )
    if place.is_dir():
        pattern = options.pattern or next(iter(settings.values())).data.pattern
        files, root = two_time_files(place, pattern), place
    else:
        files, root = (place,), place.parent
    return Request(settings, automatic, files, root, output)


def _plain_settings(mode: str) -> Settings:
    if mode == LAMINAR:
        return LaminarSettings(LAMINAR, "physical")
    return StaticSettings(mode)  # pyright: ignore


def _overruled(settings: Settings, options: argparse.Namespace) -> Settings:
    """Replaces settings by what the command line says."""
    data = {
        "q": options.q,
        "frames": None if options.frames is None else tuple(options.frames),
        "keep_times": options.keep_times or None,
        "without": options.without,
        "dt": options.dt,
        "sigma": options.sigma,
        "phi_ranges_degrees": options.phi and [tuple(pair) for pair in options.phi],
    }
    search = {
        "method": options.method,
        "starts": options.starts,
        "max_evaluations": options.max_evaluations,
        "errors": options.errors,
    }
    changes: dict[str, Any] = {
        "data": dataclasses.replace(settings.data, **_given(data)),
        "fit": dataclasses.replace(settings.fit, **_given(search)),
    }
    if isinstance(settings, LaminarSettings):
        flow = {"convention": options.convention, "gap": options.gap}
        changes |= _given(flow)
    elif options.mode is not None or options.config is not None:
        refuse_flow_options(settings, options)
    given = options.set or []
    changes["parameters"] = with_starts(settings.parameters, given)
    refuse_negative(changes["parameters"], given)
    return dataclasses.replace(settings, **changes)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _data_of(job: Job | tuple[Path, str]) -> tuple[Path, float | None]:
    return (job.file, job.q) if isinstance(job, Job) else (job[0], None)


def _key(job: Job | tuple[Path, str]) -> str:
    return job.key if isinstance(job, Job) else f"{job[0].name}::"


class _Read(NamedTuple):
    """What was read last: modes of one file and wavevector follow each other."""

    key: tuple[Path, float | None]
    data: TwoTime
    quality: QualityReport


class _Run:
    """The fits of a command, one after the other."""

    def __init__(
        self, request: Request, talk: Talk, interruption: Interruption, figures: int
    ):
        self.request, self.talk, self.figures = request, talk, figures
        self.interruption = interruption
        self.batch = len(request.files) > 1
        self.last: _Read | None = None
        self.codes: list[ExitCode] = []
        self.bic: dict[Path, float] = {}
        self.neighbours: dict[Path, tuple[float, float]] = {}
        self.lock = threading.Lock()

    def all(self) -> ExitCode:
        """Does the fits that are not done yet."""
        jobs: list[Job | tuple[Path, str]] = []
        for file in self.request.files:
            faults: list[str] = []
            with self.forgiven(faults.append):
                jobs += jobs_of(self.request, file)
            jobs += [(file, text) for text in faults]
        if not self.batch and len(jobs) == 1 and isinstance(jobs[0], Job):
            return self.single(jobs[0])
        return self.many(jobs)

    @contextmanager
    def forgiven(self, note) -> Iterator[None]:
        """Notes what is wrong with one file of a batch, and lets the batch go on."""
        try:
            yield
        except MemoryLimitError:
            raise
        except (PhysaxError, OSError) as error:
            if not self.batch:
                raise
            words = words_of(error)
            self.talk.warn(words)
            self.codes.append(ExitCode.REFUSED)
            note(words)

    def single(self, job: Job) -> ExitCode:
        """Does the only fit there is."""
        outcome = self.fit(job)
        status = Status(int(outcome.fit.result.status))
        if status is Status.INTERRUPTED:
            self.talk.warn(f"{status.sentence} Start it again to continue.")
            return ExitCode.CHECKPOINTED
        self.save(job, outcome)
        self.draw([job])
        return ExitCode.DIVERGED if status in _BAD else ExitCode.DONE

    def many(self, jobs: list[Job | tuple[Path, str]]) -> ExitCode:
        """Does many fits, with a table of those that are done."""
        table = ResultTable(self.request.output)
        progress = Progress("fits") if self.talk.level >= 0 and self.batch else None
        done = 0
        with show_progress(progress, 0, len(jobs)) as report:
            for _, group in itertools.groupby(jobs, _data_of):
                if self.interruption or not self.together(list(group), table):
                    return self.stopped(done, len(jobs))
                done = sum(1 for job in jobs if table.has(_key(job)))
                report(done, float("nan"))
        self.talk.say(f"Table: {self.request.output / 'results.csv'}")
        return max(self.codes, default=ExitCode.DONE)

    def together(self, group: list[Job | tuple[Path, str]], table) -> bool:
        """Does the fits of the same data; tells whether none was interrupted."""
        jobs = []
        for job in group:
            if not isinstance(job, Job):
                file, text = job
                table.add({"key": _key(job), "file": file.name, "error": text})
            elif table.done(job.key, job.mark):
                self.talk.detail(f"{job.key}: done before")
            else:
                jobs.append(job)
        small = False
        if len(jobs) > 1:
            with self.forgiven(lambda text: None):
                small = self.read(jobs[0]).data.c2.size < _SMALL
        if small:
            # Most of the time goes to the compiler, which has one thread.
            with ThreadPoolExecutor(len(jobs)) as pool:
                finished = all(pool.map(lambda job: self.one(job, table), jobs))
        else:
            finished = all(self.one(job, table) for job in jobs)
        if finished:
            self.draw(jobs)
        return finished

    def one(self, job: Job, table: ResultTable) -> bool:
        """Does one fit of many; tells whether it was not interrupted."""
        row: dict[str, Any] = {"key": job.key, "mark": job.mark, "file": job.file.name}
        row |= {"mode": job.mode, "q": job.q}
        with self.forgiven(lambda text: table.add({**row, "error": text})):
            outcome = self.fit(job)
            status = Status(int(outcome.fit.result.status))
            if status is Status.INTERRUPTED:
                return False
            # The table does not know threads.
            with self.lock:
                self.save(job, outcome)
                settings = self.request.settings[job.mode]
                summary = summary_of(outcome, settings, job.file.name)
                found = {**row, **summary, "parameters": parameters_of(outcome)}
                table.add(found)
            if status in _BAD:
                self.codes.append(ExitCode.DIVERGED)
        return True

    def stopped(self, number: int, count: int) -> ExitCode:
        """Says how far a batch has come that a signal ends."""
        self.talk.warn(
            f"interrupted after {number} of {count} fits. Start it again to continue."
        )
        return ExitCode.CHECKPOINTED

    def read(self, job: Job) -> _Read:
        """Reads and examines the data of a job."""
        key = (job.file, job.q)
        if self.last is not None and self.last.key == key:
            return self.last
        data = self.request.settings[job.mode].data.read(job.file, job.q)
        quality = check_quality(data)
        self.talk.say(f"{job.file}: {data.maps} maps of {data.frames} frames")
        self.talk.detail(str(quality))
        for text in quality.warnings:
            self.talk.warn(f"{job.file.name}: {text}")
        self.last = _Read(key, data, quality)
        return self.last

    def fit(self, job: Job) -> Outcome:
        """Fits one model."""
        settings = self.request.settings[job.mode]
        _, data, quality = self.read(job)
        check_place(job.folder)
        shown = self.talk.level >= 0
        return fit_data(data, quality, settings, job.folder / "checkpoints", shown)

    def save(self, job: Job, outcome: Outcome) -> None:
        """Writes results, and says what was found."""
        settings = self.request.settings[job.mode]
        check_writable(job.folder)
        write_results(job.folder, outcome, settings, job.file.name)
        if settings.fit.method != "nlsq":
            write_posterior(job.folder, outcome, settings, self.talk)
        self.talk.say(_text(job, outcome))
        result = outcome.fit.result
        if not result.success:
            self.talk.warn(f"{job.key}: the fit did not converge: {result.message}")
        self.bic[job.folder] = bic(result)
        self.neighbours[job.folder] = outcome.neighbours
        self.talk.say(f"Results: {job.folder}")

    def draw(self, jobs: list[Job]) -> None:
        """Draws, of several models of the same data, the one that describes them best.

        That is the one with the lowest of Bayes' criterion, which counts parameters.
        """
        found = sorted((job for job in jobs if job.folder in self.bic), key=self._rank)
        if len(found) > 1:
            better = self._rank(found[1]) - self._rank(found[0])
            self.talk.say(
                f"{found[0].mode} describes these data better than {found[1].mode}: "
                f"its BIC is lower by {better:.4g}"
            )
        if found:
            self.doubt(found[0])
        if found and self.figures:
            made = import_module("physax.cli._xpcs_figures").draw_results(
                found[0].folder, read_results(found[0].folder), self.figures
            )
            self.talk.detail("\n".join(map(str, made)))
            for job in found[1:]:
                self.talk.say(f"Pictures of {job.mode}: physax xpcs plot {job.folder}")

    def doubt(self, job: Job) -> None:
        """Warns of uncertainties for independent noise where it is not."""
        found, deviation = self.neighbours[job.folder]
        errors = self.request.settings[job.mode].fit.errors
        if errors == "pairs" and found > _SEEN * deviation:
            self.talk.warn(
                f"{job.key}: residuals of neighbouring pairs correlate by {found:.2g}, "
                f"more than {_SEEN} standard deviations of independent ones "
                f"({_SEEN * deviation:.2g}). If that is the noise of speckles, "
                "uncertainties are too small: use --errors speckles. Noise that frames "
                "share, or a model that does not fit, correlates them, too"
            )

    def _rank(self, job: Job) -> float:
        value = self.bic[job.folder]
        return value if math.isfinite(value) else math.inf


def _text(job: Job, outcome: Outcome) -> str:
    result = outcome.fit.result
    left = f"noise of one value {noise_of(outcome):.3g} (sigma not known)"
    if result.absolute_sigma:
        left = f"reduced chi-square {float(result.reduced_chi2):.5g}"
    lines = [f"{job.key}: {left}, {outcome.seconds:.1f} s"]
    parameters = parameters_of(outcome)
    width = max(map(len, parameters))
    for name, entry in parameters.items():
        error = entry["uncertainty"]
        value = entry["value"]
        shown = f"{value:.6g} fixed" if error is None else with_error(value, error)
        note = " (at a bound)" if entry["at_bound"] else ""
        unit = f" {entry['unit']}" if entry["unit"] else ""
        lines.append(f"  {name:{width}} {shown}{unit}{note}")
    return "\n".join(lines)
