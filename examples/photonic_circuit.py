"""Designs an interferometer and a ring whose coupler is simulated, end to end.

`python -m examples.photonic_circuit [--small] [--steps N] [--cells NM] [--output DIR]`.
One graph leads from the gap and the length of a directional coupler and from the length
of an arm through permittivity, FDTD, S-parameters and the circuit to a loss, with one
gradient. The interferometer should send 1550 nm to its bar port and 1560 nm to the
other; the ring should transmit nothing at 1550 nm. It prints the figures and saves
`photonic_circuit.png`. Under four minutes on two cores; `--small` does only the first
coupler and its circuits.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, ArrayLike, Complex, Float
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

from physax import em, graph, plot
from physax.units import MICRO, NANO

from .directional_coupler import (
    FIRST,
    GROUP_INDEX,
    INDEX,
    POINTS,
    SECOND,
    Solvers,
    asymmetry,
    chip,
    crossing,
    even_gap,
    filled,
    judged,
    s_parameters,
    solvers,
    waves,
)
from .pictures import driven


# All lengths are in um.
BEND, LENGTH = 3.0, 4.0  # of the first coupler
SHORT, AROUND = 10.0, 60.0  # the other arm of the interferometer; the ring
# Over this difference of arms, bar and cross change places between the channels.
LONG = SHORT + 1.55 * 1.56 / 2 / GROUP_INDEX / 0.01
TURN = 10 ** (-1 / 20)  # amplitude that a turn of the ring leaves: it loses 1 dB
SCALES = {"gap": 0.03, "length": 0.1}  # units of the search


def missed(circuit: graph.Scatterer) -> Float[Array, "*lengths"]:
    """Returns the fraction of the two channels that misses its port."""
    bar, cross = circuit("bar", "in"), circuit("cross", "in")
    right = jnp.abs(bar[..., FIRST]) ** 2 + jnp.abs(cross[..., SECOND]) ** 2
    return 1 - right / 2


def passed(circuit: graph.Scatterer) -> Float[Array, "*lengths"]:
    """Returns the fraction of the first channel transmitted past the ring."""
    return jnp.abs(circuit("out", "in")[..., FIRST]) ** 2


def strayed(circuit: graph.Scatterer) -> Float[Array, "*lengths"]:
    """Returns the larger fraction of a channel that reaches the other's port."""
    bar, cross = circuit("bar", "in"), circuit("cross", "in")
    return jnp.maximum(jnp.abs(cross[..., FIRST]), jnp.abs(bar[..., SECOND])) ** 2


class Task(NamedTuple):
    """A circuit to be designed: couplers, a guide `arm` and other guides.

    Attributes:
        circuit: How they are joined.
        loss: What is minimised.
        wrong: The largest power in a wrong port.
        amplitude: Factor of each guide on an amplitude.
        others: Guides that are not changed, and their lengths.
    """

    circuit: graph.Circuit
    loss: Callable[[graph.Scatterer], Array]
    wrong: Callable[[graph.Scatterer], Array]
    amplitude: float
    others: tuple[tuple[str, float], ...] = ()


INTERFEROMETER = Task(
    graph.Circuit(
        ("split", "arm", "short", "join"),
        {
            "split.out0": "arm.in",
            "arm.out": "join.in0",
            "split.out1": "short.in",
            "short.out": "join.in1",
        },
        {"in": "split.in0", "bar": "join.out0", "cross": "join.out1"},
        label="interferometer",
    ),
    missed,
    strayed,
    1.0,
    (("short", SHORT),),
)
RING = Task(
    graph.Circuit(
        ("bus", "arm"),
        {"bus.out1": "arm.in", "arm.out": "bus.in1"},
        {"in": "bus.in0", "out": "bus.out0"},
        label="ring",
    ),
    passed,
    passed,
    TURN,
)


def guide(
    length: ArrayLike, *, points: int = POINTS, amplitude: float = 1.0
) -> graph.Scatterer:
    """Returns a guide with its effective and its group index."""
    turns = INDEX / 1.55 + GROUP_INDEX * (1 / waves(points) - 1 / 1.55)  # in each um
    return graph.waveguide(2 * jnp.pi * jnp.asarray(turns) * length, amplitude)


@partial(jax.jit, static_argnames=("task", "points"))
def joined(
    task: Task, part: graph.Scatterer, arm: ArrayLike, points: int = POINTS
) -> graph.Scatterer:
    """Returns the circuit of a task with a given coupler and arm."""
    named = dict.fromkeys(task.circuit.terminals, part)
    for name, length in (("arm", arm), *task.others):
        named[name] = guide(length, points=points, amplitude=task.amplitude)
    return task.circuit.joined(*named.values())


