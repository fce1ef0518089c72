"""Pooling of sentences: what an encoder's files state, and every kind of pooling against plain transformers calls."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from closerlook.encoders.encoder import Encoder
from closerlook.encoders.pooling import stated_pool, write_stated_pool
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError
from closerlook.representations.extract import extract
from closerlook.tasks.task import Task

Folder = Callable[[str], Path]

TEXTS = ("The quick brown fox", "She ran back to the house in the rain near the river bank", "A lamp")
TASK = Task.build("t", "sentence", {"train": [(text, [((), f"L{i % 2}")]) for i, text in enumerate(TEXTS)]})
CLOSE = 4e-5


def sentence_transformer(base: Path, folder: Path, pooling: dict[str, Any], *, after: tuple[str, ...] = ()) -> Path:
    """A copy of a model folder with the files that sentence-transformers adds."""
    shutil.copytree(base, folder)
    names = ["Transformer", "Pooling", *after]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@cache
def states(folder: Path, text: str) -> list[torch.Tensor]:
    """The hidden states (tokens, d) of every layer, by transformers alone."""
    model = hf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = hf.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt", return_token_type_ids=False)
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        output = model(**tokens, output_hidden_states=True)
    return [hidden[0] for hidden in (*output.hidden_states[:-1], output.last_hidden_state)]


def pooled(hidden: torch.Tensor, pool: str, specials: tuple[int, int]) -> torch.Tensor:
    """One layer's states, pooled in the plainest way. specials: numbers of special tokens at the start and the end."""
    own = hidden[specials[0] : len(hidden) - specials[1]]
    kind, *additions = pool.split("+")
    rows = hidden if "special" in additions else own
    weights = torch.arange(1.0, len(rows) + 1)
    vector = {
        "cls": lambda: hidden[0],
        "last": lambda: hidden[-1],
        "mean": lambda: rows.mean(0),
        "weighted_mean": lambda: (rows * weights[:, None]).sum(0) / weights.sum(),
    }[kind]()
    return vector / vector.norm() if "normalized" in additions else vector


@pytest.mark.parametrize(
    "pool",
    [
        "cls",
        "mean",
        "last",
        "weighted_mean",
        "mean+special",
        "weighted_mean+special",
        "mean+special+normalized",
        "last+normalized",
    ],
)
@pytest.mark.parametrize(("name", "specials"), [("bert", (1, 1)), ("llama", (1, 0)), ("t5", (0, 1))])
def test_a_sentence_is_pooled_as_plainly_written(
    family: Folder, name: str, specials: tuple[int, int], pool: str
) -> None:
    if pool.startswith("cls") and name != "bert":
        pytest.skip("no classification token")
    folder = family(name)
    spaces = extract(str(folder), TASK, pool=pool)
    for i, text in enumerate(TEXTS):
        for space, layer in zip(spaces, states(folder, text), strict=True):
            np.testing.assert_allclose(space.X[i], pooled(layer, pool, specials), atol=CLOSE)
    assert {space.provenance.pool for space in spaces} == {pool}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_of_a_decoder_is_that_of_a_padded_batch(family: Folder, side: str) -> None:
    """Also with left padding, where transformers must be given the positions."""
    folder = family("llama")
    tokenizer = hf.AutoTokenizer.from_pretrained(folder, padding_side=side, pad_token="</s>")
    batch = tokenizer(list(TEXTS), return_tensors="pt", padding=True, return_token_type_ids=False)
    mask = batch["attention_mask"]
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        last = hf.AutoModel.from_pretrained(folder).eval()(**batch, position_ids=positions).last_hidden_state
    columns = [-1] * len(TEXTS) if side == "left" else (mask.sum(1) - 1).tolist()
    expected = np.stack([last[i, column].numpy() for i, column in enumerate(columns)])
    np.testing.assert_allclose(extract(str(folder), TASK, pool="last", layers="last")[0].X, expected, atol=CLOSE)


@pytest.mark.parametrize(
    ("pooling", "after", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, (), "mean+special"),
        ({"pooling_mode_mean_tokens": True}, ("Normalize",), "mean+special+normalized"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, ("Normalize",), "cls+normalized"),
        ({"pooling_mode_lasttoken": True}, (), "last"),
        ({"pooling_mode": "lasttoken"}, ("Normalize",), "last+normalized"),
        ({"pooling_mode": ["weightedmean"]}, (), "weighted_mean+special"),
        ({"pooling_mode": "cls"}, ("Dense", "Normalize"), "cls"),
        ({"word_embedding_dimension": 32}, (), "mean+special"),
        ({"pooling_mode": "max"}, (), "max"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, (), "cls&mean"),
    ],
)
def test_the_stated_pooling_is_read(
    family: Folder, tmp_path: Path, pooling: dict[str, Any], after: tuple[str, ...], expected: str
) -> None:
    folder = sentence_transformer(family("bert"), tmp_path / "st", pooling, after=after)
    assert stated_pool(folder) == expected
    assert resolve(str(folder)).sentence_pool == expected
    assert resolve(f"random:{folder}").sentence_pool == expected


