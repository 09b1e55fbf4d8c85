import hashlib
import inspect
import json
import math
import typing
import zipfile
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax import PhysaxError, em, fit
from physax.em import (
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
    PadeSpectra,
    PoleResidue,
    ProjectedFields,
    Resonances,
    SlabMode,
    SParameters,
    SpectralFields,
    SpectralFlux,
    TimeSeries,
    extrapolate,
)
from physax.grid import Field, Grid
from physax.io import PhysaxFileError, load_npz, save_npz
from physax.io._encoding import MODULES
from physax.particles import FlowMap
from physax.units import MICRO


rng = np.random.default_rng(0)


def real(*shape):
    return jnp.asarray(rng.normal(size=shape), float)


def cplx(*shape):
    return real(*shape) + 1j * real(*shape)


def results():
    """One of each kind of result, and of each kind of plain value."""
    frequencies = jnp.asarray([1.9e14, 2.0e14], float)
    where = (real(3), real(2))
    grid = Grid.uniform((4, 3), 0.1 * MICRO)
    s = SParameters(cplx(2, 2, 1), real(2), ("west", "east"), ("west",), {})
    poles = (
        Drude(2e15, 1e13),
        Debye(0.2, 1e-14),
        Lorentz(0.3, 5e14, 1e13),
        PoleResidue(-1e14 + 3e15j, 1e14 - 2e15j),
    )
    metal = Material((2.0, 2.1, 2.2), poles=poles)
    return {
        "fields": SpectralFields(frequencies, {"Ez": cplx(2, 3, 2)}, {"Ez": where}),
        "flux": SpectralFlux(frequencies, real(2)),
        "port": ModeAmplitudes(frequencies, cplx(2), cplx(2), real(2)),
        "trace": TimeSeries({"Hz": real(5, 1, 1)}, {"Hz": real(5)}, {"Hz": where}),
        "energy": EnergySeries(real(5), real(5)),
        "emission": Emission(frequencies, *(real(2) for _ in range(4))),
        "modes": Resonances(
            *(rng.normal(size=2) for _ in range(3)), rng.normal(size=(2, 3)) + 1j, 0.1
        ),
        "study": extrapolate([10, 20, 40], [[3.1, 1.4], [3.03, 1.2], [3.01, 1.1]]),
        "foreseen": PadeSpectra(
            SpectralFields(frequencies, {"Ez": cplx(2, 1)}, {"Ez": (real(1),)}), real(2)
        ),
        "mode": SlabMode(real()[()], real(4), real(4), jnp.asarray(True)),
        "fit": MaterialFit(metal, real(3), cplx(3), cplx(3), *(real() for _ in "abcd")),
        "field": Field(real(4, 3), (0.0, 0.5), grid),
        "s": s,
        "far": FarField(frequencies, real(5, 2), {"Ez": cplx(2, 5)}, real(2, 5)),
        "projected": ProjectedFields(frequencies, real(5, 2), {"Ez": cplx(2, 5)}),
        "orders": DiffractionOrders(
            frequencies,
            (jnp.arange(-1, 2),),
            {"Ez": cplx(2, 3)},
            *(real(2, 3), real(2, 3, 2), jnp.ones((2, 3), bool)),
        ),
        "guide": CrossSectionModes(
            *(cplx(2), {"Ex": cplx(2, 3, 2)}, {"Ex": where}, (real(3, 2), real(3, 2))),
            *(jnp.ones(2, bool), real()[()], real(2), real(2), real(2), real()[()]),
        ),
        "flow": FlowMap(
            real(2), real(2, 4, 3), real(2, 4, 3, 3), jnp.zeros(4, jnp.int32)
        ),
        "plain": [1, -0.0, math.pi, 1 + 2j, True, None, "µm", (math.inf,)],
        "host": np.arange(3, dtype=">i8"),
        "small": jnp.ones(3, jnp.bfloat16),
        "empty": real(0, 3),
    }


def leaves_and_structure(tree):
    leaves, structure = jax.tree.flatten(tree)
    return [(np.shape(x), np.asarray(x).tobytes()) for x in leaves], structure


def same(a, b):
    a, b = (eqx.tree_at(lambda t: t["host"], t, np.asarray(t["host"])) for t in (a, b))
    (leaves_a, structure_a), (leaves_b, structure_b) = map(leaves_and_structure, (a, b))
    return structure_a == structure_b and leaves_a == leaves_b


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.npz"


