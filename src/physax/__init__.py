"""Differentiable physics for JAX: light, motion and signal."""

from importlib import import_module

from ._checks import (
    ArgumentError as ArgumentError,
    PhysaxError as PhysaxError,
    PhysaxWarning as PhysaxWarning,
)


__version__ = "0.1.0"

_SUBPACKAGES = (
    "cli",
    "design",
    "em",
    "fit",
    "graph",
    "grid",
    "io",
    "particles",
    "plot",
    "runtime",
    "units",
    "xpcs",
)


def __getattr__(name: str):
    # Subpackages load when first used, so that the import stays light.
    if name in _SUBPACKAGES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_SUBPACKAGES])
