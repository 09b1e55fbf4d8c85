"""Runs the command line as `python -m physax`."""

import sys

from .cli import main


sys.exit(main())