def rewrite(path, change):
    """Changes the header of a file and signs it again, as a forger would."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    old = members["header.npy"]
    start = 10 + int.from_bytes(old[8:10], "little")
    header = json.loads(old[start:])
    change(header)
    members["header.npy"] = old[:start] + json.dumps(header).encode()
    digest = hashlib.sha256(members["header.npy"]).hexdigest()
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = f"physax-results {digest}".encode()
        for name, data in members.items():
            archive.writestr(name, data)


def test_round_trip_keeps_every_bit_and_type(path):
    saved = results()
    save_npz(path, saved)
    loaded = load_npz(path)
    saved["host"] = saved["host"].astype(np.int64)  # the byte order alone is not kept
    assert same(loaded, saved)
    assert loaded["host"].tolist() == [0, 1, 2]
    assert isinstance(loaded["host"], np.ndarray)
    assert isinstance(loaded["flux"].flux, jax.Array)
    assert loaded["small"].dtype == jnp.bfloat16
    assert loaded["s"].inputs == ("west",)
    assert math.copysign(1, loaded["plain"][1]) == -1


def test_a_module_alone_is_saved(path):
    flux = SpectralFlux(real(2), real(2))
    save_npz(path, flux)
    assert eqx.tree_equal(load_npz(path), flux)


def test_numpy_opens_the_file(path):
    array = real(3, 2)
    save_npz(path, {"a": array})
    with np.load(path, allow_pickle=False) as file:
        assert np.array_equal(file["array_0"], array)


def test_the_same_results_give_the_same_bytes(path):
    saved = results()
    save_npz(path, saved)
    first = path.read_bytes()
    save_npz(path, saved)
    assert path.read_bytes() == first


def mutations(data, count):
    """Yields damaged copies: bits flipped, pieces cut, repeated or overwritten."""
    random = np.random.default_rng(1)
    for number in range(count):
        bad = bytearray(data)
        at, size = int(random.integers(len(bad))), int(random.integers(1, 40))
        match number % 5:
            case 0:
                bad[at] ^= 1 << int(random.integers(8))
            case 1:
                del bad[at : at + size]
            case 2:
                bad[at:at] = bad[at : at + size]
            case 3:
                bad[at : at + size] = random.bytes(min(size, len(bad) - at))
            case 4:
                # The directory at the end is short, and where archives are fragile.
                near = len(bad) - 1 - int(random.integers(min(1500, len(bad))))
                bad[near] = int(random.integers(256))
        yield bytes(bad)


@pytest.mark.slow
def test_a_damaged_file_is_refused_or_harmless(path):
    saved = results()
    saved["host"] = saved["host"].astype(np.int64)
    save_npz(path, saved)
    refused = 0
    for bad in mutations(path.read_bytes(), 300):
        path.write_bytes(bad)
        try:
            loaded = load_npz(path)
        except PhysaxFileError:
            refused += 1
        else:
            # Some bytes, such as dates, say nothing about the data.
            assert same(loaded, saved)
    assert refused > 200


@pytest.mark.parametrize("cut", [0, 1, 21, 22, 100])
def test_a_cut_off_file_is_refused(path, cut):
    save_npz(path, results())
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(PhysaxFileError, match="not a valid npz file"):
        load_npz(path)


FORGERIES = {
    "schema": (
        lambda h: h.update(schema=2),
        "must have the schema 1, but has 2: another version",
    ),
    "key": (lambda h: h.update(extra=1), "missing or unknown keys"),
    "format": (lambda h: h.update(format="other"), "not one of `save_npz`"),
    "kind": (
        lambda h: h.update(content={"call": ["os.system", "true"]}),
        "unknown kind 'call'",
    ),
    "class": (
        lambda h: h["content"]["module"].__setitem__(0, "Popen"),
        "'Popen' is of a kind that is not known",
    ),
    "field": (
        lambda h: h["content"]["module"][1].append(["extra", {"value": 1}]),
        r"fields of a SpectralFlux do not fit: see \['extra'\]",
    ),
    "twice": (
        lambda h: h["content"]["module"][1].append(h["content"]["module"][1][0]),
        "'frequencies' occurs twice",
    ),
    "array": (
        lambda h: h["content"]["module"][1][0].__setitem__(1, {"array": [9, "int8"]}),
        "an array that is not there",
    ),
    "shape": (
        lambda h: h["arrays"][0].update(shape=[2**40, 2**40]),
        "does not fit its",
    ),
    "negative": (
        lambda h: h["arrays"][0].update(shape=[-1, -2]),
        "shape of an array cannot be read",
    ),
    "dtype": (lambda h: h["arrays"][0].update(dtype="object"), "'object', which is"),
    "digest": (lambda h: h["arrays"][0].update(sha256="0"), "digest of 'array_0.npy'"),
    "missing": (lambda h: h["arrays"].pop(), "missing or left over"),
    "plain": (
        lambda h: h.update(content={"value": [1]}),
        "is not a string, an integer or",
    ),
    "number": (lambda h: h.update(content={"float": "one"}), "'one' cannot be read"),
    "deep": (
        lambda h: h.update(content=json.loads('{"list":[' * 400 + "]}" * 400)),
        "recursion",
    ),
}


def test_fields_that_came_later_may_be_missing_in_a_file(path):
    fields = SpectralFields(real(1), {"Ez": cplx(1, 3)}, {"Ez": (real(3),)})
    save_npz(path, fields)
    rewrite(path, lambda h: h["content"]["module"][1].pop())
    assert load_npz(path).axes == fields.axes == ("x", "y", "z")
    rewrite(path, lambda h: h["content"]["module"][1].pop())
    with pytest.raises(PhysaxFileError, match=r"do not fit: see \['coordinates'\]"):
        load_npz(path)
    # Others with a default have always been there.
    save_npz(path, Material(2.25))
    rewrite(path, lambda h: h["content"]["module"][1].pop(0))
    with pytest.raises(PhysaxFileError, match="of a Material do not fit: see"):
        load_npz(path)


def test_fits_of_earlier_versions_are_read(path):
    def lines(x, a, b):
        return a * x + b

    x, loss = jnp.arange(9.0), fit.Huber(0.1)
    result = fit.curve_fit(lines, x, jnp.sin(x), loss=loss, p0=[0.0, 0.0]).result
    interval = fit.confidence_intervals(result)
    save_npz(path, {"fit": result, "interval": interval})

    def forget(header):
        for (_, encoded), names in zip(
            header["content"]["dict"], (("norm", "fixed"), ("names",)), strict=True
        ):
            pairs = encoded["module"][1]
            pairs[:] = [pair for pair in pairs if pair[0] not in names]

    whole = load_npz(path)
    rewrite(path, forget)
    found = load_npz(path)
    for kept in (whole["fit"], found["fit"]):
        assert str(kept) == str(result)
        np.testing.assert_array_equal(kept.standard_errors, result.standard_errors)
    assert found["interval"].names == ("parameter 1", "parameter 2")
    assert str(whole["interval"]) == str(interval)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_header_is_refused(path, name):
    change, message = FORGERIES[name]
    save_npz(path, SpectralFlux(real(2), real(2)))
    rewrite(path, change)
    with pytest.raises(PhysaxFileError, match=message) as caught:
        load_npz(path)
    assert isinstance(caught.value, PhysaxError)
    assert caught.value.path == str(path)


def test_other_npz_files_are_refused(path):
    np.savez(path, a=np.arange(3))
    with pytest.raises(PhysaxFileError, match="not written by `save_npz`"):
        load_npz(path)


def test_a_compressed_member_is_refused_unread(path):
    # A member of zeros that would unpack to 100 MB from 100 kB.
    save_npz(path, {"a": real(3)})
    with zipfile.ZipFile(path) as archive:
        comment, header = archive.comment, archive.read("header.npy")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        archive.writestr("header.npy", header)
        archive.writestr("array_0.npy", bytes(100_000_000))
    with pytest.raises(PhysaxFileError, match="has the wrong size"):
        load_npz(path)


@pytest.mark.f32
def test_wide_numbers_are_not_rounded_silently(path):
    save_npz(path, {"a": np.ones(2)})
    rewrite(
        path,
        lambda h: h["content"]["dict"][0].__setitem__(1, {"array": [0, "float64"]}),
    )
    with pytest.raises(PhysaxFileError, match="holds float64.*jax_enable_x64"):
        load_npz(path)


class Pair(NamedTuple):
    a: int
    b: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": object()}, r"`results\['a'\]` must be one of .* but is a object"),
        (
            {"a": Pair(1, 2)},
            "but is a Pair. From a class of your own, save the contents",
        ),
        ({"a": {1: 2}}, r"Keys of `results\['a'\]` must be strings, but one is 1"),
        ({"a": np.array(["x"])}, r"dtype of `results\['a'\]` must be one of"),
        ({"a": [len]}, r"`results\['a'\]\[0\]` must be one of"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(path, value, message):
    with pytest.raises(PhysaxError, match=message):
        save_npz(path, value)
    assert not list(path.parent.iterdir())


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError):
        load_npz(path)


# What functions of `em` return and the page on files does not call a result.
NO_RESULTS = (
    "advance initial_state run "  # states, for which there are checkpoints
    "band_pulse compensate_dispersion cpml_coefficients materials rasterise "
    "Circle Taper mirror place repeat rotate scale translate "
    "scatterer scene with_steps predict_scaling step_cost Bend Bezier Path Spline"
).split()


def classes(hint):
    if inspect.isclass(hint) and issubclass(hint, eqx.Module):
        yield hint
    for part in typing.get_args(hint):
        yield from classes(part)


def test_all_that_functions_of_em_return_is_saved():
    # "Any result of `em`": `docs/pictures-and-files.md`.
    returned = {}
    for name, function in vars(em).items():
        if callable(function) and not inspect.isclass(function):
            hints = typing.get_type_hints(inspect.unwrap(function))
            returned |= {kind: name for kind in classes(hints.get("return"))}
    refused = {name for kind, name in returned.items() if kind not in MODULES.values()}
    assert {em.FarField, em.DiffractionOrders, em.Result} <= returned.keys()
    assert refused <= {*NO_RESULTS}


def test_a_run_is_refused_with_what_to_save(path):
    run = object.__new__(em.RunResult)
    with pytest.raises(PhysaxError, match=r"`results\['a'\]` .* Save its `result`"):
        save_npz(path, {"a": run})
