"""Pages of results take text and figures from files, and run nothing of them."""

import base64
import os
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ncap.analysis import plots
from ncap.circuits.animal import animal
from ncap.errors import UserError
from ncap.policies.ncap import NCAPPolicy
from ncap.report import write_overview
from ncap.report.page import html_table, picture_of, svg_image, write_page
from ncap.report.weights import circuit_weights

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'$\\frac{$"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>'
FRAME = {"html", "head", "meta", "title", "style", "body", "table", "tr", "th", "td"}
"""Elements of a page with a table."""


def tags(page: str) -> set[str]:
    return set(re.findall(r"<([a-z]\w*)", page))


def test_titles_and_cells_stay_text(tmp_path):
    write_page(tmp_path / "page.html", HOSTILE, [html_table([HOSTILE], [[HOSTILE]])])
    page = (tmp_path / "page.html").read_text("utf-8")
    assert tags(page) == FRAME
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page


def test_a_figure_with_a_script_is_an_image_which_runs_nothing(tmp_path):
    (tmp_path / "gaits.svg").write_text(SVG)
    (tmp_path / "gaits.csv").write_text(f'gait,"{HOSTILE.replace(chr(34), chr(34) * 2)}"\ntrot,1\n')
    write_overview(tmp_path, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert tags(page) == {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "p",
        "img",
        "table",
        "tr",
        "th",
        "td",
    }
    (image,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert base64.b64decode(image).decode() == SVG
    assert svg_image(SVG, HOSTILE).count("<") == 1


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gaits.svg", b"\xff\xfe", "cannot be read"),
        ("gaits.csv", b"\xff\xfe", "cannot be read"),
        ("gaits.csv", b"a,b\n1,2\n1,2,3\n", "row 2 has more cells than its head"),
        ("gaits.csv", b'a\n"' + b"x" * 200_000 + b'"\n', "is no table"),
        ("gaits.svg", None, "is not a regular file"),
        ("gaits.csv", None, "is not a regular file"),
    ],
)
def test_a_damaged_result_is_named(tmp_path, name, content, said):
    path = tmp_path / name
    os.mkfifo(path) if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        write_overview(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_named():
    with pytest.raises(UserError, match="cannot create /dev/null"):
        write_page(Path("/dev/null/x/page.html"), "", [])


def test_neuron_names_stay_text_in_the_figure_of_weights():
    spec = animal()
    neurons = [replace(row, name=HOSTILE) if row.name == "afferent_flexor" else row for row in spec.neurons]
    synapses = [
        replace(
            row,
            source=HOSTILE if row.source == "afferent_flexor" else row.source,
            target=HOSTILE if row.target == "afferent_flexor" else row.target,
        )
        for row in spec.synapses
    ]
    policy = NCAPPolicy(circuit=replace(spec, neurons=tuple(neurons), synapses=tuple(synapses)))
    found = []

    @plots.styled
    def drawn() -> None:
        found.append(picture_of(circuit_weights(policy, policy.space.initial), "weights"))

    drawn()
    svg = base64.b64decode(re.search('base64,([^"]*)', found[0])[1]).decode()
    tree = ElementTree.fromstring(svg)
    assert not [element for element in tree.iter() if element.tag.endswith("script")]
    assert any(HOSTILE in text for text in tree.itertext())
