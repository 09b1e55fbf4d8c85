"""Series of VTK files: their order, their times, and one file at a time."""

import numpy as np
import pytest

from physax._checks import ArgumentError
from physax.io import PhysaxFileError
from physax.io._vtk_build import vtk_points
from physax.io._vtk_series import read_vtk_series
from physax.io._write_vtk import write_vtk


def put(folder, name, place, time=None):
    values = {"p": np.array([place]), "q": np.array([0.0])}
    data = vtk_points(np.array([[place, 0.0]]), point_data=values, time=time)
    write_vtk(folder / name, data)


def listing(folder, entries, name="a.pvd"):
    lines = "".join(f'<DataSet timestep="{t}" file="{f}"/>' for t, f in entries)
    (folder / name).write_text(
        f'<VTKFile type="Collection"><Collection>{lines}</Collection></VTKFile>'
    )
    return folder / name


def places(series):
    return [(time, data.points[:, 0].tolist()) for time, data in series]


def test_files_of_a_pattern_come_in_natural_order(tmp_path):
    for number in (10, 9, 2):
        put(tmp_path, f"flow_{number}.vtp", float(number))
    series = read_vtk_series(tmp_path / "flow_*.vtp")
    assert places(series) == [(0.0, [2.0]), (1.0, [9.0]), (2.0, [10.0])]
    assert len(series) == 3
    assert series[-1][0] == 2.0
    assert places(series[1:]) == [(1.0, [9.0]), (2.0, [10.0])]
    last = read_vtk_series(str(tmp_path / "flow_*.vtp"), last=2, arrays=["p"])
    assert places(last) == [(1.0, [9.0]), (2.0, [10.0])]
    assert list(last[0][1].point_data) == ["p"]
    assert len(read_vtk_series(tmp_path / "flow_*.vtp", last=9)) == 3
    with pytest.raises(IndexError, match="has 3 times, but not 3"):
        series[3]


def test_one_array_is_read_alone(tmp_path):
    for number in range(3):
        put(tmp_path, f"{number}.vtp", float(number))
    array = read_vtk_series(tmp_path / "*.vtp").array("p")
    assert array.times.tolist() == [0, 1, 2]
    assert array(2).tolist() == [2.0]
    with pytest.raises(PhysaxFileError, match=r"\['V'\] of `arrays`, but has p"):
        read_vtk_series(tmp_path / "*.vtp").array("V")(0)


def test_times_are_those_in_the_files(tmp_path):
    for number, time in enumerate([0.1, 0.3, 0.7]):
        put(tmp_path, f"a{number}.vtp", 1.0, time)
    assert read_vtk_series(tmp_path / "a*.vtp").times.tolist() == [0.1, 0.3, 0.7]
    put(tmp_path, "a3.vtp", 1.0, 0.7)
    with pytest.raises(PhysaxFileError, match=r"a3.*later than 0.7, .* but is 0.7"):
        read_vtk_series(tmp_path / "a*.vtp")
    put(tmp_path, "a3.vtp", 1.0)
    with pytest.raises(PhysaxFileError, match=r"a3.vtp: It must have a time"):
        read_vtk_series(tmp_path / "a*.vtp")


def test_a_collection_is_sorted_by_time_and_joins_parts(tmp_path):
    (tmp_path / "deep").mkdir()
    for number in range(3):
        put(tmp_path / "deep", f"{number}.vtp", float(number))
    entries = [(2, "deep/2.vtp"), (0.5, "deep/0.vtp"), (0.5, "deep/1.vtp")]
    path = listing(tmp_path, entries)
    series = read_vtk_series(path)
    assert places(series) == [(0.5, [0.0, 1.0]), (2.0, [2.0])]
    assert places(read_vtk_series(path, last=1)) == [(2.0, [2.0])]


def numbered(folder, *entries):
    lines = "".join(
        f'<DataSet timestep="{time}" file="{file}" {more}/>'
        for time, file, more in entries
    )
    (folder / "parts.pvd").write_text(
        f'<VTKFile type="Collection"><Collection>{lines}</Collection></VTKFile>'
    )
    return folder / "parts.pvd"


def test_a_part_that_is_named_twice_at_one_time_is_refused(tmp_path):
    for number in range(3):
        put(tmp_path, f"{number}.vtp", float(number))
    # A run that was started again at 0.50 writes that time a second time.
    path = numbered(
        tmp_path,
        (0, "0.vtp", 'part="0"'),
        (0.5, "1.vtp", 'part="0"'),
        ("0.50", "2.vtp", 'part="0"'),
    )
    message = "parts.pvd: .* time 0.5 has 1.vtp and 2.vtp for part 0. Leave one out"
    with pytest.raises(PhysaxFileError, match=message):
        read_vtk_series(path)
    path = numbered(tmp_path, (1, "1.vtp", ""), (1, "1.vtp", ""))
    with pytest.raises(PhysaxFileError, match=r"1.vtp and 1.vtp for 1.vtp. Leave"):
        read_vtk_series(path)
    for first, second in (
        ('part="0"', 'part="1"'),
        ('group="a" part="0"', 'group="b" part="0"'),
    ):
        path = numbered(tmp_path, (1, "1.vtp", first), (1, "2.vtp", second))
        assert places(read_vtk_series(path)) == [(1.0, [1.0, 2.0])]


def test_nothing_is_read_before_it_is_asked_for(tmp_path):
    put(tmp_path, "0.vtp", 0.0)
    (tmp_path / "1.vtp").write_bytes(b"damaged")
    series = read_vtk_series(listing(tmp_path, [(0, "0.vtp"), (1, "1.vtp")]))
    assert series[0][0] == 0
    with pytest.raises(PhysaxFileError, match="1.vtp: It is not valid XML"):
        series[1]


def test_faults_of_series_are_named(tmp_path):
    with pytest.raises(PhysaxFileError, match="match files .vtk, .*, but matches none"):
        read_vtk_series(tmp_path / "*.vtu")
    with pytest.raises(
        ArgumentError, match="`last` must be an integer of at least 1, but is 0"
    ):
        read_vtk_series(tmp_path / "*.vtu", last=0)
    with pytest.raises(FileNotFoundError):
        read_vtk_series(tmp_path / "none.pvd")
    with pytest.raises(PhysaxFileError, match="must name files, but names none"):
        read_vtk_series(listing(tmp_path, []))
    with pytest.raises(PhysaxFileError, match="must be a finite number, but is 'nan'"):
        read_vtk_series(listing(tmp_path, [("nan", "a.vtu")]))
    with pytest.raises(PhysaxFileError, match=r"must name files .vtk, .* 'a.pvd'"):
        read_vtk_series(listing(tmp_path, [(0, "a.pvd")]))
    (tmp_path / "b.pvd").write_text("<VTKFile/>")
    with pytest.raises(PhysaxFileError, match="must hold a <Collection>, but"):
        read_vtk_series(tmp_path / "b.pvd")
