"""The site as `make docs` builds it: without a warning, with every public name, asking nothing of any network."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = ["closerlook", *(f"closerlook.{part}" for part in ("geometry", "probes", "tuning", "report"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"]
    done = subprocess.run([*command, str(DOCS), str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md") if "results" not in page.parts}
    assert {page for page in pages if not (site / page).with_suffix(".html").exists()} == set()


def test_every_public_name_is_described(site: Path) -> None:
    described = {
        name for page in (site / "api").glob("*.html") for name in re.findall(r'id="([\w.]+)"', page.read_text())
    }
    for package in PACKAGES:
        names = set(import_module(package).__all__) - {"__version__"}
        assert {name for name in names if not {f"{package}.{name}", f"closerlook.{name}"} & described} == set()


def test_the_site_asks_nothing_of_any_network(site: Path) -> None:
    fetched = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^"']+""")
    styled = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+""")
    pages = {page.name: fetched.findall(page.read_text()) for page in site.rglob("*.html")}
    styles = {style.name: styled.findall(style.read_text()) for style in site.rglob("*.css")}
    assert {name: found for name, found in (pages | styles).items() if found} == {}
