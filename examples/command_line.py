"""Command-line options shared by the scripts."""

import argparse
from pathlib import Path


def options(
    about: str | None, arguments: list[str] | None, *, steps: int, cells: float
) -> argparse.Namespace:
    """Returns the options of a design script, after creating the output folder.

    Args:
        about: What the script does.
        arguments: Instead of those of the process.
        steps: How many steps by default.
        cells: Width of the cells in nm by default.
    """
    parser = _parser(about)
    parser.add_argument("--steps", type=int, default=steps, help="at least 1")
    parser.add_argument("--cells", type=float, default=cells, help="their width in nm")
    chosen = _parsed(parser, arguments)
    if chosen.steps < 1:
        parser.error(f"--steps must be at least 1, but is {chosen.steps}")
    return chosen


def numbers(
    about: str | None, arguments: list[str] | None, **defaults: float
) -> argparse.Namespace:
    """Returns numeric options, after creating the output folder.

    Args:
        about: What the script does.
        arguments: Instead of those of the process.
        **defaults: By name; the type of each is that of its default.
    """
    parser = _parser(about)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return _parsed(parser, arguments)


def _parser(about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--output", type=Path, default=Path("output"))
    return parser


def _parsed(parser, arguments: list[str] | None) -> argparse.Namespace:
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    return chosen
