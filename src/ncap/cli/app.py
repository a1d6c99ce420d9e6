"""The application that commands register with, and words that several of them use.

A type of words checks its word when it is read, so a wrong one is refused before a command begins.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import tyro
from tyro.constructors import PrimitiveConstructorSpec
from tyro.extras import SubcommandApp

from ncap.errors import UserError

app: Final = SubcommandApp()

LONGEST_WORD: Final = 4096
"""Characters of a word of the command line: as many as the longest path of Linux has."""
MOST_THREADS: Final = 1024
MOST_WORKERS: Final = 256
MOST_EPISODES: Final = 500
"""Episodes that are played at once: so many take 0.5 GB on the plane and 1.7 GB on bumps."""
MOST_STATES: Final = 4000
"""Initial states of the rhythm generator that are measured at once, which takes 1 GB."""
FIGURES: Final = (".pdf", ".png", ".svg")
"""Endings of figures."""


def check_words(words: list[str]) -> None:
    """Complain about words that no command has a use for: empty, endless, with control characters, or no text."""
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=")
        name = option if option.startswith("--") else before if before.startswith("--") else "a value"
        if not word.strip() or (option.startswith("--") and "=" in word and not value.strip()):
            raise UserError(f"{name} is empty")
        if len(word) > LONGEST_WORD:
            raise UserError(f"{name[:40]} has {len(word)} characters, more than {LONGEST_WORD}")
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in word):
            raise UserError(f"{name!r} has control characters: {word[:40]!r}")
        if any(0xD800 <= ord(letter) < 0xE000 for letter in word):
            raise UserError(f"{name!r} is no text in UTF-8: {word[:40]!r}")


def _word(kind: type, read: Callable[[str], Any], metavar: str) -> PrimitiveConstructorSpec[Any]:
    """How tyro reads one word: a ValueError is no such kind of word, a UserError a value that makes no sense."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda words: read(words[0]),
        is_instance=lambda value: isinstance(value, kind),
        str_from_instance=lambda value: [str(value)],
    )


def count_of(what: str, most: int) -> PrimitiveConstructorSpec[Any]:
    """A whole number from 1 to `most`, of something whose name stands in the singular."""

    def read(word: str) -> int:
        number = int(word)
        if number < 1:
            raise UserError(f"at least one {what} is needed, not {number}")
        if number > most:
            raise UserError(f"up to {most:,} {what}s are possible, not {number}")
        return number

    return _word(int, read, "INT")


def _seed(word: str) -> int:
    seed = int(word)
    if not 0 <= seed < 2**63:
        raise UserError(f"a seed is a number from 0 on, not {seed}; the largest is 2^63 - 1")
    return seed


def check_folder(path: Path) -> Path:
    """A folder that can be filled, or made: not the working directory, which may hold anything."""
    if path.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UserError(f"{path} is the folder in which you work, or above it: name one of its own")
    if _exists(path) and not path.is_dir():
        raise UserError(f"{path} is no folder")
    _check_writable(path if path.is_dir() else path.parent, path)
    return path


def check_file(path: Path) -> Path:
    """A file that can be written, or replaced."""
    if _exists(path) and not path.is_file():
        raise UserError(f"{path} is a folder" if path.is_dir() else f"{path} is no regular file")
    _check_writable(path.parent, path)
    return path


def _figure(word: str) -> Path:
    path = Path(word)
    if path.suffix.lower() not in FIGURES:
        raise UserError(f"cannot write a figure as {path.name[:60]!r}; valid endings: {', '.join(FIGURES)}")
    return check_file(path)


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UserError(f"cannot write {str(path)[:200]}: {error.strerror}") from None
    return True


def _check_writable(folder: Path, wanted: Path) -> None:
    while not _exists(folder):
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"cannot write {wanted}: {folder} is no folder that you may write in")


Words = Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")]
Json = Annotated[bool, tyro.conf.arg(name="json")]
Seed = Annotated[int, _word(int, _seed, "INT")]
Threads = Annotated[int, count_of("thread", MOST_THREADS)]
Workers = Annotated[int, count_of("worker", MOST_WORKERS)]
States = Annotated[int, count_of("initial state", MOST_STATES)]
Episodes = Annotated[int, count_of("episode", MOST_EPISODES)]
OutFile = Annotated[Path, _word(Path, lambda word: check_file(Path(word)), "PATH")]
OutFigure = Annotated[Path, _word(Path, _figure, "PATH")]
OutFolder = Annotated[Path, _word(Path, lambda word: check_folder(Path(word)), "PATH")]
