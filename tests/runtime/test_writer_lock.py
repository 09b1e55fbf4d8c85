import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from physax.runtime import CheckpointLockError, save_checkpoint, writer_lock


def hold(folder, **changes):
    """Leaves the lock of another process in a folder."""
    with writer_lock(folder):
        lock = folder / "writer.lock"
        content = json.loads(lock.read_text()) | changes
    lock.write_text(json.dumps(content))
    return lock


def dead_pid():
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    return pid


def test_second_writer_is_refused_with_the_first_ones_name(tmp_path):
    with (
        writer_lock(tmp_path),
        pytest.raises(
            CheckpointLockError,
            match=f"process {os.getpid()} on {socket.gethostname()}",
        ),
        writer_lock(tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_holder_itself_may_save(tmp_path):
    with writer_lock(tmp_path):
        save_checkpoint(tmp_path, 0, {"x": np.zeros(2)})
        assert (tmp_path / "writer.lock").exists()


def test_saving_beside_a_living_writer_is_refused(tmp_path):
    lock = hold(tmp_path, host="elsewhere")
    with pytest.raises(CheckpointLockError, match="on elsewhere writes there.*remove"):
        save_checkpoint(tmp_path, 0, {})
    assert [entry.name for entry in tmp_path.iterdir()] == [lock.name]


def test_lock_of_a_dead_process_is_taken_over(tmp_path):
    hold(tmp_path, pid=dead_pid())
    orphan = tmp_path / "step-000000000003.checkpoint.tmp-1-1"
    orphan.write_text("half")
    with writer_lock(tmp_path):
        assert not orphan.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_lock_of_an_earlier_process_with_our_number_is_taken_over(tmp_path):
    # In a container, the process after a restart often has the very same number.
    hold(tmp_path, started="an earlier boot 12345")
    with writer_lock(tmp_path):
        pass


def test_who_died_while_breaking_a_lock_does_not_block_others(tmp_path):
    lock = hold(tmp_path, pid=dead_pid())
    token = json.loads(lock.read_text())["token"]
    breaker = json.loads(lock.read_text()) | {"token": "a" * 32}
    (tmp_path / f"writer.lock.{token}").write_text(json.dumps(breaker))
    with writer_lock(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_token_cannot_lead_out_of_the_folder(tmp_path):
    hold(tmp_path, pid=dead_pid(), token="/../../escaped")
    with pytest.raises(CheckpointLockError), writer_lock(tmp_path):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{", '{"pid": "x"}'])
def test_unreadable_lock_holds(tmp_path, content):
    (tmp_path / "writer.lock").write_text(content)
    with pytest.raises(CheckpointLockError, match="must have one writer"):
        save_checkpoint(tmp_path, 0, {})


# Runs in a process of its own, which can fork since it has not started JAX's backend.
RACE = """
import json, os, sys
from pathlib import Path
from physax.runtime import CheckpointLockError, writer_lock

folder = Path(sys.argv[1])
with writer_lock(folder):
    content = json.loads((folder / "writer.lock").read_text())

def compete(go, done):
    os.read(go, 1)
    try:
        with writer_lock(folder):
            # Held until all have tried.
            os.write(done, b"w")
            os.read(go, 1)
    except CheckpointLockError:
        os.write(done, b"l")
    os._exit(0)

for round in range(20):
    stale = content | {"pid": int(sys.argv[2]), "token": f"{round:032x}"}
    (folder / "writer.lock").write_text(json.dumps(stale))
    starts = [os.pipe() for _ in range(6)]
    done, write_done = os.pipe()
    children = []
    for start, _ in starts:
        pid = os.fork()
        if pid == 0:
            compete(start, write_done)
        children.append(pid)
    for _, start in starts:
        os.write(start, b"x")
    outcome = b"".join(os.read(done, 1) for _ in children)
    for _, start in starts:
        os.write(start, b"x")
    for pid in children:
        os.waitpid(pid, 0)
    assert sorted(outcome) == sorted(b"wlllll"), outcome
    assert list(folder.iterdir()) == []
"""


@pytest.mark.slow
def test_of_many_who_find_a_stale_lock_one_gets_it(tmp_path):
    subprocess.run(
        [sys.executable, "-c", RACE, str(tmp_path), str(dead_pid())], check=True
    )
