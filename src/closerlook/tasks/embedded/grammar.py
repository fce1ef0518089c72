"""The grammar that writes the embedded corpus: `python -m closerlook.tasks.embedded.grammar` rewrites both files.

A sentence is drawn top down as a dependency tree, phrase by phrase: `questions` and `statements` are made of `clauses`,
these of `phrases`, these of `words`. The words and their meanings are in `lexicon` and `senses`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import YEARS
from closerlook.tasks.embedded.questions import question
from closerlook.tasks.embedded.statements import statement
from closerlook.tasks.embedded.words import Node, linearise, render

FEWEST = 6
"""A label with fewer training examples than this is never asked for in test."""
PAST, FUTURE = ("yesterday", "last"), ("tomorrow", "next")
"""Words that say which time a sentence is about."""


def write_corpus(seed: int = 7, train: int = 800, test: int = 200) -> tuple[str, str]:
    """The texts of train.conllu and test.conllu: no sentence twice, every test label known from train."""
    dice = Dice(Random(seed))  # noqa: S311 - a corpus is drawn, no secret
    seen: set[str] = set()
    known: Counter[str] = Counter()
    texts: dict[str, list[str]] = {"train": [], "test": []}
    while len(texts["train"]) + len(texts["test"]) < train + test:
        split = "train" if len(texts["train"]) < train else "test"
        root, label = question(dice) if dice.chance(0.45) else (statement(dice), "")
        given = labels(root, label)
        said = " ".join(node.form for node, _ in linearise(root))
        rare = split == "test" and any(known[each] < FEWEST for each in given)
        if said in seen or rare or not sensible(root):
            continue
        seen.add(said)
        known.update(given if split == "train" else [])
        texts[split].append(render(root, f"{split}-{len(texts[split]) + 1:04}", label))
    return "".join(texts["train"]), "".join(texts["test"])


def labels(root: Node, label: str) -> list[str]:
    """Every label that the sentence gives to one of the five tasks, with the task's name in front."""
    found = [f"question {label}"] if label else []
    for node, _ in linearise(root.as_("root")):
        found += [f"pos {node.upos}", f"dep {node.rel}"]
        found += [f"role {node.sense.role}", f"fxn {node.sense.function}"] if node.sense else []
    return found


def sensible(root: Node) -> bool:
    """Whether the sentence is neither too short nor too long, says no content word twice and keeps to one time."""
    words = [node for node, _ in linearise(root)]
    content = [node.lemma.lower() for node in words if node.upos in ("NOUN", "PROPN", "VERB")]
    return 3 <= len(words) <= 32 and len(set(content)) == len(content) and not _times_clash(words)


def _times_clash(words: list[Node]) -> bool:
    """Whether the sentence names two times, or one that its verbs do not agree with."""
    times = [node.form for node in words if node.form in PAST + FUTURE or node.form in YEARS]
    if len(times) != 1:
        return len(times) > 1
    against = ("VBD",) if times[0] in FUTURE else ("MD", "VBZ", "VBP")
    return any(node.xpos in against for node in words)


def main() -> None:
    """Nothing: writes both files of the corpus, beside this module."""
    for file, text in zip(("train.conllu", "test.conllu"), write_corpus(), strict=True):
        Path(__file__).with_name(file).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
