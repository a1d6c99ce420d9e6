"""What the pages say exists: files, headings, commands with their options, targets of make, tests, Python names."""

import ast
import contextlib
import functools
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import tyro

import ncap
from ncap import cli
from ncap.errors import UserError
from ncap.sim.robot import describe_robot

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md")) + [
    ROOT / name for name in ("README.md", "PACKAGE.md", "CONTRIBUTING.md", "SECURITY.md")
]
PAGES.append(ROOT / "examples" / "README.md")

FENCE = re.compile(r"^(```+)(\w*)[^\n]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)")

#: What stands for a value in the pages, and a value for the parser.
STAND_INS = {"TASK": "flat-walk", "SEED": "1", "SEEDS": "1", "C": "0.5", "V": "0.5", "W": "0.1", "N": "3"}
#: What a command needs and a sentence about it may leave out: before its other words, and after them.
NEEDED_FIRST = {"report": "runs/mine", "flight": "flights/mine", "train": "flat-walk"}
NEEDED_LAST = {"deploy": "--link twin", "lesion": "--without V0", "tune-rhythm": "--out search"}
OTHER_PROGRAMS = {"--no-deps", "--no-index", "--find-links", "--strict"}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


@functools.cache
def anchors(page: Path) -> set[str]:
    found = [slug(line) for line in re.findall(r"^#+ +(.*?)(?: *#+)?$", prose(page), re.MULTILINE)]
    assert len(found) == len(set(found)), f"{name_of(page)} has a heading twice"
    return set(found) | set(re.findall(r'id="([^"]+)"', prose(page)))


def commands_in(text: str) -> Iterator[str]:
    """Lines of a block of code that begin with ncap, without their comments and line breaks."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        found = re.match(r"\s*(?:\$ |if .*; then |else )?(ncap [a-z].*)", line)
        if found:
            yield re.sub(r"(\s+&|; fi)\s*$", "", found[1].split(" #")[0].strip())


@functools.cache
def quiet(command: str) -> object:
    """The command's function with an empty body, so that only its words are read."""
    target = cli.app._subcommands[command].target
    return functools.wraps(target)(lambda *_, **__: None)


def refusal(words: list[str]) -> str:
    """What the command line answers to words, or nothing if it understands them."""
    command, *rest = words
    if command not in cli.app._subcommands:
        return f"there is no command {command}"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            tyro.cli(quiet(command), args=rest, prog=f"ncap {command}")
    except SystemExit:
        return said.getvalue()
    except UserError as error:
        return str(error)
    return ""


def words_of(line: str) -> list[str]:
    return [STAND_INS.get(word, word) for word in shlex.split(line)[1:] if word not in ("…", "...")]


