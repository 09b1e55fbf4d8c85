"""Where a template of settings goes."""

from pathlib import Path

from ..io import check_writable
from ..io._whole_file import whole_file


def write_template(text: str, output: str | None) -> None:
    """Writes a template to a file and prints its name, or prints the template.

    Args:
        text: The template.
        output: The file, or `None`.
    """
    if output is None:
        print(text, end="")
        return
    path = Path(output)
    check_writable(path.parent)
    with whole_file(path) as file:
        file.write(text.encode())
    print(path)
