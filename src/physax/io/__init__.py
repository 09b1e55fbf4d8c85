"""Files: layouts in, results out and back in."""

from ._construct import construct as construct
from ._contour_polygon import contour_polygon as contour_polygon
from ._csv import read_csv as read_csv, write_csv as write_csv
from ._errors import PhysaxFileError as PhysaxFileError
from ._export_difference import (
    ExportDifference as ExportDifference,
    export_difference as export_difference,
)
from ._folders import (
    check_writable as check_writable,
    two_time_files as two_time_files,
)
from ._gds import (
    GDSError as GDSError,
    GDSLayer as GDSLayer,
    MissingPackageError as MissingPackageError,
    read_gds as read_gds,
)
from ._graph_file import load_graph as load_graph, save_graph as save_graph
from ._key_units import DEGREES as DEGREES, Dimension as Dimension
from ._netcdf_time import Epoch as Epoch
from ._npz import load_npz as load_npz, save_npz as save_npz
from ._read_g2 import read_g2 as read_g2
from ._read_stl import read_stl as read_stl
from ._read_two_time import (
    read_two_time as read_two_time,
    scan_two_time as scan_two_time,
)
from ._read_velocity import (
    StoredField as StoredField,
    read_scalar as read_scalar,
    read_velocity as read_velocity,
)
from ._save_gds import save_gds as save_gds
from ._save_stl import save_stl as save_stl
from ._snapshot_series import SnapshotSeries as SnapshotSeries
from ._touchstone import (
    read_touchstone as read_touchstone,
    write_touchstone as write_touchstone,
)
from ._track_file import TrackFile as TrackFile
from ._two_time_contents import TwoTimeContents as TwoTimeContents
from ._two_time_layouts import (
    AbstractHDF5Layout as AbstractHDF5Layout,
    AbstractTwoTimeLayout as AbstractTwoTimeLayout,
    APSLayout as APSLayout,
    APSULayout as APSULayout,
    DatasetLayout as DatasetLayout,
    NPZLayout as NPZLayout,
    nxxpcs_layout as nxxpcs_layout,
)
from ._vtk_build import (
    vtk_grid as vtk_grid,
    vtk_points as vtk_points,
    vtk_snapshots as vtk_snapshots,
    vtk_tracks as vtk_tracks,
)
from ._vtk_cells import VTKCells as VTKCells
from ._vtk_data import VTKData as VTKData
from ._vtk_mesh import merge_points as merge_points, mesh_elements as mesh_elements
from ._vtk_read import read_vtk as read_vtk
from ._vtk_series import (
    VTKArraySeries as VTKArraySeries,
    VTKSeries as VTKSeries,
    read_vtk_series as read_vtk_series,
)
from ._vtk_series_writer import (
    VTKSeriesWriter as VTKSeriesWriter,
    write_vtk_tracks as write_vtk_tracks,
)
from ._write_tracks import read_tracks as read_tracks, write_tracks as write_tracks
from ._write_two_time import write_two_time as write_two_time
from ._write_vtk import write_vtk as write_vtk
from ._xarray import to_xarray as to_xarray
from ._yaml_nodes import YamlNode as YamlNode, read_yaml as read_yaml
