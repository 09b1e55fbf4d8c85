"""Efficiency of a grating that couples a waveguide to a fibre, there and back.

`python -m examples.grating_coupler [--cells NM] [--points N] [--output FOLDER]`. A
guide of silicon between silica, etched 70 nm deep, radiates upwards, in 2-D with Ez.
From one run the overlap with the beam of a fibre follows for any of its places and
angles. Light of this beam, sent back down, enters the guide with the same efficiency,
by reciprocity. Saves `grating_coupler.png`. Two minutes.
"""

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

from physax import em, plot
from physax.units import MICRO, NANO, SPEED_OF_LIGHT

from .command_line import numbers
from .pictures import keep


SILICON, SILICA = 3.48**2, 1.444**2
PERIOD, TEETH, FILL = 0.62, 24, 0.5  # um
CORE, ETCHED, OXIDE = 0.22, 0.07, 2.0
WAVE, WAIST = 1.55, 5.2  # um; the mode of a standard fibre
FREQUENCY = SPEED_OF_LIGHT / (WAVE * MICRO)
LEFT, RIGHT, HEIGHT = -6.0, 20.0, 1.6  # of the scene, um
GUIDE = em.Port(((LEFT + 0.6) * MICRO, 0.0), 2.0 * MICRO, "+x", offset=0.6 * MICRO)


def coupler() -> list[em.Structure]:
    """Returns the substrate, the guide and its grooves."""
    silica, silicon = em.Material(SILICA), em.Material(SILICON)
    far, half = 100 * MICRO, CORE / 2 * MICRO
    below = 2 * (far - half - OXIDE * MICRO)
    parts = [
        em.Structure(em.Box((0, -far), (far, below)), silicon),
        em.Structure(em.Box((0, 0), (far, 2 * half)), silicon),
    ]
    for number in range(TEETH):
        middle = (number + 1 - FILL / 2) * PERIOD * MICRO
        top = half - ETCHED / 2 * MICRO
        groove = em.Box((middle, top), ((1 - FILL) * PERIOD * MICRO, ETCHED * MICRO))
        parts.append(em.Structure(groove, silica))
    return parts


def scene(cell: float, sources, monitors, structures) -> em.Simulation:
    """Returns a run with light from the guide or from a fibre."""
    low = -CORE / 2 - OXIDE - 0.5
    return em.scene(
        structures,
        ((RIGHT - LEFT) * MICRO, (HEIGHT - low) * MICRO),
        [1.5 * MICRO, 1.6 * MICRO],
        centre=((RIGHT + LEFT) / 2 * MICRO, (HEIGHT + low) / 2 * MICRO),
        background=em.Material(SILICA),
        polarisation="Ez",
        spacing=cell,
        steps=round(400 * MICRO / cell),
        sources=sources,
        monitors=monitors,
    )


def towards(degrees: float) -> np.ndarray:
    """Returns the direction of a beam by its angle from the vertical."""
    return np.array([np.sin(np.radians(degrees)), np.cos(np.radians(degrees))])


MIDDLE = (LEFT + RIGHT) / 2 * MICRO, 0.8 * MICRO
WIDE = (RIGHT - LEFT) * MICRO, 0.0
FIBRE = 1.2  # height of the fibre's light above the guide, um


def radiated(cell: float, frequencies) -> tuple:
    """Returns light in the scene, what goes upwards, and the power in the guide."""
    monitors = {
        "up": em.NearFieldMonitor(MIDDLE, WIDE, frequencies, faces=("+y",)),
        "guide": em.ModeMonitor(port=GUIDE, frequencies=frequencies),
        "light": em.FieldMonitor(
            components=("Ez",),
            centre=(0, 0),
            size=(np.inf, np.inf),
            frequencies=[FREQUENCY],
        ),
    }
    pulse = em.band_pulse(frequencies[-1], frequencies[0])
    sim = scene(
        cell, {"in": em.ModeSource(port=GUIDE, pulse=pulse)}, monitors, coupler()
    )
    found = em.simulate(sim).monitors
    return sim, found, np.abs(np.asarray(found["guide"].incoming)) ** 2


def collected(cell: float, degrees: float, place: float) -> float:
    """Returns the share of a fibre's light that enters the guide."""
    port = em.Port((place * MICRO, FIBRE * MICRO), 4 * WAIST * MICRO, "-y")
    pulse = em.GaussianPulse(FREQUENCY, 0.02 * FREQUENCY)
    beam = em.GaussianBeam(
        port=port, pulse=pulse, waist=WAIST * MICRO, tilt=-np.radians(degrees)
    )
    guide = {"guide": em.ModeMonitor(port=GUIDE, frequencies=[FREQUENCY])}
    sent = {
        "sent": em.FluxMonitor(
            axis="y", centre=MIDDLE, size=WIDE, frequencies=[FREQUENCY]
        )
    }
    into = em.simulate(scene(cell, {"fibre": beam}, guide, coupler())).monitors
    free = em.simulate(scene(cell, {"fibre": beam}, sent, [])).monitors
    return float(abs(into["guide"].outgoing[0]) ** 2 / -free["sent"].flux[0])


def main(arguments=None) -> None:
    """Runs the command."""
    chosen = numbers(__doc__, arguments, cells=31.0, points=11)
    cell = chosen.cells * NANO
    waves = np.linspace(1.5, 1.6, chosen.points)
    frequencies = SPEED_OF_LIGHT / (waves * MICRO)
    sim, found, sent = radiated(cell, frequencies)

    def efficiency(degrees: float, place: float) -> np.ndarray:
        amplitude = em.beam_overlap(
            found["up"],
            WAIST * MICRO,
            centre=(place * MICRO, FIBRE * MICRO),
            direction=towards(degrees),
        )
        return np.abs(np.asarray(amplitude)) ** 2 / sent

    angles, places = np.arange(4.0, 17.0), np.arange(2.0, 11.0)
    middle = len(waves) // 2
    table = np.array([[efficiency(a, x)[middle] for a in angles] for x in places])
    row, column = np.unravel_index(table.argmax(), table.shape)
    angle, place = float(angles[column]), float(places[row])
    curve = efficiency(angle, place)
    back = collected(cell, angle, place)

    figure, axes = plt.subplots(1, 3, figsize=(15, 3.8), layout="constrained")
    plot.field(found["light"], "Ez", outline=sim, axes=axes[0])
    axes[0].set_title(f"|Ez| at {WAVE:.2f} µm")
    drawn = axes[1].pcolormesh(angles, places, 100 * table)
    figure.colorbar(drawn, label="efficiency (%)")
    axes[1].set(xlabel="angle of the fibre (°)", ylabel="its place (µm)")
    axes[2].plot(1e3 * waves, 100 * np.asarray(found["up"].flux["+y"]) / sent, "--")
    axes[2].plot(1e3 * waves, 100 * curve, "o-")
    axes[2].plot(1e3 * WAVE, 100 * back, "k+", ms=14)
    label = f"fibre at {angle:.0f}° and {place:.0f} µm"
    axes[2].legend(["all light upwards", label, "the same, from the fibre"])
    axes[2].set(xlabel="wavelength (nm)", ylabel="of the light in the guide (%)")
    made = {"efficiency": curve, "table": table, "back": back, "angle": angle}
    keep(figure, made, chosen.output, "grating_coupler")
    Console().print(
        f"{100 * curve[middle]:.1f} % of the light at {1e3 * waves[middle]:.0f} nm "
        f"enters a fibre at {angle:.0f} degrees, {place:.0f} um from the first groove; "
        f"{100 * back:.1f} % of the fibre's light enters the guide"
    )


if __name__ == "__main__":
    main()
