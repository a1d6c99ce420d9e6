"""Things that are known by name, and files of Python that register one of them."""

from dataclasses import replace

import pytest

from ncap.errors import UserError
from ncap.registry import Registry
from ncap.tasks import TASKS, find_task

ONE = """
from dataclasses import replace
from ncap.tasks import TASKS

TASKS["ice-walk"] = replace(TASKS["flat-walk"], name="ice-walk", friction=(0.15, 0.30))
"""


@pytest.fixture
def tasks():
    """The tasks, which are as before afterwards."""
    before = dict(TASKS)
    yield TASKS
    for name in [*TASKS]:
        del TASKS[name]
    TASKS.update(before)


def write(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return str(path)


def test_members_are_added_as_to_a_dictionary_or_by_a_function():
    numbers = Registry("number")
    numbers["one"] = 1

    @numbers.register
    def twenty_two():
        return 22

    assert dict(numbers) == {"one": 1, "twenty-two": 22}
    assert (len(numbers), list(numbers)) == (2, ["one", "twenty-two"])
    assert numbers.find("twenty-two") == twenty_two() == 22
    del numbers["one"]
    assert "one" not in numbers


def test_an_unknown_name_lists_what_there_is():
    numbers = Registry("number")
    numbers["one"] = 1
    with pytest.raises(UserError, match=r"unknown number 'two'; valid: one, a \.py file that registers one"):
        numbers.find("two")


def test_a_file_stands_for_the_task_that_it_registers(tmp_path, tasks):
    path = write(tmp_path, ONE)
    assert find_task(path) == replace(tasks["flat-walk"], name="ice-walk", friction=(0.15, 0.30))
    assert find_task(path).name == "ice-walk"  # a second time too, although its name is known by then
    assert find_task("ice-walk").friction == (0.15, 0.30)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("x = 1", r"mine\.py must register one task, not 0"),
        (ONE + 'TASKS["b"] = replace(TASKS["flat-run"], name="b")', r"mine\.py must register one task, not 2"),
        ("import nothing_of_that_name", r"mine\.py failed: ModuleNotFoundError: No module named"),
        ("def f(:", r"mine\.py failed: SyntaxError"),
        (ONE.replace("0.15", "-1.0"), r"mine\.py failed: UserError: task ice-walk: friction must be a rising range"),
    ],
    ids=["none", "two", "import", "syntax", "value"],
)
def test_a_file_that_does_not_register_one_is_named(tmp_path, tasks, text, wrong):
    with pytest.raises(UserError, match=wrong):
        find_task(write(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match=r"unknown task '.*none\.py': there is no such file"):
        find_task(str(tmp_path / "none.py"))
