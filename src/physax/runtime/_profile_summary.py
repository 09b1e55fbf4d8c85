"""What a trace says: which operations took the time, and which parts of a program."""

import re
from collections import defaultdict
from pathlib import Path

import equinox as eqx

from .._checks import ArgumentError, whole
from ._xplane import Operation, TraceFormatError, read_programs, read_runs


# What these take is the time of the operations inside.
_CONTAINERS = ("call", "conditional", "while")
# Names that JAX itself puts between those of the scopes.
_STRUCTURE = re.compile(
    r"while|body|cond|branch_\d+_fun|closed_call|eval_jaxpr|checkpoint|remat|"
    r"rematted_computation|scan|shard_map|custom_jvp_call|custom_vjp_call|custom_lin|"
    r"core_call|pjit"
)
_TRANSFORM = re.compile(r"(\w+)\((.*)\)")
_NO_SCOPE = "(no scope)"


class ProfileRow(eqx.Module):
    """The time of something in a trace.

    Attributes:
        name: What took it: an operation, `"jit_f(4): dot.2"`, or a scope.
        origin: The function, the scopes and the primitive that an operation came from,
            `"jit(f)/scope/dot_general"`; of several fused into one, those of the last.
            Empty for scopes, and for what the compiler added.
        seconds: Its time on all devices and threads together.
        count: How many times it ran.
    """

    name: str
    origin: str
    seconds: float
    count: int


class ProfileSummary(eqx.Module):
    """Where the time of a trace went. Printing it gives a table.

    Attributes:
        seconds: Time in compiled operations, on all devices and threads together.
        operations: The operations, the longest first.
        scopes: The names given by `jax.named_scope`, the longest first. The time in a
            scope counts for those around it too; `"(no scope)"` has the rest.
    """

    seconds: float
    operations: tuple[ProfileRow, ...]
    scopes: tuple[ProfileRow, ...]

    def __str__(self) -> str:
        lines = [f"{'ms':>10} {'%':>5} {'runs':>6}  scope"]
        lines += [self._line(row) for row in self.scopes]
        lines.append(f"{'ms':>10} {'%':>5} {'runs':>6}  operation")
        lines += [self._line(row) for row in self.operations]
        return "\n".join(lines)

    def _line(self, row: ProfileRow) -> str:
        share = 100 * row.seconds / self.seconds
        text = f"{row.name}  {row.origin}".rstrip()
        return f"{1e3 * row.seconds:>10.3f} {share:>5.1f} {row.count:>6}  {text}"


def profile_summary(folder: str | Path, *, top: int = 10) -> ProfileSummary:
    """Adds up the times in a trace by operation and by scope.

    Args:
        folder: Where `profile` wrote it. Of several traces the newest counts.
        top: How many operations to list, at least 1.

    Returns:
        The times. Operations that were compiled into one kernel count as one, for the
        scope of the last of them.

    Raises:
        ArgumentError: If there is no trace, or one that cannot be read, or nothing
            compiled ran in it, or `top` is less than 1.
    """
    top = whole(top, "top")
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    programs: dict[str, dict[str, Operation]] = {}
    for file in _newest_trace(Path(folder)):
        compiled, runs = _read(file)
        programs |= compiled
        for program, name, duration in runs:
            seconds[program, name] += duration
            counts[program, name] += 1

    unknown = Operation("", "")
    scopes: dict[str, float] = defaultdict(float)
    scope_counts: dict[str, int] = defaultdict(int)
    rows = []
    for (program, name), spent in seconds.items():
        operation = programs.get(program, {}).get(name, unknown)
        if operation.opcode in _CONTAINERS:
            continue
        count = counts[program, name]
        rows.append(ProfileRow(f"{program}: {name}", operation.origin, spent, count))
        for scope in _scopes(operation.origin):
            scopes[scope] += spent
            scope_counts[scope] += count
    if not rows:
        raise ArgumentError(
            f"The trace in `{folder}` must hold operations of compiled programs, but "
            "holds none. Run something in the block of `profile`, and block until it "
            "is ready."
        )
    total = sum(row.seconds for row in rows)
    of_scopes = [ProfileRow(n, "", s, scope_counts[n]) for n, s in scopes.items()]
    return ProfileSummary(total, _longest(rows)[:top], _longest(of_scopes))


def _longest(rows: list[ProfileRow]) -> tuple[ProfileRow, ...]:
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _newest_trace(folder: Path) -> list[Path]:
    """Finds the files of the newest trace, one for each computer that took part."""
    files = sorted(folder.rglob("*.xplane.pb"), key=lambda file: file.parent.name)
    if not files:
        raise ArgumentError(
            f"`folder` must hold a trace that `profile` wrote, but there is none in "
            f"`{folder}`."
        )
    return [file for file in files if file.parent == files[-1].parent]


def _read(file: Path) -> tuple[dict[str, dict[str, Operation]], list]:
    content = file.read_bytes()
    try:
        return read_programs(content), list(read_runs(content))
    except TraceFormatError as error:
        raise ArgumentError(
            f"`{file}` must be a trace of JAX's profiler, but cannot be read: {error}"
        ) from error


def _scopes(origin: str) -> set[str]:
    """Returns the names of the scopes in the name of an operation.

    Under a transform a scope is written `transpose(jvp(scope))`; functions are
    `jit(f)`; the primitive stands last.
    """
    names = set()
    for part in origin.split("/")[:-1]:
        name = part
        while match := _TRANSFORM.fullmatch(name):
            name = "" if match[1] in ("jit", "pjit") else match[2]
        if name and not _STRUCTURE.fullmatch(name):
            names.add(name)
    return names or {_NO_SCOPE}
