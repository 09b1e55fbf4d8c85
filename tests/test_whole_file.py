import errno
from pathlib import Path

import pytest

from physax._whole_file import whole_file


def test_the_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    with whole_file(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"


def test_an_error_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def interrupted():
        with whole_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with (
        pytest.raises(
            FileNotFoundError, match=r"must lie in a folder, .* no folder '.*nowhere'\."
        ) as caught,
        whole_file(tmp_path / "nowhere" / "a.txt"),
    ):
        pass
    assert "tmp-" not in str(caught.value)


def test_a_full_disk_names_the_file(tmp_path):
    def filled(place):
        with whole_file(place):
            raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="No space left on device") as caught:
        filled(path)
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_other_files_stay(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match="other") as caught,
        whole_file(tmp_path / "a.txt"),
    ):
        (tmp_path / "other").read_bytes()
    assert caught.value.filename == str(tmp_path / "other")


def test_errors_without_a_number_stay(tmp_path):
    def refused():
        with whole_file(tmp_path / "a.txt"):
            raise OSError("unable to seek")

    with pytest.raises(OSError, match="^unable to seek$"):
        refused()


def test_the_draft_is_not_named(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(FileNotFoundError) as caught, whole_file(path) as file:
        Path(file.name).unlink()
    assert caught.value.filename == str(path)


def test_a_name_may_be_as_long_as_names_can_be(tmp_path):
    path = tmp_path / f"{'a' * 251}.txt"
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"
