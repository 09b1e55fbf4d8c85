"""Joining a job: what the environment says, and what can't be joined."""

import inspect
import subprocess
import sys
import time

import pytest

from physax import ArgumentError, runtime


VARIABLES = (
    "PHYSAX_COORDINATOR",
    "PHYSAX_PROCESSES",
    "PHYSAX_PROCESS",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE",
    "PMI_RANK",
    "SLURM_NTASKS",
)


def given(coordinator, processes, process):
    return {"coordinator": coordinator, "processes": processes, "process": process}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_a_process_that_nothing_tells_of_others_stays_alone():
    me = runtime.initialize()
    assert (me.index, me.count, me.first) == (0, 1, True)
    runtime.check_same("Options", "any")


@pytest.mark.parametrize(
    ("size", "rank"),
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK")],
)
def test_one_process_of_a_launcher_is_alone_and_several_need_an_address(
    monkeypatch, size, rank
):
    monkeypatch.setenv(size, "1")
    monkeypatch.setenv(rank, "0")
    assert runtime.initialize().count == 1
    monkeypatch.setenv(size, "4")
    with pytest.raises(ArgumentError, match="4 processes.*Set PHYSAX_COORDINATOR"):
        runtime.initialize()
    monkeypatch.setenv("PHYSAX_COORDINATOR", "here:123")
    monkeypatch.setenv(rank, "4")
    with pytest.raises(ArgumentError, match="from 0 to 3, but is 4"):
        runtime.initialize()
    monkeypatch.setenv(rank, "first")
    with pytest.raises(ArgumentError, match=f"{rank} must be numbers"):
        runtime.initialize()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coordinator": "here:1"}, "must come together, but are 'here:1', None"),
        ({"coordinator": "here", "processes": 2, "process": 0}, "must be host:port"),
        ({"coordinator": "here:1", "processes": 2, "process": 2}, "from 0 to 1"),
        (given("here:99999", 2, 0), "must be host:port"),
        (given("here:1", "2", 0), "`processes` must be an integer .* but is '2'"),
        (given("here:1", 2, 0.5), "`process` must be an integer .* but is 0.5"),
        (given(123, 2, 0), "`coordinator` must be a `str`, but is an int"),
        (given("here:1", 0, 0), "`processes` must be .* at least 1, but is 0"),
        (given("here:1", -2, 0), "`processes` must be .* at least 1, but is -2"),
        (given("here:1", 2, -1), "`process` must be .* at least 0, but is -1"),
        (given("x", 1, 0), "must be host:port"),
        (given("here:1", 1, 9), "`process` must be from 0 to 0, but is 9"),
        ({"timeout": "3"}, "`timeout` must be a finite number of sec.* but is '3'"),
        ({"timeout": float("nan")}, "`timeout` must be a finite .* but is nan"),
        ({"timeout": float("inf")}, "`timeout` must be a finite .* but is inf"),
    ],
)
def test_arguments_that_can_not_be(arguments, message):
    # Before the types are checked, as users get it.
    with pytest.raises(ArgumentError, match=message):
        inspect.unwrap(runtime.initialize)(**arguments)


def test_one_process_may_say_so():
    assert runtime.initialize("here:1", 1, 0).count == 1


@pytest.mark.slow
def test_a_coordinator_that_is_not_there_is_said_in_time():
    # In a process of its own: tests may open no socket. Nothing listens at port 9.
    code = (
        "from physax import runtime\nruntime.initialize('127.0.0.1:9', 2, 1, timeout=1)"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert time.monotonic() - start < 60
    assert done.returncode == 1
    expected = "ProcessesError: Process 0 must listen at 127.0.0.1:9 within 1 s"
    assert expected in done.stderr
