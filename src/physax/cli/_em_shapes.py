"""Shapes that the YAML file of `physax em` names."""

import math

from .. import em
from ..io import GDSLayer, read_gds, read_stl


def layout(
    path: str,
    layer: tuple[int, int],
    *,
    low: float = -math.inf,
    high: float = math.inf,
    cell: str | None = None,
    centre: list[float] | None = None,
    sidewall: float = 0.0,
) -> em.AbstractShape:
    """Reads the polygons of a layer (layer, datatype) of a GDSII file."""
    layers = {layer: GDSLayer(em.Material(), low, high, sidewall)}
    (structure,) = read_gds(path, layers, cell=cell, centre=centre)
    return structure.shape


SHAPES = {
    kind.__name__: kind
    for kind in (
        em.Box,
        em.Cylinder,
        em.Circle,
        em.Sphere,
        em.Polygon,
        em.Ellipsoid,
        em.Cone,
        em.Ring,
        em.Prism,
        em.Path,
        em.Taper,
        em.Bend,
        em.Bezier,
        em.Spline,
    )
} | {"STL": read_stl, "GDS": layout}
