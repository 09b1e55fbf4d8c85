"""Who writes the frames of a moving picture."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.figure import Figure

from .._checks import ArgumentError, positive, whole
from .._known_number import known_number
from .._whole_file import check_folder, whole_file


@contextmanager
def whole_movie(
    writer: AbstractMovieWriter, figure: Figure, path: Path, dpi: float | int
) -> Iterator[None]:
    """Writes frames to a file that takes the place of `path` when the block ends well.

    Args:
        writer: Grabs the frames within the block.
        figure: What is drawn.
        path: The file.
        dpi: Resolution in pixels per inch.
    """
    with TemporaryDirectory() as folder:
        # The writers know the format by the suffix.
        draft = Path(folder) / f"movie{path.suffix}"
        with writer.saving(figure, str(draft), float(dpi)):
            yield
        with whole_file(path) as file:
            file.write(draft.read_bytes())


def movie_writer(path: Path, rate: Any, dpi: Any) -> AbstractMovieWriter:
    """Chooses the writer of a moving picture by the suffix of its file.

    Args:
        path: The file, `*.gif` or `*.mp4`.
        rate: Frames per second.
        dpi: Resolution in pixels per inch.

    Returns:
        The writer.

    Raises:
        ArgumentError: If the suffix is another, ffmpeg is needed and not found, or a
            number is out of range.
        FileNotFoundError: If there is no folder for the file.
    """
    rate = whole(rate, "frames_per_second")
    positive(known_number(dpi, "dpi"), "dpi")
    check_folder(path)
    suffix = path.suffix.lower()
    if suffix == ".gif":
        return PillowWriter(fps=rate)
    if suffix != ".mp4":
        raise ArgumentError(
            f"`path` must end in '.gif' or '.mp4', but is {os.fspath(path)!r}."
        )
    if not FFMpegWriter.isAvailable():
        raise ArgumentError(
            f"`path` must end in '.gif', but is {os.fspath(path)!r}: MP4 needs the "
            "program ffmpeg, which was not found. Install it: `apt install ffmpeg`, "
            "or `conda install ffmpeg`."
        )
    return FFMpegWriter(fps=rate)
