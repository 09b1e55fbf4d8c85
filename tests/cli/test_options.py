"""Numbers on the command line are refused under the names of their options."""

import pytest

from physax.cli import ExitCode, main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("launch -n 0 x.py", "-n: must be a whole number of at least 1, but is '0'"),
        ("launch -n 1 --grace -1 x.py", "--grace: must be a number of at least 0"),
        ("track x --days -1", "--days: must be a positive number, but is '-1'"),
        ("em run x --threads 0", "--threads: must be a whole number of at least 1"),
        ("xpcs fit x --q -1", "--q: must be a positive number, but is '-1'"),
        ("xpcs fit x --dt 0", "--dt: must be a positive number, but is '0'"),
        ("xpcs fit x --dt nan", "--dt: must be a positive number, but is 'nan'"),
        ("xpcs fit x --gap inf", "--gap: must be a positive number, but is 'inf'"),
        ("xpcs fit x --sigma no", "--sigma: must be a positive number, but is 'no'"),
        ("xpcs fit x --starts 0", "--starts: must be a whole number of at least 1"),
        ("xpcs fit x --frames 0 9", "--frames: must be a whole number of at least 1"),
        ("xpcs fit x --phi 5 nan", "--phi: must be a finite number, but is 'nan'"),
        ("xpcs fit x --figures -1", "--figures: must be a whole number of at least 0"),
        ("xpcs plot x --figures 1.5", "of at least 0, but is '1.5'"),
        ("xpcs simulate --frames 1", "--frames: must be a whole number of at least 2"),
        ("xpcs simulate --angles 0", "--angles: must be a whole number of at least 1"),
        ("xpcs simulate --noise 0", "--noise: must be a positive number, but is '0'"),
        ("xpcs simulate --frame-noise 0", "--frame-noise: must be a positive number"),
        ("xpcs simulate --contrast -0.2", "--contrast: must be a number of at least 0"),
        ("xpcs simulate --offset inf", "--offset: must be a finite number"),
        (f"xpcs simulate --seed {2**63}", f"of at least 0 and below {2**63}, but is"),
    ],
)
def test_a_number_out_of_range_is_named_by_its_option(line, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == ExitCode.USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["em", "track", "xpcs"])
def test_a_check_writes_no_file(command, tmp_path, capsys):
    template, new = str(tmp_path / "template.yaml"), tmp_path / "new.yaml"
    mode = ["--mode", "laminar_flow"] if command == "xpcs" else []
    line = [command, "config", "--output", template, *mode]
    assert main(line) == ExitCode.DONE
    line = [command, "config", "--check", template, "--output", str(new)]
    assert main(line) == ExitCode.REFUSED
    assert "`--output` must be left out with `--check`" in capsys.readouterr().err
    assert not new.exists()
