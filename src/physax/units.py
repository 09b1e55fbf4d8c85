"""Physical constants in SI units (CODATA 2018) and factors for readable scripts."""

from math import pi, sqrt


SPEED_OF_LIGHT = 299_792_458.0
"""Speed of light in vacuum, in m/s (exact)."""

EPSILON_0 = 8.854_187_812_8e-12
"""Permittivity of vacuum, in F/m."""

MU_0 = 1 / (EPSILON_0 * SPEED_OF_LIGHT**2)
"""Permeability of vacuum, in H/m."""

ETA_0 = sqrt(MU_0 / EPSILON_0)
"""Impedance of vacuum, in ohm."""

BOLTZMANN = 1.380_649e-23
"""Boltzmann constant, in J/K (exact)."""

PLANCK = 6.626_070_15e-34
"""Planck constant, in J s (exact)."""

ELEMENTARY_CHARGE = 1.602_176_634e-19
"""Charge of the proton, in C (exact)."""

TERA = 1e12
GIGA = 1e9
MEGA = 1e6
KILO = 1e3
MILLI = 1e-3
MICRO = 1e-6
NANO = 1e-9
PICO = 1e-12
FEMTO = 1e-15

ANGSTROM = 1e-10
"""One angstrom, in metres."""

DEGREE = pi / 180
"""One degree, in radians."""
