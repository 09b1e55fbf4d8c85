"""Meep's perfectly matched layer under the definition of `benchmarks._cpml_cases`.

Prints one JSON line per case, thickness and target `R_asymptotic` (1e-15 is Meep's own;
a lower one helps at grazing incidence and harms at normal incidence).
"""

import json
import resource

import meep as mp
import numpy as np

from benchmarks._cpml_cases import (
    CASES,
    CELLS_PER_WAVELENGTH,
    COURANT,
    LAYERS,
    Case,
    nodes,
    reflection,
)


DEFAULT_TARGET = 1e-15
TARGETS = (1e-9, 1e-12, DEFAULT_TARGET, 1e-20, 1e-30, 1e-45, 1e-60)


def trace(case: Case, cells: int, extra: int, target: float) -> np.ndarray:
    """Returns Ez at the observed node after every step.

    Args:
        case: The incident wave.
        cells: Thickness of the layers.
        extra: Cells between the observed node and the right layer.
        target: Meep's `R_asymptotic`.
    """
    frequency = 1 / CELLS_PER_WAVELENGTH  # the cell is Meep's unit of length
    total, source, observed = nodes(case, cells, extra)
    start = 6 * case.spread / frequency

    def pulse(t):
        u = frequency * (t - start)
        return np.exp(-0.5 * (u / case.spread) ** 2 - 2j * np.pi * u)

    def position(node):
        return mp.Vector3(node - total / 2)

    simulation = mp.Simulation(
        mp.Vector3(total, 1),
        1,
        sources=[
            mp.Source(
                mp.CustomSource(pulse, end_time=2 * start), mp.Ez, position(source)
            )
        ],
        boundary_layers=[mp.PML(cells, mp.X, R_asymptotic=target)],
        k_point=mp.Vector3(0, case.k_parallel * frequency),
        Courant=COURANT,
        eps_averaging=False,
        force_complex_fields=True,
    )
    simulation.init_sim()
    for side in (mp.Low, mp.High):  # a k_point had made x periodic too
        simulation.fields.set_boundary(side, mp.X, mp.Metallic)
    where, out = position(observed), np.zeros(case.steps, complex)
    for n in range(case.steps):
        simulation.fields.step()
        out[n] = simulation.get_field_point(mp.Ez, where)
    return out


def main():
    mp.verbosity(0)
    for case in CASES:
        for cells in LAYERS:
            for target in TARGETS:
                short = trace(case, cells, 0, target)
                long = trace(case, cells, case.far, target)
                row = {
                    "case": case.name,
                    "cells": cells,
                    "target": target,
                    "reflection": reflection(short, long),
                    "version": mp.__version__,
                    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    / 1024,
                }
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
