"""Seeds, shapes of seeds and times of release that are refused."""

import jax
import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.particles import (
    check_seeds,
    release_repeatedly,
    seed_ball,
    seed_circle,
    seed_density,
    seed_disk,
    seed_gaussian,
    seed_grid,
    seed_line,
    seed_mask,
    seed_polygon,
    seed_random,
    seed_sobol,
    seed_sphere,
    seed_surface,
)


KEY = jax.random.key(3)
SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]
EDGES = [np.arange(3.0)] * 2
CORNERS = np.eye(3)
FACE = np.array([[0, 1, 2]])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: check_seeds([[0.0], [1.0, 2.0]]), "`seeds` must be an array of numb"),
        (lambda: check_seeds([1.0, 2.0]), r"`seeds` must have two axes.* shape \(2,\)"),
        (lambda: check_seeds([[1.0, 2.0]], 3), r"have 3 coordinates.* shape \(1, 2\)"),
        (lambda: check_seeds(np.zeros((0, 2))), "must hold at least one particle"),
        (
            lambda: check_seeds([[0.0, 1.0], [np.nan, 1.0]]),
            r"must be finite, but particle 1 is at \[nan, 1.0\], one of 1 that are not",
        ),
        (
            lambda: seed_grid((0,), (1,), (0,)),
            "`shape` must be an integer of at least 1, but is 0",
        ),
        (lambda: seed_grid((0,), (1,), (2, 2)), "`shape` must have one entry for each"),
        (lambda: seed_grid((1,), (1,), (2,)), "`low` must be less than `high`"),
        (lambda: seed_line((0, 0), (1,), 2), "`stop` must be 2 numbers"),
        (lambda: seed_random(KEY, (0, 2), (1, 1), 2), "`low` must be less .* is 2"),
        (lambda: seed_random(KEY, 0.0, 1.0, 2), "`low` must be one number for each"),
        (lambda: seed_random(KEY, (np.nan,), (1,), 2), "`low` must be finite"),
        (
            lambda: seed_random(KEY, (0,), (1,), 0),
            "`count` must be an integer of at least 1, but is 0",
        ),
        (lambda: seed_sobol((1,), (0,), 2), "`low` must be less than `high`"),
        (lambda: seed_circle((0, 0), 0, 2), "`radius` must be positive, but is 0"),
        (lambda: seed_circle((0, 0), np.inf, 2), "`radius` must be finite"),
        (lambda: seed_circle((0,), 1, 2), "`centre` must have 2 or 3 coord.* has 1"),
        (lambda: seed_circle((0, 0), 1, 2, (0, 0, 1)), "`normal` must be left out"),
        (
            lambda: seed_disk(KEY, (0, 0, 0), 1, 2, (0, 0, 0)),
            "length of `normal` must be positive",
        ),
        (lambda: seed_sphere(KEY, (0, 0), -1, 2), "`radius` must be positive.* is -1"),
        (
            lambda: seed_ball(KEY, (0, 0), 1, -2),
            "`count` must be an integer of at least 1, but is -2",
        ),
        (lambda: seed_gaussian(KEY, (0, 0), 0.0, 2), "`spread` must be positive"),
        (lambda: seed_gaussian(KEY, (0, 0), np.ones(3), 2), "`spread` must be one num"),
        (lambda: seed_polygon(KEY, SQUARE[:2], 2), "`vertices` must be at least 3 cor"),
        (
            lambda: seed_polygon(KEY, [[0, 0], [1, 1], [3, 3]], 2),
            "area of `vertices` must be positive, but is 0",
        ),
        (
            lambda: seed_polygon(KEY, [[0, 0], [1, 0], [3, 0]], 2),
            "area of `vertices` must be positive, but is 0",
        ),
        (
            lambda: seed_polygon(KEY, [[0, 0], [2, 2], [2, 0], [0, 2]], 2),
            "sides of `vertices` must not cross, but two do near",
        ),
        (
            lambda: seed_polygon(KEY, [[0, 0], [np.nan, 2], [2, 0]], 2),
            "`vertices` must be finite, but corner 1 is at",
        ),
        (
            lambda: seed_surface(KEY, CORNERS, np.array([[0, 1, 3]]), 2),
            "`triangles` must be indices from 0 to 2, but triangle 0 has 3",
        ),
        (
            lambda: seed_surface(KEY, CORNERS, np.zeros((0, 3), int), 2),
            "`triangles` must have at least one row, but is empty",
        ),
        (
            lambda: seed_surface(KEY, CORNERS * 0, FACE, 2),
            "area of `triangles` must be positive",
        ),
        (
            lambda: seed_surface(KEY, np.ones((3, 1)), FACE, 2),
            "`points` must have 2 or 3 coordinates",
        ),
        (
            lambda: seed_density(KEY, -np.ones((2, 2)), EDGES, 2),
            "`values` must be at least 0, but is -1",
        ),
        (
            lambda: seed_density(KEY, np.full((2, 2), np.inf), EDGES, 2),
            "`values` must be finite, but is inf",
        ),
        (
            lambda: seed_density(KEY, np.zeros((2, 2)), EDGES, 2),
            "`values` must be positive in at least one cell",
        ),
        (
            lambda: seed_density(KEY, np.ones((2, 3)), EDGES, 2),
            r"one entry for each cell .* \(2, 2\), but has shape \(2, 3\)",
        ),
        (
            lambda: seed_density(KEY, np.ones(2), [np.array([0, 2, 1])], 2),
            "`edges` of axis 0 must increase and be finite, but change by -1 after ent",
        ),
        (
            lambda: seed_density(KEY, np.ones(2), [np.zeros(1)], 2),
            "`edges` of axis 0 must be a list of at least 2 positions",
        ),
        (
            lambda: seed_mask(KEY, np.zeros((2, 2), bool), EDGES, 2),
            "`mask` must mark at least one cell",
        ),
        (
            lambda: release_repeatedly(np.zeros((1, 2)), ()),
            "`times` must be a list of at least one time",
        ),
        (
            lambda: release_repeatedly(np.zeros((1, 2)), (0.0, np.nan)),
            "`times` must be finite, but entry 1 is nan",
        ),
    ],
)
def test_bad_arguments_are_refused(run, message):
    with pytest.raises(ArgumentError, match=message):
        run()
