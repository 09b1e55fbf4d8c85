"""Sets up the peers: `python -m benchmarks.peers.install [tool ...]`.

beamz, fdtdx and nlsq get a virtual environment each in `.peers/`, by PyPI's names and
versions from whatever index pip is configured for, made with this Python or with
`--python`. Take a new one: jax 0.10, the last for Python 3.11, makes fdtdx's gradient
several times slower than jax 0.12 does. Meep comes from Debian, whose package manager
needs an administrator; the command is printed. Nothing is installed into the project's
own environment.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

from ._worker import ENVIRONMENTS, PEERS, PYPI, python_of


MEEP_COMMAND = "apt-get update && apt-get install python3-meep python3-matplotlib"


def installed(tool: str) -> bool:
    """Whether the tool's interpreter exists and imports it."""
    python = python_of(tool)
    if not python.exists():
        return False
    module = "jax" if tool == "bare" else tool
    done = subprocess.run([python, "-c", f"import {module}"], capture_output=True)
    return done.returncode == 0


def install(tool: str, python: str) -> None:
    """Makes the environment of a tool from PyPI."""
    folder = ENVIRONMENTS / tool
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    pip = [python_of(tool), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *PYPI[tool].split()], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 where a peer is still missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", help="by default all")
    parser.add_argument("--python", default=sys.executable, help="to make them with")
    options = parser.parse_args(arguments)
    tools = options.tools or sorted({*PEERS, *PYPI})
    unknown = sorted(set(tools) - {*PEERS, *PYPI})
    if unknown:
        parser.error(f"unknown {unknown}; the peers are {sorted({*PEERS, *PYPI})}")
    status = 0
    for tool in tools:
        if tool in PYPI and not installed(tool):
            print(f"{tool}: installing {PYPI[tool]} into {ENVIRONMENTS.name}/{tool}")
            try:
                install(tool, options.python)
            except subprocess.CalledProcessError:
                print(f"{tool}: not for {options.python}; take another `--python`")
        good = installed(tool)
        hint = f"; run `{MEEP_COMMAND}`" if tool == "meep" else ""
        print(f"{tool}: {'ready' if good else 'missing' + hint}")
        status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main())
