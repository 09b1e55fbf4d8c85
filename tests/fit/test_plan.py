import pytest

from physax._checks import ArgumentError
from physax.fit import Strategy, _plan, plan
from physax.runtime import MemoryLimitError


PLENTY = 1e12


@pytest.mark.parametrize(
    ("points", "strategy"),
    [
        (1, "STANDARD"),
        (999_999, "STANDARD"),
        (1_000_000, "LARGE"),
        (10_000_000, "LARGE"),
        (10_000_001, "CHUNKED"),
        (100_000_000, "CHUNKED"),
        (100_000_001, "STREAMING"),
    ],
)
def test_the_number_of_points_decides(points, strategy):
    chosen = plan(points, 5, PLENTY)
    assert chosen.strategy is Strategy[strategy]
    assert chosen.driven == (strategy in ("CHUNKED", "STREAMING"))
    assert chosen.chunk <= points


def test_memory_decides_before_the_number(monkeypatch):
    # Of a CPU, whose chunks are smaller.
    monkeypatch.setattr(_plan, "default_platform", lambda: "cpu")
    # 5e6 points of two numbers are 80 MB.
    assert plan(5_000_000, 5, 200e6).strategy is Strategy.LARGE
    small = plan(5_000_000, 5, 100e6)
    assert small.strategy is Strategy.STREAMING
    assert "would not fit into the memory that is free" in small.reason


def test_data_on_disk_are_streamed():
    chosen = plan(1000, 5, PLENTY, resident=False)
    assert chosen.strategy is Strategy.STREAMING
    assert "The data are not in memory." in str(chosen)


def test_a_plan_can_be_read():
    text = str(plan(2_000_000, 5, 16e9))
    assert text.startswith("LARGE: 2,000,000 points, 5 free parameters.")
    assert "free 16 GB" in text


def test_more_parameters_take_smaller_chunks():
    few, many = (plan(10**7, p, PLENTY) for p in (5, 5000))
    assert many.chunk < few.chunk


def test_bad_sizes_are_refused():
    with pytest.raises(
        ArgumentError, match="`n_points` must be an integer .* 1, but is 0"
    ):
        plan(0, 5, PLENTY)
    with pytest.raises(
        ArgumentError, match="`n_params` must be an integer .* 1, but is 0"
    ):
        plan(5, 0, PLENTY)


def test_too_little_memory_is_refused():
    with pytest.raises(MemoryLimitError, match="`memory` must hold one chunk"):
        plan(1000, 1000, 1e6)
