"""CoNLL-U and .conllulex: every label, empty nodes, multiword tokens, malformed rows, and the real corpora."""

import os
from pathlib import Path
from typing import Any

import pytest

from closerlook.errors import InputError
from closerlook.tasks.readers import read_task
from closerlook.tasks.task import Task
from closerlook.texts import RunningText, words_of

DATA = Path(os.environ.get("CLOSERLOOK_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no corpora: name their folder with CLOSERLOOK_DATA")

# 'She won't go, he will [go].': a multiword token, an empty node, and a head after it
SENTENCE = """\
# sent_id = 1
# mood = plain = yes
1	She	she	PRON	PRP	Case=Nom|Number=Sing	4	nsubj	_	Role=Agent
2-3	won't	_	_	_	_	_	_	_	_
2	wo	will	AUX	MD	Number[psor]=Plur	4	aux	_	SpaceAfter=No|Role=_
3	n't	not	PART	RB	_	4	advmod	_	_
4	go	go	VERB	VB	_	0	root	_	_
4.1	and	and	CCONJ	CC	_	_	_	6:cc	_
5	he	he	PRON	PRP	Case=Nom	6	nsubj	_	Role=Agent|Seen=
6	will	will	AUX	_	_	4	conj	_	XRole=No
"""
OTHER = "# sent_id = 2\n1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n2\t_\t_\t_\t_\t_\t1\t_\t_\t_\n"


def read(tmp_path: Path, text: str, **options: Any) -> Task:
    path = tmp_path / "a.conllu"
    path.write_text(text, encoding="utf-8", newline="")
    return read_task(path, **options)


def examples(task: Task, split: str = "train") -> list[tuple[Any, ...]]:
    """(words at the example's positions, label) of each example."""
    part = task.split(split)
    return [
        (*(words_of(part.texts[text])[i] for i in where), task.labels[y])
        for text, where, y in zip(part.sentence, part.positions, part.y, strict=True)
    ]


def test_upos_is_the_default_and_leaves_empty_nodes_and_multiword_rows_out(tmp_path: Path) -> None:
    task = read(tmp_path, f"{SENTENCE}\n{OTHER}\n")
    assert (task.name, task.unit) == ("a", "token")
    assert [words_of(text) for text in task.split("train").texts] == [
        ("She", "wo", "n't", "go", "he", "will"),
        ("Go", "_"),
    ]
    expected = [("She", "PRON"), ("wo", "AUX"), ("n't", "PART"), ("go", "VERB"), ("he", "PRON"), ("will", "AUX")]
    assert examples(task) == [*expected, ("Go", "VERB")]


def test_empty_nodes_are_kept_in_place(tmp_path: Path) -> None:
    task = read(tmp_path, SENTENCE, empty_nodes=True)
    assert task.split("train").texts == (("She", "wo", "n't", "go", "and", "he", "will"),)
    assert examples(task)[4] == ("and", "CCONJ")


def test_an_empty_node_may_come_first(tmp_path: Path) -> None:
    first = "0.1\tso\t_\tADV\t_\t_\t_\t_\t_\t_\n0.2\tthen\t_\tADV\t_\t_\t_\t_\t_\t_\n"
    assert examples(read(tmp_path, first + OTHER, empty_nodes=True)) == [("so", "ADV"), ("then", "ADV"), ("Go", "VERB")]


def test_every_word_may_have_empty_nodes_after_it(tmp_path: Path) -> None:
    ids = ("1", "1.1", "1.2", "2", "2.1")
    text = "".join(f"{id_}\tw{id_}\t_\tX\t_\t_\t0\troot\t_\t_\n" for id_ in ids)
    assert read(tmp_path, text, empty_nodes=True).split("train").texts == (("w1", "w1.1", "w1.2", "w2", "w2.1"),)


def test_xpos_without_value_is_no_example(tmp_path: Path) -> None:
    assert [label for _, label in examples(read(tmp_path, SENTENCE, label="xpos"))] == ["PRP", "MD", "RB", "VB", "PRP"]


@pytest.mark.parametrize("empty_nodes", [False, True])
def test_deprel_pairs_are_head_then_dependent_without_root(tmp_path: Path, empty_nodes: bool) -> None:
    task = read(tmp_path, SENTENCE, label="deprel", empty_nodes=empty_nodes)
    assert task.unit == "pair"
    assert examples(task) == [
        ("go", "She", "nsubj"),
        ("go", "wo", "aux"),
        ("go", "n't", "advmod"),
        ("will", "he", "nsubj"),
        ("go", "will", "conj"),
    ]


def test_no_pair_comes_from_an_unspecified_relation_a_root_or_an_empty_node(tmp_path: Path) -> None:
    rows = ("1 2 nsubj", "2 0 root", "3 2 _", "4 _ _", "5 0 dep", "6 2 root", "6.1 2 cc", "6.2 9 cc")
    text = "".join("{0}\tw{0}\t_\tX\t_\t_\t{1}\t{2}\t_\t_\n".format(*row.split()) for row in rows)
    assert examples(read(tmp_path, text, label="deprel", empty_nodes=True)) == [("w2", "w1", "nsubj")]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("feats:Case", [("She", "Nom"), ("he", "Nom")]),
        ("feats:Number", [("She", "Sing")]),
        ("feats:Number[psor]", [("wo", "Plur")]),
        ("misc:Role", [("She", "Agent"), ("he", "Agent")]),
        ("misc:SpaceAfter", [("wo", "No")]),
    ],
)
def test_features_and_misc_are_read_by_key(tmp_path: Path, label: str, expected: list[tuple[str, str]]) -> None:
    assert examples(read(tmp_path, SENTENCE, label=label)) == expected