def model(task: Task, solvers: Solvers) -> graph.Graph:
    """Gap and lengths -> permittivity -> FDTD -> S-parameters -> circuit -> loss."""
    made = graph.Graph() | graph.op(
        solvers.medium, inputs=("gap", "length"), label="medium"
    ).connect(gap="gap", length="length", output="permittivity")
    made |= graph.op(solvers.light, inputs=("permittivity",), label="light").connect(
        permittivity="permittivity", output="coupler"
    )
    wires = dict.fromkeys(task.circuit.terminals, "coupler")
    for name in ("arm", *dict(task.others)):
        wires[name] = f"{name} guide"
        made |= graph.op(
            partial(guide, amplitude=task.amplitude), inputs=("length",), label="guide"
        ).connect(length=name, output=wires[name])
    made |= task.circuit.connect(**wires, output="circuit")
    return made | graph.op(task.loss, inputs=("circuit",), label="loss").connect(
        circuit="circuit", output="loss"
    )


def compiled(
    task: Task,
    solvers: Solvers,
    start: Mapping[str, ArrayLike],
    backend: graph.Backend | None = None,
) -> graph.Program:
    """Compiles the graph of a task, with initial gap and lengths."""
    return graph.compile(
        model(task, solvers),
        backend=backend,
        trainable=start,
        constants=dict(task.others),
        jit=False,  # the solvers are compiled already, and shared
    )


def tuned(task: Task, part: graph.Scatterer, near: float) -> float:
    """Returns the best length of the arm for a coupler, within half a turn."""
    reach = 0.775 / INDEX
    while reach > 1e-5:
        lengths = near + np.linspace(-reach, reach, 81)
        losses = task.loss(joined(task, part, lengths[:, None]))
        near, reach = float(lengths[np.argmin(losses)]), reach / 20
    return near


class Found(NamedTuple):
    """The result of a search.

    Attributes:
        params: Gap and lengths.
        part: The coupler.
        course: The loss of each step.
    """

    params: dict[str, Array]
    part: graph.Scatterer
    course: list[float]


def begun(
    task: Task, solvers: Solvers, gap: float, length: float, near: float
) -> Found:
    """Returns a coupler with its arm tuned, from a length of the arm."""
    params = {"gap": jnp.asarray(gap, float), "length": jnp.asarray(length, float)}
    part = solvers.light(solvers.medium(params["gap"], params["length"]))
    params["arm"] = jnp.asarray(tuned(task, part, near), float)
    loss = task.loss(joined(task, part, params["arm"]))
    return Found(params, part, [float(loss)])


def search(task: Task, solvers: Solvers, first: Found, steps: int) -> Found:
    """Minimises the loss in about so many steps at most.

    Changing the arm costs no simulation, so each step first tunes it to the coupler.
    Where the slope by the arm is zero, the others are those of the tuned loss: variable
    projection, Golub and Pereyra, SIAM J. Numer. Anal. 10, 413 (1973).
    """
    names, program = ("gap", "length"), compiled(task, solvers, first.params)
    scales, seen = np.array([SCALES[name] for name in names]), [first]

    def value_and_slope(x):
        gap, length = map(float, x * scales)
        found = begun(task, solvers, gap, length, float(seen[-1].params["arm"]))
        _, slopes = program.evaluate(found.params, {}, {"loss": True})
        seen.append(found)
        return found.course[0], scales * [float(slopes[name]) for name in names]

    length = float(first.params["length"])
    limits = np.array([(0.1, 0.5), (length - 0.3, length + 0.3)])
    minimize(
        value_and_slope,
        np.array([first.params[name] for name in names]) / scales,
        jac=True,
        method="L-BFGS-B",
        bounds=limits / scales[:, None],
        options={"maxfun": steps, "maxls": 5, "ftol": 1e-5},
    )
    best = min(seen, key=lambda found: found.course[0])
    return best._replace(course=[found.course[0] for found in seen[1:]])


def one_way(part: graph.Scatterer) -> graph.Scatterer:
    """Returns a coupler without its reflections."""
    side = np.array([port[:2] for port in part.ports])
    through = jnp.where(side[:, None] == side, 0, part.values)
    return graph.Scatterer(through, part.ports)


def interferometer_formula(
    part: graph.Scatterer, arm: Array, short: Array
) -> Complex[Array, "2 *sweep"]:
    """Sums both paths of an interferometer without reflections: bar, cross."""
    upper, lower = part("out0", "in0") * arm, part("out1", "in0") * short
    bar = upper * part("out0", "in0") + lower * part("out0", "in1")
    cross = upper * part("out1", "in0") + lower * part("out1", "in1")
    return jnp.stack([bar, cross])


def ring_formula(part: graph.Scatterer, turn: Array) -> Complex[Array, "*sweep"]:
    r"""Sums all turns in a ring without reflections.

    That is $(t - D x) / (1 - t x)$ for a turn $x = a e^{i \phi}$ and
    $D = t^2 - k^2$. In a lossless coupler $D = t / t^*$, which is the formula of Yariv,
    Electronics Letters 36, 321 (2000).
    """
    straight, back = part("out0", "in0"), part("out1", "in1")
    across = part("out0", "in1") * part("out1", "in0")
    return (straight - (straight * back - across) * turn) / (1 - back * turn)


