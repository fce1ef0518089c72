"""The four-page note: its references, its length in print, and the numbers that other pages also have."""

import re
import sys
from pathlib import Path

import pytest
import yaml

DOCS = Path(__file__).parents[2] / "docs"
NOTE = DOCS / "paper" / "note.md"

sys.path.insert(0, str(DOCS))


def read_yaml(name: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = yaml.safe_load((DOCS / name).read_text(encoding="utf-8"))
    return found


def cited(note: str) -> set[str]:
    """How the text of a note cites each reference: 'Cover 1965'."""
    return set(re.findall(r"\[([^\]]+)\]\(#references\)", note))


def listed(note: str) -> set[str]:
    """The titles in the list of references."""
    return set(re.findall(r"^- .*?\(\d{4}\)\. \[([^\]]+)\]", note.partition("## References")[2], re.MULTILINE))


def test_the_note_is_short() -> None:
    assert len(NOTE.read_text(encoding="utf-8").split()) <= 3_400  # about four pages; the test that prints it is slow


def test_every_citation_is_in_the_list_and_every_reference_is_cited() -> None:
    references, note = read_yaml("paper/references.yaml").values(), NOTE.read_text(encoding="utf-8")
    assert cited(note) == {one["short"] for one in references}
    assert listed(note) == {one["title"] for one in references}


def test_citations_and_references_are_found_in_a_text() -> None:
    note = "See [A 2001](#references) and [B](b.md).\n\n## References\n\n- A, B (2001). [Title](https://a.org). V.\n"
    assert (cited(note), listed(note)) == ({"A 2001"}, {"Title"})


@pytest.mark.parametrize("key", read_yaml("paper/references.yaml"))
def test_a_reference_says_where_it_was_looked_up(key: str) -> None:
    entry = read_yaml("paper/references.yaml")[key]
    assert set(entry) == {"short", "authors", "title", "venue", "year", "address", "looked_up"}
    assert all(entry.values())
    assert str(entry["short"]).endswith(f" {entry['year']}")
    assert str(entry["short"]).split()[0] in str(entry["authors"])
    assert str(entry["address"]).startswith(("https://", "http://"))


def test_the_ratios_of_speed_are_those_of_the_page_about_other_tools() -> None:
    speed, page = read_yaml("templates/recorded.yaml")["speed"], (DOCS / "peers.md").read_text(encoding="utf-8")
    space = f"{speed['points']:,} × {speed['dimensions']}"
    assert f"| clusters of ps-role, {space} | DirectProbe, with SVC | {speed['clusters_svc']} |" in page
    assert f"| clusters of ps-role, {space} | DirectProbe, with Gurobi | {speed['clusters_gurobi']} |" in page
    assert re.search(rf"\| label distances of ps-role, [^|]+ \| DirectProbe \| {speed['distances']} \|", page)
    assert f"a ratio can be wrong by a factor of {speed['wrong_by']}" in page


def test_links_to_other_pages_are_text_in_print_and_images_are_found() -> None:
    pytest.importorskip("typst")
    pytest.importorskip("pypandoc")
    import print_note

    document = print_note.to_typst("# Title\n\n[a](../b.md) [c](#d) [e](https://f.de) ![g](../figures/h.svg)\n\n## D\n")
    assert 'a #link(<d>)[c] #link("https://f.de")[e] #box(image("/figures/h.svg"' in document
    assert "[Title]" in document


@pytest.mark.slow
def test_the_printed_note_has_at_most_four_pages() -> None:
    pytest.importorskip("typst")
    pytest.importorskip("pypandoc")
    import print_note

    note = NOTE.read_text(encoding="utf-8")
    pages = print_note.compile_note(note, "png")
    assert isinstance(pages, list)
    assert len(pages) <= 4
    pdf = print_note.compile_note(note, "pdf")
    assert isinstance(pdf, bytes)
    assert pdf.startswith(b"%PDF")