def test_a_key_without_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="task a, train, sentence 1: empty label"):
        read(tmp_path, SENTENCE, label="misc:Seen")


def test_a_comment_labels_its_sentence_and_shares_its_words(tmp_path: Path) -> None:
    task = read(tmp_path, f"{SENTENCE}\n{OTHER}\n", label="comment:mood")
    assert task.unit == "sentence"
    assert task.split("train").texts == read(tmp_path, f"{SENTENCE}\n{OTHER}\n").split("train").texts
    assert task.split("train").sentence.tolist() == [0]
    assert task.labels == ("plain = yes",)
    assert read(tmp_path, f"{SENTENCE}\n{OTHER}", label="comment:sent_id").labels == ("1", "2")


@pytest.mark.parametrize("comment", ["# mood", "# mood =", "# mood = _", "# moods = plain"])
def test_a_comment_without_value_is_no_label(tmp_path: Path, comment: str) -> None:
    task = read(tmp_path, f"{comment}\n{OTHER}\n{SENTENCE}", label="comment:mood")
    assert task.split("train").sentence.tolist() == [1]


def test_blank_lines_and_comments_without_words_are_no_sentence(tmp_path: Path) -> None:
    assert read(tmp_path, f"\n\n# newdoc\n\n{SENTENCE}\n\n{OTHER}\n\n\n") == read(tmp_path, f"{SENTENCE}\n{OTHER}")


@pytest.mark.parametrize("character", ["\u2028", "\x0b", "\x85", "\x1c", "\r"])
def test_only_newlines_end_a_line(tmp_path: Path, character: str) -> None:
    task = read(tmp_path, OTHER.replace("Go", f"a{character}b"))
    assert task.split("train").texts == ((f"a{character}b", "_"),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tPART", "", "line 6: 9 columns; expected 10, separated by tabs"),
        ("\tPART", "\tPART\t", "line 6: 11 columns; expected 10, separated by tabs"),
        ("3\tn't", "three\tn't", "line 6: id 'three'; expected 3: ids count words from 1"),
        ("3\tn't", "²\tn't", "line 6: id '²'; expected 3: ids count words from 1"),
        ("3\tn't", "٣\tn't", "line 6: id '٣'; expected 3: ids count words from 1"),
        ("3\tn't", "4\tn't", "line 6: id '4'; expected 3: ids count words from 1"),
        ("3\tn't", "2\tn't", "line 6: id '2'; expected 3: ids count words from 1"),
        ("4.1\t", "3.1\t", "line 8: id '3.1'; expected 5: ids count words from 1"),
        ("4.1\t", "4.2\t", "line 8: id '4.2'; expected 5: ids count words from 1"),
        ("2-3\t", "3-4\t", "line 4: id '3-4'; expected 2: ids count words from 1"),
        ("2-3\t", "2-1\t", "line 4: id '2-1'; expected 2: ids count words from 1"),
    ],
)
def test_a_malformed_row_is_refused_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SENTENCE
    with pytest.raises(InputError) as caught:
        read(tmp_path, SENTENCE.replace(old, new))
    assert str(caught.value) == f"{tmp_path / 'a.conllu'}, {message}"


@pytest.mark.parametrize("head", ["7", "-1", "_", "4.1", "²", "04", "9" * 5000])
@pytest.mark.parametrize("empty_nodes", [False, True])
def test_a_head_out_of_range_is_refused_with_its_line(tmp_path: Path, head: str, empty_nodes: bool) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, SENTENCE.replace("4\tadvmod", f"{head}\tadvmod"), label="deprel", empty_nodes=empty_nodes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'a.conllu'}, line 6: HEAD '{head[:5]}")
    assert message.endswith("expected 0 to 6, a word of the sentence")


def test_heads_are_checked_only_where_they_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, SENTENCE.replace("4\tadvmod", "_\tadvmod")) == read(tmp_path, SENTENCE)