class Spectra(NamedTuple):
    """Powers over wavelength.

    Attributes:
        waves: Wavelengths.
        bar: Of the interferometer.
        cross: Of the interferometer.
        ring: What passes the ring.
    """

    waves: np.ndarray
    bar: np.ndarray
    cross: np.ndarray
    ring: np.ndarray


def spectra(found: dict[str, Found]) -> Spectra:
    """Returns the spectra of the result for each circuit, by its label."""
    amplitudes, points = [], 1601
    for task, ports in ((INTERFEROMETER, ("bar", "cross")), (RING, ("out",))):
        one = found[task.circuit.label]
        # A coupler changes slowly: as a dictionary of sax it is interpolated by entry.
        given, wanted = waves(), waves(points)
        entries = graph.to_sax(one.part).items()
        part = graph.from_sax({k: CubicSpline(given, v)(wanted) for k, v in entries})
        circuit = joined(task, part, one.params["arm"], points)
        amplitudes += [np.asarray(circuit(port, "in")) for port in ports]
    return Spectra(waves(points), *(np.abs(a) ** 2 for a in amplitudes))


def draw(sim: em.Simulation, drawn: dict[str, Spectra], path: Path) -> None:
    """Draws the light in a driven coupler, and spectra by the name of their line."""
    figure, axes = plt.subplot_mosaic(
        [["light", "light"], ["interferometer", "ring"]],
        figsize=(9, 6),
        layout="constrained",
        height_ratios=(0.75, 1),
    )
    fields = em.simulate(sim).monitors["Ez"]
    plot.field(fields, "Ez", outline=sim, axes=axes["light"])
    axes["light"].set_title("coupler of the interferometer, 1550 nm")
    for number, (name, lines) in enumerate(drawn.items()):
        style = "--" if number + 1 < len(drawn) else "-"
        for colour, port, panel in (
            ("C0", "bar", "interferometer"),
            ("C1", "cross", "interferometer"),
            ("C2", "ring", "ring"),
        ):
            decibel = 10 * np.log10(getattr(lines, port) + 1e-9)
            label = name if port == "ring" else f"{port}, {name}"
            axes[panel].plot(
                1e3 * lines.waves, decibel, style, color=colour, label=label
            )
    for panel in ("interferometer", "ring"):
        axes[panel].set(xlabel="wavelength (nm)", ylabel="power (dB)", ylim=(-40, 1))
        axes[panel].set_title(panel)
        axes[panel].legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=80)
    plt.close(figure)


def told(task: Task, first: Found, best: Found) -> str:
    """Describes the result of a search, in a few lines."""
    lines = [f"{task.circuit.label}: {len(best.course)} steps"]
    for found, loss in ((first, first.course[0]), (best, min(best.course))):
        gap, length, arm = map(float, found.params.values())
        wrong = float(task.wrong(joined(task, found.part, arm)))
        lines.append(
            f"  gap {1e3 * gap:.1f} nm, length {length:.3f} um, arm {arm:.4f} um: loss "
            f"{loss:.2e}, {10 * np.log10(wrong):.1f} dB where no light should be"
        )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="design nothing")
    parser.add_argument("--steps", type=int, default=10, help="of each search, about")
    parser.add_argument("--cells", type=float, default=30.0, help="their width in nm")
    parser.add_argument("--output", type=Path, default=Path("output"))
    chosen = parser.parse_args(arguments)
    chosen.output.mkdir(parents=True, exist_ok=True)
    began = perf_counter()
    place = chip((44 if chosen.small else chosen.cells) * NANO, BEND, LENGTH)
    solve, gap = solvers(place), even_gap(LENGTH)
    print(
        f"gap for an even split without bends {1e3 * gap:.0f} nm; with them "
        f"{crossing(gap, LENGTH, BEND):.3f} should cross"
    )
    before, after = {}, {}
    for task, near in ((INTERFEROMETER, LONG), (RING, AROUND)):
        label = task.circuit.label
        before[label] = first = begun(task, solve, gap, LENGTH, near)
        if not chosen.small:
            after[label] = search(task, solve, first, chosen.steps)
            print(told(task, first, after[label]))
    drawn, last = {"before": spectra(before)}, before["interferometer"]
    if not chosen.small:
        drawn["after"], last = spectra(after), after["interferometer"]
    medium = solve.medium(last.params["gap"], last.params["length"])
    for label, found in {"first": before["ring"], **after}.items():
        lost, crossed, reflected = judged(found.part)
        print(
            f"coupler, {label}: {crossed:.4f} of the power crosses, {lost:.4f} is "
            f"lost, {reflected:.1e} comes back"
        )
    if not chosen.small:
        back = jax.jit(partial(s_parameters, chip=place, inputs=("out1",)))(medium)
        print(f"reciprocal and symmetric to {asymmetry(last.part, back):.1e}")
    path = chosen.output / "photonic_circuit.png"
    sim = driven(filled(medium, place), place.ports["in0"], 1.55 * MICRO)
    draw(sim, drawn, path)
    print(f"saved {path} after {perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
