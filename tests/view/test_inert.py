"""Names and titles that want to be more than text: pages with them have the elements of pages with harmless ones."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ncap.circuits.animal import animal
from ncap.recording import record
from ncap.tasks import TASKS
from ncap.trained import load
from ncap.view import instruments
from ncap.view.diagram import Diagram
from ncap.view.panel import CLICK, silenced
from ncap.view.replay import write_replay

HOSTILE = (
    "</title></script></svg>\"'><script>alert(1)</script><img src=x onerror=alert(2)><!--<script>@SCRIPT@ ]]>${}&lt;"
)


class Elements(HTMLParser):
    """Every element of a page, with the names of its attributes, and all its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_comment(self, data):
        self.found.append(("!--",))

    def handle_data(self, data):
        self.text += data


def named(name: str, role: str):
    """The animal with another name and another role of one of its populations."""
    spec = animal()
    neurons = [replace(row, name=name, role=role) if row.name == "cross_V0d" else row for row in spec.neurons]
    synapses = [
        replace(
            row,
            source=name if row.source == "cross_V0d" else row.source,
            target=name if row.target == "cross_V0d" else row.target,
        )
        for row in spec.synapses
    ]
    return replace(spec, neurons=tuple(neurons), synapses=tuple(synapses))


def test_neuron_names_and_roles_stay_text_in_the_drawing():
    drawn = [
        Elements(Diagram(named(name, role)).svg([f"{name}.FL"], on_click=CLICK))
        for name, role in (("pigeon", "harmless"), (HOSTILE, HOSTILE))
    ]
    assert drawn[1].found == drawn[0].found
    # a title says the name, the role, and for every wire the names of both ends
    assert drawn[1].text.count(HOSTILE) == drawn[0].text.count("pigeon") + drawn[0].text.count("harmless") > 8


def test_names_stay_text_beside_the_drawing():
    for piece in (instruments.nothing_to_show, lambda name: silenced([name, f"{name}.FL"])):
        assert Elements(piece(HOSTILE)).found == Elements(piece("pigeon")).found
        assert HOSTILE in Elements(piece(HOSTILE)).text


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A replay with harmless words, and one whose title, neurons and roles are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    task = replace(TASKS["flat-walk"], episode_seconds=0.3)
    found = []
    for name, role in (("pigeon", "harmless"), (HOSTILE, HOSTILE)):
        trained = load("untrained")
        policy = replace(trained.policy, circuit=named(name, role))
        path = folder / f"{len(found)}.html"
        write_replay(record(replace(trained, policy=policy), task, title=name), path)
        found.append(path.read_text("utf-8"))
    return found


def test_names_roles_and_titles_stay_text_in_a_replay(pages):
    harmless, hostile = map(Elements, pages)
    assert hostile.found == harmless.found
    assert [tag for tag, *_ in hostile.found].count("script") == 2  # the data and the program
    data = re.search(r'id="data">(.*?)</script>', pages[1], re.DOTALL)[1]
    assert "<" not in data  # with <!--<script> in it, a browser would not see the end of the data
    assert f"{HOSTILE}.FL" in json.loads(data)["names"]


def test_a_replay_runs_its_own_program_and_no_other(pages):
    for page in pages:
        program = page.rpartition("<script>")[2].partition("</script>")[0]
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
        assert f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'\">" in page
        names = {name for _, *attributes in Elements(page).found for name in attributes}
        assert not [name for name in names if name.startswith("on")]  # no handler is written in an element
