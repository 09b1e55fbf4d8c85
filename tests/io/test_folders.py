import os
import re

import pytest

from physax.io import PhysaxFileError, check_writable, two_time_files


def test_files_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("run10.hdf", "run2.hdf", "run1.hdf", "notes.txt", "b/run3.hdf"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "folder.hdf").mkdir()
    names = [path.name for path in two_time_files(tmp_path)]
    assert names == ["run1.hdf", "run2.hdf", "run10.hdf"]
    deep = two_time_files(tmp_path, "**/*.hdf")
    assert deep[0] == tmp_path / "b" / "run3.hdf"


def test_a_folder_without_such_files_says_what_it_has(tmp_path):
    (tmp_path / "a.h5").touch()
    with pytest.raises(PhysaxFileError, match=r"files '\*.hdf', but has \*.h5"):
        two_time_files(tmp_path)
    (tmp_path / "a.h5").unlink()
    with pytest.raises(PhysaxFileError, match=r"but has none\.$"):
        two_time_files(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotADirectoryError, match="nowhere.*must be a folder"):
        two_time_files(tmp_path / "nowhere")


def test_a_folder_is_made_and_left_empty(tmp_path):
    assert check_writable(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert not list((tmp_path / "a" / "b").iterdir())


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(PhysaxFileError, match="but the system says: File exists"):
        check_writable(tmp_path / "a")
    with pytest.raises(PhysaxFileError, match="says: Not a directory. Choose another"):
        check_writable(tmp_path / "a" / "b")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, os.strerror(13))

    # The superuser may write everywhere.
    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    message = re.escape(f"{tmp_path}: It must be a folder to which files can be")
    with pytest.raises(PhysaxFileError, match=message + ".*Permission denied"):
        check_writable(tmp_path)
