"""The embedded corpus: what its two files hold, and that the grammar writes them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import closerlook
from closerlook.tasks.embedded.grammar import FEWEST, write_corpus

FOLDER = Path(closerlook.__file__).parent
ENCODER = FOLDER / "encoders" / "embedded" / "bert-tiny"
TASKS = ("pos", "dep", "role", "fxn", "question")


@dataclass(frozen=True)
class Sentence:
    comments: dict[str, str]
    rows: list[list[str]]

    @property
    def heads(self) -> list[int]:
        return [int(row[6]) for row in self.rows]

    def misc(self, i: int) -> dict[str, str]:
        return dict(pair.split("=") for pair in self.rows[i][9].split("|") if "=" in pair)


@cache
def corpus(split: str) -> list[Sentence]:
    return parse((FOLDER / "tasks" / "embedded" / f"{split}.conllu").read_text(encoding="utf-8"))


def parse(text: str) -> list[Sentence]:
    sentences = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        lines = block.split("\n")
        comments = dict(line[2:].split(" = ", 1) for line in lines if line.startswith("#"))
        sentences.append(Sentence(comments, [line.split("\t") for line in lines if not line.startswith("#")]))
    return sentences


def everything() -> list[Sentence]:
    return [*corpus("train"), *corpus("test")]


def examples(split: str) -> list[tuple[str, int, tuple[int, ...], str]]:
    """Task, sentence, words (none for the whole sentence), label."""
    labelled: list[tuple[str, int, tuple[int, ...], str]] = []
    for s, sentence in enumerate(corpus(split)):
        if "question" in sentence.comments:
            labelled.append(("question", s, (), sentence.comments["question"]))
        for i, row in enumerate(sentence.rows):
            labelled.append(("pos", s, (i,), row[3]))
            if sentence.heads[i]:
                labelled.append(("dep", s, (sentence.heads[i] - 1, i), row[7]))
            if "Role" in sentence.misc(i):
                labelled.append(("role", s, (i,), sentence.misc(i)["Role"]))
                labelled.append(("fxn", s, (i,), sentence.misc(i)["Function"]))
    return labelled


def label_counts(split: str, task: str) -> Counter[str]:
    return Counter(label for name, _, _, label in examples(split) if name == task)


def test_the_grammar_writes_the_shipped_files_byte_for_byte() -> None:
    for split, text in zip(("train", "test"), write_corpus(), strict=True):
        assert (FOLDER / "tasks" / "embedded" / f"{split}.conllu").read_bytes() == text.encode()


def test_another_seed_writes_another_corpus() -> None:
    assert write_corpus(1, 20, 0) != write_corpus(2, 20, 0)


def test_there_are_800_training_and_200_test_sentences() -> None:
    assert (len(corpus("train")), len(corpus("test"))) == (800, 200)


def test_sentences_have_3_to_32_words() -> None:
    lengths = [len(sentence.rows) for sentence in everything()]
    assert min(lengths) >= 3
    assert max(lengths) <= 32


def test_every_row_has_ten_filled_columns() -> None:
    assert all(len(row) == 10 and all(row) for sentence in everything() for row in sentence.rows)


def test_words_are_numbered_from_one() -> None:
    assert all([row[0] for row in s.rows] == [str(i + 1) for i in range(len(s.rows))] for s in everything())


def test_the_text_is_the_words_joined() -> None:
    for sentence in everything():
        gaps = ["" if sentence.misc(i).get("SpaceAfter") == "No" else " " for i in range(len(sentence.rows))]
        joined = "".join(row[1] + gap for row, gap in zip(sentence.rows, gaps, strict=True))
        assert joined.strip() == sentence.comments["text"]


def assert_one_root(sentence: Sentence) -> None:
    assert [row[7] for row in sentence.rows if row[6] == "0"] == ["root"]
    assert sum(row[7] == "root" for row in sentence.rows) == 1


def assert_every_word_leads_to_the_root(sentence: Sentence) -> None:
    for i in range(len(sentence.rows)):
        at, steps = i + 1, 0
        while at and steps <= len(sentence.rows):
            at, steps = sentence.heads[at - 1], steps + 1
        assert at == 0, sentence.comments


def test_every_tree_has_one_root_and_it_is_called_root() -> None:
    for sentence in everything():
        assert_one_root(sentence)


def test_every_head_exists() -> None:
    assert all(0 <= head <= len(sentence.rows) for sentence in everything() for head in sentence.heads)


def test_every_word_leads_to_the_root() -> None:
    for sentence in everything():
        assert_every_word_leads_to_the_root(sentence)


def test_another_seed_and_size_give_other_sentences_with_valid_trees() -> None:
    train, test = (parse(text) for text in write_corpus(seed=8, train=120, test=20))
    assert (len(train), len(test)) == (120, 20)
    texts = {sentence.comments["text"] for sentence in (*train, *test)}
    assert len(texts) == 140
    assert len(texts - {sentence.comments["text"] for sentence in everything()}) >= 130
    for sentence in (*train, *test):
        assert all(0 <= head <= len(sentence.rows) for head in sentence.heads)
        assert_one_root(sentence)
        assert_every_word_leads_to_the_root(sentence)


def test_no_test_sentence_occurs_in_train() -> None:
    assert not {s.comments["text"] for s in corpus("train")} & {s.comments["text"] for s in corpus("test")}


def test_no_sentence_occurs_twice() -> None:
    assert len({s.comments["text"] for s in everything()}) == 1000


def test_about_45_percent_of_the_sentences_are_questions() -> None:
    assert 330 <= label_counts("train", "question").total() <= 390


def test_there_are_12_to_20_question_classes() -> None:
    assert 12 <= len(label_counts("train", "question")) <= 20


def test_all_17_universal_tags_occur() -> None:
    assert len(label_counts("train", "pos")) == 17


@pytest.mark.parametrize(
    "form", ["light", "that", "to", "like", "her", "back", "past", "so", "down", "up", "in", "walk"]
)
def test_a_form_has_several_readings(form: str) -> None:
    readings = {(row[3], row[4]) for sentence in everything() for row in sentence.rows if row[1].lower() == form}
    assert len(readings) >= 2


@pytest.mark.parametrize("form", ["well", "run"])
def test_a_form_has_several_tags_in_train(form: str) -> None:
    tags = {row[3] for sentence in corpus("train") for row in sentence.rows if row[1].lower() == form}
    assert len(tags) >= 2


def test_nine_prepositions_have_four_roles_or_more() -> None:
    roles = defaultdict(set)
    for sentence in everything():
        for i, row in enumerate(sentence.rows):
            if "Role" in sentence.misc(i):
                roles[row[1].lower()].add(sentence.misc(i)["Role"])
    assert all(len(roles[form]) >= 4 for form in ("in", "on", "at", "for", "with", "by", "of", "to", "from"))


def test_roles_stand_on_prepositions_and_possessives_only() -> None:
    for sentence in everything():
        for i, row in enumerate(sentence.rows):
            if "Role" in sentence.misc(i):
                assert row[7] in ("case", "nmod:poss")


def test_role_and_function_differ_on_15_percent_of_the_targets() -> None:
    pairs = [s.misc(i) for s in everything() for i in range(len(s.rows)) if "Role" in s.misc(i)]
    assert sum(pair["Role"] != pair["Function"] for pair in pairs) >= 0.15 * len(pairs)


@pytest.mark.parametrize("task", TASKS)
def test_every_test_label_has_training_examples(task: str) -> None:
    train = label_counts("train", task)
    assert all(train[label] >= FEWEST for label in label_counts("test", task))


@pytest.mark.parametrize("task", TASKS)
def test_a_rare_label_is_in_train_and_not_in_test(task: str) -> None:
    absent = set(label_counts("train", task)) - set(label_counts("test", task))
    assert any(label_counts("train", task)[label] < 10 for label in absent)


@cache
def vectors(split: str) -> list[np.ndarray]:
    """Per sentence: [CLS] and then each word's mean subword vector, at the last layer of the embedded encoder."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(ENCODER)
    model = AutoModel.from_pretrained(ENCODER, dtype=torch.float32).eval()
    sentences = corpus(split)
    pooled = []
    for start in range(0, len(sentences), 50):
        words = [[row[1] for row in sentence.rows] for sentence in sentences[start : start + 50]]
        pieces = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**pieces).last_hidden_state.numpy()
        for k, forms in enumerate(words):
            of = np.array([-1 if w is None else w for w in pieces.word_ids(k)])
            pooled.append(np.stack([states[k, 0], *(states[k, of == i].mean(0) for i in range(len(forms)))]))
    return pooled


def dataset(split: str, task: str) -> tuple[np.ndarray, list[str]]:
    labelled = [(s, words, label) for name, s, words, label in examples(split) if name == task]
    rows = [np.concatenate([vectors(split)[s][i] for i in ([w + 1 for w in words] or [0])]) for s, words, _ in labelled]
    return np.stack(rows), [label for _, _, label in labelled]


@pytest.mark.parametrize("task", TASKS)
def test_a_linear_probe_is_right_on_70_to_97_percent(task: str) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probe = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=2000)).fit(*dataset("train", task))
    assert 0.70 <= probe.score(*dataset("test", task)) <= 0.97
