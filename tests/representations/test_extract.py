"""Extraction: the right vector for every example, computed once, for any tasks and after interruptions."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import closerlook
from closerlook.encoders.encoder import Encoder
from closerlook.encoders.source import EMBEDDED, resolve
from closerlook.errors import InputError, WorkError
from closerlook.representations import forward
from closerlook.representations.extract import choose_layers, choose_splits, extract
from closerlook.representations.space import Space
from closerlook.representations.store import Store
from closerlook.tasks.task import Annotated, Task, Unit
from tests.encoders.families import save_family

SENTENCES = [
    ("The", "unbelievable", "lamp", "lights", "the", "room"),
    ("She", "runs"),
    ("A", "preposterously", "long", "run", "in", "the", "countryside", "near", "Kyrgyzstan"),
    ("Nobody", "saw", "it"),
]


CLOSE = 4e-5
"""What padding and the size of a batch may change in float32; a wrong subword changes the first digit."""


def task(unit: Unit, name: str = "t") -> Task:
    """A task over the sentences; each unit takes its examples at the second word and near it."""
    where: dict[str, list[tuple[int, ...]]] = {
        "token": [(1,), (0,)],
        "pair": [(1, 0)],
        "span": [(0, 2)],
        "sentence": [()],
    }
    texts: list[Annotated] = [(text, [(w, f"L{i % 2}") for w in where[unit]]) for i, text in enumerate(SENTENCES)]
    return Task.build(name, unit, {"train": texts, "test": texts[:2]})


@pytest.fixture(scope="module")
def reference() -> Any:
    """Every layer's subword vectors of a sentence, and which word each belongs to, by transformers alone."""
    folder = resolve(EMBEDDED).folder
    model = hf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)

    def states(words: tuple[str, ...]) -> tuple[list[np.ndarray], list[int | None]]:
        encoded = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**encoded, output_hidden_states=True).hidden_states
        return [h[0].numpy() for h in hidden], encoded.word_ids(0)

    return states


def expected(reference: Any, unit: Unit, pool: str) -> list[list[np.ndarray]]:
    """The vectors of `task(unit)` at each layer, one word after the other."""
    layers: list[list[np.ndarray]] = [[], [], []]
    for words in SENTENCES:
        states, ids = reference(words)
        for layer, hidden in enumerate(states):

            def word(*wanted: int, hidden: np.ndarray = hidden, ids: list[int | None] = ids) -> np.ndarray:
                rows = hidden[[i for i, w in enumerate(ids) if w in wanted]]
                return {"mean": rows.mean(0), "first": rows[0], "last": rows[-1]}[pool]

            if unit == "token":
                layers[layer] += [word(1), word(0)]
            elif unit == "pair":
                layers[layer].append(np.concatenate([word(1), word(0)]))
            elif unit == "span":
                layers[layer].append(word(0, 1))
            else:
                layers[layer].append(hidden[0] if pool == "cls" else word(*range(len(words))))
    return layers


@pytest.mark.parametrize(
    ("unit", "pool"),
    [(unit, pool) for unit in ("token", "pair", "span") for pool in ("mean", "first", "last")] + [("sentence", "mean")],
)
def test_vectors_are_those_of_a_plain_loop(reference: Any, unit: Unit, pool: str) -> None:
    spaces = extract(EMBEDDED, task(unit), pool=pool)
    assert [space.provenance.layer for space in spaces] == [0, 1, 2]
    for space, rows in zip(spaces, expected(reference, unit, pool), strict=True):
        np.testing.assert_allclose(space.X, np.stack(rows), atol=CLOSE)
        assert space.label_names[:2].tolist() == (["L0", "L0"] if unit == "token" else ["L0", "L1"])


def test_a_sentence_is_its_classification_token_by_default(reference: Any) -> None:
    for words, row in zip(SENTENCES, extract(EMBEDDED, task("sentence"), layers="last")[0].X, strict=True):
        np.testing.assert_allclose(row, reference(words)[0][-1][0], atol=CLOSE)


def test_a_plain_text_is_tokenized_unchanged() -> None:
    text = "The unbelievable  lamp\nlights."
    given_task = Task.build("t", "sentence", {"train": [(text, [((), "A")])]})
    folder = resolve(EMBEDDED).folder
    model, tokenizer = (
        hf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval(),
        hf.AutoTokenizer.from_pretrained(folder),
    )
    with torch.no_grad():
        plain = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 0]
    np.testing.assert_allclose(extract(EMBEDDED, given_task, layers="last")[0].X[0], plain, atol=CLOSE)


