import os

import jax
import pytest

from physax.runtime import compile_quickly


FLAG = "--xla_cpu_use_fusion_emitters=false"


@pytest.mark.parametrize("before", ["", "--xla_force_host_platform_device_count=2"])
def test_other_flags_stay(monkeypatch, before):
    monkeypatch.setattr(jax, "__version_info__", (0, 10, 2))
    monkeypatch.setenv("XLA_FLAGS", before)
    assert compile_quickly()
    assert compile_quickly()
    assert os.environ["XLA_FLAGS"].split() == [*before.split(), FLAG]


def test_a_choice_of_the_user_stays(monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", (0, 10, 2))
    chosen = "--xla_cpu_use_fusion_emitters=true"
    monkeypatch.setenv("XLA_FLAGS", chosen)
    assert compile_quickly()
    assert os.environ["XLA_FLAGS"] == chosen


def test_releases_without_the_option_get_no_flag(monkeypatch):
    # XLA would end the process.
    monkeypatch.setattr(jax, "__version_info__", (0, 11, 0))
    monkeypatch.setenv("XLA_FLAGS", "")
    assert not compile_quickly()
    assert os.environ["XLA_FLAGS"] == ""
