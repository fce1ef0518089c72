"""Studies pool sentences as the encoder's files state, and say so in the manifest and on the page."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from closerlook.encoders.pooling import write_stated_pool
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError
from closerlook.report.study_facts import encoders_table
from closerlook.report.writing import load_study
from closerlook.study.graph import extract_cell
from closerlook.study.plan import make_plan
from closerlook.study.resolving import resolve_source
from closerlook.study.study import run_study

PLAN: dict[str, Any] = {"tasks": ["toy-question"], "tuning": None, "layers": "last", "measures": ["clusters"]}


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded encoder as a sentence-transformers folder."""
    folder = shutil.copytree(resolve(EMBEDDED).folder, tmp_path_factory.mktemp("stated") / "mine")
    write_stated_pool(folder, "mean+special+normalized")
    return folder


def content(encoder: object, store: Path, **changes: Any) -> dict[str, Any]:
    study = resolve_source(PLAN | {"encoders": [str(encoder)]} | changes, store)
    return extract_cell(study, str(encoder)).content


def test_the_key_has_the_stated_pooling_and_the_template_only_where_they_matter(stated: Path, tmp_path: Path) -> None:
    assert "sentence_pool" not in content(EMBEDDED, tmp_path)
    assert "template" not in content(EMBEDDED, tmp_path)
    assert content(stated, tmp_path)["sentence_pool"] == "mean+special+normalized"
    assert "sentence_pool" not in content(stated, tmp_path, pool="mean")
    assert content(EMBEDDED, tmp_path, template="Q: {text}")["template"] == "Q: {text}"
    assert content(EMBEDDED, tmp_path, dtype="bfloat16")["dtype"] == "bfloat16"


def test_manifest_and_page_show_the_pooling(stated: Path, tmp_path: Path) -> None:
    run_study(PLAN | {"encoders": [str(stated)], "template": "Q: {text}"}, tmp_path, engine="here")
    (entry,) = json.loads((tmp_path / "manifest.json").read_text())["encoders"].values()
    assert entry["pooling"] == {"sentence": "mean+special+normalized"}
    table = encoders_table(load_study(tmp_path))
    assert table.columns[-1].title == "pooling"
    assert table.rows[0][-1] == "sentence: mean+special+normalized"


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"template": "Q:"}, "template: template 'Q:' given; expected a text with {text} once"),
        ({"dtype": "int3"}, r"dtype: expected auto, float32, float16, bfloat16, int8, int4 \(got 'int3'\)"),
        ({"device_map": "balanced"}, "device_map: "),
    ],
)
def test_entries_that_cannot_be_used_are_refused(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_plan(PLAN | {"encoders": [EMBEDDED]} | entries)


def test_a_half_precision_study_with_fine_tuning_needs_lora(tmp_path: Path) -> None:
    plan = PLAN | {"encoders": [EMBEDDED], "tuning": {}, "dtype": "bfloat16"}
    with pytest.raises(InputError, match="dtype bfloat16 requested without lora"):
        resolve_source(plan, tmp_path)
    study = resolve_source(plan | {"tuning": {"lora": 4}}, tmp_path)
    assert study.settings[EMBEDDED, "toy-question"].dtype == "bfloat16"
