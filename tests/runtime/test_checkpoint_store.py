import errno
import hashlib
import json
import os
import stat
import struct
from inspect import unwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax._checks import ArgumentError, PhysaxError
from physax.runtime import (
    CheckpointError,
    Checkpointing,
    CheckpointWarning,
    FingerprintError,
    checkpoint_steps,
    fingerprint,
    latest_step,
    load_checkpoint,
    save_checkpoint,
    writer_lock,
)


DTYPES = "bool int8 int32 uint64 bfloat16 float16 float32 float64 complex64".split()


def some_arrays():
    random = np.random.default_rng(0)
    arrays = {
        name: random.integers(0, 2, (3, 4)).astype(jnp.dtype(name)) for name in DTYPES
    }
    arrays["scalar"] = np.float64(-0.0)
    arrays["empty"] = np.zeros((0, 5), np.float32)
    arrays["fortran"] = np.asfortranarray(random.normal(size=(3, 4)))
    arrays["swapped"] = np.arange(3).astype(">i4")
    arrays["nan"] = np.array([np.nan, np.inf, 5e-324])
    return arrays


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of a few hundred bytes, and its file."""
    arrays = {"a": np.arange(20.0), "b": np.arange(6, dtype=np.int32).reshape(2, 3)}
    file = save_checkpoint(tmp_path, 7, arrays, "print", {"dt": 0.5})
    return tmp_path, file, arrays


def test_what_is_saved_comes_back_to_the_bit(tmp_path):
    arrays = some_arrays()
    save_checkpoint(tmp_path, 12, arrays, "print", {"dt": 1.5, "names": ["x", "µ"]})
    found = load_checkpoint(tmp_path, "print")
    assert found.step == 12
    assert found.metadata == {"dt": 1.5, "names": ["x", "µ"]}
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.arrays[name].shape == array.shape
        assert found.arrays[name].dtype == array.dtype.newbyteorder("=")
        assert fingerprint(found.arrays[name]) == fingerprint(np.asarray(array))


def test_modes_leave_others_out(tmp_path):
    file = save_checkpoint(tmp_path / "new", 0, {})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_the_newest_are_kept(tmp_path):
    for step in (1, 5, 9):
        save_checkpoint(tmp_path, step, {"step": np.array(step)})
    assert checkpoint_steps(tmp_path) == (5, 9)
    assert latest_step(tmp_path) == 9
    assert load_checkpoint(tmp_path, step=5).arrays["step"] == 5
    assert load_checkpoint(tmp_path, at_most=8).step == 5


def test_the_one_just_written_is_kept_beside_newer_ones(tmp_path):
    save_checkpoint(tmp_path, 9, {})
    save_checkpoint(tmp_path, 4, {}, keep=1)
    assert checkpoint_steps(tmp_path) == (4,)


def test_empty_folder_has_nothing(tmp_path):
    assert latest_step(tmp_path / "absent") is None
    with pytest.raises(CheckpointError, match="must hold a checkpoint, but has none"):
        load_checkpoint(tmp_path)
    assert issubclass(CheckpointError, PhysaxError)
    assert issubclass(CheckpointError, OSError)


@pytest.mark.slow
def test_every_flipped_byte_is_noticed(saved):
    folder, file, _ = saved
    whole = file.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1 << position % 8
        file.write_bytes(changed)
        with pytest.raises(CheckpointError):
            load_checkpoint(folder)


def test_every_truncation_is_noticed(saved):
    folder, file, _ = saved
    whole = file.read_bytes()
    for length in range(0, len(whole), 3):
        file.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="truncated|does not begin|damaged"):
            load_checkpoint(folder)
    file.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="must have .* bytes, but has"):
        load_checkpoint(folder)


def test_random_mutations_are_noticed(saved):
    folder, file, _ = saved
    whole = file.read_bytes()
    random = np.random.default_rng(1)
    for _ in range(300):
        a, b = sorted(random.integers(0, len(whole), 2))
        cut = [whole[:a], random.bytes(int(random.integers(0, 9))), whole[b:]]
        mutated = b"".join(cut)
        if mutated == whole:
            continue
        file.write_bytes(mutated)
        with pytest.raises(CheckpointError):
            load_checkpoint(folder)


def rewrite_header(file, change):
    """Changes the header of a file, and makes its digest right again."""
    whole = file.read_bytes()
    (length,) = struct.unpack_from("<Q", whole, 8)
    header = json.loads(whole[48 : 48 + length])
    text = change(header)
    if not isinstance(text, bytes):
        text = json.dumps(header).encode()
    digest = hashlib.sha256(text).digest()
    start = whole[:8] + struct.pack("<Q", len(text)) + digest
    file.write_bytes(start + text + whole[48 + length :])


def set_in(key, value):
    return lambda header: header.update({key: value})


def set_in_array(key, value):
    return lambda header: header["arrays"][0].update({key: value})


HOSTILE = {
    "schema": (set_in("schema", 3), "must have the schema 2, but has 3"),
    "step": (set_in("step", -1), "a step of at least 0"),
    "boolean step": (set_in("step", True), "`step` is not of the type int"),
    "renamed": (set_in("step", 8), "must be of step 7, but is of step 8"),
    "fields": (set_in("fields", {"a": 1}), "unreadable fingerprint"),
    "arrays": (set_in("arrays", {}), "`arrays` is not of the type list"),
    "array": (set_in("arrays", [3]), "unreadable array"),
    "object": (set_in_array("dtype", "object"), "unreadable array"),
    "record": (set_in_array("dtype", "f4,f4"), "unreadable array"),
    "negative": (set_in_array("shape", [-20]), "unreadable array"),
    "huge": (set_in_array("shape", [2**40]), "must have .* bytes, but has"),
    "overflow": (set_in_array("shape", [2**32, 2**32]), "must have .* bytes"),
    "many axes": (set_in_array("shape", [1] * 100), "unreadable array"),
    "twice": (set_in_array("name", "b"), "unreadable array"),
    "extra": (set_in_array("file", "/etc/passwd"), "unreadable array"),
    "list": (lambda header: b"[]", "a header that is not an object"),
    "nesting": (lambda header: b"[" * 100_000, "cannot be read"),
    "no JSON": (lambda header: b"\xff\xfe", "cannot be read"),
    "nan": (lambda header: b'{"schema": NaN}', "NaN is not a number"),
    "duplicate": (lambda header: b'{"a": 1, "a": 2}', "a key occurs twice"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_header_is_refused(saved, kind):
    folder, file, _ = saved
    change, message = HOSTILE[kind]
    rewrite_header(file, change)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert file.name in str(caught.value)


def test_too_large_is_refused_before_it_is_read(saved):
    folder, _, _ = saved
    with pytest.raises(CheckpointError, match="at most 100 bytes .* but takes 184"):
        load_checkpoint(folder, max_bytes=100)


def test_damaged_newest_is_passed_over_with_a_warning(tmp_path):
    save_checkpoint(tmp_path, 1, {"x": np.zeros(3)})
    newest = save_checkpoint(tmp_path, 2, {"x": np.ones(3)})
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(CheckpointWarning, match="000002.*truncated.*Using step-0*1[.]"):
        assert load_checkpoint(tmp_path).step == 1
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path, step=2)


def test_another_problem_is_refused_with_what_differs(tmp_path):
    save_checkpoint(tmp_path, 0, {}, fingerprint({"nx": 3, "name": "bend"}))
    with pytest.raises(
        FingerprintError, match=r"`problem\['nx'\]` is int 4 here and int 3 there\. "
    ):
        load_checkpoint(tmp_path, fingerprint({"nx": 4, "name": "bend"}))
    with pytest.raises(FingerprintError, match="must belong to this problem"):
        load_checkpoint(tmp_path, "another")
    assert load_checkpoint(tmp_path).step == 0


def test_symbolic_link_is_not_followed(saved, tmp_path):
    folder, file, _ = saved
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(folder)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / f"step-{0:012d}.checkpoint")
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path)


def test_full_disk_leaves_the_old_checkpoint_and_no_draft(saved, largest_file):
    folder, file, arrays = saved
    size = file.stat().st_size
    random = np.random.default_rng(2)
    with writer_lock(folder):
        files = sorted(folder.iterdir())
        for limit in [0, 1, 47, size - 1, *map(int, random.integers(0, size, 30))]:
            with (
                largest_file(limit),
                pytest.raises(CheckpointError, match=f"{size} bytes") as caught,
            ):
                save_checkpoint(folder, 8, arrays, "print", {"dt": 0.5})
            assert caught.value.errno == errno.EFBIG
            assert sorted(folder.iterdir()) == files
            assert load_checkpoint(folder, "print").step == 7


def test_old_checkpoint_is_replaced_whole_or_not_at_all(saved, monkeypatch):
    folder, file, arrays = saved

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointError, match="No space left"):
        save_checkpoint(folder, 7, {"a": np.zeros(3)}, "print")
    monkeypatch.undo()
    np.testing.assert_array_equal(load_checkpoint(folder).arrays["a"], arrays["a"])
    assert [entry.name for entry in folder.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": -1}, "`step` must be an integer of at least 0, but is -1"),
        ({"keep": 0}, "`keep` must be an integer of at least 1, but is 0"),
    ],
)
def test_numbers_are_checked(tmp_path, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        save_checkpoint(**({"folder": tmp_path, "step": 0, "arrays": {}} | arguments))


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            lambda _: Checkpointing(3, 1),
            "`folder` must be a `str` or `PathLike`",
        ),
        (lambda _: unwrap(latest_step)(3), "`folder` must be a `str` or `PathLike`"),
        (lambda at: unwrap(load_checkpoint)(at, step="a"), "`step` must be .* is 'a'"),
        (lambda at: unwrap(load_checkpoint)(at, at_most=0.5), "`at_most` must .* 0.5"),
        (
            lambda at: unwrap(save_checkpoint)(at, 0, [1.0]),
            r"`arrays` must be a `Mapping`, but is a list. Write `pack_state\(state\)`",
        ),
        (
            lambda at: save_checkpoint(at, 0, {"a": jax.random.key(0)}),
            "`arrays` must hold numbers, but 'a' is a random key. Write `pack_state",
        ),
    ],
)
def test_arguments_of_another_kind_are_refused(tmp_path, work, message):
    with pytest.raises(ArgumentError, match=message):
        work(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_metadata_that_json_cannot_hold_is_refused(tmp_path, value):
    with pytest.raises(CheckpointError, match="`metadata` must hold only what JSON"):
        save_checkpoint(tmp_path, 0, {}, metadata={"x": value})


def test_objects_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="'x' must have one of the dtypes"):
        save_checkpoint(tmp_path, 0, {"x": np.array([None])})
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="folder must be writable"):
        save_checkpoint(tmp_path / "file", 0, {})
