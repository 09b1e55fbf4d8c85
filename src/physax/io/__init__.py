"""Files: layouts in, results out and back in."""

from ._contour_polygon import contour_polygon as contour_polygon
from ._csv import read_csv as read_csv, write_csv as write_csv
from ._errors import PhysaxFileError as PhysaxFileError
from ._export_difference import (
    ExportDifference as ExportDifference,
    export_difference as export_difference,
)
from ._gds import (
    GDSError as GDSError,
    GDSLayer as GDSLayer,
    MissingPackageError as MissingPackageError,
    read_gds as read_gds,
)
from ._npz import load_npz as load_npz, save_npz as save_npz
from ._save_gds import save_gds as save_gds
from ._save_stl import save_stl as save_stl
from ._touchstone import (
    read_touchstone as read_touchstone,
    write_touchstone as write_touchstone,
)
from ._xarray import to_xarray as to_xarray
