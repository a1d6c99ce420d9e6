"""Small tables of results, as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ncap.files import write_whole


def write_table(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows as CSV. Numbers have four decimals at most, and none from a thousand up; missing cells are empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text := io.StringIO(), columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _shown(value) for name, value in row.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.getvalue().encode())


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV table, every cell as text."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _shown(value: object) -> object:
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.4f}".rstrip("0").rstrip(".")
    return value
