"""Who writes the frames of a moving picture."""

import os
from pathlib import Path

from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter

from .._checks import ArgumentError


def movie_writer(path: Path, rate: int) -> AbstractMovieWriter:
    """Chooses the writer of a moving picture by the suffix of its file.

    Args:
        path: The file, `*.gif` or `*.mp4`.
        rate: Frames per second.

    Returns:
        The writer.

    Raises:
        ArgumentError: If the suffix is another, or ffmpeg is needed and not found.
    """
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
