"""The published devices are simulated as their files describe them."""

import pytest

from examples.published_designs import load, ports, scattering
from physax import PhysaxWarning


pytestmark = pytest.mark.f32


def test_no_published_device_is_refused():
    # In so few steps no light arrives: the numbers are those of the validation page.
    for design in load():
        with pytest.warns(PhysaxWarning, match="had not decayed"):
            found = scattering(design, steps=10)
        assert found.shape == (len(design.wavelengths), len(ports(design.problem)))
