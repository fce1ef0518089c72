"""Every public name has an example in its docstring, and `make test` runs all examples, those of docs/api too."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import closerlook
from tests.docs.public import API, public_names

NAMES = public_names()
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {page.stem: code for page in sorted(API.glob("*.md")) if (code := CODE.findall(page.read_text("utf-8")))}


def is_named(name: str, text: str) -> bool:
    """Whether a text contains a name: also that of a class in `label_fit`, which returns a LabelFit."""
    return name.lower().replace("_", "") in text.lower().replace("_", "")


@pytest.mark.parametrize("path", NAMES)
def test_every_public_name_has_an_example(path: str) -> None:
    examples = doctest.DocTestParser().get_examples(NAMES[path].__doc__ or "")
    shown = "".join(example.source + example.want for example in examples)
    assert is_named(path.rpartition(".")[2], shown)


def test_names_of_all_packages_and_pages_are_found() -> None:
    found = {
        "closerlook.cluster": "__all__ of the package",
        "closerlook.geometry.Panel": "__all__ of a subpackage",
        "closerlook.ranking.Ranking": "listed on a page",
        "closerlook.errors.WorkError": "in a module that a page shows",
    }
    assert found.keys() <= NAMES.keys()
    assert not any(path.endswith(("GRID", "__version__")) for path in NAMES)  # constants


def test_all_examples_are_run(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getoption("doctestmodules")
    assert "src" in pytestconfig.getini("testpaths")
    files = Path(closerlook.__file__).parent.rglob("*.py")
    assert [file.name for file in files if "doctest: +SKIP" in file.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_of_the_reference_runs_and_prints_what_it_says(page: str, tmp_path: Path) -> None:
    code = "\n".join(PAGES[page])
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"CLOSERLOOK_PROGRESS": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    printed = run.stdout.splitlines()
    assert [said for said in re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE) if said not in printed] == []
