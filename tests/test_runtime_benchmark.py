"""The benchmark of the runtime compares what it says; no timing is asserted."""

import pytest

from benchmarks import runtime
from benchmarks._rows import OURS


pytestmark = [pytest.mark.f32, pytest.mark.slow]


def test_rows_come_in_pairs_with_their_ratio():
    rows = [*runtime.watching(1, 3), *runtime.accumulation(64, (4,), 1)]
    rows += runtime.donation(1 << 20)
    for base, ours in zip(rows[::2], rows[1::2], strict=True):
        assert (base.case, base.unit, ours.tool) == (ours.case, ours.unit, OURS)
        assert ours.ratio_to_best_peer == ours.value / base.value
    # Of first state, last state and one in between, the first two are one.
    assert rows[-1].ratio_to_best_peer == pytest.approx(2 / 3, rel=1e-3)


def test_gradients_come_with_what_was_foretold():
    rows = [*runtime.deep(2, 8, 4, 1), *runtime.fields(60, 5, 1)]
    cases = {row.case for row in rows if row.tool == runtime.FORETOLD}
    for policy in runtime.POLICIES:
        assert f"gradient of a 2-layer graph, {policy}: time" in cases
    for name in runtime.ADJOINTS:
        case = f"gradient of 60^2 cells, 5 steps, {name}: memory of the program"
        assert case in cases
