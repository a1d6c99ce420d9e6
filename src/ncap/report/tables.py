"""Small tables of results, as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ncap.errors import UserError
from ncap.files import read_text, write_whole
from ncap.report.page import make_folder_of


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV. Numbers have four decimals at most, and none from a thousand up; missing cells are empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text := io.StringIO(), columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _shown(value) for name, value in row.items()})
    make_folder_of(path)
    write_whole(path, text.getvalue().encode())


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV table, every cell as text; a row that is too short ends in empty cells."""
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path), newline=""), restval=""))
    except csv.Error as error:
        raise UserError(f"{path} is no table ({error})") from None
    for number, row in enumerate(rows, 1):
        if None in row:
            raise UserError(f"{path} is no table: its row {number} has more cells than its head")
    return rows


def merge_table(path: Path, rows: Sequence[Mapping[str, object]], key: Sequence[str]) -> None:
    """Put rows into a table: they take the place of those with the same cells in the columns `key`.

    The table is sorted by these columns; one that is not there is begun.
    """

    def name(row: Mapping[str, object]) -> tuple[tuple[int, str], ...]:
        return tuple((len(cell) if cell.isdigit() else 0, cell) for cell in (str(row[column]) for column in key))

    new = {name(row) for row in rows}
    kept: list[Mapping[str, object]] = []
    if path.exists():
        kept = [row for row in read_table(path) if name(row) not in new]
    write_table(path, sorted([*kept, *rows], key=name))


def _shown(value: object) -> object:
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.4f}".rstrip("0").rstrip(".")
    return value
