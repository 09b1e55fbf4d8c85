"""Turns results into JSON and arrays, and back: only what a list allows."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._checks import ArgumentError
from .._status import Status
from ..em import (
    Convergence,
    CrossSectionModes,
    Debye,
    DiffractionOrders,
    Drude,
    Emission,
    EnergySeries,
    FarField,
    Lorentz,
    Material,
    MaterialFit,
    ModeAmplitudes,
    NearField,
    PadeSpectra,
    PoleResidue,
    ProjectedFields,
    Resonances,
    Result,
    RunResult as LightRun,
    SlabMode,
    SParameters,
    SpectralFields,
    SpectralFlux,
    SpectralForce,
    TimeSeries,
)
from ..fit import (
    CurveFit,
    FitResult,
    Identifiability,
    Interval,
    MultistartResult,
    Plan,
    Posterior,
    Profile,
    Strategy,
)
from ..fit._robust import Parts
from ..grid import Field, Grid
from ..particles import FlowMap, RunResult, Tracks
from ..xpcs import (
    Diffusion,
    Double,
    G2Fit,
    LaminarFlow,
    OneTime,
    PowerLaw,
    QualityReport,
    Shear,
    Simple,
    Static,
    Stretched,
    TwoTimeFit,
)


# A class is never found by a name that a file gives, but only in this list.
MODULES = {
    kind.__name__: kind
    for kind in (
        Convergence,
        CrossSectionModes,
        Debye,
        DiffractionOrders,
        Diffusion,
        Double,
        Drude,
        Emission,
        EnergySeries,
        FarField,
        Field,
        FitResult,
        FlowMap,
        G2Fit,
        Grid,
        Identifiability,
        Interval,
        LaminarFlow,
        Lorentz,
        Material,
        MaterialFit,
        ModeAmplitudes,
        MultistartResult,
        NearField,
        OneTime,
        PadeSpectra,
        Parts,
        Plan,
        PoleResidue,
        Posterior,
        PowerLaw,
        Profile,
        ProjectedFields,
        QualityReport,
        Resonances,
        Result,
        Shear,
        Simple,
        SlabMode,
        SParameters,
        SpectralFields,
        SpectralFlux,
        SpectralForce,
        Static,
        Stretched,
        TimeSeries,
        TwoTimeFit,
    )
}

# Fields that came later than files of their kind, whose default is what was before.
_LATER = {
    "Emission": frozenset({"dipole"}),
    "NearField": frozenset({"m"}),
    "SpectralFields": frozenset({"axes"}),
    "TimeSeries": frozenset({"axes"}),
}

# What files of earlier versions lack, made of what they have.
_EARLIER: dict[str, dict[str, Any]] = {
    "FitResult": {
        "norm": lambda values: jnp.sqrt(values["chi2"]),
        "fixed": lambda values: jnp.zeros_like(values["held"]),
    },
    "Interval": {
        "names": lambda values: tuple(
            f"parameter {n + 1}" for n in range(values["low"].shape[-1])
        ),
    },
}

_ENUMS = {kind.__name__: kind for kind in (Status, Strategy)}

_DTYPES = {
    name: jnp.dtype(name)
    for name in (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
        "bfloat16 float16 float32 float64 complex64 complex128"
    ).split()
}
# NumPy's format does not know this one: it is stored as bits.
_STORED_AS = {"bfloat16": np.dtype("uint16")}


class EncodingError(Exception):
    """What is wrong with an encoded value, as a sentence."""


def stored_dtype(name: object) -> np.dtype:
    """Returns the dtype in which an array of the named dtype is stored.

    Raises:
        EncodingError: If the name is not on the list.
    """
    if not isinstance(name, str) or name not in _DTYPES:
        raise EncodingError(f"An array has the dtype {name!r}, which is not allowed.")
    return _STORED_AS.get(name, _DTYPES[name])


def encode(value: Any, arrays: list[np.ndarray], where: str = "results") -> dict:
    """Describes a value in what JSON can hold, and sets its arrays aside.

    Args:
        value: A result, an array, a number or a string; or dictionaries, lists and
            tuples of such.
        arrays: The arrays are appended here.
        where: How messages name the value.

    Returns:
        The description. Each is an object of a single key, which says the kind.

    Raises:
        ArgumentError: If a value is of a kind that cannot be saved.
    """
    # Before bool, int and float, of which NumPy's scalars are partly subclasses.
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return _encode_array(value, arrays, where)
    name = type(value).__name__
    # Some count as integers.
    if isinstance(value, enum.Enum) and _ENUMS.get(name) is type(value):
        return {"enum": [name, value.name]}
    if value is None or isinstance(value, bool | int | str):
        return {"value": value}
    if isinstance(value, float):
        # Exact, also for infinities and NaN, which JSON lacks.
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, Mapping):
        entries = []
        for key, entry in value.items():
            if not isinstance(key, str):
                raise ArgumentError(
                    f"Keys of `{where}` must be strings, but one is {key!r}."
                )
            entries.append([key, encode(entry, arrays, f"{where}[{key!r}]")])
        return {"dict": entries}
    if isinstance(value, CurveFit):
        raise ArgumentError(
            f"`{where}` is what `curve_fit` returns, which would be saved as a plain "
            "pair. Save its `result`, which has the parameters and the covariance."
        )
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        entries = [encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
        return {name: entries}
    if isinstance(value, eqx.Module) and MODULES.get(name) is type(value):
        fields = [
            [f.name, encode(getattr(value, f.name), arrays, f"{where}.{f.name}")]
            for f in dataclasses.fields(value)
        ]
        return {"module": [name, fields]}
    if isinstance(value, LightRun):
        raise ArgumentError(
            f"`{where}` is what `em.run` returns, whose state is not saved. Save its "
            "`result`; to continue a run later, give it `checkpoint=`."
        )
    if isinstance(value, Tracks | RunResult):
        raise ArgumentError(
            f"`{where}` is a {name}, which is not saved. Write the tracks by "
            "`write_tracks`, as '.npz' to keep every bit."
        )
    raise ArgumentError(
        f"`{where}` must be one of {', '.join(MODULES)}, an array, a number, a string, "
        f"or dictionaries, lists and tuples of them, but is a {name}. From a class "
        "of your own, save the contents by name; from a fit with one, its `names`, "
        "`values` and `covariance`."
    )


def _encode_array(value: Any, arrays: list[np.ndarray], where: str) -> dict:
    host = np.asarray(value)
    name = host.dtype.name
    if name not in _DTYPES:
        raise ArgumentError(
            f"The dtype of `{where}` must be one of {', '.join(_DTYPES)}, but is "
            f"{name}."
        )
    # Native byte order first: a view would take swapped bytes for others.
    native = np.array(host, _DTYPES[name], order="C")
    arrays.append(native.view(stored_dtype(name)))
    kind = "array" if isinstance(value, jax.Array) else "numpy"
    return {kind: [len(arrays) - 1, name]}


def decode(node: Any, arrays: list[np.ndarray]) -> Any:
    """Builds the value that `encode` described.

    Args:
        node: The description.
        arrays: The arrays, in order.

    Returns:
        The value.

    Raises:
        EncodingError: If the description is none, or names what is not allowed.
    """
    if not isinstance(node, dict) or len(node) != 1:
        raise EncodingError("A value is not described by a single kind.")
    ((kind, content),) = node.items()
    if kind not in _DECODERS:
        raise EncodingError(f"A value is of the unknown kind {kind!r}.")
    return _DECODERS[kind](content, arrays)


def _decode_value(content, arrays):
    del arrays
    if content is not None and not isinstance(content, bool | int | str):
        raise EncodingError("A plain value is not a string, an integer or a boolean.")
    return content


def _decode_float(content, arrays):
    del arrays
    if not isinstance(content, str):
        raise EncodingError("A number is not given as a string.")
    try:
        return float.fromhex(content)
    except (ValueError, OverflowError) as error:
        raise EncodingError(f"The number {content!r} cannot be read.") from error


def _decode_complex(content, arrays):
    if not isinstance(content, list) or len(content) != 2:
        raise EncodingError("A complex number does not have two parts.")
    return complex(*(_decode_float(part, arrays) for part in content))


def _entries(content: Any) -> list:
    if not isinstance(content, list):
        raise EncodingError("A list is missing.")
    return content


def _decode_pairs(content: Any, arrays) -> dict[str, Any]:
    found = {}
    for pair in _entries(content):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise EncodingError("An entry is not a pair of a name and a value.")
        if pair[0] in found:
            raise EncodingError(f"The name {pair[0]!r} occurs twice.")
        found[pair[0]] = decode(pair[1], arrays)
    return found


def _decode_list(content, arrays):
    return [decode(entry, arrays) for entry in _entries(content)]


def _decode_numpy(content, arrays) -> np.ndarray:
    good = (
        isinstance(content, list)
        and len(content) == 2
        and type(content[0]) is int
        and 0 <= content[0] < len(arrays)
    )
    if not good:
        raise EncodingError("A value refers to an array that is not there.")
    number, name = content
    stored = stored_dtype(name)
    array = arrays[number]
    if array.dtype != stored:
        raise EncodingError(f"Array {number} is of {array.dtype.name}, not of {name}.")
    return array.view(_DTYPES[name])


def _decode_array(content, arrays) -> jax.Array:
    host = _decode_numpy(content, arrays)
    if jax.dtypes.canonicalize_dtype(host.dtype) != host.dtype:
        raise EncodingError(
            f"It holds {host.dtype.name}, which JAX would round. Allow it: "
            "jax.config.update('jax_enable_x64', True)."
        )
    return jnp.asarray(host)


def _decode_module(content, arrays):
    if not isinstance(content, list) or len(content) != 2:
        raise EncodingError("A result does not have a name and fields.")
    name, pairs = content
    if not isinstance(name, str) or name not in MODULES:
        raise EncodingError(f"The result {name!r} is of a kind that is not known.")
    values = _decode_pairs(pairs, arrays)
    fields = dataclasses.fields(MODULES[name])
    earlier = _EARLIER.get(name, {})
    later = _LATER.get(name, frozenset()) | earlier.keys()
    odd = sorted(values.keys() ^ {f.name for f in fields} - (later - values.keys()))
    if odd:
        raise EncodingError(f"The fields of a {name} do not fit: see {odd}.")
    try:
        made = {key: of(values) for key, of in earlier.items() if key not in values}
        return MODULES[name](**values, **made)
    except (ValueError, TypeError, AttributeError) as error:
        raise EncodingError(f"The fields of a {name} do not fit: {error}") from error


def _decode_enum(content, arrays):
    del arrays
    match content:
        case [str(name), str(member)] if name in _ENUMS:
            if member in _ENUMS[name].__members__:
                return _ENUMS[name][member]
    raise EncodingError(f"The choice {content!r} is not known.")


_DECODERS = {
    "array": _decode_array,
    "complex": _decode_complex,
    "dict": _decode_pairs,
    "enum": _decode_enum,
    "float": _decode_float,
    "list": _decode_list,
    "module": _decode_module,
    "numpy": _decode_numpy,
    "tuple": lambda content, arrays: tuple(_decode_list(content, arrays)),
    "value": _decode_value,
}
