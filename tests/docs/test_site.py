"""The site that `make docs` builds: no warnings, all public names, nothing loaded from the network."""

import html
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.docs.public import packages

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"]
    process = subprocess.run([*command, str(DOCS), str(folder)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md") if "results" not in page.parts}
    assert {page for page in pages if not (site / page).with_suffix(".html").exists()} == set()


def test_every_public_name_is_documented(site: Path) -> None:
    documented = {
        name for page in (site / "api").glob("*.html") for name in re.findall(r'id="([\w.]+)"', page.read_text())
    }
    for package in packages():
        names = set(import_module(package).__all__) - {"__version__"}
        assert {name for name in names if not {f"{package}.{name}", f"closerlook.{name}"} & documented} == set()


def test_every_call_of_the_gallery_has_a_picture(site: Path) -> None:
    described = re.findall(r"^```{chart} (.+)$", (DOCS / "gallery.md").read_text(encoding="utf-8"), re.MULTILINE)
    page = (site / "gallery.html").read_text(encoding="utf-8")
    pictures = {
        html.unescape(text): image for image, text in re.findall(r'<img src="([^"]+)" alt="([^"]+)" load', page)
    }
    assert list(pictures) == described
    assert all((site / image).read_text(encoding="utf-8").startswith("<svg") for image in pictures.values())


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("1 / 0", "the code of a chart failed: ZeroDivisionError: division by zero"),
        ("closerlook.extract(", "the code of a chart failed: SyntaxError"),
    ],
)
def test_a_chart_whose_code_fails_is_reported(code: str, problem: str, tmp_path: Path) -> None:
    path = f"import sys\nsys.path.insert(0, {str(DOCS)!r})\n"
    (tmp_path / "conf.py").write_text(f"{path}extensions = ['myst_parser', 'charts']\n")
    (tmp_path / "index.md").write_text(f"# Page\n\n```{{chart}} A chart\n{code}\n```\n")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--quiet", str(tmp_path), str(tmp_path / "site")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode != 0
    assert problem in process.stderr


def test_the_search_works_without_a_server(site: Path, chromium: Any) -> None:
    page = chromium.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=DirectProbe")
    page.wait_for_selector("ul.search li a")
    found = [link.get_attribute("href") for link in page.query_selector_all("ul.search li a")]
    assert any(link.startswith("api/index.html") for link in found)
    page.close()


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^"']+""")
    imported = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+""")
    pages = {page.name: loaded.findall(page.read_text()) for page in site.rglob("*.html")}
    styles = {style.name: imported.findall(style.read_text()) for style in site.rglob("*.css")}
    assert {name: addresses for name, addresses in (pages | styles).items() if addresses} == {}
