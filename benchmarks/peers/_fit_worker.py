"""Starts the tools of `benchmarks.fit`, each in its own Python."""

import json
import subprocess
import sys

from ._worker import ENVIRONMENTS, ROOT, PeerError


# nlsq's environment serves all three: optimistix and SciPy are installed there, too.
MODULES = {
    "physax": ("_physax_fit", None),
    "scipy": ("peers.scipy_fit", "nlsq"),
    "nlsq": ("peers.nlsq_fit", "nlsq"),
    "optimistix": ("peers.optimistix_fit", "nlsq"),
}


class FitWorker:
    """A tool's process, which answers requests until it is closed.

    Args:
        tool: One of `MODULES`.

    Raises:
        PeerError: If the tool is not installed.
    """

    def __init__(self, tool: str):
        self.tool = tool
        module, environment = MODULES[tool]
        python = sys.executable
        if environment is not None:
            python = ENVIRONMENTS / environment / "bin" / "python"
            if not python.exists():
                raise PeerError(
                    f"{tool}: no {python}; run `python -m benchmarks.peers.install`."
                )
        self._process = subprocess.Popen(
            [python, "-m", f"benchmarks.{module}"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.version = self._answer()["version"]

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise PeerError(
                f"{self.tool} ended with status {self._process.returncode}."
            )
        return json.loads(line)

    def run(self, points: int) -> dict:
        """Returns seconds, memory and parameters of one fit."""
        try:
            self._process.stdin.write(json.dumps({"points": points}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, which the missing answer tells
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
