import os
import stat
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache

from physax.runtime import CacheFolderError, enable_compile_cache


OPTIONS = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


@pytest.fixture(autouse=True)
def restore_options():
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    yield
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def test_programs_compiled_afterwards_are_kept_for_this_user_alone(tmp_path):
    jax.jit(lambda x: x + 1)(jnp.ones(3))  # JAX has decided to have no cache.
    folder = enable_compile_cache(tmp_path / "cache")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    jax.jit(lambda x: x * 17.25)(jnp.ones(3))
    assert any(folder.iterdir())


def test_the_environment_chooses_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "named"))
    assert enable_compile_cache() == tmp_path / "named"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert enable_compile_cache() == tmp_path / "home" / "physax" / "jax"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_folder_that_others_may_write_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(CacheFolderError, match=rf"has the mode 0{mode:o}.*`chmod 700"):
        enable_compile_cache(tmp_path)


def test_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(CacheFolderError, match="must belong to you"):
        enable_compile_cache(tmp_path)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheFolderError, match="must be a folder"):
        enable_compile_cache(tmp_path / "file")


SIMULATION = """
import collections, sys
import jax, jax.monitoring
import jax.numpy as jnp

count = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: count.update([event]))

from physax import em
from physax.grid import Grid
from physax.runtime import enable_compile_cache

enable_compile_cache(sys.argv[1])


def energy(eps):
    dipole = em.Dipole("Ez", (6e-7, 6e-7), em.GaussianPulse(2e14, 5e13))
    sim = em.Simulation(
        Grid.uniform((30, 30), 4e-8),
        em.Medium(eps),
        em.Boundaries.all(em.CPML(8)),
        polarisation="Ez",
        steps=40,
        sources={"dipole": dipole},
    )
    return jnp.sum(em.simulate(sim).fields["Ez"] ** 2)


jax.value_and_grad(energy)(jnp.full((30, 30), 2.0))
print(*(count[f"/jax/compilation_cache/cache_{what}"] for what in ("misses", "hits")))
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    def run():
        paths = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", SIMULATION, str(tmp_path / "cache")],
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    misses, _ = run()
    assert misses > 5
    assert run()[0] == 0
