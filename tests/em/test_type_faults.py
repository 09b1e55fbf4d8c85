"""Arguments of wrong types are refused in words."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from physax import em
from physax._checks import ArgumentError
from tests.em.type_faults import BOX, FAULTS, GLASS


pytestmark = pytest.mark.f32


@pytest.fixture(scope="module")
def errors():
    """What each fault raises where annotations are not checked."""
    script = Path(__file__).with_name("type_faults.py")
    out = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )
    return json.loads(out.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_types_are_refused_in_words(errors, fault):
    kind, text = errors[fault]
    assert kind == "ArgumentError", text
    assert re.search(FAULTS[fault][1], text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: em.Structure(GLASS, BOX),
            "`shape` must be a shape such as `Box`, but is a Material. Give the shape ",
        ),
        (
            lambda: em.Structure(BOX, BOX),
            "`material` must be a .* Give the shape first, then the material",
        ),
        (
            lambda: em.Structure(BOX, "Si"),
            r"`material` must be a .* is 'Si'. Look it up: `library\('Si'\)`",
        ),
        (
            lambda: em.Structure(BOX, 12.0),
            r"`material` must be a .* is 12.0. Write .* `Material\(permittivity\)`",
        ),
    ],
)
def test_structures_are_shapes_with_materials(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
