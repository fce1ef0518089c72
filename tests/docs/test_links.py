"""Every link between pages of the documentation leads to a file and a heading that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(<?([^)\s>]+)>?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, formed as on GitHub and on the site."""
    names: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
        names.append(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    counts = [names[:position].count(name) for position, name in enumerate(names)]
    return {f"{name}-{n}" if n else name for name, n in zip(names, counts, strict=True)}


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page without a target, each with the reason."""
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(file):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_has_a_target(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_link_to_a_missing_file_or_heading_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A *fine* page: `code`\n## Twice\n## Twice\n```\n[no](link.md)\n```\n"
        "[a](gone.md) [b](#a-fine-page-code) [c](page.md#nowhere) [d](#twice-1) [e](https://example.org)\n"
    )
    assert list(broken_links(page)) == ["gone.md: no such file", "page.md#nowhere: no such heading"]


def test_the_index_links_to_every_page() -> None:
    listed = {(ROOT / "docs" / name).resolve() for name in LINK.findall((ROOT / "docs" / "index.md").read_text())}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.name != "index.md"}
    assert pages <= listed