def test_the_stated_pooling_is_the_default_and_an_explicit_one_wins(family: Folder, tmp_path: Path) -> None:
    pooling = {"pooling_mode_mean_tokens": True}
    folder = str(sentence_transformer(family("bert"), tmp_path / "st", pooling, after=("Normalize",)))
    own, mean = extract(folder, TASK, layers="last")[0], extract(folder, TASK, layers="last", pool="mean")[0]
    assert (own.provenance.pool, mean.provenance.pool) == ("mean+special+normalized", "mean")
    for i, text in enumerate(TEXTS):
        hidden = states(Path(folder), text)[-1]
        np.testing.assert_allclose(own.X[i], pooled(hidden, "mean+special+normalized", (1, 1)), atol=CLOSE)
        np.testing.assert_allclose(mean.X[i], pooled(hidden, "mean", (1, 1)), atol=CLOSE)
    assert extract(str(family("bert")), TASK, layers="last")[0].provenance.pool == "cls"  # the same weights
    words = Task.build("w", "token", {"train": [(("A", "lamp"), [((1,), "N")])]})
    assert extract(folder, words, layers="last")[0].provenance.pool == "mean"


def test_a_changed_statement_is_noticed_although_the_weights_are_the_same(family: Folder, tmp_path: Path) -> None:
    folder = sentence_transformer(family("bert"), tmp_path / "st", {"pooling_mode": "mean"})
    assert extract(str(folder), TASK, layers="last")[0].provenance.pool == "mean+special"
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    assert extract(str(folder), TASK, layers="last")[0].provenance.pool == "cls"


def test_a_pooling_that_is_not_supported_is_refused_unless_another_is_chosen(family: Folder, tmp_path: Path) -> None:
    folder = str(sentence_transformer(family("bert"), tmp_path / "st", {"pooling_mode": "max"}))
    with pytest.raises(InputError, match=r"state the pooling max, which is not supported; choose another with --pool"):
        extract(folder, TASK)
    assert extract(folder, TASK, pool="mean", layers="last")[0].n == len(TEXTS)


def test_a_model_in_a_subfolder_is_found(family: Folder, tmp_path: Path) -> None:
    """Older sentence-transformers folders keep the model in 0_Transformer."""
    folder = sentence_transformer(family("bert"), tmp_path / "st", {"pooling_mode": "mean"})
    (folder / "0_Transformer").mkdir()
    for file in [file for file in folder.iterdir() if file.is_file() and file.name != "modules.json"]:
        file.rename(folder / "0_Transformer" / file.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    source = resolve(str(folder))
    assert (source.name, source.folder.name, source.sentence_pool) == ("st", "0_Transformer", "mean+special")
    assert source.fingerprint == resolve(str(family("bert"))).fingerprint


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", '[{"idx": 0}]', "has a module without type or path"),
        ("modules.json", "[", "cannot be read as JSON"),
        ("1_Pooling/config.json", "[]", "contains a list; expected a JSON object"),
    ],
)
def test_odd_files_of_sentence_transformers_are_refused(
    family: Folder, tmp_path: Path, file: str, content: str, message: str
) -> None:
    folder = sentence_transformer(family("bert"), tmp_path / "st", {"pooling_mode": "mean"})
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        resolve(str(folder))


@pytest.mark.parametrize("pool", ["mean+special+normalized", "cls", "last+normalized", "weighted_mean+special"])
def test_a_written_statement_is_read_back(tmp_path: Path, pool: str) -> None:
    write_stated_pool(tmp_path, pool)
    assert stated_pool(tmp_path) == pool


def test_nothing_is_written_without_a_statement(tmp_path: Path) -> None:
    write_stated_pool(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "pool"), [("llama", "last"), ("gpt2", "last"), ("bert", None)])
def test_a_decoder_that_is_a_classifier_reads_the_last_token(
    family: Folder, tmp_path: Path, name: str, pool: str | None
) -> None:
    """As the classification heads of transformers do; that of an encoder such as BERT reads the first token."""
    model = hf.AutoModelForSequenceClassification.from_pretrained(family(name))
    model.save_pretrained(tmp_path)
    hf.AutoTokenizer.from_pretrained(family(name)).save_pretrained(tmp_path)
    assert Encoder.load(str(tmp_path)).info.sentence_pool == pool
    assert Encoder.load(str(family(name))).info.sentence_pool is None


@pytest.mark.parametrize("pool", ["mean+special", "weighted_mean+special", "last", "mean+special+normalized"])
def test_a_text_in_several_windows_is_pooled_once(pool: str) -> None:
    """Each subword once, and the special tokens of the first and the last window."""
    text = " ".join(["light", "rain", "falls", "on", "stone"] * 8)
    task = Task.build("t", "sentence", {"train": [(text, [((), "A")]), ("rain", [((), "B")])]})
    loaded = Encoder.load(EMBEDDED, window=16)
    aligned = loaded.align([text])
    assert len(aligned.windows) > 2
    with torch.no_grad():
        windows = [loaded.hidden_states([window])[-1][0] for window in aligned.windows]
    own = [windows[w][c] for w, c in zip(aligned.token_window, aligned.token_column, strict=True)]
    assert len(own) == 40
    hidden = torch.stack([windows[0][0], *own, windows[-1][-1]])
    np.testing.assert_allclose(
        extract(loaded, task, pool=pool, layers="last")[0].X[0], pooled(hidden, pool, (1, 1)), atol=CLOSE
    )


@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    for number, (mode, after) in enumerate([("mean", ("Normalize",)), ("cls", ()), ("weightedmean", ())]):
        folder = sentence_transformer(
            resolve(EMBEDDED).folder,
            tmp_path / str(number),
            {"embedding_dimension": 128, "pooling_mode": mode},
            after=after,
        )
        expected = library.SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32}).encode(
            list(TEXTS)
        )
        np.testing.assert_allclose(extract(str(folder), TASK, layers="last")[0].X, expected, atol=CLOSE)
