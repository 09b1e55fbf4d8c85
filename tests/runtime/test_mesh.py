import jax
import pytest
from jax.sharding import AxisType

from physax._checks import ArgumentError
from physax.runtime import _mesh, best_device, devices, mesh


def test_default_mesh_holds_all_devices():
    made = mesh()
    assert made.shape == {"x": len(jax.devices())}


def test_axes_are_named_and_automatic():
    made = mesh(1, 1, 1)
    assert made.axis_names == ("x", "y", "z")
    assert set(made.axis_types) == {AxisType.Auto}
    assert mesh(data=1, model=1).axis_names == ("data", "model")


def test_too_many_devices_are_refused_with_what_there_is():
    count = len(jax.devices()) + 1
    with pytest.raises(ArgumentError, match=rf"needs {count}. There are: cpu:0"):
        mesh(count)


def test_size_below_one_is_refused():
    with pytest.raises(
        ArgumentError, match="`y` must be an integer of at least 1, but is 0"
    ):
        mesh(1, 0)


def test_sizes_and_names_do_not_mix():
    with pytest.raises(ArgumentError, match="either sizes or named sizes"):
        mesh(1, data=1)


def test_a_fourth_axis_needs_a_name():
    with pytest.raises(ArgumentError, match="at most 3 entries, but has 4"):
        mesh(1, 1, 1, 1)


def test_devices_are_described():
    found = devices()
    assert len(found) == len(jax.devices())
    assert found[0].platform == jax.devices()[0].platform
    assert found[0].index == 0


class Fake:
    def __init__(self, platform, stats):
        self.platform = platform
        self._stats = stats

    def memory_stats(self):
        return self._stats


def test_the_best_device_is_an_accelerator_with_free_memory():
    cpu = Fake("cpu", None)
    full = Fake("gpu", {"bytes_limit": 80, "bytes_in_use": 70})
    small = Fake("gpu", {"bytes_limit": 40, "bytes_in_use": 10})
    silent = Fake("tpu", None)
    assert _mesh.merit_order([cpu, full, small, silent]) == [small, full, silent, cpu]


def test_the_best_device_is_one_of_those_given():
    found = jax.devices()
    assert best_device() in found
    assert best_device(found[-1:]) == found[-1]


def test_no_device_is_refused():
    with pytest.raises(ArgumentError, match="`among` must hold at least one device"):
        best_device([])
