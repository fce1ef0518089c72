"""The notebooks in examples/ run from an empty folder, and are stored without outputs, which would change."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import closerlook

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == kind]


def test_there_are_three_notebooks() -> None:
    assert [notebook.name for notebook in NOTEBOOKS] == ["first-look.ipynb", "your-data.ipynb", "your-training.ipynb"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_is_stored_without_outputs(notebook: Path) -> None:
    code = cells(notebook, "code")
    assert len(code) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_the_names_that_a_notebook_uses_are_public(notebook: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in cells(notebook, "code"))
    used = set(re.findall(r"\bcloserlook\.([A-Za-z_]+)\(", code))
    assert used
    assert used <= set(closerlook.__all__)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_links_between_notebooks_and_to_the_documentation_exist(notebook: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells(notebook, "markdown"))
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert [link for link in links if not (EXAMPLES / link).exists()] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("CLOSERLOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads of several tests at once slow each other down
    content = nbformat.read(notebook, as_version=4)
    nbformat.validate(content)
    client = nbclient.NotebookClient(content, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in content.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert sum("vega" in page for page in pages) >= 1  # charts
    assert sum("<table" in page for page in pages) >= 3
    assert not any(re.search("</progress> (examples|cells|steps|encoders)", page) for page in pages)  # bars are removed
