"""What the command line shows and reads: tables, JSON, progress, lists of words and numbers."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ncap.errors import UserError

if TYPE_CHECKING:
    from rich.progress import Progress


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
                parts = [round(first + i * step, 10) for i in range(round((last - first) / step) + 1)]
            elif len(parts) != 1:
                raise ValueError
        except (ValueError, ZeroDivisionError, OverflowError):
            raise UserError(f"{word!r} is neither a number nor a range FROM:TO:STEP") from None
        result += parts
    if not result:
        raise UserError("at least one command is needed")
    return list(dict.fromkeys(result))


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

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    with console.status("") as status:
        yield status.update


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def print_json(document: Any) -> None:
    """JSON on standard output."""
    print(json.dumps(document, indent=1))
