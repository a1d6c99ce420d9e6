"""Things that are known by name and can be added to: tasks, terrains, robots, neuron types.

    TASKS["ice-walk"] = replace(TASKS["flat-walk"], name="ice-walk", friction=(0.15, 0.30))

    @TASKS.register  # the same: known by the function's name
    def ice_walk() -> Task: ...

A file of Python that registers something can stand wherever a name can.
"""

import runpy
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import TypeVar

from ncap.errors import UserError, unknown_name

T = TypeVar("T")


class Registry(MutableMapping[str, T]):
    """Values by name, in the order in which they were added."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        """What an error message calls a member."""
        self._members: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        return self._members[name]

    def __setitem__(self, name: str, member: T) -> None:
        self._members[name] = member

    def __delitem__(self, name: str) -> None:
        del self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def register(self, make: Callable[[], T]) -> Callable[[], T]:
        """Decorate a function without arguments: what it returns is known by the function's name, with hyphens."""
        self[make.__name__.replace("_", "-")] = make()
        return make

    def find(self, name: str) -> T:
        """The member of that name, or what a Python file registers; anything else is an error that lists the names."""
        if name in self._members:
            return self._members[name]
        path = Path(name)
        if path.suffix == ".py":
            return self._from_file(path)
        raise unknown_name(self.kind, name, (*self._members, "a .py file that registers one"))

    def _from_file(self, path: Path) -> T:
        if not path.is_file():
            raise UserError(f"unknown {self.kind} {str(path)!r}: there is no such file")
        before = dict(self._members)
        try:
            runpy.run_path(str(path))
        except Exception as error:
            raise UserError(f"{path} failed: {type(error).__name__}: {error}") from error
        new = [member for name, member in self._members.items() if before.get(name) is not member]
        if len(new) != 1:
            raise UserError(f"{path} must register one {self.kind}, not {len(new)}")
        return new[0]
