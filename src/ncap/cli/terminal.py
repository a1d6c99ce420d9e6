"""What the command line shows and reads: tables, JSON, progress, lists of words and numbers."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ncap.errors import UserError

if TYPE_CHECKING:
    from rich.progress import Progress


MOST_NUMBERS: Final = 10_000
"""Numbers that a list with ranges may have."""
_MINUS_ZERO: Final = re.compile(r"(?<![\w.])-(?=0(\.0+)?(?![\d.]))")
"""The sign of a number that is 0 to the digits shown."""


def names_in(words: Sequence[str]) -> list[str]:
    """Words that may also be joined by commas."""
    return [name for word in words for name in word.split(",") if name]


def numbers_in(words: Sequence[str]) -> list[float]:
    """Numbers and ranges FROM:TO:STEP, both ends included, in the order given and without repetition."""
    result: list[float] = []
    for word in names_in(words):
        try:
            parts = [float(part) for part in word.split(":")]
            if len(parts) == 3:
                first, last, step = parts
                count = round((last - first) / step) + 1
                if count < 1:
                    raise ValueError
                check_amount(len(result) + count)
                parts = [round(first + i * step, 10) for i in range(count)]
            elif len(parts) != 1:
                raise ValueError
        except (ValueError, ZeroDivisionError, OverflowError):
            raise UserError(f"{word!r} is neither a number nor a range FROM:TO:STEP") from None
        result += parts
    check_amount(len(result))
    if not result:
        raise UserError("at least one command is needed")
    return list(dict.fromkeys(result))


def check_amount(count: int) -> None:
    """Complain about more numbers than anybody would wait for."""
    if count > MOST_NUMBERS:
        raise UserError(f"up to {MOST_NUMBERS:,} numbers are possible, not {count:,}")


def progress_bar() -> "Progress":
    """A progress bar on standard error, shown only to a person."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def training_report(epochs: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A progress bar for a person, a line per epoch for a file."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
        console=console, disable=not console.is_terminal,
    )  # fmt: skip
    with bar:
        line = bar.add_task("starting", total=epochs)

        def report(row: dict[str, Any]) -> None:
            rate = row["played_steps"] / max(row["seconds"], 1e-9)
            text = (
                f"return {row['test_return']:.3f}  best {row['best_return']:.3f}"
                f"  {row['rollouts']:.0f} rollouts  {rate:,.0f} steps/s"
            )
            if row["epoch"] + 1 == epochs:
                text += "  choosing the best policy"
            if console.is_terminal:
                bar.update(line, completed=row["epoch"] + 1, description=text)
            else:
                print(f"epoch {row['epoch'] + 1}/{epochs}  {text}", file=sys.stderr, flush=True)

        yield report


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """What is being done now: one changing line for a person, a line each for a file."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    with console.status("") as status:
        yield lambda text: status.update(Text(text))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output. Cells are plain text; a number that is 0 as shown has no sign."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_MINUS_ZERO.sub("", cell) for cell in row))
    Console(markup=False, emoji=False, highlight=False).print(table)


def complain(sentence: str) -> None:
    """Say on standard error what was found wrong and passed over."""
    print(f"ncap: {sentence}", file=sys.stderr, flush=True)


def print_json(document: Any) -> None:
    """JSON on standard output."""
    print(json.dumps(document, indent=1))
