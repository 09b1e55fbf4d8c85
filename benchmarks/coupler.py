"""The coupler of a published comparison of two 3-D FDTD codes, here in quarters.

`python -m benchmarks.coupler [--resolutions 2,3,4,5] [--whole 4] [--json FILE]` runs
one bend of the coupler of Liu and Poon (arXiv 2506.16665) behind the mirrors of both
its symmetries, joins two of them by the straight part, whose supermodes are solved on
the same cells, and extrapolates the power that goes over. Resolutions count cells over
half the height of the guide: 4, 5 and 6 are about 15, 19 and 22 cells a wavelength in
silicon. `--whole L` runs at the first of them the whole device, too, with a straight
part of L um. All lengths are in um unless said otherwise.
"""

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from physax import em
from physax.grid import Grid
from physax.units import MICRO, SPEED_OF_LIGHT

from ._coupler_cells import (
    BEND,
    GAP,
    HEIGHT,
    LENGTH,
    PORT,
    SILICA,
    SILICON,
    WALLS,
    WAVE,
    WIDTH,
    X,
    across,
    cells,
    cells_a_wavelength,
    middle_line,
    on_cells,
    port,
    refined,
    simulation,
    time_step,
)
from ._rows import OURS, Row, console, ours_version, report, write


PAPER = "arXiv 2506.16665"
# Power over at 1550 nm, by cells a wavelength.
PUBLISHED = {
    "Lumerical FDTD": {15: 0.411, 20: 0.446, 25: 0.431},
    "Tidy3D": {15: 0.448, 20: 0.492, 25: 0.456},
}
FINE = (6, 8, 12, 16)  # resolutions at which the supermodes are solved
CASE = "{:.1f} cells a wavelength"


class Passage(NamedTuple):
    """What becomes of one supermode.

    Attributes:
        through: Amplitude through one bend, to where modes are measured, or through
            the whole device.
        reflected: The part of the power that comes back.
        index: Of the supermode along the cells; `None` of the whole device.
        seconds: Of the run.
    """

    through: complex
    reflected: float
    index: float | None
    seconds: float


def passage(parts: int, wall: str, length: float | None = None) -> Passage:
    """Runs one bend, or the whole device of a length, behind a mirror."""
    begin = time.perf_counter()
    sim = simulation(parts, wall, length)
    far = BEND + (length or 0) / 2
    # From the right: the phases of a port are taken half a cell to its left.
    ports = {"in": port(far + 5 * X, "-x", 2 * X)}
    if length:
        ports["out"] = port(-far - PORT, "+x")
    else:
        ports["out"] = port(-PORT, "+x", near=True)
    found = em.s_parameters(
        sim, ports, WAVE * MICRO, inputs=["in"], until=em.Decay(1e-6, check_every=200)
    )
    index = None
    if length is None:
        seen = found.results["in"].monitors["port out"]
        index = on_cells(float(seen.effective_index[0]), float(sim.dt), parts)
    return Passage(
        complex(found("out", "in")[0]),
        float(abs(found("in", "in")[0]) ** 2),
        index,
        time.perf_counter() - begin,
    )


def supermodes(parts: int, gaps: int = 1) -> float:
    """Solves for the difference of the indices of the supermodes on the cells of a run.

    Args:
        parts: The resolution.
        gaps: How many gaps wide the one between the guides is.
    """
    y, z = across(gaps)
    # As many cells for each gap: what is compiled for one serves the others.
    y, z = refined(y[:14], parts, 0, 0), refined(z, parts, 0, parts)
    section = Grid.graded([y * MICRO, z * MICRO])
    core = em.Box(
        ((GAP * gaps + WIDTH) / 2 * MICRO, 0), (WIDTH * MICRO, HEIGHT * MICRO)
    )
    medium = em.rasterise(
        [em.Structure(core, em.Material(SILICON**2))],
        section,
        em.Material(SILICA**2),
        components=("Ex", "Ey", "Ez"),
    )
    even, odd = (
        em.cross_section_modes(
            section,
            medium,
            SPEED_OF_LIGHT / (WAVE * MICRO),
            boundaries=em.Boundaries(x=(wall, em.PEC()), y=(em.PMC(), em.PEC())),
            spacing=X / parts * MICRO,
            dt=time_step(cells(parts)),
        ).effective_index[0]
        for wall in WALLS.values()
    )
    return float(even - odd)


def bends_by_modes(parts: int) -> float:
    """Returns the length that both bends are worth by coupled-mode theory.

    Along a bend the difference of the indices falls with the gap; its logarithm is
    taken as quadratic through one, two and three gaps.
    """
    gaps = np.arange(1, 4)
    falls = np.polyfit(gaps, np.log([supermodes(parts, int(g)) for g in gaps]), 2)
    x, y = middle_line(None)[1:-1].T
    gap = (2 * y - WIDTH) / GAP
    local = np.exp(np.polyval(falls, gap) - np.polyval(falls, 1))
    return 2 * float(np.trapezoid(local, x))


