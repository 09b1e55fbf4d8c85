"""The options that the benchmarks beside other codes share."""

import argparse
import os
from collections.abc import Iterable, Sequence


class Command:
    """A command line, to which a benchmark may add options of its own.

    Attributes:
        parser: Of the words.
        peers: The tools there are.
    """

    def __init__(
        self,
        doc: str | None,
        peers: Iterable[str],
        *,
        rounds: int,
        quick: int,
        gpu: bool = False,
    ):
        self.peers, self._rounds = tuple(peers), {False: rounds, True: quick}
        self.parser = argparse.ArgumentParser(description=doc)
        add = self.parser.add_argument
        add("--json", help="where to write the rows")
        add("--quick", action="store_true", help="small, and few runs")
        add("--rounds", type=int, help=f"runs of each (default {rounds})")
        add("--peers", default=",".join(self.peers), help="which to run")
        if gpu:
            add("--gpu", action="store_true", help="on the first GPU, larger grids too")

    def options(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Returns the options: peers as a list, rounds as a number."""
        found = self.parser.parse_args(arguments)
        found.peers = [tool for tool in found.peers.split(",") if tool]
        unknown = sorted(set(found.peers) - set(self.peers))
        if unknown:
            self.parser.error(
                f"unknown peers {unknown}; there are {sorted(self.peers)}"
            )
        found.rounds = found.rounds or self._rounds[found.quick]
        if getattr(found, "gpu", False):
            # The processes share its memory.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        return found
