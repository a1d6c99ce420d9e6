"""Write the tables of the pages from CSV files: `python docs/tables.py` (part of `make results`).

A page says above a table which file it shows, and how, in a comment:

    <!-- table: driving-training.csv where policy=ncap task!=swim
    seed: {seed}
    falls: {falls} of {episodes}
    speed, m/s: {speed_mean:.2f}
    -->

Below the comment stands the table, up to the next empty line: a column for every line, a row for every row of the file
(beside the page) that has these cells, and others where it says "!=". Cells are numbers where they look like numbers,
and "–" where they are empty. A number in a sentence stands between two comments, of which the first must not begin a
line, since Markdown ends a paragraph there:

    It has <!-- value: final.csv where task=flat-walk seed=0: {return_mean:.2f} -->0.99<!-- / --> on the plane.
"""

import csv
import re
import string
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PAGES = Path(__file__).parent
README = PAGES.parent / "README.md"
TABLE = re.compile(r"(<!-- table: (\S+\.csv)(?: where ([^\n]+))?\n(.*?)-->\n)((?:\|[^\n]*\n)*)", re.S)

VALUE = re.compile(r"(<!-- value:\s+(\S+\.csv)\s+where\s+([^:]+):\s+(.+?)\s+-->).*?(<!-- / -->)", re.S)


class Cells(string.Formatter):
    """Formats with the cells of a row; an empty one gives "–", and an unknown column an error that names it."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """A cell by the name of its column, which may have dots."""
        return kwargs[field_name], field_name

    def format_field(self, value: object, spec: str) -> str:
        """A cell as its format says."""
        if value == "":
            return "–"
        try:
            return format(float(str(value)), spec) if spec else str(value)
        except ValueError:
            return str(value)  # such as "never"


def table(rows: list[dict[str, str]], columns: list[str]) -> str:
    """A Markdown table of rows; columns: "head: format"."""
    heads, formats = zip(*(column.split(": ", 1) for column in columns), strict=True)
    cells = Cells()
    lines = [[cells.vformat(one, (), row) for one in formats] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in (list(heads), ["---"] * len(heads), *lines))


def rows_where(file: Path, where: str) -> list[dict[str, str]]:
    """Rows of a CSV file that meet conditions such as "task=flat-walk seed!=0"; an error if there are none."""
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    for condition in where.split():
        column, unlike, value = re.fullmatch(r"(\w+)(!?)=(.*)", condition).groups()  # type: ignore[union-attr]
        rows = [row for row in rows if (row[column] == value) != bool(unlike)]
    if not rows:
        raise SystemExit(f"{file.name} has no rows where {where}")
    return rows


def filled(page: Path) -> str:
    """The text of a page with its tables and numbers as the files have them."""

    def new_table(found: re.Match[str]) -> str:
        comment, name, where, columns, _ = found.groups()
        return comment + table(
            rows_where(page.parent / name, where or ""), [line for line in columns.splitlines() if line]
        )

    def new_value(found: re.Match[str]) -> str:
        comment, name, where, form, end = found.groups()
        rows = rows_where(page.parent / name, where)
        if len(rows) > 1:
            raise SystemExit(f"{name} has {len(rows)} rows where {where}, but a number is of one")
        return comment + Cells().vformat(form, (), rows[0]) + end

    return VALUE.sub(new_value, TABLE.sub(new_table, page.read_text("utf-8")))


def main() -> None:
    """Write all pages anew whose tables have changed, and name them."""
    for page in (README, *sorted(PAGES.rglob("*.md"))):
        text = filled(page)
        if text != page.read_text("utf-8"):
            page.write_text(text, "utf-8")
            print(f"wrote {page.relative_to(README.parent)}", file=sys.stderr)


if __name__ == "__main__":
    main()