def test_provenance_is_full() -> None:
    origin = extract(EMBEDDED, task("token", "mine"), splits="test", layers=1)[0].provenance
    assert (origin.encoder, origin.layer, origin.pool) == ("bert-tiny", 1, "mean")
    assert (origin.task, origin.split) == ("mine", "test")
    assert origin.weights == resolve(EMBEDDED).fingerprint
    assert origin.task_hash == task("token").content_hash
    assert (origin.dtype, origin.window, origin.seed, origin.checkpoint) == ("float32", 512, None, None)
    assert set(origin.versions) == {"closerlook", "torch", "transformers", "tokenizers", "numpy"}


def counted_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many windows each forward pass had."""
    passes: list[int] = []
    plain = Encoder.hidden_states

    def counting(self: Encoder, windows: Any) -> Any:
        passes.append(len(windows))
        return plain(self, windows)

    monkeypatch.setattr(Encoder, "hidden_states", counting)
    return passes


def test_tasks_on_the_same_text_share_one_pass_and_equal_separate_extractions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tasks = [task(unit, unit) for unit in ("token", "pair", "span", "sentence")]
    alone = [space for each in tasks for space in extract(EMBEDDED, each, splits="all", store=tmp_path / "alone")]
    passes = counted_passes(monkeypatch)
    together = extract(EMBEDDED, tasks, splits="all", store=tmp_path / "together")
    assert sum(passes) == len(SENTENCES)
    assert [s.provenance.title() for s in together] == [s.provenance.title() for s in alone]
    for space, expected_space in zip(together, alone, strict=True):
        np.testing.assert_allclose(space.X, expected_space.X, atol=CLOSE)
        np.testing.assert_array_equal(space.y, expected_space.y)


def test_a_second_call_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = extract(EMBEDDED, task("token"))
    monkeypatch.setattr(forward, "compute", None)
    monkeypatch.setattr(Encoder, "load", None)
    for space, renamed in zip(first, extract(EMBEDDED, task("token", "renamed")), strict=True):
        np.testing.assert_array_equal(space.X, renamed.X)
        assert renamed.provenance.task == "renamed"


def test_only_missing_layers_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    extract(EMBEDDED, task("token"), layers=[0, 2])
    wanted: list[Any] = []
    plain = forward.compute
    monkeypatch.setattr(
        forward, "compute", lambda e, missing, *rest: (wanted.extend(missing.values()), plain(e, missing, *rest))
    )
    assert len(extract(EMBEDDED, task("token"))) == 3
    assert wanted == [[1]]


@pytest.mark.parametrize(
    "change",
    [
        {"pool": "first"},
        {"window": 8},
        {"dtype": "bfloat16"},
        {"layers": 2},
        {"splits": "test"},
        {"encoder": "random:bert-tiny"},
        {"task": task("pair")},
    ],
)
def test_whatever_changes_the_vectors_has_its_own_key(own_store: Path, change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"encoder": EMBEDDED, "task": task("token"), "layers": 1}
    (first,) = extract(**options)
    (other,) = extract(**options | change)
    assert len(list(Store(own_store).entries())) == 2
    assert first.X.shape != other.X.shape or not np.allclose(first.X, other.X)


def test_random_weights_of_another_seed_have_their_own_key(own_store: Path) -> None:
    first, other = (extract("random:bert-tiny", task("token"), layers=1, seed=seed)[0] for seed in (0, 1))
    assert len(list(Store(own_store).entries())) == 2
    assert (first.provenance.seed, other.provenance.seed) == (0, 1)
    assert not np.allclose(first.X, other.X)


def test_an_encoder_whose_weights_changed_is_not_served_its_old_vectors() -> None:
    loaded = Encoder.load(EMBEDDED)
    before = extract(loaded, task("token"), layers=2)[0].X.copy()
    with torch.no_grad():
        loaded.model.encoder.layer[1].output.dense.bias += 1
    assert not np.allclose(extract(loaded, task("token"), layers=2)[0].X, before)


def test_a_damaged_space_is_computed_again(own_store: Path) -> None:
    first = extract(EMBEDDED, task("token"))[1].X.copy()
    for entry in Store(own_store).entries():
        blob = bytearray(entry.path.read_bytes())
        blob[-9] ^= 1
        entry.path.write_bytes(blob)
    np.testing.assert_array_equal(extract(EMBEDDED, task("token"))[1].X, first)
    assert all(problem is None for _, problem in Store(own_store).verify())


def test_a_loaded_encoder_may_be_given() -> None:
    loaded = Encoder.load(EMBEDDED)
    (by_object,) = extract(loaded, task("token"), layers=2)
    (by_name,) = extract(EMBEDDED, task("token"), layers=2)
    np.testing.assert_array_equal(by_object.X, by_name.X)


def test_a_long_text_is_read_in_windows_and_every_word_gets_its_own_vector() -> None:
    words = tuple(SENTENCES[i % 4][i % 2] for i in range(300))
    given_task = Task.build("long", "token", {"train": [(words, [((i,), "A") for i in range(300)])]})
    (space,) = extract(EMBEDDED, given_task, layers="last", window=64)
    loaded = Encoder.load(EMBEDDED, window=64)
    alignment = loaded.align([words])
    assert len(alignment.windows) > 5
    for i in range(0, 300, 7):
        tokens = range(alignment.word_first[i], alignment.word_stop[i])
        pieces = []
        for t in tokens:
            with torch.no_grad():
                states = loaded.hidden_states([alignment.windows[alignment.token_window[t]]])
            pieces.append(states[-1][0, alignment.token_column[t]].numpy())
        np.testing.assert_allclose(space.X[i], np.mean(pieces, axis=0), atol=CLOSE)


def test_the_same_task_twice_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = counted_passes(monkeypatch)
    first, second = extract(EMBEDDED, [task("token", "a"), task("token", "b")], layers=2)
    assert sum(passes) == len(SENTENCES)
    np.testing.assert_array_equal(first.X, second.X)
    assert (first.provenance.task, second.provenance.task) == ("a", "b")


def test_texts_without_examples_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given_task = Task.build("t", "token", {"train": [(("no", "target"), []), (("one",), [((0,), "A")])]})
    passes = counted_passes(monkeypatch)
    extract(EMBEDDED, given_task)
    assert sum(passes) == 1


def test_progress_ends_at_the_total() -> None:
    seen: list[tuple[int, int]] = []
    extract(EMBEDDED, task("token"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (8, 8)
    assert all(total == 8 for _, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_interrupted_extraction_continues_where_it_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forward, "CHUNK", 30 / 2048)
    monkeypatch.setattr(forward, "SECONDS", 0)
    whole = extract(EMBEDDED, task("pair"), store=tmp_path / "whole")
    passes = counted_passes(monkeypatch)

    def stop(done: int, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(EMBEDDED, task("pair"), store=tmp_path / "cut", progress=stop)
    assert list(Store(tmp_path / "cut").entries()) == []
    before = sum(passes)
    again = extract(EMBEDDED, task("pair"), store=tmp_path / "cut")
    assert 0 < before < len(SENTENCES)
    assert sum(passes) - before < len(SENTENCES)
    for space, expected_space in zip(again, whole, strict=True):
        np.testing.assert_array_equal(space.X, expected_space.X)


def test_a_part_that_was_altered_after_the_interruption_is_computed_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(forward, "CHUNK", 30 / 2048)
    monkeypatch.setattr(forward, "SECONDS", 0)
    whole = extract(EMBEDDED, task("pair"), store=tmp_path / "whole")

    def stop(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract(EMBEDDED, task("pair"), store=tmp_path / "cut", progress=stop)
    for unfinished in (tmp_path / "cut" / "work").glob("*/*.safetensors"):
        blob = bytearray(unfinished.read_bytes())
        blob[-100] ^= 0xFF
        unfinished.write_bytes(blob)
    for space, expected_space in zip(extract(EMBEDDED, task("pair"), store=tmp_path / "cut"), whole, strict=True):
        np.testing.assert_array_equal(space.X, expected_space.X)


KILLED = """
import sys, time
from closerlook.representations import forward
from closerlook.representations.extract import extract
forward.CHUNK, forward.SECONDS = 1, 0.0
slow = float(sys.argv[2])
extract("bert-tiny", "toy-pos", layers="all", store=sys.argv[1], progress=lambda done, total: time.sleep(slow))
"""


@pytest.mark.slow
def test_killing_the_process_loses_nothing_that_was_finished(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(store), "0.05"])
        journals: list[Path] = []
        deadline = time.monotonic() + 120
        done = max((len(json.loads(j.read_bytes())["chunks"]) for j in store.glob("work/*/journal.json")), default=0)
        while time.monotonic() < deadline and process.poll() is None:
            journals = list(store.glob("work/*/journal.json"))
            if journals and len(json.loads(journals[0].read_bytes())["chunks"]) > done + 2:
                break
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert journals
        assert len(json.loads(journals[0].read_bytes())["chunks"]) > done
    subprocess.run([sys.executable, "-c", KILLED, str(store), "0"], check=True)
    resumed = extract(EMBEDDED, "toy-pos", store=store)
    for space, expected_space in zip(resumed, extract(EMBEDDED, "toy-pos", store=tmp_path / "whole"), strict=True):
        np.testing.assert_allclose(space.X, expected_space.X, atol=CLOSE)
    assert len(list(Store(store).entries())) == 3


def test_vectors_that_are_no_numbers_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = Encoder.load(EMBEDDED)
    with torch.no_grad():
        loaded.model.encoder.layer[1].output.dense.bias[3] = float("nan")
    with pytest.raises(WorkError, match="encoder bert-tiny gives NaN or infinity at layer 2 in float32"):
        extract(loaded, task("token"))


def test_a_target_without_subword_names_its_sentence() -> None:
    loaded = Encoder.load(EMBEDDED)
    loaded.tokenizer.unk_token = None
    given_task = Task.build("t", "token", {"train": [(("fine",), [((0,), "A")]), (("odd", "\u0007"), [((1,), "B")])]})
    with pytest.raises(InputError, match=r"no subword of words \[1\] of train sentence 2 \('odd \\x07'\)"):
        extract(loaded, given_task)


@pytest.mark.parametrize(
    ("layers", "chosen"),
    [
        ("all", [0, 1, 2]),
        ("last", [2]),
        ("0,2", [0, 2]),
        ("0-1", [0, 1]),
        (1, [1]),
        ([2, 0, 2], [0, 2]),
        (np.int64(1), [1]),
        (np.arange(2), [0, 1]),
    ],
)
def test_layers_may_be_named_in_many_ways(layers: Any, chosen: list[int]) -> None:
    assert choose_layers(layers, 2, "bert-tiny") == chosen


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (13, "layer 13 requested; bert-base has layers 0 to 12"),
        (-1, "layer -1 requested; bert-base has layers 0 to 12"),
        ("2-x", "layers '2-x' requested; expected all, last, or numbers such as 0,2-4"),
        ("", "layers '' requested"),
        ([], "no layer requested; bert-base has layers 0 to 12"),
        ("4-2", "layers '4-2' requested; 4-2 is reversed, write the lower number first"),
        ("4-2,1", "layers '4-2,1' requested; 4-2 is reversed, write the lower number first"),
        ("0-99999999999", "layer 99999999999 requested"),
        ([0.5], r"layers \[0.5\] requested"),
    ],
)
def test_impossible_layers_are_refused(layers: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choose_layers(layers, 12, "bert-base")


@pytest.mark.parametrize(
    ("unit", "pool", "message"),
    [
        ("token", "cls", "pool 'cls' requested; expected auto, mean, first or last for a token task"),
        ("sentence", "first", "pool 'first' requested; expected auto, cls, mean, weighted_mean or last for a"),
        ("token", "max", "pool 'max' requested"),
        ("token", "mean+normalized", "expected auto, mean, first or last for a token task"),
        ("sentence", "cls+special", "pool 'cls\\+special' requested"),
        ("sentence", "mean+normalized+special", "requested; expected auto, cls"),
    ],
)
def test_impossible_pooling_is_refused(unit: Unit, pool: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        extract(EMBEDDED, task(unit), pool=pool)


def test_public_extract_is_this_one() -> None:
    assert closerlook.extract is extract
    assert closerlook.Space is Space


@pytest.mark.parametrize("splits", ["all", ["test", "train", "extra", "valid"]])
def test_splits_come_as_train_dev_test_others_whatever_the_file_and_the_request_say(splits: str | list[str]) -> None:
    texts: list[Annotated] = [(("light", "rain"), [((1,), "A")])]
    shuffled = Task.build("t", "token", dict.fromkeys(("extra", "test", "valid", "train"), texts))
    assert [split.name for split in choose_splits(shuffled, splits)] == ["train", "dev", "test", "extra"]
    spaces = extract(EMBEDDED, shuffled, splits=splits, layers=0)
    assert [space.provenance.split for space in spaces] == ["train", "dev", "test", "extra"]


def test_paths_may_be_given_as_paths(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,label\nwhat a day,good\n")
    (space,) = extract(resolve(EMBEDDED).folder, tmp_path / "t.csv", layers=0)
    assert (space.n, space.provenance.encoder, space.provenance.task) == (1, "bert-tiny", "t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": []}, "no task given"),
        ({"splits": []}, "no split requested; task t has train, test"),
        ({"encoder": Encoder.load(EMBEDDED), "window": 16}, "given with a loaded encoder"),
        ({"encoder": Encoder.load(EMBEDDED), "dtype": "float16"}, "given with a loaded encoder"),
    ],
)
def test_contradictory_requests_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        extract(**{"task": task("token")} | options)


def test_a_model_without_classification_token_takes_the_mean(tmp_path: Path) -> None:
    folder = save_family("gpt2", tmp_path / "gpt2")
    (space,) = extract(str(folder), task("sentence"), layers="last")
    assert space.provenance.pool == "mean"
    with pytest.raises(
        InputError, match="pool 'cls' requested; the tokenizer of this encoder adds no classification token: use mean"
    ):
        extract(str(folder), task("sentence"), pool="cls")
