"""Noun, prepositional and verb phrases, and clauses that modify nouns; in one module, since they contain each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from closerlook.tasks.embedded import names
from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import (
    ABSOLUTE,
    ADJECTIVES,
    ADVERBS,
    COMPOUNDS,
    FIXED,
    MASS,
    NOUNS,
    OBJECT_PRONOUNS,
    PHRASAL,
    POSSESSIVE_PRONOUNS,
    PROPER,
    RELATIONAL,
    STATIVE,
    SUBJECT_PRONOUNS,
    VERBS,
    Frame,
)
from closerlook.tasks.embedded.senses import OWNERS, PREPOSITIONS, Sense, read_sense
from closerlook.tasks.embedded.verbs import finite
from closerlook.tasks.embedded.words import (
    CLOSED_WORDS,
    Node,
    adjective,
    adverb,
    bend,
    closed,
    noun,
    possessive_pronoun,
    preposition,
    proper,
    punctuation,
    to,
    verb,
    word,
)

PRONOUN_CHANCE = {"person": 0.42, "kin": 0.42, "thing": 0.1, "text": 0.1, "tool": 0.1, "food": 0.1}
OWNED_CHANCE = {"kin": 0.6, "body": 0.7, "thing": 0.25, "clothes": 0.4, "quality": 0.3, "animal": 0.15, "text": 0.12}
"""How often a pronoun (for people: a pronoun or a name) replaces a noun of this class, and how often the noun has a
possessive in front (for mass nouns: a quarter as often)."""
PLAIN = ("clock", "topic", "sort", "measure", "portion", "unit", "figure", "part", "body")
"""Classes that take no adjective."""
ADJECTIVE_KIND = {
    "person": "person", "kin": "person", "event": "event", "food": "food", "drink": "food", "topic": "abstract",
    "feeling": "abstract", "manner": "abstract", "quality": "abstract", "reason": "abstract", "animal": "person",
    "role": "person", "group": "person",
}  # fmt: skip
"""The class whose adjectives fit a noun of this class; for other classes, adjectives of things."""


# --- noun phrases --------------------------------------------------------------------------------------------------


def noun_phrase(dice: Dice, kinds: str, depth: int = 0, role: Literal["subject", "object"] = "object") -> Node:
    """A noun phrase whose head is a noun of one of the classes in `kinds`, such as 'person|thing'."""
    kind = dice.one(kinds.split("|"))
    if kind in SPECIAL:
        return SPECIAL[kind](dice)
    if kind in FIXED:
        return from_recipe(dice, dice.one(FIXED[kind]))
    if kind in PROPER:
        return proper(dice.one(NOUNS[kind]))
    if kind in PRONOUN_CHANCE and dice.chance(PRONOUN_CHANCE[kind]):
        return _someone(dice, role) if kind in ("person", "kin") else names.thing_pronoun(dice)
    node = common_noun_phrase(dice, kind, depth)
    if depth > 0 or dice.chance(0.95):
        return node
    conjunction = closed(dice.weighted((("and", 4), ("or", 1))), "cc")
    if conjunction.form == "and" and dice.chance(0.05):
        node = node.preceded_by(closed("both", "cc:preconj"))
    return node.followed_by(common_noun_phrase(dice, kind, 2).preceded_by(conjunction).as_("conj"))


def common_noun_phrase(dice: Dice, kind: str, depth: int, plural: bool | None = None) -> Node:
    """A noun phrase with a common noun as its head. plural: whether it is plural; None: drawn at random."""
    if plural is None:
        plural = kind not in MASS and dice.chance(0.22)
    draw = dice.early if depth else dice.rather_early  # deep in a sentence, common words
    node = noun(draw(NOUNS[kind]), plural=plural)
    if kind in COMPOUNDS and dice.chance(0.2):
        node = node.preceded_by(noun(dice.one(NOUNS[dice.one(COMPOUNDS[kind])]), "compound"))
    if kind not in PLAIN and dice.chance(0.36):
        node = node.preceded_by(attribute(dice, kind))
    if plural and dice.chance(0.3):
        node = node.preceded_by(names.number(dice))
    node = determine(dice, node, kind, depth)
    if depth < 2 and f"n.{kind}" in PREPOSITIONS and dice.chance(0.9 if kind in RELATIONAL else 0.42):
        return node.followed_by(prepositional_phrase(dice, f"n.{kind}", depth + 1).as_("nmod"))
    if depth < 2 and dice.chance(0.2):
        return node.followed_by(modifier_clause(dice, kind, node))
    return node


def determine(dice: Dice, node: Node, kind: str, depth: int) -> Node:
    """The noun phrase with an article, a possessive, another determiner or nothing in front."""
    plural, bare = node.xpos == "NNS", kind in MASS
    owned = OWNED_CHANCE.get(kind, 0.06) if kind in OWNERS else 0.0
    if dice.chance(owned / 4 if bare else owned):
        return node.preceded_by(possessor(dice, OWNERS[kind], depth))
    if kind in ("quality", "figure", "part"):
        return node.preceded_by(closed("the", "det"))
    if bare or (plural and dice.chance(0.45)):
        return node
    if dice.chance(0.1):
        forms = ("those", "these", "some", "no", "all") if plural else ("this", "that", "every", "some", "no")
        form = dice.early(forms)
        if form == "all":
            return node.preceded_by(closed("all", "det:predet"), closed("the", "det"))
        return node.preceded_by(closed(form, "det"))
    return node.preceded_by(closed("the" if plural or dice.chance(0.58) else "a", "det"))


def possessor(dice: Dice, sense: Sense, depth: int) -> Node:
    """A possessive pronoun, or a noun with 's; the sense is annotated on the pronoun or on the 's."""
    if depth > 1 or dice.chance(0.62):
        return possessive_pronoun(dice.early(POSSESSIVE_PRONOUNS), sense)
    owner = names.name(dice) if dice.chance(0.5) else common_noun_phrase(dice, "person", 2, plural=False)
    return owner.followed_by(replace(closed("'s", "case"), sense=sense, glue="left")).as_("nmod:poss")


def attribute(dice: Dice, kind: str) -> Node:
    """An adjective that fits nouns of this class, sometimes with an adverb of degree."""
    node = adjective(dice.one(ADJECTIVES[ADJECTIVE_KIND.get(kind, "thing")]), "amod")
    if node.lemma not in ABSOLUTE and dice.chance(0.1):
        return node.preceded_by(adverb(dice.early(ADVERBS["degree"][:4])))
    return node


def _someone(dice: Dice, role: Literal["subject", "object"]) -> Node:
    """A person as a pronoun or a name."""
    if dice.chance(0.5):
        return closed(dice.early(SUBJECT_PRONOUNS if role == "subject" else OBJECT_PRONOUNS), "nsubj")
    if dice.chance(0.08):
        return closed(dice.early(("everyone", "nobody")), "nsubj")
    node = names.name(dice)
    if role == "subject" and dice.chance(0.12):
        title = common_noun_phrase(dice, "person", 1, plural=False).as_("appos")
        return node.followed_by(title.preceded_by(punctuation(",")).followed_by(punctuation(",")))
    return node


SPECIAL: dict[str, Callable[[Dice], Node]] = {
    "name": names.name,
    "two": names.two_names,
    "span": names.time_span,
    "money": names.money,
    "percent": names.percentage,
    "year": names.year,
    "daypart": names.part_of_day,
    "people": lambda dice: common_noun_phrase(dice, "person", 2, plural=True),
    "tool_many": lambda dice: common_noun_phrase(dice, "tool", 2, plural=True),
    "vehicle_bare": lambda dice: noun(dice.early(NOUNS["vehicle"])),
}
"""Classes whose phrases are made by a function of their own."""


# --- prepositional phrases -----------------------------------------------------------------------------------------


def prepositional_phrase(dice: Dice, governor: str, depth: int = 0, taken: Sequence[str] = (), role: str = "") -> Node:
    """A prepositional phrase for one class of verbs or nouns.

    governor: the class that the phrase must fit; 'any': it must fit every clause. taken: prepositions that may not be
    used. role: the only role allowed; empty: any role.
    """
    fitting = [
        (sense, weight)
        for sense, weight in PREPOSITIONS[governor]
        if sense.form not in taken and role in ("", sense.role)
    ]
    sense = dice.weighted(fitting)
    return noun_phrase(dice, sense.noun, depth + 1).preceded_by(preposition(sense)).as_("obl")


def says_when(phrase: Node) -> bool:
    """Whether a prepositional phrase expresses a time or a duration."""
    sense = phrase.before[0].sense
    return sense is not None and (sense.role in ("Duration", "Interval") or sense.role.endswith("Time"))


def bare_time(dice: Dice) -> Node:
    """A time without a preposition: 'last week', 'every day', 'yesterday'."""
    if dice.chance(0.4):
        return noun(dice.early(("yesterday", "today", "tomorrow")), "obl:tmod")
    node = noun(dice.early(("week", "year", "night", "day", "summer", "Sunday")), "obl:tmod")
    if dice.chance(0.4):
        return node.preceded_by(closed("every", "det"))
    return node.preceded_by(adjective(dice.one(("last", "next", "past")), "amod"))


# --- phrases from recipes ------------------------------------------------------------------------------------------


def from_recipe(dice: Dice, recipe: str) -> Node:
    """A noun or prepositional phrase from its recipe: 'the capital of=Whole>Gestalt COUNTRY'.

    A class in capitals stands for a noun of that class (a plural with +); `=` gives a preposition its sense.
    """
    words = recipe.split()
    cut = next((i for i, form in enumerate(words) if "=" in form), len(words))
    if cut == 0:
        return from_recipe(dice, " ".join(words[1:])).preceded_by(preposition_from(words[0])).as_("obl")
    *modifiers, last = words[:cut]
    node = _head(dice, last)
    for form in reversed(modifiers):
        node = _ask_how(node) if form == "how" else node.preceded_by(_modifier(form, last.lower()))
    if cut < len(words):
        return node.followed_by(from_recipe(dice, " ".join(words[cut:])).as_("nmod"))
    return node


def preposition_from(recipe: str) -> Node:
    """A preposition from its recipe: 'of=Whole>Gestalt'."""
    form, _, meaning = recipe.partition("=")
    return preposition(read_sense(form, meaning))


def _head(dice: Dice, recipe: str) -> Node:
    """The noun in the recipe, or a noun of the class that the recipe names in capitals."""
    kind = recipe.rstrip("+")
    if recipe in CLOSED_WORDS:
        return CLOSED_WORDS[recipe]
    if not kind.isupper():
        return noun(recipe)
    kind = kind.lower()
    if kind in SPECIAL or kind in PROPER or kind in FIXED:
        return noun_phrase(dice, kind, 1)
    return noun(dice.early(NOUNS[kind]), plural=recipe.endswith("+"))


def _modifier(form: str, kind: str) -> Node:
    """A word in front of a noun of this class. Its part of speech decides its dependency relation (adjective: amod)."""
    if form in POSSESSIVE_PRONOUNS:
        return possessive_pronoun(form, OWNERS.get(kind, Sense("", "Gestalt", "Gestalt")))
    node = CLOSED_WORDS[form] if form in CLOSED_WORDS else noun(form)
    return node.as_({"DET": "det", "ADJ": "amod", "NUM": "nummod", "ADV": "advmod"}.get(node.upos, "compound"))


def _ask_how(node: Node) -> Node:
    """The phrase with 'how' on its first modifier ('how many people') or on itself ('how far')."""
    how = closed("how", "advmod")
    if not node.before:
        return node.preceded_by(how)
    measure, *others = node.before
    return replace(node, before=(measure.preceded_by(how), *others))


# --- verb phrases --------------------------------------------------------------------------------------------------


def verb_phrase(dice: Dice, frame: Frame, depth: int = 0, gap: bool = False) -> Node:
    """A verb phrase in its base form: verb, object, prepositional phrases, adverb.

    gap: leave out the object, because it is the noun that the clause modifies.
    """
    node, taken = verb(dice.one(frame.verbs)), []
    dative = frame.kind == "give" and not gap and dice.chance(0.3)
    if frame.noun and not gap:
        thing = noun_phrase(dice, frame.noun, depth).as_("obj")
        if dative:
            taken.append("to")
            node = node.followed_by(noun_phrase(dice, "person|kin", 2).as_("iobj"))
        node = node.followed_by(thing)
    if frame.kind in PREPOSITIONS and dice.chance(frame.bound):
        own = prepositional_phrase(dice, frame.kind, depth, taken)
        taken.append(own.before[0].form)
        node = node.followed_by(own)
    if frame.kind in ("motion", "travel", "roam", "throw") and dice.chance(0.25):
        node = replace(node, after=(adverb(dice.early(ADVERBS["way"])), *node.after))
    return node.followed_by(*_circumstances(dice, depth, taken))


def _circumstances(dice: Dice, depth: int, taken: Sequence[str]) -> list[Node]:
    """What any verb phrase may end in: one or two prepositional phrases, an adverb, a time or nothing."""
    if dice.chance(0.8 if depth == 0 else 0.6):
        first = prepositional_phrase(dice, "any", depth, taken)
        if not dice.chance(0.45):
            return [first]
        second = prepositional_phrase(dice, "any", depth, [*taken, first.before[0].form])
        return [first] if says_when(first) and says_when(second) else [first, second]
    if dice.chance(0.35):
        return [adverb(dice.early(ADVERBS["final"]))]
    return [bare_time(dice)] if dice.chance(0.08) else []


def phrasal_verb_phrase(dice: Dice, depth: int = 0) -> Node:
    """A verb phrase with a particle: 'pick up the phone', 'pick it up'."""
    lemma, form, kind = dice.one(PHRASAL)
    node, particle = verb(lemma), word(form, "ADP", "RP", "compound:prt")
    if kind == "-":
        node = node.followed_by(particle)
        return node.followed_by(prepositional_phrase(dice, "any", depth)) if dice.chance(0.5) else node
    if dice.chance(0.25):
        return node.followed_by(closed("it", "obj"), particle)
    thing = noun_phrase(dice, kind, depth + 1).as_("obj")
    return node.followed_by(thing, particle) if dice.chance(0.3) else node.followed_by(particle, thing)


# --- clauses after nouns -------------------------------------------------------------------------------------------


def modifier_clause(dice: Dice, kind: str, noun: Node) -> Node:
    """A clause after a noun of this class: relative, participle or infinitive."""
    doing = [frame for frame in VERBS.values() if frame.subject == kind]
    undergoing = [frame for frame in VERBS.values() if kind in frame.noun.split("|") and frame.kind not in _ADDRESSED]
    pronoun = _relative_pronoun(dice, kind)
    if doing and (not undergoing or dice.chance(0.6)):
        return _clause_about_doer(dice, dice.one(doing), pronoun, noun)
    if not undergoing:
        return to(verb("see")).as_("acl")
    node = verb_phrase(dice, dice.one(undergoing), 2, gap=True)
    if dice.chance(0.25):
        return bend(node, "VBN").as_("acl")
    relative = finite(dice, node, noun_phrase(dice, "person|kin", 2, "subject")).as_("acl:relcl")
    return relative if dice.chance(0.4) else relative.preceded_by(pronoun.as_("obj"))


def _clause_about_doer(dice: Dice, frame: Frame, pronoun: Node, noun: Node) -> Node:
    """A participle or relative clause in which the noun is the subject; its verb agrees with the noun."""
    node = verb_phrase(dice, frame, 1)
    if dice.chance(0.3) and node.lemma not in STATIVE:
        return bend(node, "VBG").as_("acl")
    relative = finite(dice, node, replace(pronoun, feats=noun.feats)).as_("acl:relcl")
    return replace(relative, before=(pronoun, *relative.before[1:]))


def _relative_pronoun(dice: Dice, kind: str) -> Node:
    """'that', or for people sometimes 'who'."""
    that = word("that", "PRON", "WDT", "nsubj")
    who = closed("who", "nsubj") if kind in ("person", "kin") else that
    return replace(who if dice.chance(0.5) else that, feats="PronType=Rel")


_ADDRESSED = ("tell", "thank", "compare")
"""Verb classes that are not used in a clause that modifies their object."""
