"""Which test runs in which session, and what no test may do.

There are four sessions: float32 and float64 (JAX_ENABLE_X64=1), each on one device and
on eight virtual ones (--devices). A test without a mark runs in both precisions on
one device, unless its folder or file stands in the table below. Each session has a
second half (--slow) of tests that take longer.
"""

import gc
import os
import re
import resource
import socket
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physax.runtime import compile_quickly


DEVICES = 8

_approx = pytest.approx


def _relative(expected, rel=None, abs=None, nan_ok=False):
    """Like pytest's `approx`, without its least tolerance of 1e-12 for small numbers.

    In SI units all that is here may be below it, and would be equal to anything.
    """
    if abs is None:
        values = list(expected.values()) if isinstance(expected, dict) else expected
        size = np.max(np.abs(np.asarray(values, complex)), initial=0.0)
        rel = 1e-6 if rel is None else rel
        abs = 0.0 if 0 < size < 1e-12 / rel else 1e-12
    return _approx(expected, rel=rel, abs=abs, nan_ok=nan_ok)


pytest.approx = _relative

# Compiling takes nearly all of the time of the tests. Where the second precision would
# tell nothing new, tests without a mark run in one: orders, limits and balances show
# in float64, and what does not compute runs as users do.
ONE_PRECISION = {
    "f32": [
        "cli",
        "design",
        "docs",
        "graph",
        "grid/test_block.py",
        "grid/test_edges.py",
        "grid/test_field.py",
        "grid/test_grid.py",
        "grid/test_layout.py",
        "io",
        "particles/test_ends.py",
        "particles/test_seeding.py",
        "particles/test_seeding_refusals.py",
        "particles/test_track_arguments.py",
        "plot",
        "runtime",
        "test_benchmarks.py",
        "test_window_benchmark.py",
        "test_status.py",
        "test_whole_file.py",
        "em/test_explain.py",
        "em/test_materials.py",
        "em/test_medium.py",
        "em/test_faults.py",
        "em/test_placed_faults.py",
        "em/test_run.py",
        "em/test_run_ends.py",
        "em/test_recompile.py",
        "em/test_s_parameters.py",
        "em/test_section_faults.py",
        "em/test_scene.py",
        "em/test_transforms.py",
    ],
    "x64": [
        "fit",
        "sharding",
        "validation",
        "test_loop.py",
        "particles/test_box.py",
        "particles/test_density.py",
        "particles/test_forces.py",
        "particles/test_ftle.py",
        "particles/test_land.py",
        "particles/test_obstacles.py",
        "particles/test_point_cloud.py",
        "particles/test_sph.py",
        "particles/test_sphere.py",
        "particles/test_residence.py",
        "particles/test_statistics.py",
        "grid/test_difference.py",
        "grid/test_in_place.py",
        "grid/test_sampling.py",
        "em/test_compensation.py",
        "em/test_cross_section.py",
        "em/test_ports.py",
        "em/test_diffraction_orders.py",
        "em/test_emission.py",
        "em/test_far_field.py",
        "em/test_far_field_refusals.py",
        "em/test_force.py",
        "em/test_force_refusals.py",
        "em/test_gaussian_beam.py",
        "em/test_huygens.py",
        "em/test_metal.py",
        "em/test_metal_refusals.py",
        "em/test_metal_shapes.py",
        "em/test_mirror.py",
        "em/test_monitors.py",
        "em/test_plane_wave.py",
        "em/test_platforms.py",
        "em/test_rasterise.py",
        "em/test_combinations.py",
        "em/test_gradient_batches.py",
        "em/test_graded_grid.py",
        "em/test_paths.py",
        "em/test_shape_derivatives.py",
        "em/test_shapes.py",
        "em/test_solids.py",
        "em/test_sources.py",
        "em/test_subpixel.py",
        "em/test_polarised_poles.py",
        "em/test_visible.py",
        "em/test_adjoints.py",
        "em/test_apodised.py",
        "em/test_convergence.py",
        "em/test_cpml.py",
        "em/test_eigenpair.py",
        "em/test_gradients.py",
        "em/test_linear_tape.py",
        "em/test_cylindrical_plane_wave.py",
        "em/test_dispersive_plane_wave.py",
        "em/test_dispersive_surroundings.py",
    ],
}


def pytest_addoption(parser):
    group = parser.getgroup("physax")
    group.addoption("--stress", action="store_true", help="also run the stress tests")
    group.addoption(
        "--slow", action="store_true", help="run the slow tests, and no other"
    )
    group.addoption(
        "--devices",
        action="store_true",
        help=f"run the tests of many devices, on {DEVICES} virtual ones, and no other",
    )
    group.addoption(
        "--own-cores",
        action="store_true",
        help="keep each worker to a core of its own, where there are enough",
    )


