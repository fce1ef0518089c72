"""The site that `make docs` builds: no warnings, all public names, nothing loaded from the network."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = ["closerlook", *(f"closerlook.{part}" for part in ("geometry", "plots", "probes", "tuning", "report"))]


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
    for package in PACKAGES:
        names = set(import_module(package).__all__) - {"__version__"}
        assert {name for name in names if not {f"{package}.{name}", f"closerlook.{name}"} & documented} == set()


def test_the_site_loads_nothing_from_the_network(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^"']+""")
    imported = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+""")
    pages = {page.name: loaded.findall(page.read_text()) for page in site.rglob("*.html")}
    styles = {style.name: imported.findall(style.read_text()) for style in site.rglob("*.css")}
    assert {name: addresses for name, addresses in (pages | styles).items() if addresses} == {}
