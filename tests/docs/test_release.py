"""The release: one version and date in package, CITATION.cff and CHANGELOG.md; every changed name has its new one."""

import re
from pathlib import Path

import yaml

from closerlook.study import renamed
from closerlook.version import __version__

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS_OF_CHANGE = ["Highlights", "Added", "Changed", "Faster", "Fixed", "Removed"]
"""The headings of a release in the changelog, in their order; one that has no entries is omitted."""


def released() -> list[tuple[str, str, str]]:
    """(version, date, text) of each section of the changelog that has a version and a date, the newest first."""
    return re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)\n(.*?)(?=^## |\Z)", CHANGELOG, re.MULTILINE | re.DOTALL)


def pairs(heading: str) -> dict[str, str]:
    """Old name → new name, from the table with two columns under a heading of docs/renamed.md."""
    page = (ROOT / "docs" / "renamed.md").read_text(encoding="utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|$", section, re.MULTILINE))


def test_the_citation_has_the_version_of_the_package_and_the_date_of_its_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version, date, _ = released()[0]
    assert (citation["version"], str(citation["date-released"])) == (version, date)
    assert citation["version"] == __version__


def test_the_changes_of_a_release_are_listed_by_kind() -> None:
    for version, _, text in released():
        kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
        assert kinds == [kind for kind in KINDS_OF_CHANGE if kind in kinds], version


def test_the_page_of_renamed_names_lists_all_that_old_tables_may_contain() -> None:
    assert pairs("Columns of the results table") == renamed.COLUMNS
    assert pairs("Measures") == renamed.MEASURES
    assert pairs("Kinds of cells") == renamed.KINDS
