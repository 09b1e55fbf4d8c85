"""The benchmark of series that are read in windows counts and compares rightly."""

import numpy as np
import pytest

from benchmarks import _physax_windows, _rows, particle_windows
from tests.test_benchmarks import RESULTS


def test_series_on_disk_holds_the_flow(tmp_path):
    work = particle_windows.Workload(nodes=6, snapshots=4, last=3.0)
    path = tmp_path / _physax_windows.SERIES
    particle_windows.write_series(path, work)
    assert path.stat().st_size > work.bytes
    with _physax_windows.opened(tmp_path) as series:
        np.testing.assert_allclose(series.times, [0, 1, 2, 3])
        values = _physax_windows.stacked(series)
    assert values.nbytes == work.bytes
    cells, turns = (
        np.stack(np.broadcast_arrays(*parts), -1)
        for parts in particle_windows.patterns(series.axes[0])
    )
    # At t = 0 and 3 the factors are 1 and 1/2; sin(6 pi) is 3e-7 in float32.
    np.testing.assert_allclose(values[0], cells + 0.5 * turns, atol=1e-6)
    np.testing.assert_allclose(values[3], cells + 0.5 * turns, atol=1e-6)
    assert np.abs(values[1] - values[0]).max() > 0.1
    # No flow through the faces, of which these are two.
    assert np.abs(values[:, [0, -1], ..., 0]).max() < 1e-6


class FakeWorker:
    """Answers as a process would, whose whole series fits nowhere."""

    requests: list[dict]

    def __init__(self, tool, module):
        self.tool = tool

    def run(self, **request):
        self.requests.append(request)
        first = len(self.requests) < 3
        seconds = 9.0 if first else 1.0 if request["whole"] else 1.25
        values = [] if request["whole"] and request["limit"] else [7.0]
        return {"seconds": seconds, "peak_mb": 1.0, "values": values}

    def close(self):
        pass


def test_windows_run_under_the_limit_and_the_whole_without(tmp_path, monkeypatch):
    work = particle_windows.Workload(nodes=4, snapshots=3, particles=60, steps=5)
    monkeypatch.setattr(particle_windows, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "requests", [], raising=False)
    particle_windows.write_series(tmp_path / _physax_windows.SERIES, work)
    for shift, name in enumerate(_physax_windows.TRACKS.values()):
        np.save(tmp_path / name, np.full((3, 60, 3), 0.25 * shift))
    rows = particle_windows.measured(tmp_path, work, rounds=2)
    asked = [(r["whole"], r["limit"]) for r in FakeWorker.requests]
    assert asked == [(0, work.bytes // 2), (1, 0)] * 3 + [(1, work.bytes // 2)]
    windows, whole, reading, off, limit, refused = rows
    count = len(_physax_windows.seeds(60))
    assert windows.value == pytest.approx(count * 10 / 1.25e6)
    assert whole.value == pytest.approx(count * 10 / 1e6)
    assert windows.ratio_to_best_peer == pytest.approx(0.8)
    assert (windows.peak_mb, windows.runs) == (7, 2)
    assert reading.value > 0
    assert off.value == 0.25
    assert limit.value == work.bytes / 2**21
    assert (refused.tool, refused.version) == ("in memory", "missing")
    assert refused.value is None


@pytest.mark.slow
def test_series_without_room_is_told_by_no_values(tmp_path, monkeypatch):
    def full(series):
        raise MemoryError

    work = particle_windows.Workload(nodes=4, snapshots=4, last=0.1)
    particle_windows.write_series(tmp_path / _physax_windows.SERIES, work)
    request = {"particles": 60, "steps": 2, "whole": 1, "limit": 0}
    assert _physax_windows.prepare(str(tmp_path), **request)()[0] > 1
    monkeypatch.setattr(_physax_windows, "stacked", full)
    assert _physax_windows.prepare(str(tmp_path), **request)() == []


@pytest.mark.slow
def test_windows_end_where_the_whole_series_does(tmp_path):
    particle_windows.main(["--quick", "--json", str(tmp_path / "rows.json")])
    windows, whole, _, off = _rows.read(tmp_path / "rows.json")
    assert (windows.tool, whole.tool) == ("physax", "in memory")
    assert min(windows.value, whole.value) > 0
    assert min(windows.peak_mb, whole.peak_mb) > 10
    # The times of windows are rounded apart from those of the whole series.
    assert off.value < 1e-5


def test_stored_windows_keep_to_their_limit():
    rows = _rows.read(RESULTS / "particle_windows.json")
    windows, whole, _, off, limit, refused = rows
    assert windows.peak_mb < limit.value
    assert whole.peak_mb > 2 * limit.value
    assert windows.ratio_to_best_peer >= 0.7
    assert off.value < 1e-4
    assert refused.version == _rows.MISSING
