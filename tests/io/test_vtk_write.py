"""Files by our writers, reopened by VTK's own readers."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest


vtk = pytest.importorskip("vtk")

from vtkmodules.util.numpy_support import vtk_to_numpy  # noqa: E402

from physax._checks import ArgumentError  # noqa: E402
from physax.io._vtk_build import (  # noqa: E402
    vtk_grid,
    vtk_points,
    vtk_snapshots,
    vtk_tracks,
)
from physax.io._vtk_cells import VTKCells  # noqa: E402
from physax.io._vtk_data import SUFFIXES, VTKData  # noqa: E402
from physax.io._vtk_read import read_vtk  # noqa: E402
from physax.io._vtk_series import read_pvd, read_vtk_series  # noqa: E402
from physax.io._vtk_series_writer import (  # noqa: E402
    VTKSeriesWriter,
    write_vtk_tracks,
)
from physax.io._write_vtk import write_vtk  # noqa: E402
from physax.particles import Tracks  # noqa: E402
from tests.io.vtk_examples import MAKERS, add_values, arrays_of, assert_same  # noqa: E402


READERS = {
    ".vti": vtk.vtkXMLImageDataReader,
    ".vtr": vtk.vtkXMLRectilinearGridReader,
    ".vts": vtk.vtkXMLStructuredGridReader,
    ".vtu": vtk.vtkXMLUnstructuredGridReader,
    ".vtp": vtk.vtkXMLPolyDataReader,
}
WRITERS = {
    "image": vtk.vtkXMLImageDataWriter,
    "rectilinear": vtk.vtkXMLRectilinearGridWriter,
    "structured": vtk.vtkXMLStructuredGridWriter,
    "unstructured": vtk.vtkXMLUnstructuredGridWriter,
    "polydata": vtk.vtkXMLPolyDataWriter,
}
TIMES = [0.0, 0.1, 0.30000000000000004]


def reopened(path):
    reader = READERS[path.suffix]()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    return reader.GetOutput()


@pytest.mark.slow(after=4)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("compress", [True, False], ids=["zlib", "plain"])
@pytest.mark.parametrize("base64", [True, False], ids=["base64", "raw"])
def test_vtk_reads_what_we_write(kind, compress, base64, tmp_path):
    suffix = SUFFIXES[kind]
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    writer = WRITERS[kind]()
    writer.SetInputData(add_values(MAKERS[kind]()))
    writer.SetFileName(str(first))
    writer.Write()
    data = read_vtk(first)
    write_vtk(second, data, compress=compress, base64=base64)
    theirs = reopened(second)
    assert_same(data, theirs)
    again = read_vtk(second)
    assert again.time == data.time == 0.1 + 0.2
    assert_same(again, theirs)


def test_arrays_larger_than_a_block_are_read_by_vtk(tmp_path):
    positions = np.random.default_rng(0).normal(size=(100_000, 3))
    path = tmp_path / "a.vtp"
    write_vtk(path, vtk_points(positions))
    theirs = reopened(path)
    points = vtk_to_numpy(theirs.GetPoints().GetData())
    assert np.array_equal(points, positions)
    assert np.array_equal(read_vtk(path).points, positions)


def test_maps_and_histograms_become_grids(tmp_path):
    x, y = np.linspace(0, 1, 5), np.array([0.0, 1, 3])
    values = np.arange(15.0).reshape(5, 3)
    counts = jnp.arange(8).reshape(4, 2)
    flow = np.stack([values, 2 * values], -1)
    data = vtk_grid(
        [x, y],
        point_data={"ftle": values, "u": flow},
        cell_data={"count": counts},
        time=3,
    )
    path = tmp_path / "a.vtr"
    write_vtk(path, data)
    theirs = reopened(path)
    point = theirs.ComputePointId([2, 1, 0])
    assert theirs.GetPoint(point) == (0.5, 1.0, 0.0)
    assert theirs.GetPointData().GetArray("ftle").GetValue(point) == values[2, 1]
    assert theirs.GetPointData().GetArray("u").GetTuple(point) == (7.0, 14.0, 0.0)
    cell = theirs.FindCell([0.6, 2, 0], None, 0, 1e-9, vtk.mutable(0), [0] * 3, [0] * 8)
    assert theirs.GetCellData().GetArray("count").GetValue(cell) == counts[2, 1]
    line = vtk_grid([x], point_data={"p": x}, cell_data={"c": x[1:]})
    assert line.shape == (5, 1, 1)
    assert line.cell_shape == (4, 1, 1)


def tracks(ndim=2, times=3, particles=4, velocities=True):
    rng = np.random.default_rng(0)

    def real(*shape):
        return jnp.asarray(rng.normal(size=shape), float)

    return Tracks(
        times=jnp.asarray(TIMES[:times], float),
        positions=real(times, particles, ndim),
        velocities=real(times, particles, ndim) if velocities else None,
        variables={"age": real(times, particles)},
        status=jnp.arange(particles),
        ended=jnp.full(particles, jnp.nan),
        face=jnp.full(particles, -1),
        since=jnp.zeros(particles),
        entries=jnp.zeros(particles, int),
    )


def test_tracks_become_lines(tmp_path):
    given = tracks()
    path = tmp_path / "a.vtp"
    write_vtk_tracks(path, given)
    theirs = reopened(path)
    assert theirs.GetNumberOfLines() == theirs.GetNumberOfCells() == 4
    arrays = arrays_of(theirs.GetPointData())
    assert arrays.keys() == {"time", "moving", "velocity", "age"}
    positions, velocities, age, times = (
        np.asarray(values)
        for values in (
            *(given.positions, given.velocities),
            *(given.variables["age"], given.times),
        )
    )
    for particle in range(4):
        line = theirs.GetCell(particle)
        assert line.GetNumberOfPoints() == 3
        for row in range(3):
            at = line.GetPointId(row)
            assert theirs.GetPoint(at) == (*positions[row, particle], 0)
            assert arrays["velocity"][at].tolist() == [*velocities[row, particle], 0]
            assert arrays["age"][at] == age[row, particle]
            assert arrays["time"][at] == times[row]
    cells = arrays_of(theirs.GetCellData())
    assert cells["status"].tolist() == cells["particle"].tolist() == [0, 1, 2, 3]
    assert np.all(np.isnan(cells["ended"]))
    single = vtk_tracks(tracks(ndim=3, times=1, particles=2, velocities=False))
    assert single.cell_shape == (2,)
    assert vtk_tracks(tracks(particles=0)).cell_shape == (0,)


def test_lines_of_tracks_end_where_they_leave_a_periodic_box(tmp_path):
    # Over the end of x twice, once and never; y is not periodic.
    x = np.array([[0.2, 0.9, 0.1], [0.9, 0.2, 0.3], [0.3, 0.4, 0.5]]).T
    y, end = 5.0 * np.arange(9).reshape(3, 3), float("inf")
    given = replace(
        tracks(particles=3),
        positions=jnp.asarray(np.stack([x, y], -1), float),
        wraps=jnp.asarray([[0.0, -end], [1.0, end]]),
    )
    path = tmp_path / "a.vtp"
    write_vtk_tracks(path, given)
    theirs = reopened(path)
    found = []
    for number in range(theirs.GetNumberOfCells()):
        cell = theirs.GetCell(number)
        found.append([cell.GetPointId(k) for k in range(cell.GetNumberOfPoints())])
    # Points follow each other particle by particle.
    assert found == [[0], [1], [2], [3], [4, 5], [6, 7, 8]]
    cells = arrays_of(theirs.GetCellData())
    assert cells["particle"].tolist() == [0, 0, 0, 1, 1, 2]
    assert cells["status"].tolist() == [0, 0, 0, 1, 1, 2]
    assert (theirs.GetNumberOfVerts(), theirs.GetNumberOfLines()) == (4, 2)
    assert theirs.GetNumberOfPoints() == 9
    assert vtk_tracks(replace(given, wraps=None)).cell_shape == (3,)


def test_tracks_become_a_series_of_points(tmp_path):
    given = tracks(ndim=3)
    path = tmp_path / "run.pvd"
    write_vtk_tracks(path, given)
    series = read_vtk_series(path)
    times = np.asarray(given.times, np.float64)
    assert series.times.tolist() == times.tolist()
    for row, (time, data) in enumerate(series):
        assert time == data.time == times[row]
        assert np.array_equal(data.points, given.positions[row])
        assert np.array_equal(data.point_data["velocity"], given.velocities[row])
        theirs = reopened(tmp_path / "run" / f"run_{row:06d}.vtp")
        assert theirs.GetNumberOfVerts() == 4
        assert_same(data, theirs)


def written(path, times, **options):
    """Writes a series of one point each, at the place of its time."""
    with VTKSeriesWriter(path, **options) as series:
        for time in times:
            series.write(time, vtk_points(np.array([[time]])))
            listed = read_vtk_series(path)
            assert [data.time for _, data in listed] == sorted(series.times)
    return [time for time, _ in read_pvd(path)]


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.slow
def test_a_series_is_whole_after_each_step_and_resumes(tmp_path):
    path = tmp_path / "a.pvd"
    assert written(path, TIMES) == TIMES
    assert written(path, [0.4, 0.5], append=True) == [*TIMES, 0.4, 0.5]
    # A run resumed from an older checkpoint writes some times once more.
    (tmp_path / "a" / ".a_000005.vtp.tmp-1-0").write_bytes(b"")
    (tmp_path / ".a.pvd.tmp-1-0").write_bytes(b"")
    assert written(path, [0.35, 0.4], append=True) == [*TIMES, 0.35, 0.4]
    assert written(path, [0.1, 0.2], append=True) == [0.0, 0.1, 0.2]
    assert names(tmp_path / "a") == [f"a_{k:06d}.vtp" for k in range(3)]
    assert names(tmp_path) == ["a", "a.pvd"]
    for time, data in read_vtk_series(path):
        assert data.points.tolist() == [[time, 0, 0]]
    assert written(path, [-1.0], append=True) == [-1.0]
    assert written(path, [5.0, 4.0, 3.0]) == [5.0, 4.0, 3.0]
    assert written(path, [4.0, 2.0], append=True) == [5.0, 4.0, 2.0]
    # Without `append` the old series goes, but not a stranger's files.
    (tmp_path / "a" / "notes.txt").write_text("mine")
    assert written(path, [1.0]) == [1.0]
    assert names(tmp_path / "a") == ["a_000000.vtp", "notes.txt"]


def test_a_step_that_fails_leaves_the_series_whole(tmp_path):
    path = tmp_path / "a.pvd"
    bad = vtk_points(np.zeros((1, 3)))
    bad = VTKData("polydata", bad.points, None, bad.cells, {"z": np.ones(1, complex)})
    with VTKSeriesWriter(path) as series:
        series.write(1, vtk_points(np.zeros((1, 3))))
        with pytest.raises(ArgumentError, match="real and imaginary parts"):
            series.write(2, bad)
        series.write(2, vtk_points(np.zeros((2, 3))))
        with pytest.raises(ArgumentError, match="`time` must go on from 2 .* is 2"):
            series.write(2, bad)
        with pytest.raises(ArgumentError, match="`time` must be finite, but is nan"):
            series.write(float("nan"), bad)
    with pytest.raises(ArgumentError, match="must be open: use it in a `with` block"):
        series.write(3, bad)
    assert [data.shape for _, data in read_vtk_series(path)] == [(1,), (2,)]
    assert names(tmp_path) == ["a", "a.pvd"]


def test_vtk_reads_the_series(tmp_path):
    path = tmp_path / "a.pvd"
    written(path, TIMES)
    # VTK itself has no reader for them: its parser of XML must take it.
    root = vtk.vtkXMLDataParser()
    root.SetFileName(str(path))
    assert root.Parse() == 1
    listed = root.GetRootElement().FindNestedElementWithName("Collection")
    assert [
        float(listed.GetNestedElement(k).GetAttribute("timestep")) for k in range(3)
    ] == TIMES


def polygon(types):
    sizes = {1: 1, 3: 2, 5: 3, 10: 4}
    ends = np.cumsum([sizes[t] for t in types])
    cells = VTKCells(
        np.arange(ends[-1]) % 4, np.array([0, *ends]), np.asarray(types, np.uint8)
    )
    return VTKData("polydata", np.zeros((4, 3)), None, cells)


def test_what_cannot_be_written_is_named(tmp_path):
    grid = vtk_grid([np.arange(3.0)], point_data={"a\nb": np.zeros(3)})
    with pytest.raises(ArgumentError, match=r"`path` must end in '.vtr' .*a.vtu"):
        write_vtk(tmp_path / "a.vtu", grid)
    with pytest.raises(ArgumentError, match="without control characters"):
        write_vtk(tmp_path / "a.vtr", grid)
    axes = (np.array([0.0, 1, 3]), np.zeros(1), np.zeros(1))
    with pytest.raises(ArgumentError, match="uniform spacing, but the axis x is"):
        write_vtk(tmp_path / "a.vti", VTKData("image", axes=axes))
    for types in ([5, 3], [1, 10]):
        with pytest.raises(ArgumentError, match="Cells of polydata must be vertices"):
            write_vtk(tmp_path / "a.vtp", polygon(types))
    write_vtk(tmp_path / "a.vtp", polygon([1, 3, 5]))
    assert names(tmp_path) == ["a.vtp"]
    with pytest.raises(ArgumentError, match=r"'.vtp' for lines or in '.pvd'"):
        write_vtk_tracks(tmp_path / "a.csv", tracks())
    with pytest.raises(ArgumentError, match=r"`path` must end in '.pvd', but is"):
        VTKSeriesWriter(tmp_path / "a.vtp")
    with pytest.raises(ArgumentError, match="must lie in a folder that exists"):
        VTKSeriesWriter(tmp_path / "none" / "a.pvd")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: vtk_grid([]), "`axes` must be 1 to 3 arrays, but are 0"),
        (
            lambda: vtk_grid([np.array([1.0, 0])]),
            r"`axes\[0\]` must be increasing numbers",
        ),
        (
            lambda: vtk_grid([np.arange(3.0)], point_data={"p": np.zeros(2)}),
            r"`point_data\['p'\]` must have the shape \(3,\), .* has \(2,\)",
        ),
        (lambda: vtk_points(np.zeros((3, 4))), "`positions` must have 1 to 3 coord"),
        (
            lambda: vtk_points(np.zeros((1, 3)), point_data={"z": np.ones(1) * 1j}),
            "Arrays must hold real numbers",
        ),
    ],
)
def test_data_that_cannot_be_made_are_named(make, reason):
    with pytest.raises(ArgumentError, match=reason):
        make()


def test_a_variable_with_the_name_of_ours_is_refused():
    given = tracks()
    given.variables["time"] = given.variables["age"]
    with pytest.raises(ArgumentError, match="one is 'time'"):
        next(vtk_snapshots(given))
