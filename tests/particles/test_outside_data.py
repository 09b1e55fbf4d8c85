"""Seeds whose longitudes are 360 degrees away from those of the data."""

import numpy as np
import pytest

from physax import ArgumentError
from physax.particles import (
    GriddedField,
    OnSphere,
    flow_map,
    run,
    track,
    wrap_globe,
)


LAT = np.linspace(-20.0, 20.0, 5)
TIMES = np.array([0.0, 60.0])


def region(west, east):
    lon = np.linspace(west, east, 9)
    return OnSphere(GriddedField(np.ones((9, 5, 2)), (lon, LAT)))


def refused(follow, field, seeds):
    with pytest.raises(ArgumentError, match="must lie within the data") as caught:
        follow(field, np.asarray(seeds), TIMES)
    return str(caught.value)


def quietly(*arguments):
    return run(*arguments, progress=False)


@pytest.mark.parametrize("follow", [track, quietly, flow_map])
@pytest.mark.parametrize(
    ("ends", "seeds", "west"),
    [
        ((280, 320), [[-70.0, 0.0], [-50, 3]], 0),
        ((-80, -40), [[290.0, 0.0], [310, 3], [-50, 3]], -180),
        ((350, 370), [[-5.0, 0.0], [5, 3], [358, 0]], 355),
        ((-10, 10), [[355.0, 0.0], [5, 3]], -180),
    ],
)
def test_longitudes_of_another_turn_are_wrapped(follow, ends, seeds, west):
    field = region(*ends)
    said = refused(follow, field, seeds)
    assert "Longitudes of the data may be 360 degrees away" in said
    assert said.endswith(f"take `wrap_globe(seeds, west={west})`.")
    assert "Clamp" not in said
    assert "eave them out" not in said
    track(field, wrap_globe(np.array(seeds), west=west), TIMES)


def test_what_is_outside_in_any_turn_is_counted():
    said = refused(track, region(280, 320), [[-70.0, 0.0], [100, 0], [300, 0]])
    assert "2 of 3 do not; number 0 is at" in said
    assert said.endswith("(seeds, west=0)`, and leave out 1 that are outside still.")


def test_other_places_outside_are_left_out():
    for seeds in ([[100.0, 0.0]], [[300.0, 0.0], [-70, 50]]):
        said = refused(track, region(280, 320), seeds)
        assert said.endswith(
            "Leave them out, or make the field with `outside=Clamp()`."
        )
    flat = GriddedField(np.ones((9, 5, 2)), (np.linspace(280.0, 320, 9), LAT))
    assert "wrap_globe" not in refused(track, flat, [[-70.0, 0.0]])