class Pair(NamedTuple):
    """Both supermodes through one bend.

    Attributes:
        parts: The resolution.
        even: Of the field that is even about the middle.
        odd: The other.
    """

    parts: int
    even: Passage
    odd: Passage

    @property
    def difference(self) -> float:
        """Of the indices."""
        assert self.even.index is not None
        assert self.odd.index is not None
        return self.even.index - self.odd.index

    def straight(self, length: float = LENGTH) -> float:
        """Returns how much of the straight part two bends leave."""
        # Modes are measured half a cell before the node.
        return length - 2 * PORT - X / self.parts

    def through(self, length: float = LENGTH) -> list[complex]:
        """Returns the amplitudes through two bends and what lies between them."""
        out = []
        for one in (self.even, self.odd):
            assert one.index is not None
            turn = 2 * np.pi * one.index / WAVE * self.straight(length)
            out.append(one.through**2 * np.exp(1j * turn))
        return out

    @property
    def worth(self) -> float:
        """Length of a straight part that turns the supermodes as both bends do."""
        turn = np.angle(self.even.through / self.odd.through)
        whole = 2 * turn * WAVE / (2 * np.pi * self.difference)
        return float(whole + self.straight(0.0))


def powers(even: complex, odd: complex) -> tuple[float, float]:
    """Returns the power that goes over and what is lost, of light in one guide."""
    crossed = abs(even - odd) ** 2 / 4
    return crossed, 1 - crossed - abs(even + odd) ** 2 / 4


def over(difference: float, length: float) -> float:
    """Returns the power over without loss, of a length with that of the bends."""
    return float(np.sin(np.pi * difference * length / WAVE) ** 2)


def row(parts: int, what: str, value: float, unit: str = "power over") -> Row:
    """Returns a figure of ours."""
    case = CASE.format(cells_a_wavelength(parts)) + what
    return Row(case, OURS, ours_version(), value, unit, runs=1)


def rows_of(pair: Pair) -> list[Row]:
    """Returns the figures of one resolution."""
    crossed, lost = powers(*pair.through())
    both = pair.even, pair.odd
    return [
        row(pair.parts, "", crossed),
        row(pair.parts, "", lost, "power lost"),
        row(pair.parts, "", max(p.reflected for p in both), "power back from a bend"),
        row(pair.parts, "", pair.difference, "difference of the indices"),
        row(pair.parts, "", pair.worth, "um that the bends are worth"),
        row(pair.parts, "", sum(p.seconds for p in both), "s"),
    ]


def rows_of_whole(pair: Pair, length: float, whole: Pair) -> list[Row]:
    """Returns the power over of a whole device and of the joined one."""
    joined, _ = powers(*pair.through(length))
    direct, _ = powers(whole.even.through, whole.odd.through)
    seconds = whole.even.seconds + whole.odd.seconds
    what = f", {length:g} um straight, "
    return [
        row(pair.parts, what + "joined", joined),
        row(pair.parts, what + "whole device", direct),
        row(pair.parts, what + "whole device", seconds, "s"),
    ]


def published() -> list[Row]:
    """Returns the figures of the article."""
    return [
        Row(CASE.format(cells), tool, PAPER, value, "power over")
        for tool, figures in PUBLISHED.items()
        for cells, value in figures.items()
    ]


def extrapolated(pairs: Sequence[Pair]) -> list[Row]:
    """Returns what finer cells would give.

    Straight part and bends apart: supermodes are cheap on cells as fine as you like,
    and what the bends are worth in length of it hardly depends on the cells.
    """
    index = em.extrapolate(FINE, [supermodes(parts) for parts in FINE])
    worth = em.extrapolate([p.parts for p in pairs], [p.worth for p in pairs])
    whole = em.extrapolate(
        [p.parts for p in pairs], [powers(*p.through())[0] for p in pairs]
    )
    for study in (index, worth, whole):
        console().print(str(study))
    length = LENGTH + float(worth.limit)
    limit = over(float(index.limit), length)
    # d sin^2(u) = sin(2 u) du
    turn = np.pi * float(index.limit) * length / WAVE
    parts = float(index.error / index.limit), float(worth.error) / length
    error = abs(np.sin(2 * turn)) * turn * sum(parts)
    own, version = "extrapolated", ours_version()
    return [
        Row(own, OURS, version, limit, "power over"),
        Row(own, OURS, version, float(error), "error bar"),
        Row(own, OURS, version, float(index.limit), "difference of the indices"),
        Row(own, OURS, version, float(index.order), "order of the difference"),
        Row(own, OURS, version, float(worth.limit), "um that the bends are worth"),
        Row(own, OURS, version, float(worth.error), "error bar of that length"),
        Row(own + " at once", OURS, version, float(whole.limit), "power over"),
        Row(own + " at once", OURS, version, float(whole.error), "error bar"),
        Row(
            "coupled modes",
            OURS,
            version,
            bends_by_modes(FINE[1]),
            "um that the bends are worth",
        ),
    ]


def run_pair(parts: int, length: float | None = None) -> Pair:
    """Runs both symmetries of a bend, or of the whole device of a length."""
    even, odd = (passage(parts, wall, length) for wall in WALLS)
    return Pair(parts, even, odd)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--json", help="where to write the rows, after each resolution")
    add("--resolutions", default="2,3,4,5", help="cells over half the height")
    add("--whole", type=float, help="straight part of whole devices to run, in um")
    options = parser.parse_args(arguments)
    rows, pairs = published(), []
    for parts in map(int, options.resolutions.split(",")):
        pairs.append(run_pair(parts))
        rows += rows_of(pairs[-1])
        if options.whole and len(pairs) == 1:
            whole = run_pair(parts, options.whole)
            rows += rows_of_whole(pairs[-1], options.whole, whole)
        if options.json:
            write(rows, options.json)
    if len(pairs) > 2:
        rows += extrapolated(pairs)
    report(rows, "a coupler at 1550 nm, float32", options.json)


if __name__ == "__main__":
    main()
