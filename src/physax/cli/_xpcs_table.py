"""The table of a batch: one row for each fit, whole on the disk at any time."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from .._whole_file import whole_file
from ..io import PhysaxFileError, check_writable
from ._xpcs_names import NAMES
from ._xpcs_results import plain


ROWS = "results.jsonl"
TABLE = "results.csv"
_COLUMNS = (
    "file",
    "q",
    "mode",
    "convention",
    "maps",
    "frames",
    "status",
    "success",
    "chi2",
    "reduced_chi2",
    "noise",
    "seconds",
)


class ResultTable:
    """Rows of fits that are done, by their keys.

    Attributes:
        folder: Where the table lies, as JSON lines and as CSV.
        rows: The rows.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: dict[str, dict[str, Any]] = {}
        path = folder / ROWS
        if not path.exists():
            return
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                row = json.loads(line)
                self.rows[row["key"]] = row
            except (ValueError, TypeError, KeyError) as error:
                raise PhysaxFileError(
                    path,
                    f"Line {number} is not a row of results ({error!r}). Remove the "
                    "file to begin again.",
                ) from error

    def done(self, key: str, mark: str) -> bool:
        """Whether a fit of this file with these settings is in the table."""
        row = self.rows.get(key)
        return row is not None and row.get("mark") == mark and not row.get("error")

    def has(self, key: str) -> bool:
        """Whether there is a row of a fit, successful or not."""
        return key in self.rows

    def add(self, row: dict[str, Any]) -> None:
        """Adds a row and writes the table, whole or not at all."""
        self.rows[row["key"]] = plain(row)
        # What was wrong with the file as a whole is fixed.
        whole = f"{row['file']}::"
        if row["key"] != whole:
            self.rows.pop(whole, None)
        lines = [json.dumps(r, allow_nan=False) + "\n" for r in self.rows.values()]
        check_writable(self.folder)
        with whole_file(self.folder / ROWS) as file:
            file.write("".join(lines).encode())
        with whole_file(self.folder / TABLE) as file:
            file.write(self._csv().encode())

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        parameters = [x for name in NAMES for x in (name, f"{name}_error")]
        writer.writerow([*_COLUMNS, *parameters, "error"])
        for row in self.rows.values():
            values = [row.get(name) for name in _COLUMNS]
            found = row.get("parameters", {})
            for name in NAMES:
                one = found.get(name, {})
                values += [one.get("value"), one.get("uncertainty")]
            values.append(row.get("error"))
            writer.writerow(["" if v is None else v for v in values])
        return text.getvalue()
