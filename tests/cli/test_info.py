import json

import jax
import pytest

import physax
from physax._checks import ArgumentError
from physax._status import RunError, Status
from physax.cli import ExitCode, _machine, _main, main


pytestmark = pytest.mark.f32


def test_info_reports_versions_devices_and_positive_rates(capsys):
    assert main(["info", "--json"]) == ExitCode.DONE
    report = json.loads(capsys.readouterr().out)
    assert report["versions"]["physax"] == physax.__version__
    assert report["versions"]["jax"] == jax.__version__
    assert len(report["devices"]) == jax.device_count()
    assert report["benchmark"]["bandwidth_bytes_per_s"] > 0
    assert report["benchmark"]["matmul_flop_per_s"] > 0


def test_info_prints_tables_and_can_skip_the_benchmark(capsys, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.375")
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert main(["info", "--no-benchmark"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert "0.375" in out
    assert "not set: true" in out
    assert "Versions" in out
    assert str(jax.devices()[0]) in out
    assert "Quick benchmark" not in out


@pytest.mark.parametrize("line", [[], ["unknown"], ["info", "--unknown"]])
def test_wrong_usage_exits_with_2(line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line)
    assert stop.value.code == ExitCode.USAGE
    assert "usage: physax" in capsys.readouterr().err


def test_help_names_every_exit_code(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == ExitCode.DONE
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{code.value} {code.name.lower()}" in text for code in ExitCode)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ArgumentError("`cells` is 0."), ExitCode.REFUSED, "`cells` is 0."),
        (_machine.DeviceError("no cuda"), ExitCode.RESOURCES, "no cuda"),
        (MemoryError(), ExitCode.RESOURCES, "out of memory"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: 9 GiB"),
            ExitCode.RESOURCES,
            "out of memory",
        ),
        (RunError("at step 9", Status.INTERRUPTED), ExitCode.INTERRUPTED, "step 9"),
        (RunError("at step 9", Status.DIVERGED), ExitCode.REFUSED, "step 9"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
    ],
)
def test_failures_become_exit_codes_and_one_line(
    error, code, message, monkeypatch, capsys
):
    def fail(options):
        del options
        raise error

    class Parser:
        def parse_args(self, arguments):
            del arguments
            return type("Options", (), {"run": staticmethod(fail)})

    monkeypatch.setattr(_main, "_parser", Parser)
    assert main([]) == code
    written = capsys.readouterr().err
    assert written.startswith("physax: ")
    assert message in written
    assert written.count("\n") == 1


def test_other_runtime_errors_of_jax_stay_visible(monkeypatch):
    def fail(device):
        raise jax.errors.JaxRuntimeError("INTERNAL: a fault of ours")

    monkeypatch.setattr("physax.cli._info.measure", fail)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        main(["info"])


@pytest.mark.parametrize("error", [RuntimeError("No backend 'cuda'"), AssertionError()])
def test_missing_devices_are_named(error, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr(jax, "devices", fail)
    assert main(["info"]) == ExitCode.RESOURCES
    message = capsys.readouterr().err
    assert "JAX must find a device, but finds none for `JAX_PLATFORMS`" in message
    assert str(error) in message
