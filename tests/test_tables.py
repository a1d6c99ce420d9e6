"""Tables in the pages that are written from CSV files."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SPEC = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tables)


def test_tables_in_the_pages_are_those_of_the_files():
    pages = [page for page in (tables.README, *DOCS.rglob("*.md")) if "<!-- table:" in page.read_text("utf-8")]
    assert pages
    assert [page.name for page in pages if tables.filled(page) != page.read_text("utf-8")] == []  # else: make results


def test_no_comment_of_a_number_ends_the_paragraph_before_it():
    pages = (tables.README, *DOCS.rglob("*.md"))
    assert [page.name for page in pages if "\n<!--value" in page.read_text("utf-8").replace(" ", "")] == []


def test_a_table_has_the_rows_that_are_asked_for_in_the_formats_that_are_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("task,seed,x,gait\nwalk,0,0.98765,\nrun,0,0.5,trot\nwalk,10,never,walk\n")
    page = tmp_path / "page.md"
    comment = "<!-- table: t.csv where task=walk\nseed: {seed}\nx: {x:.2f} m\ngait: {gait}\n-->\n"
    page.write_text(f"Before.\n\n{comment}| old |\n\nAfter.\n")
    expected = "| seed | x | gait |\n| --- | --- | --- |\n| 0 | 0.99 m | – |\n| 10 | never m | walk |\n"
    text = tables.filled(page)
    assert text.split("-->\n")[1] == expected + "\nAfter.\n"
    page.write_text(text)
    assert tables.filled(page) == text
    page.write_text(text.replace("task=walk", "task!=walk"))
    assert "| 0 | 0.50 m | trot |" in tables.filled(page)
    page.write_text(text.replace("task=walk", "task=swim"))
    with pytest.raises(SystemExit, match=r"t.csv has no rows where task=swim"):
        tables.filled(page)


def test_a_number_in_a_sentence_is_that_of_the_file(tmp_path):
    (tmp_path / "t.csv").write_text("task,seed,x\nwalk,0,0.98765\nwalk,1,0.5\n")
    page = tmp_path / "page.md"
    page.write_text("It has <!-- value: t.csv where task=walk\nseed!=0: {x:.2f} -->0.9<!-- / --> and more.")
    assert tables.filled(page).endswith("{x:.2f} -->0.50<!-- / --> and more.")
    page.write_text("It has <!-- value: t.csv where task=walk: {x:.2f} -->0.9<!-- / --> and more.")
    with pytest.raises(SystemExit, match=r"t.csv has 2 rows where task=walk, but a number is of one"):
        tables.filled(page)
