import gc

import jax
import jax.numpy as jnp
import pytest

from physax._checks import ArgumentError
from physax.runtime import profile, profile_summary
from physax.runtime._profile_summary import _scopes
from physax.runtime._xplane import TraceFormatError, read_programs


RUNS = 3


def model(x):
    with jax.named_scope("mixing"):
        x = jax.lax.fori_loop(0, 4, lambda i, y: jnp.sin(y @ x), x)
    with jax.named_scope("outer"), jax.named_scope("sorting"):
        x = jnp.sort(x, 0)
    return x


# A trace holds every program that is alive: those of other tests take minutes to read.
@pytest.fixture(autouse=True, scope="module")
def only_programs():
    jax.clear_caches()
    gc.collect()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    run, slope = jax.jit(model), jax.jit(jax.grad(lambda x: jnp.sum(model(x) ** 2)))
    x = jnp.ones((300, 300))
    jax.block_until_ready([run(x), slope(x)])
    for function, name in ((run, "value"), (slope, "gradient")):
        with profile(folder / name):
            for _ in range(RUNS):
                jax.block_until_ready(function(x))
    return folder


# Reading a trace takes longer than all that is asked of it.
@pytest.fixture(scope="module")
def summaries(trace):
    return {
        name: profile_summary(trace / name, top=100) for name in ("value", "gradient")
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["value", "gradient"])
def test_the_time_goes_to_the_scopes(summaries, name):
    found = summaries[name]
    rows = {row.name: row for row in found.scopes}
    assert {"mixing", "outer", "sorting"} <= set(rows)
    # Nothing but sorting is in the scope around it.
    assert rows["outer"].seconds == rows["sorting"].seconds
    parts = sum(row.seconds for n, row in rows.items() if n != "outer")
    assert parts == pytest.approx(found.seconds, rel=1e-6)
    # The copies of the compiler are small beside 4 products and a sort.
    assert rows["mixing"].seconds + rows["sorting"].seconds > 0.7 * found.seconds
    assert set(rows) <= {"mixing", "outer", "sorting", "(no scope)"}


def test_operations_stand_in_order_with_their_origin(summaries):
    found = summaries["value"]
    every = found.operations
    seconds = [row.seconds for row in every]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[1] > 0
    # A loop's own time is that of what it does.
    assert not any(row.origin.endswith("/while") for row in every)
    (sort,) = [row for row in every if row.origin.endswith("/sort")]
    assert sort.count % RUNS == 0
    assert sort.origin.startswith("jit(model)/outer/sorting/")
    assert sum(seconds) == pytest.approx(found.seconds)


def test_the_first_operations_can_be_printed(trace, summaries):
    found = profile_summary(trace / "value", top=3)
    assert found.operations == summaries["value"].operations[:3]
    lines = str(found).splitlines()
    assert lines[0].split() == ["ms", "%", "runs", "scope"]
    assert any(line.endswith(" mixing") for line in lines)
    assert lines[-4].split() == ["ms", "%", "runs", "operation"]


def test_the_newest_trace_counts(trace, summaries, tmp_path):
    for name, scope in (("2020_01_01", "value"), ("2021_01_01", "gradient")):
        (file,) = (trace / scope).rglob("*.xplane.pb")
        copy = tmp_path / "plugins" / "profile" / name / file.name
        copy.parent.mkdir(parents=True)
        copy.write_bytes(file.read_bytes())
    assert profile_summary(tmp_path).seconds == summaries["gradient"].seconds


@pytest.mark.parametrize(
    ("origin", "scopes"),
    [
        ("jit(f)/a/while/body/closed_call/b/sin", {"a", "b"}),
        ("jit(f)/vmap(transpose(jvp(a)))/b/cond/branch_1_fun/mul", {"a", "b"}),
        ("jit(f)/transpose(jvp(a))/b/jvp(a)/b/checkpoint/cos", {"a", "b"}),
        ("jit(f)/jvp()/vmap(jit(sort))/sort", {"(no scope)"}),
        ("sin", {"(no scope)"}),
        ("", {"(no scope)"}),
    ],
)
def test_scopes_are_found_under_transforms(origin, scopes):
    assert _scopes(origin) == scopes


def test_a_damaged_trace_is_refused(trace, tmp_path):
    (file,) = (trace / "value").rglob("*.xplane.pb")
    content = file.read_bytes()
    # Wherever the end is missing, the outermost message is not whole.
    for length in (1, 100, len(content) - 1):
        with pytest.raises(TraceFormatError):
            read_programs(content[:length])
    with pytest.raises(TraceFormatError, match="no field of the kind 7"):
        read_programs(b"\x0f")
    with pytest.raises(TraceFormatError, match="does not end"):
        read_programs(b"\x80" * 12)
    (tmp_path / "a.xplane.pb").write_bytes(content[:-1])
    with pytest.raises(ArgumentError, match=r"a\.xplane\.pb` must be a trace of JAX's"):
        profile_summary(tmp_path)


def test_a_folder_without_a_trace_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="`folder` must hold a trace .* is none in"):
        profile_summary(tmp_path)


def test_a_trace_of_nothing_is_refused(tmp_path):
    with profile(tmp_path):
        pass
    with pytest.raises(ArgumentError, match="must hold operations of compiled prog"):
        profile_summary(tmp_path)


def test_top_is_checked(trace):
    with pytest.raises(
        ArgumentError, match="`top` must be an integer of at least 1, but is 0"
    ):
        profile_summary(trace / "value", top=0)
