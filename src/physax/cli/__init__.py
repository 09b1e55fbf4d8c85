"""The `physax` command."""

from ._exit import ExitCode as ExitCode
from ._main import main as main
