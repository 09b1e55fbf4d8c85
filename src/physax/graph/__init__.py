"""Models wired by named terminals, compiled to plain Equinox modules."""

from ._backend import Backend as Backend
from ._block import (
    AbstractBlock as AbstractBlock,
    Connection as Connection,
    GraphError as GraphError,
)
from ._circuit import (
    Circuit as Circuit,
    Scatterer as Scatterer,
    coupler as coupler,
    from_sax as from_sax,
    joined as joined,
    to_sax as to_sax,
    waveguide as waveguide,
)
from ._compile import compile as compile
from ._evaluation import NotFiniteError as NotFiniteError
from ._export import export as export
from ._graph import Graph as Graph
from ._key_stream import key_stream as key_stream
from ._layer import Layer as Layer, Linear as Linear, layer as layer
from ._operation import (
    Operation as Operation,
    op as op,
    register_op as register_op,
    saved_operation as saved_operation,
)
from ._perceptron import MLP as MLP, FourierFeatures as FourierFeatures
from ._program import Program as Program
from ._structs import struct_of as struct_of, struct_text as struct_text