@functools.cache
def all_options() -> frozenset[str]:
    helps = "".join(refusal([command, "--help"]) for command in cli.app._subcommands)
    return frozenset(re.findall(r"--[a-z][a-z-]*", helps)) | {"--help", "--version"}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Work in a folder with the files that the pages call mine."""
    ncap.save_circuit(ncap.animal(), tmp_path / "my.json")
    sheet = describe_robot(ncap.ROBOTS["a1"])
    (tmp_path / "mine.json").write_text(json.dumps(sheet), "utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def test_anchors_are_made_as_on_the_site():
    assert slug("A Go2 over DDS") == "a-go2-over-dds"
    assert slug("Live: `ncap watch`") == "live-ncap-watch"
    assert slug("What is promised, and [what](x.md) is not?") == "what-is-promised-and-what-is-not"


def test_every_link_leads_to_a_file_and_to_a_heading_that_exist():
    broken, seen = [], 0
    for page in PAGES:
        for link in LINK.findall(prose(page)):
            if re.match(r"\w+:", link):
                continue
            seen += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{name_of(page)}: {link}")
    assert seen > 100
    assert broken == []


@pytest.mark.usefixtures("desk")
def test_every_command_in_a_block_is_one_that_the_command_line_understands():
    lines = [(page, line) for page in PAGES for block in FENCE.finditer(page.read_text("utf-8"))
             for line in commands_in(block[3])]  # fmt: skip
    assert len(lines) > 50
    wrong = {f"{name_of(page)}: {line}": refusal(words_of(line)) for page, line in lines}
    assert {line: said for line, said in wrong.items() if said} == {}


@pytest.mark.usefixtures("desk")
def test_every_command_in_a_sentence_has_options_that_exist():
    wrong, seen = [], 0
    for page in PAGES:
        for span in {" ".join(found.split()) for found in SPAN.findall(prose(page))}:
            if span.startswith("--"):
                wrong += [f"{name_of(page)}: {name}" for name in re.findall(r"(?:^|\s)(--[a-z][a-z-]*)", span)
                          if name not in all_options() | OTHER_PROGRAMS]  # fmt: skip
            elif re.match(r"ncap [a-z-]", span) and span != "ncap --help" and span != "ncap --version":
                seen += 1
                command, *rest = words_of(span)
                first, last = [NEEDED_FIRST.get(command, "untrained")], NEEDED_LAST.get(command, "").split()
                if all(refusal([command, *before, *rest, *after]) for before in ([], first) for after in ([], last)):
                    wrong.append(f"{name_of(page)}: {span}")
    assert seen > 50
    assert wrong == []


def test_every_target_of_make_and_every_benchmark_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for page in PAGES:
        text = page.read_text("utf-8")
        for name in re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE):
            assert re.search(rf"^{name}:", makefile, re.MULTILINE), f"{name_of(page)}: make {name}"
        for name in re.findall(r"python\s+-m\s+benchmarks(?:\.|\s+)([a-z]+)", text):
            assert (ROOT / "benchmarks" / f"{name}.py").is_file(), f"{name_of(page)}: benchmark {name}"


def test_python_in_the_pages_is_python_and_uses_names_that_the_front_door_has():
    for page in PAGES:
        for block in FENCE.finditer(page.read_text("utf-8")):
            if block[2] != "python":
                continue
            tree = ast.parse(block[3], name_of(page))
            names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)
                     and isinstance(node.value, ast.Name) and node.value.id == "ncap"}  # fmt: skip
            assert names <= {*ncap.__all__, "learn"}, f"{name_of(page)}: {names - set(ncap.__all__)}"


def test_the_install_page_has_every_extra():
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    table = (DOCS / "start" / "install.md").read_text("utf-8").split("## Extras")[1]
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == sorted(extras)


def test_every_test_in_the_table_of_faults_exists():
    text = (DOCS / "design" / "faults.md").read_text("utf-8")
    sources = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")}
    files = set(re.findall(r"[\w/]+\.py", text))
    names = set(re.findall(r"::(test_\w+)", text))
    assert len(names) > 80
    assert [name for name in names if not any(f"def {name}(" in source for source in sources.values())] == []
    assert [name for name in files if not any(str(path).endswith(name) for path in sources)] == []


def test_every_page_is_in_the_site_and_begins_with_a_sentence():
    navigation = re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:")[1])
    assert sorted(navigation) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    for page in PAGES:
        title, first = page.read_text("utf-8").split("\n\n")[:2]
        assert title.startswith("# "), name_of(page)
        assert re.match(r"[\w*`]", first), f"{name_of(page)} begins with {first[:40]!r}"
        long = [line for line in prose(page).splitlines() if len(line) > 130 and not line.startswith("|")]
        assert long == [], f"{name_of(page)}: wrap at 120 characters"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    pytest.importorskip("material", reason="needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, env={"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {str(page.relative_to(DOCS).with_suffix(".html")) for page in DOCS.rglob("*.md")}
    assert pages <= {str(page.relative_to(tmp_path)) for page in tmp_path.rglob("*.html")}
    frames = [page.parent / name for page in tmp_path.rglob("*.html") if "replays" not in page.parts
              for name in re.findall(r'<iframe[^>]* src="([^"]+)"', page.read_text("utf-8"))]  # fmt: skip
    assert len(frames) >= 3
    assert [frame for frame in frames if not frame.is_file()] == []
    home = (tmp_path / "index.html").read_text("utf-8")
    assert re.findall(r'(?:src|href)="(?:https?:)?//[^"]+\.(?:js|css|woff2?|png|svg)"', home) == []
