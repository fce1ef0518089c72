"""Agreement and tense: the auxiliaries and the form of a verb for its subject."""

from __future__ import annotations

from typing import Literal

from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import ADVERBS, STATIVE
from closerlook.tasks.embedded.words import Node, adverb, auxiliary, bend, closed, contracted_not

MODALS = ("will", "can", "would", "should", "might", "could", "must", "may")


def agreement(subject: Node) -> Literal["I", "singular", "plural"]:
    """Which form of the verb agrees with the subject."""
    if subject.form in ("I", "i"):
        return "I"
    several = "Number=Plur" in subject.feats or any(node.rel == "conj" for node in subject.after)
    return "plural" if several else "singular"


def present_tag(subject: Node) -> str:
    """The Penn tag of a verb in the present tense with this subject."""
    return "VBZ" if agreement(subject) == "singular" else "VBP"


def be(dice: Dice, subject: Node, rel: str, past: float = 0.6) -> Node:
    """The form of 'be' that agrees with the subject. past: the probability of the past tense."""
    number = agreement(subject)
    if dice.chance(past):
        return auxiliary("be", "were" if number == "plural" else "was", "VBD", rel)
    return auxiliary("be", {"I": "am", "singular": "is", "plural": "are"}[number], present_tag(subject), rel)


def auxiliaries(dice: Dice, verb: Node, subject: Node, asks: bool) -> tuple[list[Node], str]:
    """The auxiliaries of a tense drawn at random, and the Penn tag of the verb. asks: whether it is a question."""
    present = present_tag(subject)
    shape = _tense(dice, verb, asks)
    if shape == "modal":
        form = dice.early(MODALS)
        negation = [closed("not", "advmod")] if not asks and dice.chance(0.15) else []
        return [auxiliary(form, form, "MD"), *negation], "VB"
    if shape == "have":
        return [auxiliary("have", "has" if present == "VBZ" else "have", present)], "VBN"
    if shape == "be":
        return [be(dice, subject, "aux")], "VBG"
    past = shape == "past" or (shape == "not" and dice.chance(0.6))
    tag = "VBD" if past else present
    if not asks and shape != "not":
        return [], tag
    do = auxiliary("do", {"VBD": "did", "VBZ": "does", "VBP": "do"}[tag], tag)
    negation = [closed("not", "advmod") if dice.chance(0.4) else contracted_not()]
    return [do, *(negation if shape == "not" else [])], "VB"


def _tense(dice: Dice, verb: Node, asks: bool) -> str:
    """A tense or auxiliary; questions mostly have plain tenses, and stative verbs are never progressive."""
    less = 0.5 if asks else 1
    progressive = [] if verb.lemma in STATIVE else [("be", 6 * less)]
    return dice.weighted(
        [
            ("past", 44),
            ("present", 22),
            ("modal", 11 * less),
            ("not", 0 if asks else 8),
            ("have", 6 * less),
            *progressive,
        ]
    )


def finite(dice: Dice, verb: Node, subject: Node) -> Node:
    """A clause: subject, auxiliaries, verb phrase."""
    helpers, tag = auxiliaries(dice, verb, subject, asks=False)
    inner = [adverb(dice.early(ADVERBS["inner"]))] if dice.chance(0.09) else []
    return bend(verb, tag).preceded_by(subject.as_("nsubj"), *helpers, *inner)
