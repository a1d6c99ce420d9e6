"""The one exception that means: the user asked for something that cannot be done."""

from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what the user gave us. The message is one sentence that names the wrong value and the right ones."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """The error for a name that is not in a list: it names the kind, the wrong name and every valid one."""
    return UserError(f"unknown {kind} {name!r}; valid: {', '.join(valid)}")
