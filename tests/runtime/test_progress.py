import io
import sys
import time

import pytest

from physax import ArgumentError
from physax.runtime import Progress
from physax.runtime._progress import describe_progress, show_progress


def test_description_has_rate_unit_and_time_left():
    text = describe_progress(Progress(unit="Mcell-steps", per_step=0.25), 40, 100, 2.0)
    assert text == "40/100 steps, 2 steps/s, 0.5 Mcell-steps/s, 0:00:30 left"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"line_every": "x"}, "`line_every` must be a number, but is 'x'"),
        ({"line_every": -1}, "`line_every` must be at least 0, but is -1"),
        ({"per_step": float("nan")}, "`per_step` must be at least 0, but is nan"),
        ({"label": 3}, "`label` must be a `str`, but is an int"),
        ({"unit": None}, "`unit` must be a `str`, but is None"),
    ],
)
def test_what_cannot_be_shown_is_refused(given, message):
    with pytest.raises(ArgumentError, match=message):
        Progress(**given)


def test_nothing_is_said_about_an_unknown_rate():
    assert describe_progress(Progress(), 1, 7200, float("nan")) == "1/7200 steps"
    assert describe_progress(Progress(), 0, 7200, 1.0).endswith("2:00:00 left")


def test_log_file_gets_a_line_now_and_then(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with show_progress(Progress("FDTD"), 0, 100) as report:
        for step in range(1, 100):
            now = float(step)
            report(step, 1.0)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["30/100", "60/100", "90/100"]
    assert lines[0].startswith("FDTD: ")


def test_terminal_gets_a_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with show_progress(Progress("FDTD"), 0, 100) as report:
        report(50, 10.0)
        report(100, 10.0)
    assert "FDTD" in terminal.getvalue()
    assert "100/100 steps, 10 steps/s" in terminal.getvalue()


@pytest.mark.parametrize("progress", [False, None])
def test_nothing_is_shown_unless_wanted(progress, capsys):
    with show_progress(progress, 0, 10) as report:
        report(10, 1.0)
    assert capsys.readouterr() == ("", "")


def test_the_environment_switches_it_off(monkeypatch, capsys):
    monkeypatch.setenv("PHYSAX_PROGRESS", "0")
    with show_progress(Progress(line_every=0), 0, 10) as report:
        report(10, 1.0)
    assert capsys.readouterr() == ("", "")