LEX = """\
1	One	_	NUM	_	_	_	_	_	_	_	NUM	_	_	_	_	_	_	_
2	of	_	ADP	_	_	_	_	_	_	_	P	of	p.Whole	p.Gestalt	_	_	_	_
3	my	_	PRON	_	_	_	_	_	_	_	PRON.POSS	my	p.SocialRel	p.Possessor	_	_	_	_
4	out	_	ADP	_	_	_	_	_	_	1:1	P	out of	p.Source	p.Source	_	_	_	_
5	of	_	ADP	_	_	_	_	_	_	1:2	_	_	_	_	_	_	_	_
6	its	_	PRON	_	_	_	_	_	_	_	PRON.POSS	its	`$	`$	_	_	_	_
7	to	_	ADP	_	_	_	_	_	_	_	P	to	??	??	_	_	_	_
8	eat	_	VERB	_	_	_	_	_	_	_	V	eat	v.consumption	_	_	_	_	_
"""


def test_conllulex_takes_single_words_with_an_adpositional_supersense(tmp_path: Path) -> None:
    path = tmp_path / "a.conllulex"
    path.write_text(LEX)
    assert examples(read_task(path)) == [("of", "Whole"), ("my", "SocialRel")]
    assert examples(read_task(path, label="function")) == [("of", "Gestalt"), ("my", "Possessor")]


def test_conllulex_has_19_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.conllulex"
    path.write_text(OTHER)
    with pytest.raises(InputError, match="line 2: 10 columns; expected 19, separated by tabs"):
        read_task(path)


@needs_data
@pytest.mark.parametrize("label", ["role", "function"])
@pytest.mark.parametrize(("split", "count"), [("dev", 433), ("test", 457)])
def test_conllulex_and_json_lines_of_streusle_agree(label: str, split: str, count: int) -> None:
    folder = DATA / "streusle-4.2"
    task = read_task(folder / f"{split}.conllulex", label=label)
    assert task == read_task(folder / f"{split}.jsonl", label=label)
    assert len(task.split(split)) == count


def words(*rows: str) -> str:
    """CoNLL-U of words; `du=2-3` is a multiword token, and `!` at the end means that no space follows."""
    lines, number = [], 0
    for row in rows:
        form, _, range_ = row.removesuffix("!").partition("=")
        number += not range_
        misc = "SpaceAfter=No" if row.endswith("!") else "_"
        lines.append("\t".join([range_ or str(number), form, "_", "X", *"____", "_", misc]))
    return "\n".join(lines) + "\n"


def test_words_are_joined_as_they_are_written(tmp_path: Path) -> None:
    (text,) = read(tmp_path, words("我!", "喜欢!", "茶!", "。")).split("train").texts
    assert text == RunningText("我喜欢茶。", ((0, 1), (1, 3), (3, 4), (4, 5)))
    (text,) = read(tmp_path, words("Yes!", ",", "won't=3-4!", "wo", "n't", "?")).split("train").texts
    assert text == RunningText("Yes, won't?", ((0, 3), (3, 4), (5, 7), (7, 10), (10, 11)))


def test_words_of_a_multiword_token_share_its_characters(tmp_path: Path) -> None:
    (text,) = read(tmp_path, words("don't=1-2", "do", "n't", "go!", ".")).split("train").texts
    assert text == RunningText("don't go.", ((0, 2), (2, 5), (6, 8), (8, 9)))
    (text,) = read(tmp_path, words("du=1-2", "de", "le", "vin")).split("train").texts
    assert text == RunningText("du vin", ((0, 1), (1, 2), (3, 6)), ("de", "le", "vin"))
    (text,) = read(tmp_path, words("à=1-2", "à", "le")).split("train").texts
    assert text == RunningText("à", ((0, 1), (0, 1)), ("à", "le"))


def test_words_with_a_space_after_each_are_only_words(tmp_path: Path) -> None:
    assert read(tmp_path, words("It", "rains!")).split("train").texts == (("It", "rains"),)


def test_join_spaces_puts_a_space_between_all_words(tmp_path: Path) -> None:
    text = words("It!", "'s", "du=3-4", "de", "le")
    assert read(tmp_path, text, join="spaces").split("train").texts == (("It", "'s", "de", "le"),)
    with pytest.raises(InputError, match="join 'x' is unknown; expected written or spaces"):
        read(tmp_path, text, join="x")


def test_how_words_are_joined_is_part_of_the_content(tmp_path: Path) -> None:
    text = words("It!", "'s", "so")
    written, spaced = read(tmp_path, text), read(tmp_path, text, join="spaces")
    assert written.content_hash != spaced.content_hash
    assert written == read(tmp_path, text, join="written")
