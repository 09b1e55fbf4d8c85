import pytest

from physax.io._whole_file import whole_file


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