def pytest_configure(config):
    # Compiling takes most of the time of the tests.
    compile_quickly()
    # Tracing makes millions of objects that stay: looking for garbage takes 6 % else.
    gc.set_threshold(50_000, 50, 100)
    if config.getoption("--own-cores"):
        _take_core()
    if config.getoption("--devices"):
        # In time: the backend starts when a test first uses it.
        jax.config.update("jax_num_cpu_devices", DEVICES)


def _take_core():
    """Keeps a worker to one core: threads of another would wait for each other."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not (worker and hasattr(os, "sched_setaffinity")):
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= int(os.environ["PYTEST_XDIST_WORKER_COUNT"]):
        os.sched_setaffinity(0, {cores[int(worker)]})


def _marks_of_place(path: Path) -> set[str]:
    """Returns the precision that the table gives a file."""
    place = path.relative_to(Path(__file__).parent)
    places = {str(place), *map(str, place.parents)}
    return {mark for mark, names in ONE_PRECISION.items() if places & set(names)}


def _precision() -> str:
    """Returns the mark of this session's precision."""
    return "x64" if jnp.result_type(float) == jnp.float64 else "f32"


def pytest_ignore_collect(collection_path, config):
    """Skips files of which no test would stay: their imports take long."""
    if not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    together = Path(__file__).parent / "sharding" in collection_path.parents
    many = config.getoption("--devices")
    if many != together and not (many and "mark.devices" in text):
        return True
    if config.getoption("--slow") and "mark.slow" not in text:
        return True
    here = _precision()
    other = "x64" if here == "f32" else "f32"
    if re.search(rf"^pytestmark = .*\bmark\.{other}\b", text, re.MULTILINE):
        return True
    elsewhere = _marks_of_place(collection_path) - {here}
    return True if elsewhere and f"mark.{here}" not in text else None


def _slow(items) -> set[str]:
    """Returns the names of slow tests; `slow(after=1)` leaves out the first case."""
    found, cases = set(), Counter()
    for item in items:
        test = item.path, item.originalname
        mark = item.get_closest_marker("slow")
        if mark and cases[test] >= mark.kwargs.get("after", 0):
            found.add(item.nodeid)
        cases[test] += 1
    return found


def pytest_collection_modifyitems(config, items):
    x64 = _precision() == "x64"
    many = config.getoption("--devices")
    stress = config.getoption("--stress")
    slow = _slow(items)
    # A test that is named on the command line runs, slow or not.
    ids = [argument.partition("::") for argument in config.args]
    there = config.invocation_params.dir
    asked = [((there / file).resolve(), name) for file, _, name in ids if name]

    def named(item):
        own = item.nodeid.partition("::")[2]
        return any(
            item.path == file
            and (own == name or own.startswith((name + "[", name + "::")))
            for file, name in asked
        )

    def wanted(item):
        if Path(__file__).parent / "sharding" in item.path.parents:
            item.add_marker("devices")
        marks = {mark.name for mark in item.iter_markers()}
        if not marks & {"f32", "x64"}:
            marks |= _marks_of_place(item.path)
        return (
            not (x64 and "f32" in marks)
            and not (not x64 and "x64" in marks)
            and ("devices" in marks) == many
            and (stress or "stress" not in marks)
            and (named(item) or (item.nodeid in slow) == config.getoption("--slow"))
        )

    kept, dropped = [], []
    for item in items:
        (kept if wanted(item) else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_collection_finish():
    """Spares the garbage collector what stays to the end: modules and tests."""
    gc.freeze()


class _LocalSocket(socket.socket):
    """A socket that stays on this machine."""

    def __init__(self, family=socket.AF_INET, *args, **kwargs):
        if family not in (-1, socket.AF_UNIX):
            raise OSError("tests must not use the network")
        super().__init__(family, *args, **kwargs)


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuses network sockets: nothing in physax goes online by itself."""
    monkeypatch.setattr(socket, "socket", _LocalSocket)


# Each compiled program takes some places in a process's memory map, of which Linux
# grants 65,530; XLA crashes beyond.
_MANY_MAPS = 20_000


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Forgets compiled programs when there are very many."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > _MANY_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def in_blocks(monkeypatch):
    """Steps poles in blocks, however few they are."""
    jax.clear_caches()
    monkeypatch.setattr("physax.em._pole_blocks.LEAST", 0)
    monkeypatch.setattr("physax.em._program.default_platform", lambda: "cpu")
    yield
    jax.clear_caches()


@pytest.fixture
def largest_file():
    """Returns a context in which no file gets larger than so many bytes."""

    @contextmanager
    def limited(size):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(autouse=True)
def close_figures():
    """Closes the figures a test leaves open, without loading matplotlib."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
