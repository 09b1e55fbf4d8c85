"""What the scripts that design a device ask the command line."""

import argparse
from pathlib import Path


def options(
    about: str | None, arguments: list[str] | None, *, steps: int, cells: float
) -> argparse.Namespace:
    """Returns what the command line chose, with the folder made.

    Args:
        about: What the script does.
        arguments: Instead of those of the process.
        steps: How many steps by default.
        cells: Width of the cells in nm by default.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--steps", type=int, default=steps, help="at least 1")
    parser.add_argument("--cells", type=float, default=cells, help="their width in nm")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    if chosen.steps < 1:
        parser.error(f"--steps must be at least 1, but is {chosen.steps}")
    chosen.output.mkdir(parents=True, exist_ok=True)
    return chosen
