"""What commands write into folders."""

import json

from physax.cli._output import replace_summary


def test_only_pictures_that_the_same_command_has_listed_are_removed(tmp_path):
    def run(command, *names):
        pictures = [tmp_path / name for name in names]
        for picture in pictures:
            picture.touch()
        replace_summary(tmp_path, command, {}, pictures)
        return {path.name for path in tmp_path.iterdir()} - {"summary.json"}

    (tmp_path / "own.png").touch()
    assert run("em run", "a.png", "b.gif") == {"own.png", "a.png", "b.gif"}
    assert run("em run", "b.gif") == {"own.png", "b.gif"}
    assert run("track", "t.png") == {"own.png", "b.gif", "t.png"}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == {"command": "track", "pictures": ["t.png"]}


def test_a_summary_that_names_what_is_no_picture_removes_nothing(tmp_path):
    folder, outside = tmp_path / "out", tmp_path / "x.png"
    (folder / "d.png").mkdir(parents=True)
    outside.touch()
    names = ["../x.png", str(outside), "d.png", "\0.png", ".png", 3]
    content = {"command": "track", "pictures": names}
    (folder / "summary.json").write_text(json.dumps(content))
    replace_summary(folder, "track", {}, [])
    assert outside.exists()
    assert (folder / "d.png").exists()
