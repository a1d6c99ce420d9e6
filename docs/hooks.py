"""What the site adds to the pages: files of the repository that they link to, the commands' help, replays in 3-D.

Blocks of commands get a language, so that their comments are coloured and their lines wrap where the window is narrow.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
KEPT_AT: Final = Path("repository")
"""Folder of the site with what lies outside docs/."""
LINK: Final = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
COMMANDS: Final = "<!-- commands -->"
"""What a page says where the commands' help belongs."""
REPLAY: Final = re.compile(r"<!-- replay: (.+?) -->")
"""What a page says where an episode belongs that can be turned and played: the words of `ncap replay`."""
REPLAYS: Final = "replays"
"""Folder of the site with these."""
WIDTH: Final = "100"
"""Columns of a command's help."""
TO_TYPE: Final = re.compile(r"^```\n(?=(?:ncap|pip|make|python3?|source|ray)\b|wheel=|\.venv/)", re.MULTILINE)
"""The beginning of a block without a language that somebody types into a terminal."""


def target_of(source: Path, link: str) -> Path | None:
    """Return the file that a page's link leads to, or None if there is no such file in the repository."""
    target = Path(os.path.normpath(source.parent / link))
    return target if target.is_file() and target.is_relative_to(ROOT) else None


def place_of(file: Path) -> str:
    """Return where the site has a file of the repository, as a path within docs/."""
    return str(file.relative_to(DOCS) if file.is_relative_to(DOCS) else KEPT_AT / file.relative_to(ROOT))


def on_files(files: "Files", *, config: "MkDocsConfig") -> "Files":
    """Take every file into the site that a page links to outside docs/; pages among them become pages."""
    from mkdocs.structure.files import File

    waiting = [Path(page.abs_src_path or "") for page in files.documentation_pages()]
    while waiting:
        source = waiting.pop()
        for link in LINK.findall(source.read_text("utf-8")):
            found = target_of(source, link)
            if found and files.get_file_from_path(place_of(found)) is None:
                files.append(File.generated(config, place_of(found), abs_src_path=str(found)))
                waiting += [found] if found.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, *, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Lead links to where the site keeps their files, and put in replays and the commands' help."""
    del config, files
    source, here = Path(page.file.abs_src_path or ""), Path(page.file.src_uri).parent

    def kept(match: re.Match[str]) -> str:
        found = target_of(source, match[1])
        return os.path.relpath(place_of(found), here) if found else match[1]

    def framed(match: re.Match[str]) -> str:
        where = os.path.relpath(f"{REPLAYS}/{name_of(match[1])}", here)
        return f'<iframe class="replay" src="{where}" title="ncap replay {match[1]}" loading="lazy"></iframe>'

    markdown = TO_TYPE.sub("```sh\n", REPLAY.sub(framed, LINK.sub(kept, markdown)))
    return markdown.replace(COMMANDS, "\n".join(commands()) if COMMANDS in markdown else "")


def on_post_build(*, config: "MkDocsConfig") -> None:
    """Play and write the replays that pages show."""
    from ncap import cli

    for words in {words for page in DOCS.rglob("*.md") for words in REPLAY.findall(page.read_text("utf-8"))}:
        out = Path(config.site_dir) / REPLAYS / name_of(words)
        out.parent.mkdir(exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(["replay", *words.split(), "--out", str(out)])


def name_of(words: str) -> str:
    """Return the name of a replay's file: "ncap-drive-seed-3.html" for "ncap-drive --seed 3"."""
    return re.sub(r"[\W_]+", "-", words).strip("-") + ".html"


def commands() -> Iterator[str]:
    """Yield the lines of the reference of all commands: a heading and its --help for each."""
    from ncap import cli

    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        for name in cli.app._subcommands:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                cli.main([name, "--help"])
            yield f"## ncap {name}\n\n```text\n{said.getvalue().strip()}\n```\n"
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
