"""The one exception that means: the user asked for something that cannot be done."""

from collections.abc import Iterable
from typing import Final

LONGEST_NAME: Final = 60
"""Characters of a wrong name that a message shows."""
LONGEST_MESSAGE: Final = 1200


class UserError(Exception):
    """A mistake in what the user gave us. The message is one sentence that names the wrong value and the right ones.

    Whatever stands in a hostile file or argument, the message is one line of printable characters.
    """

    def __init__(self, message: str) -> None:
        line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        super().__init__(line if len(line) <= LONGEST_MESSAGE else f"{line[:LONGEST_MESSAGE]}…")


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """The error for a name that is not in a list: it names the kind, the wrong name and every valid one."""
    shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return UserError(f"unknown {kind} {shown!r}; valid: {', '.join(valid)}")
