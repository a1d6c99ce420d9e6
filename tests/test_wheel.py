"""What is released: a wheel and a source distribution that work without the repository, and facts that agree."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import ncap

ROOT = Path(__file__).parents[1]
#: What a first user does, in a folder of their own. The last line shows from where it was imported.
FIRST_STEPS = """
import sys
from ncap import cli, extras
import ncap
for words in (
    "circuit --save my.json",
    "evaluate ncap-flat-walk --episodes 1 --circuit my.json",
    "replay untrained --out walk.html",
    "train flat-walk --epochs 1 --population 4 --episodes 1 --training-seconds 0.3 --episode-seconds 0.6 --out run",
):
    cli.main(words.split())
print(extras.install_command("view"))
print(ncap.__file__)
"""


def run(*words: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source distribution, and the wheel that is built from it."""
    pytest.importorskip("hatchling", reason="needs the extra dev")
    dist = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(dist), cwd=ROOT)
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(dist / "unpacked", filter="data")
    (unpacked,) = (dist / "unpacked").iterdir()
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist), cwd=unpacked)
    return dist


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_works_without_the_repository(built, tmp_path):
    place, work = tmp_path / "place", tmp_path / "work"
    work.mkdir()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile")
    run(*pip, "--disable-pip-version-check", "--target", str(place), str(wheel_in(built)), cwd=work)
    here = {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
    assert run(str(place / "bin" / "ncap"), "--version", cwd=work, **here) == f"ncap {ncap.__version__}\n"
    *_, advice, imported = run(sys.executable, "-c", FIRST_STEPS, cwd=work, **here).splitlines()
    assert Path(imported).is_relative_to(place)
    assert re.search(r"-m pip install 'viser<1.2,>=1.1'$", advice)
    assert {"my.json", "walk.html", "run"} <= {path.name for path in work.iterdir()}
    assert (work / "run" / "best.safetensors").is_file()


def test_the_distributions_hold_everything(built):
    with zipfile.ZipFile(wheel_in(built)) as wheel:
        found = {entry.filename: entry.file_size for entry in wheel.infolist() if "dist-info" not in entry.filename}
    kept = {path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    kept = {path for path in kept if ".egg-info" not in str(path)}
    assert found == {str(path.relative_to(ROOT / "src")): path.stat().st_size for path in kept}
    (unpacked,) = (built / "unpacked").iterdir()
    for name in (
        "docs/index.md",
        "docs/gaits.png",
        "mkdocs.yml",
        "tests/test_wheel.py",
        "constraints.txt",
        "CITATION.cff",
    ):
        assert (unpacked / name).is_file()


def test_the_description_needs_nothing_that_an_index_does_not_have(built):
    with zipfile.ZipFile(wheel_in(built)) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        facts = Parser().parsestr(wheel.read(name).decode("utf-8"))
    text = facts.get_payload()
    assert facts["Description-Content-Type"] == "text/markdown"
    assert "![" not in text
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")] == []
    assert (
        dict(line.split(", ") for line in facts.get_all("Project-URL"))["Paper"] == "https://arxiv.org/abs/2410.07174"
    )


def test_the_version_and_the_pythons_are_the_same_everywhere():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    assert project["dynamic"] == ["version"]
    assert f"\nversion: {ncap.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    latest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert latest is not None
    assert ncap.__version__ in latest[1]
    pythons = [line.split(" :: ")[-1] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    assert project["requires-python"] == f">={pythons[0]}"
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow.split("matrix:")[1].split("steps:")[0]) == pythons
    install = (ROOT / "docs" / "start" / "install.md").read_text("utf-8")
    assert all(python in install for python in pythons)
