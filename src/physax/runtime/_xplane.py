"""Reads from a trace what each operation of a program came from.

A trace of JAX's profiler is a message of Protocol Buffers, `XSpace` of OpenXLA's
`xplane.proto`, in which each compiled program lies as an `HloProto` of `hlo.proto`.
Only the few fields needed are read here.
"""

from collections.abc import Iterator

import equinox as eqx


class Operation(eqx.Module):
    """What an operation of a compiled program is.

    Attributes:
        opcode: What it does, as `"dot"` or `"while"`.
        origin: The functions, scopes and the primitive that it came from, as
            `"jit(f)/scope/dot_general"`; empty if the compiler added it.
    """

    opcode: str
    origin: str


class TraceFormatError(Exception):
    """The bytes are not a message."""


# Numbers of fields, with the message that they belong to.
_SPACE_PLANES = 1
_PLANE_NAME, _PLANE_LINES, _PLANE_EVENT_NAMES, _PLANE_STAT_NAMES = 2, 3, 4, 5
_LINE_EVENTS = 4
_EVENT_PICOSECONDS, _EVENT_STATS = 3, 4
_STAT_NAME, _STAT_UNSIGNED, _STAT_SIGNED, _STAT_TEXT = 1, 3, 4, 5
_STAT_BYTES, _STAT_NAMED = 6, 7
_MAP_VALUE = 2
_NAMED_NUMBER, _NAMED_TEXT, _NAMED_STATS = 1, 2, 5
_HLO_MODULE, _MODULE_COMPUTATIONS, _COMPUTATION_INSTRUCTIONS = 1, 3, 2
_INSTRUCTION_NAME, _INSTRUCTION_OPCODE, _INSTRUCTION_METADATA = 1, 2, 7
_METADATA_OP_NAME = 2
_PROGRAMS = "/host:metadata"
# Bytes of the kinds of field whose length is fixed.
_LENGTHS = {1: 8, 5: 4}


def read_programs(trace: bytes) -> dict[str, dict[str, Operation]]:
    """Reads the compiled programs in a trace.

    Args:
        trace: The content of a file `*.xplane.pb`.

    Returns:
        For each program, by name and number as in `"jit_f(4)"`, its operations by name.

    Raises:
        TraceFormatError: If the bytes are not a message.
    """
    programs = {}
    for plane in _messages(memoryview(trace), _SPACE_PLANES):
        if _text(plane, _PLANE_NAME) != _PROGRAMS:
            continue
        for entry in _messages(plane, _PLANE_EVENT_NAMES):
            for program in _messages(entry, _MAP_VALUE):
                name = _text(program, _NAMED_TEXT)
                programs[name] = dict(_operations(program))
    return programs


def read_runs(trace: bytes) -> Iterator[tuple[str, str, float]]:
    """Reads which operations of compiled programs ran, and how long.

    JAX's own reader, `jax.profiler.ProfileData`, ends the process with jax 0.12.0.1.

    Args:
        trace: The content of a file `*.xplane.pb`.

    Yields:
        Program and operation, by the names that `read_programs` has, and seconds.

    Raises:
        TraceFormatError: If the bytes are not a message.
    """
    for plane in _messages(memoryview(trace), _SPACE_PLANES):
        names = {}
        for entry in _messages(plane, _PLANE_STAT_NAMES):
            for named in _messages(entry, _MAP_VALUE):
                fields = dict(_fields(named))
                names[fields.get(_NAMED_NUMBER, 0)] = _text(named, _NAMED_TEXT)
        for line in _messages(plane, _PLANE_LINES):
            for event in _messages(line, _LINE_EVENTS):
                stats = dict(
                    _stat(stat, names) for stat in _messages(event, _EVENT_STATS)
                )
                if "hlo_op" in stats:
                    program = f"{stats.get('hlo_module')}({stats.get('program_id')})"
                    duration = dict(_fields(event)).get(_EVENT_PICOSECONDS, 0)
                    assert isinstance(duration, int)
                    yield program, str(stats["hlo_op"]), 1e-12 * duration


def _stat(stat: memoryview, names: dict) -> tuple[str, str | int]:
    """Returns the name of a statistic, and its value if that is a text or integer."""
    value: str | int = ""
    name = ""
    for number, content in _fields(stat):
        if number == _STAT_NAME:
            name = names.get(content, "")
        elif number == _STAT_NAMED:
            value = names.get(content, "")
        elif number in (_STAT_UNSIGNED, _STAT_SIGNED):
            value = content if isinstance(content, int) else 0
        elif number == _STAT_TEXT and isinstance(content, memoryview):
            value = bytes(content).decode(errors="replace")
    return name, value


def _operations(program: memoryview) -> Iterator[tuple[str, Operation]]:
    for stat in _messages(program, _NAMED_STATS):
        for content in _messages(stat, _STAT_BYTES):
            for module in _messages(content, _HLO_MODULE):
                for computation in _messages(module, _MODULE_COMPUTATIONS):
                    yield from _instructions(computation)


def _instructions(computation: memoryview) -> Iterator[tuple[str, Operation]]:
    for one in _messages(computation, _COMPUTATION_INSTRUCTIONS):
        origins = [
            _text(metadata, _METADATA_OP_NAME)
            for metadata in _messages(one, _INSTRUCTION_METADATA)
        ]
        opcode = _text(one, _INSTRUCTION_OPCODE)
        yield _text(one, _INSTRUCTION_NAME), Operation(opcode, "".join(origins))


def _text(message: memoryview, number: int) -> str:
    return b"".join(_messages(message, number)).decode(errors="replace")


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yields the fields of a number that are bytes, texts or messages."""
    for found, content in _fields(message):
        if found == number and isinstance(content, memoryview):
            yield content


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields number and content of the fields of a message, in their order."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield key >> 3, value
            continue
        if kind not in _LENGTHS and kind != 2:
            raise TraceFormatError(f"There is no field of the kind {kind}.")
        length = _LENGTHS.get(kind)
        if length is None:
            length, position = _varint(message, position)
        end = position + length
        if end > len(message):
            raise TraceFormatError("A field is longer than its message.")
        yield key >> 3, message[position:end]
        position = end


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Reads a number of seven bits a byte, least significant first."""
    value, shift = 0, 0
    while True:
        # A negative number takes ten bytes.
        if position >= len(message) or shift > 63:
            raise TraceFormatError("A number does not end.")
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
