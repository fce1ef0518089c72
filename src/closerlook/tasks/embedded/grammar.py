"""The grammar of the built-in corpus: `python -m closerlook.tasks.embedded.grammar` generates both of its files.

A sentence is generated top down as a dependency tree: `questions` and `statements` consist of `clauses`, clauses of
`phrases`, phrases of `words`. The words and their meanings are in `lexicon` and `senses`.
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
"""A label with fewer training examples than this does not occur in test."""
PAST, FUTURE = ("yesterday", "last"), ("tomorrow", "next")
"""Words for the past and for the future."""


def write_corpus(seed: int = 7, train: int = 800, test: int = 200) -> tuple[str, str]:
    """The texts of train.conllu and test.conllu; no sentence occurs twice, and every label of test occurs in train."""
    dice = Dice(Random(seed))  # noqa: S311 - random sentences, no secrets
    seen: set[str] = set()
    known: Counter[str] = Counter()
    texts: dict[str, list[str]] = {"train": [], "test": []}
    while len(texts["train"]) + len(texts["test"]) < train + test:
        split = "train" if len(texts["train"]) < train else "test"
        root, label = question(dice) if dice.chance(0.45) else (statement(dice), "")
        new_labels = labels(root, label)
        text = " ".join(node.form for node, _ in linearise(root))
        rare = split == "test" and any(known[name] < FEWEST for name in new_labels)
        if text in seen or rare or not sensible(root):
            continue
        seen.add(text)
        known.update(new_labels if split == "train" else [])
        texts[split].append(render(root, f"{split}-{len(texts[split]) + 1:04}", label))
    return "".join(texts["train"]), "".join(texts["test"])


def labels(root: Node, label: str) -> list[str]:
    """All labels of the sentence in the five tasks, each preceded by a short name of its task."""
    names = [f"question {label}"] if label else []
    for node, _ in linearise(root.as_("root")):
        names += [f"pos {node.upos}", f"dep {node.rel}"]
        names += [f"role {node.sense.role}", f"fxn {node.sense.function}"] if node.sense else []
    return names


def sensible(root: Node) -> bool:
    """Whether the sentence has 3 to 32 words, no content word twice, and no conflict between times and tenses."""
    words = [node for node, _ in linearise(root)]
    content = [node.lemma.lower() for node in words if node.upos in ("NOUN", "PROPN", "VERB")]
    return 3 <= len(words) <= 32 and len(set(content)) == len(content) and not _times_clash(words)


def _times_clash(words: list[Node]) -> bool:
    """Whether the sentence names two times, or a time that does not fit its verbs."""
    times = [node.form for node in words if node.form in PAST + FUTURE or node.form in YEARS]
    if len(times) != 1:
        return len(times) > 1
    wrong_tags = ("VBD",) if times[0] in FUTURE else ("MD", "VBZ", "VBP")
    return any(node.xpos in wrong_tags for node in words)


def main() -> None:
    """Write both files of the corpus into the folder of this module."""
    for file, text in zip(("train.conllu", "test.conllu"), write_corpus(), strict=True):
        Path(__file__).with_name(file).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
