"""Write the tables of the pages from CSV files: `python docs/tables.py` (part of `make results`).

A page says above a table which file it shows, and how, in a comment:

    <!-- table: driving-training.csv where policy=ncap
    seed: {seed}
    falls: {falls} of {episodes}
    speed, m/s: {speed_mean:.2f}
    -->

Below the comment stands the table, up to the next empty line: a column for every line, a row for every row of the file
(beside the page) that has these cells. Cells are numbers where they look like numbers, and "–" where they are empty.
"""

import csv
import re
import string
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent
TABLE = re.compile(r"(<!-- table: (\S+\.csv)(?: where ([^\n]+))?\n(.*?)-->\n)((?:\|[^\n]*\n)*)", re.S)


class Cells(string.Formatter):
    """Formats with the cells of a row; an empty one gives "–", and an unknown column an error that names it."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A cell by the name of its column, which may have dots."""
        return kwargs[field_name], field_name

    def format_field(self, value: object, spec: str) -> str:
        """A cell as its format says."""
        if value == "":
            return "–"
        return format(float(str(value)), spec) if spec else str(value)


def table(rows: list[dict[str, str]], columns: list[str]) -> str:
    """A Markdown table of rows; columns: "head: format"."""
    heads, formats = zip(*(column.split(": ", 1) for column in columns), strict=True)
    cells = Cells()
    lines = [[cells.vformat(one, (), row) for one in formats] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in (list(heads), ["---"] * len(heads), *lines))


def filled(page: Path) -> str:
    """The text of a page with its tables as the files have them."""

    def new(found: re.Match[str]) -> str:
        comment, name, where, columns, _ = found.groups()
        with (page.parent / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for condition in (where or "").split():
            column, value = condition.split("=")
            rows = [row for row in rows if row[column] == value]
        if not rows:
            raise SystemExit(f"{page}: {name} has no rows where {where}")
        return comment + table(rows, [line for line in columns.splitlines() if line])

    return TABLE.sub(new, page.read_text("utf-8"))


def main() -> None:
    """Write all pages anew whose tables have changed, and name them."""
    for page in sorted(PAGES.rglob("*.md")):
        text = filled(page)
        if text != page.read_text("utf-8"):
            page.write_text(text, "utf-8")
            print(f"wrote {page.relative_to(PAGES)}", file=sys.stderr)


if __name__ == "__main__":
    main()
