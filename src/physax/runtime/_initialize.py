"""Starting as one of several processes that compute together."""

import math
import os
import socket
import time
from collections.abc import Mapping
from numbers import Real
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.experimental import multihost_utils

from .._checks import ArgumentError, PhysaxError, instance, whole


COORDINATOR = "PHYSAX_COORDINATOR"
PROCESSES = "PHYSAX_PROCESSES"
PROCESS = "PHYSAX_PROCESS"

# Number of processes and number of this one, as launchers say it. MPICH, Intel MPI and
# many others set the second pair.
_RANKS = (
    (PROCESSES, PROCESS),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
)
_HEARTBEAT = 20
_LAST_PORT = 65535


class ProcessesError(PhysaxError, RuntimeError):
    """Processes that should compute together can't."""


class Processes(eqx.Module):
    """The processes that compute together.

    Attributes:
        index: Number of this one, from 0. It alone should print and write figures.
        count: How many there are.
    """

    index: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    @property
    def first(self) -> bool:
        """Whether this is the process that prints."""
        return self.index == 0


def initialize(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    *,
    timeout: float = 300.0,
) -> Processes:
    """Joins the processes of a job, so that their devices form one mesh.

    Call it first, before anything asks for devices; then the same script runs on one
    process or many. Without arguments it asks, in this order, the environment variables
    `PHYSAX_COORDINATOR`, `PHYSAX_PROCESSES` and `PHYSAX_PROCESS` (`physax launch` sets
    them), SLURM (`srun`), and the variables of MPI launchers (`OMPI_COMM_WORLD_SIZE`,
    `PMI_SIZE` and the ranks; `PHYSAX_COORDINATOR` is needed then). Where none of them
    gives several processes, this one stays alone.

    A process that dies ends the others within about a minute: JAX's coordination
    service misses its heartbeat. Start the job again; runs with checkpoints continue.

    Args:
        coordinator: Address of process 0, as `"host:port"`.
        processes: How many there are.
        process: Number of this one, from 0.
        timeout: How long to wait for the others, in seconds.

    Returns:
        The number of this process, and how many there are.

    Raises:
        ArgumentError: If the three do not come together, or an argument is of another
            kind or out of range.
        ProcessesError: If the others can't be reached in time.
    """
    given = (coordinator, processes, process)
    if any(value is not None for value in given) and None in given:
        raise ArgumentError(
            "`coordinator`, `processes` and `process` must come together, but are "
            f"{coordinator!r}, {processes} and {process}."
        )
    if not isinstance(timeout, Real) or not 0 <= timeout < math.inf:
        raise ArgumentError(
            f"`timeout` must be a finite number of seconds, but is {timeout!r}."
        )
    timeout = float(timeout)
    if coordinator is None:
        coordinator, processes, process = _environment(os.environ)
    if processes is not None and process is not None:
        processes, process = _check(coordinator, processes, process)
        if processes > 1:
            _join(coordinator, processes, process, timeout)
    elif processes is None and int(os.environ.get("SLURM_NTASKS", "1")) > 1:
        # JAX knows SLURM's list of nodes.
        _join(None, None, None, timeout)
    return Processes(jax.process_index(), jax.process_count())


def exchange(value: np.ndarray) -> np.ndarray:
    """Gathers a value of each process, `[processes, ...]`; all must call it.

    Raises:
        ProcessesError: If another process can't be reached any more.
    """
    try:
        return np.asarray(multihost_utils.process_allgather(value))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        raise ProcessesError(
            f"All {jax.process_count()} processes must answer, but: "
            f"{str(error).splitlines()[0]}"
        ) from error


def check_same(what: str, digest: str) -> None:
    """Refuses that processes run with different inputs, options or code.

    Args:
        what: What is compared, for the message.
        digest: Of this process, such as the `digest` of a `Fingerprint`.

    Raises:
        ProcessesError: If that of another process differs, in all processes; or if one
            can't be reached.
    """
    if jax.process_count() == 1:
        return
    mine = digest.encode()[:64].ljust(64)
    found = exchange(np.frombuffer(mine, np.uint8))
    digests = [bytes(row).decode().strip() for row in found]
    others = [str(n) for n, other in enumerate(digests) if other != digests[0]]
    if others:
        raise ProcessesError(
            f"{what} must be the same in all processes, but those of process "
            f"{', '.join(others)} differ from those of process 0. Start all with the "
            "same code, options and files."
        )


def _environment(
    variables: Mapping[str, str],
) -> tuple[str | None, int | None, int | None]:
    for count, rank in _RANKS:
        if count in variables and rank in variables:
            try:
                processes, process = int(variables[count]), int(variables[rank])
            except ValueError:
                raise ArgumentError(
                    f"The environment variables {count} and {rank} must be numbers, "
                    f"but are {variables[count]!r} and {variables[rank]!r}."
                ) from None
            return variables.get(COORDINATOR), processes, process
    return None, None, None


def _check(coordinator: Any, processes: Any, process: Any) -> tuple[int, int]:
    """Returns both numbers, after all checks that need no other process."""
    processes, process = whole(processes, "processes"), whole(process, "process", 0)
    if coordinator is None and processes > 1:
        raise ArgumentError(
            f"The environment must give the address of process 0 for {processes} "
            f"processes, but does not. Set {COORDINATOR} to its host:port in all of "
            "them."
        )
    if coordinator is not None:
        instance(coordinator, "coordinator", str, "Write 'node7:12345'.")
        host, _, port = coordinator.rpartition(":")
        if not host or not port.isdecimal() or int(port) > _LAST_PORT:
            raise ArgumentError(
                f"`coordinator` must be host:port, such as 'node7:12345', but is "
                f"{coordinator!r}."
            )
    if process >= processes:
        raise ArgumentError(
            f"`process` must be from 0 to {processes - 1}, but is {process}."
        )
    return processes, process


def _join(
    coordinator: str | None, processes: int | None, process: int | None, timeout: float
) -> None:
    if coordinator is not None and process:
        _wait_for(coordinator, timeout)
    try:
        jax.distributed.initialize(
            coordinator,
            processes,
            process,
            initialization_timeout=max(1, int(timeout)),
            heartbeat_timeout_seconds=_HEARTBEAT,
        )
    except (RuntimeError, ValueError) as error:
        raise ProcessesError(
            f"The {processes or 'processes of the job'} must meet at "
            f"{coordinator or 'the address that SLURM gives'} within {timeout:g} s, "
            f"but did not: {str(error).splitlines()[0]} Call `initialize` before "
            "anything else uses devices, and start all processes at about one time."
        ) from error
    # The channels between processors are made at their first message, within 30 s of
    # each other: now, while all are in step, and not after compilations that are not.
    exchange(np.zeros(1))


def _wait_for(coordinator: str, timeout: float) -> None:
    """Waits until process 0 listens: JAX ends a process whose coordinator is absent."""
    host, _, port = coordinator.rpartition(":")
    end = time.monotonic() + timeout
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise ProcessesError(
                    f"Process 0 must listen at {coordinator} within {timeout:g} s, but "
                    f"does not: {error}. See that it runs, that the address is right, "
                    "and that no firewall is between."
                ) from error
            time.sleep(min(0.2, timeout / 10))
