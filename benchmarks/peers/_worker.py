"""Starts a peer in its own Python and asks it for runs."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from .._rows import OURS, PER_CORE
from .._turns import in_turn


ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".peers"
# Debian's python3-meep belongs to Debian's own Python.
SYSTEM_PYTHON = Path("/usr/bin/python3")
# PyPI requirements of the peers that have an environment of their own.
PYPI = {
    "beamz": "beamz==0.6.0",
    "fdtdx": "fdtdx==0.6.3",
    # With SciPy, which comes with it, and optimistix: for curve fits.
    "nlsq": "nlsq==0.7.6 optimistix",
    "homodyne": "homodyne==2.23.3 xpcsjax==0.1.8",
    "parcels": "parcels==4.0.2",
}
PEERS = {
    "beamz": "peers.beamz_fdtd",
    "fdtdx": "peers.fdtdx_fdtd",
    "meep": "peers.meep_fdtd",
    "numpy": "peers.numpy_yee",
    "bare": "peers.bare_yee",
}
MODULES = {OURS: "_physax_fdtd", PER_CORE: "_physax_per_core", **PEERS}


class PeerError(RuntimeError):
    """A peer is not installed or has ended."""


# Tools that are in the environment of another one.
SHARED = {"scipy": "nlsq", "optimistix": "nlsq", "xpcsjax": "homodyne"}


def python_of(tool: str) -> Path:
    """Returns the interpreter that a tool runs in."""
    tool = SHARED.get(tool, tool)
    if tool in PYPI:
        return ENVIRONMENTS / tool / "bin" / "python"
    return SYSTEM_PYTHON if tool == "meep" else Path(sys.executable)


def start(tool: str, module: str) -> subprocess.Popen:
    """Starts a module of `benchmarks` in the tool's interpreter.

    Raises:
        PeerError: If the interpreter is missing.
    """
    python = python_of(tool)
    if not python.exists():
        raise PeerError(
            f"{tool}: no {python}; run `python -m benchmarks.peers.install`."
        )
    return subprocess.Popen(
        [python, "-m", f"benchmarks.{module}"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Worker:
    """A peer's process, which answers requests until it is closed.

    Args:
        tool: Its name.
        module: What it runs, in `benchmarks`; by default the tool's of `MODULES`.

    Raises:
        PeerError: If the tool is not installed.
    """

    def __init__(self, tool: str, module: str | None = None):
        self.tool = tool
        self._process = start(tool, module or MODULES[tool])
        self.version = self._answer()["version"]

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise PeerError(
                f"{self.tool} ended with status {self._process.returncode}."
            )
        return json.loads(line)

    def run(self, **request: int | str) -> dict:
        """Returns the seconds and the other figures of one run.

        Args:
            request: What the module asks for.
        """
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which the missing answer tells
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()  # its end of input; waits, and closes the pipes


def opened(
    tools: Iterable[str], modules: Mapping[str, str] = MODULES
) -> tuple[list[Worker], dict[str, str]]:
    """Starts tools; returns those that run, and why the others do not.

    Args:
        tools: Their names.
        modules: What each runs, in `benchmarks`.
    """
    workers, missing = [], {}
    for tool in tools:
        try:
            workers.append(Worker(tool, modules[tool]))
        except PeerError as error:
            missing[tool] = str(error)
    return workers, missing


def interleaved(
    workers: Sequence[Worker], rounds: int, **request: int | str
) -> dict[str, list[dict]]:
    """Asks all workers in turn, round after round, and ends them.

    Args:
        workers: From `opened`.
        rounds: How often after the first, which compiles.
        request: What to ask.

    Returns:
        The answers of each tool.
    """
    try:
        runs = {worker.tool: partial(worker.run, **request) for worker in workers}
        return in_turn(runs, rounds + 1)
    finally:
        for worker in workers:
            worker.close()
