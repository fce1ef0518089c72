"""Clauses: active, passive, with a copula, with 'there is'."""

from __future__ import annotations

from dataclasses import replace

from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import ADJECTIVES, ADVERBS, COMPARATIVES, NOUNS, PLACED, RELATIONAL, VERBS
from closerlook.tasks.embedded.names import number
from closerlook.tasks.embedded.phrases import (
    attribute,
    common_noun_phrase,
    noun_phrase,
    phrasal_verb_phrase,
    prepositional_phrase,
    verb_phrase,
)
from closerlook.tasks.embedded.senses import Sense
from closerlook.tasks.embedded.verbs import agreement, be, finite
from closerlook.tasks.embedded.words import (
    Node,
    adjective,
    adverb,
    auxiliary,
    bend,
    closed,
    noun,
    preposition,
    word,
)

FRAME_WEIGHTS = [(frame, 10 / (5 + i) + 0.3) for i, frame in enumerate(VERBS.values())]
PERSON_FRAME_WEIGHTS = [(frame, weight) for frame, weight in FRAME_WEIGHTS if frame.subject == "person"]
PASSIVE_FRAMES = [
    frame
    for frame in VERBS.values()
    if frame.subject == "person" and frame.noun and frame.kind not in ("like", "spend", "go_to")
]


def clause(dice: Dice, depth: int = 0) -> Node:
    """A clause of any simple kind."""
    kinds = ((active, 8.0), (passive, 2.0), (copular, 4.0), (existential, 1.0))
    return dice.weighted(kinds)(dice, depth)


def active(dice: Dice, depth: int = 0) -> Node:
    """A clause with one verb phrase."""
    if dice.chance(0.16):
        node = phrasal_verb_phrase(dice, depth)
        return finite(dice, node, noun_phrase(dice, "person|kin", depth + 1, "subject"))
    frame = dice.weighted(FRAME_WEIGHTS)
    node = verb_phrase(dice, frame, depth)
    return finite(dice, node, noun_phrase(dice, frame.subject, depth, "subject"))


def what_a_person_does(dice: Dice, depth: int) -> Node:
    """A verb phrase in its base form whose subject would be a person."""
    return verb_phrase(dice, dice.weighted(PERSON_FRAME_WEIGHTS), depth)


def passive(dice: Dice, depth: int = 0) -> Node:
    """A passive clause, sometimes with its agent."""
    frame = dice.one(PASSIVE_FRAMES)
    subject = noun_phrase(dice, frame.noun, depth, "subject")
    node = bend(verb_phrase(dice, frame, depth + 1, gap=True), "VBN")
    by_taken = any(phrase.before and phrase.before[0].form == "by" for phrase in node.after)
    if dice.chance(0.45) and not by_taken:
        by = preposition(Sense("by", "Agent", "Agent"))
        agent = noun_phrase(dice, "person|kin|name", depth + 1).preceded_by(by).as_("obl:agent")
        node = replace(node, after=(agent, *node.after)) if dice.chance(0.6) else node.followed_by(agent)
    helpers = [be(dice, subject, "aux:pass")]
    if dice.chance(0.15):
        helpers = [auxiliary("will", "will", "MD"), auxiliary("be", "be", "VB", "aux:pass")]
    return node.preceded_by(subject.as_("nsubj:pass"), *helpers)


def existential(dice: Dice, depth: int = 0) -> Node:
    """A clause with 'there is'."""
    kind, where = dice.one(PLACED)
    lemma = dice.early(NOUNS[kind])
    thing = noun(lemma, plural=dice.chance(0.3))
    first = number(dice) if thing.xpos == "NNS" else closed("a", "det")
    thing = thing.preceded_by(first, *([attribute(dice, kind)] if dice.chance(0.3) else []))
    if kind in RELATIONAL:
        thing = thing.followed_by(prepositional_phrase(dice, f"n.{kind}", 1, role="QuantityItem").as_("nmod"))
    node = replace(be(dice, thing, "root", 0.4), upos="VERB").preceded_by(closed("there", "expl"))
    return node.followed_by(thing.as_("nsubj"), prepositional_phrase(dice, where, depth, role="Locus"))


# --- with a copula -------------------------------------------------------------------------------------------------


def copular(dice: Dice, depth: int = 0) -> Node:
    """A clause with a copula: adjective, comparison, noun or place."""
    kind = dice.one(("person", "thing", "place", "event", "text", "food", "kin", "animal"))
    subject = noun_phrase(dice, kind, depth, "subject")
    what = dice.weighted((("plain", 3.5), ("governs", 7), ("more", 2), ("noun", 2), ("place", 3)))
    if what == "governs":
        subject, node = _with_governing_adjective(dice, depth)
    elif what == "more":
        node = _comparison(dice, kind)
    elif what == "noun":
        subject = noun_phrase(dice, "person|kin", depth, "subject")
        node = common_noun_phrase(dice, "person", depth, plural=agreement(subject) == "plural")
    elif what == "place":
        where = dice.one(("thing", "person", "event"))
        subject = noun_phrase(dice, where, depth, "subject")
        node = prepositional_phrase(dice, f"n.{where}", 1, role="Locus")
    else:
        node = attribute(dice, "thing" if kind == "event" else kind)
    degree = [adverb(dice.one(ADVERBS["degree"]))] if what == "plain" and not node.before else []
    negation = [closed("not", "advmod")] if dice.chance(0.1) else []
    copula = be(dice, subject, "cop", 0.45)
    return node.preceded_by(subject.as_("nsubj"), copula, *negation, *(degree if dice.chance(0.8) else []))


def _with_governing_adjective(dice: Dice, depth: int) -> tuple[Node, Node]:
    """A subject and an adjective with its preposition: 'the box', 'full of tools'."""
    subject = noun_phrase(dice, "person|kin", depth, "subject")
    governor = dice.one(("feel", "feel", "fear", "skill", "keen", "known", "near", "full"))
    if governor in ("near", "full"):
        subject = noun_phrase(dice, "place" if governor == "near" else "container", 1, "subject")
    node = adjective(dice.early(ADJECTIVES[governor]))
    return subject, node.followed_by(prepositional_phrase(dice, f"a.{governor}", depth))


def _comparison(dice: Dice, kind: str) -> Node:
    """A comparative with what it is compared to: 'older than the house'."""
    lemma, form = dice.one(COMPARATIVES)
    than = preposition(Sense("than", "ComparisonRef", "ComparisonRef"))
    return word(lemma, "ADJ", "JJR", form=form).followed_by(noun_phrase(dice, kind, 1).preceded_by(than).as_("obl"))
