"""The grammar that writes the embedded corpus: `python -m closerlook.tasks.embedded.grammar` rewrites both files.

A sentence is drawn top down as a dependency tree (`Node`), phrase by phrase: noun phrase, prepositional phrase with its
sense, verb phrase, clause, question. The words and their meanings are in `lexicon`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

from closerlook.tasks.embedded import lexicon as lx
from closerlook.tasks.embedded.lexicon import Frame, Sense

T = TypeVar("T")
FEWEST = 6
"""A label with fewer training examples than this is never asked for in test."""


@dataclass(frozen=True)
class Dice:
    """All the randomness of the grammar; only `Random.random` is used, which is the same on every Python."""

    rng: Random

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.rng.random() < p

    def one(self, items: Sequence[T]) -> T:
        """One item, all equally likely."""
        return items[int(len(items) * self.rng.random())]

    def word(self, words: Sequence[T]) -> T:
        """One item, early ones more often."""
        u = self.rng.random()
        return words[int(len(words) * u * u)]

    def rarer(self, words: Sequence[T]) -> T:
        """One item, early ones a little more often."""
        u = self.rng.random()
        return words[int(len(words) * (u + u * u) / 2)]

    def weighted(self, items: Sequence[tuple[T, float]]) -> T:
        """One item, by weight."""
        left = self.rng.random() * sum(weight for _, weight in items)
        for item, weight in items:
            left -= weight
            if left < 0:
                return item
        return items[-1][0]


@dataclass(frozen=True, eq=False)
class Node:
    """A word and its dependents, in the order in which they are said.

    glue: the side on which no space is written.
    stranded: a preposition left behind; its head is the question or relative word in front of its parent.
    """

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str = "_"
    rel: str = "root"
    before: tuple[Node, ...] = ()
    after: tuple[Node, ...] = ()
    sense: Sense | None = None
    glue: Literal["", "left", "right"] = ""
    stranded: bool = False

    def as_(self, rel: str) -> Node:
        """The same word in another relation."""
        return replace(self, rel=rel)

    def pre(self, *nodes: Node) -> Node:
        """The word with dependents in front of all it has."""
        return replace(self, before=(*nodes, *self.before))

    def post(self, *nodes: Node) -> Node:
        """The word with dependents behind all it has."""
        return replace(self, after=(*self.after, *nodes))


# --- words ---------------------------------------------------------------------------------------------------------


def word(lemma: str, upos: str, xpos: str, rel: str = "root", form: str = "") -> Node:
    """A word of an open class, inflected for its Penn tag."""
    return Node(form or lx.inflect(lemma, xpos), lemma, upos, xpos, lx.FEATS.get(xpos, "_"), rel)


def closed(form: str, rel: str) -> Node:
    """A word of a closed class."""
    return replace(_CLOSED[form], rel=rel)


def mark(form: str) -> Node:
    """A subordinating conjunction."""
    return word(form, "SCONJ", "IN", "mark")


def punct(form: str, glue: Literal["", "left", "right"] = "left") -> Node:
    """A punctuation mark."""
    return Node(form, form, "PUNCT", {"?": ".", "!": "."}.get(form, form), rel="punct", glue=glue)


def preposition(sense: Sense) -> Node:
    """A preposition with its sense; one of several words is a fixed expression without a sense."""
    first, *rest = sense.form.split("_")
    node = word(first, "SCONJ" if first == "because" else "ADP", "IN", "case")
    return node.post(*(word(w, "ADP", "IN", "fixed") for w in rest)) if rest else replace(node, sense=sense)


def aux(lemma: str, form: str, xpos: str, rel: str = "aux") -> Node:
    """An auxiliary verb."""
    return word(lemma, "AUX", xpos, rel, form)


def bend(verb: Node, tag: str) -> Node:
    """The verb in the form of another Penn tag."""
    return replace(verb, form=lx.inflect(verb.lemma, tag), xpos=tag, feats=lx.FEATS[tag])


_CLOSED = {
    form: Node(form, lemma, upos, xpos, feats)
    for form, lemma, upos, xpos, feats in (row.split("/") for row in lx.CLOSED.split())
}


# --- noun phrases --------------------------------------------------------------------------------------------------


def np(d: Dice, kinds: str, depth: int = 0, role: Literal["subject", "object"] = "object") -> Node:
    """A noun phrase whose head means one of `kinds`, written 'person|thing'."""
    kind = d.one(kinds.split("|"))
    if kind in _SPECIAL:
        return _SPECIAL[kind](d)
    if kind in lx.FIXED:
        return phrase(d, d.one(lx.FIXED[kind].split("|")))
    if kind in lx.PROPER:
        return word(d.one(lx.NOUNS[kind]), "PROPN", "NNP")
    if kind in _PRONOUN and d.chance(_PRONOUN[kind]):
        return _someone(d, role) if kind in ("person", "kin") else _something(d)
    node = common(d, kind, depth)
    if depth > 0 or d.chance(0.95):
        return node
    conj = closed(d.weighted((("and", 4), ("or", 1))), "cc")
    first = [closed("both", "cc:preconj")] if conj.form == "and" and d.chance(0.05) else []
    return node.pre(*first).post(common(d, kind, 2).pre(conj).as_("conj"))


def common(d: Dice, kind: str, depth: int, plural: bool | None = None) -> Node:
    """A noun phrase with a common noun as its head."""
    mass = kind in lx.MASS
    plural = not mass and d.chance(0.22) if plural is None else plural
    draw = d.word if depth else d.rarer  # deep in a sentence, common words
    node = word(draw(lx.NOUNS[kind]), "NOUN", "NNS" if plural else "NN")
    if kind in lx.COMPOUNDS and d.chance(0.2):
        node = node.pre(word(d.one(lx.NOUNS[d.one(lx.COMPOUNDS[kind])]), "NOUN", "NN", "compound"))
    if kind not in _PLAIN and d.chance(0.36):
        node = node.pre(adjective(d, kind))
    if plural and d.chance(0.3):
        node = node.pre(number(d))
    node = determine(d, node, kind, depth, bare=mass)
    if depth < 2 and f"n.{kind}" in lx.PREPOSITIONS and d.chance(0.9 if kind in _RELATIONAL else 0.42):
        node = node.post(pp(d, f"n.{kind}", depth + 1).as_("nmod"))
    elif depth < 2 and d.chance(0.2):
        node = node.post(modifier_clause(d, kind, node))
    return node


def determine(d: Dice, node: Node, kind: str, depth: int, bare: bool) -> Node:
    """The noun phrase with an article, a possessive, another determiner or nothing in front."""
    plural = node.xpos == "NNS"
    owned = _OWNED.get(kind, 0.06) if kind in lx.OWNERS else 0.0
    if d.chance(owned / 4 if bare else owned):
        return node.pre(possessor(d, Sense("", *lx.OWNERS[kind]), depth))
    if kind in ("quality", "figure", "part"):
        return node.pre(closed("the", "det"))
    if bare or (plural and d.chance(0.45)):
        return node
    if d.chance(0.1):
        forms = ("those", "these", "some", "no", "all") if plural else ("this", "that", "every", "some", "no")
        form = d.word(forms)
        return node.pre(
            *([closed("all", "det:predet"), closed("the", "det")] if form == "all" else [closed(form, "det")])
        )
    return node.pre(closed("the" if plural or d.chance(0.58) else "a", "det"))


def possessor(d: Dice, sense: Sense, depth: int) -> Node:
    """A possessive pronoun, or a noun with 's; the sense stands on the pronoun or on the 's."""
    if depth > 1 or d.chance(0.62):
        return owner_pronoun(d.word(lx.POSSESSIVE_PRONOUNS), sense)
    owner = name(d) if d.chance(0.5) else common(d, "person", 2, plural=False)
    return owner.post(replace(closed("'s", "case"), sense=sense, glue="left")).as_("nmod:poss")


def owner_pronoun(form: str, sense: Sense) -> Node:
    """A possessive pronoun with its sense."""
    return Node(form, form, "PRON", "PRP$", "Poss=Yes|PronType=Prs", "nmod:poss", sense=sense)


def adjective(d: Dice, kind: str) -> Node:
    """An adjective that suits nouns of this kind, at times with an adverb of degree."""
    node = word(d.one(lx.ADJECTIVES[_ADJECTIVE_KIND.get(kind, "thing")]), "ADJ", "JJ", "amod")
    return (
        node.pre(word(d.word(lx.ADVERBS["degree"][:4]), "ADV", "RB", "advmod"))
        if node.lemma not in lx.ABSOLUTE and d.chance(0.1)
        else node
    )


def number(d: Dice) -> Node:
    """A number written out, or in figures."""
    form = d.word(lx.NUMBERS) if d.chance(0.88) else str(2 + int(60 * d.rng.random()))
    return word(form, "NUM", "CD", "nummod")


def name(d: Dice) -> Node:
    """A person's name."""
    node = word(d.one(lx.NOUNS["given"]), "PROPN", "NNP")
    return node.post(word(d.one(lx.NOUNS["surname"]), "PROPN", "NNP", "flat")) if d.chance(0.45) else node


def _someone(d: Dice, role: str) -> Node:
    if d.chance(0.5):
        return closed(d.word(lx.SUBJECT_PRONOUNS if role == "subject" else lx.OBJECT_PRONOUNS), "nsubj")
    if d.chance(0.08):
        return closed(d.word(("everyone", "nobody")), "nsubj")
    node = name(d)
    if role == "subject" and d.chance(0.12):
        title = common(d, "person", 1, plural=False).as_("appos")
        return node.post(title.pre(punct(",")).post(punct(",")))
    return node


def _something(d: Dice) -> Node:
    form = d.weighted(
        (("it", 4), ("something", 2), ("that", 2), ("this", 1), ("some", 0.5), ("those", 0.5), ("all", 0.3))
    )
    return replace(closed(form, "obj"), upos="PRON")


def _span(d: Dice) -> Node:
    unit = d.word(lx.NOUNS["unit"])
    if d.chance(0.3):
        return word(unit, "NOUN", "NN").pre(closed("a", "det"))
    return word(unit, "NOUN", "NNS").pre(number(d))


def _money(d: Dice) -> Node:
    if d.chance(0.25):
        figure = word(str(5 * (1 + int(60 * d.rng.random()))), "NUM", "CD", "nummod")
        return Node("$", "$", "SYM", "$", glue="right").post(figure)
    return word(d.word(("dollar", "euro", "pound", "cent")), "NOUN", "NNS").pre(number(d))


def _percent(d: Dice) -> Node:
    if d.chance(0.3):
        figure = word(str(1 + int(90 * d.rng.random())), "NUM", "CD", "nummod")
        return Node("%", "%", "SYM", "NN", "Number=Sing", glue="left").pre(figure)
    return word("percent", "NOUN", "NN").pre(number(d))


def _two(d: Dice) -> Node:
    return name(d).post(name(d).pre(closed("and", "cc")).as_("conj"))


_SPECIAL: dict[str, Callable[[Dice], Node]] = {
    "name": name,
    "span": _span,
    "money": _money,
    "percent": _percent,
    "two": _two,
    "year": lambda d: word(d.word(lx.YEARS), "NUM", "CD"),
    "people": lambda d: common(d, "person", 2, plural=True),
    "tool_many": lambda d: common(d, "tool", 2, plural=True),
    "vehicle_bare": lambda d: word(d.word(lx.NOUNS["vehicle"]), "NOUN", "NN"),
    "daypart": lambda d: word(d.word(lx.NOUNS["daypart"]), "NOUN", "NN").pre(closed("the", "det")),
}
_PRONOUN = {"person": 0.42, "kin": 0.42, "thing": 0.1, "text": 0.1, "tool": 0.1, "food": 0.1}
_OWNED = {"kin": 0.6, "body": 0.7, "thing": 0.25, "clothes": 0.4, "quality": 0.3, "animal": 0.15, "text": 0.12}
_RELATIONAL = ("measure", "portion", "group", "sort", "part", "quality", "figure")
_PLAIN = ("clock", "topic", "sort", "measure", "portion", "unit", "figure", "part", "body")
_ADJECTIVE_KIND = {
    "person": "person", "kin": "person", "event": "event", "food": "food", "drink": "food", "topic": "abstract",
    "feeling": "abstract", "manner": "abstract", "quality": "abstract", "reason": "abstract", "animal": "person",
    "role": "person", "group": "person",
}  # fmt: skip


# --- prepositional phrases and set phrases -------------------------------------------------------------------------


def pp(d: Dice, governor: str, depth: int = 0, taken: Sequence[str] = (), role: str = "") -> Node:
    """A prepositional phrase that its governor calls for, or that any clause may have ('any').

    taken: prepositions that will not do. role: the only role that will.
    """
    senses = lx.PREPOSITIONS[governor]
    sense = d.weighted([(s, w) for s, w in senses if s.form not in taken and role in ("", s.role)])
    return np(d, sense.noun, depth + 1).pre(preposition(sense)).as_("obl")


def phrase(d: Dice, text: str) -> Node:
    """A noun phrase from its recipe: 'the capital of=Whole>Gestalt COUNTRY'.

    Capitals draw a noun of that class (a plural with +); `=` gives a preposition its sense; MASS is dropped.
    """
    words = [w for w in text.split() if w != "MASS"]
    cut = next((i for i, w in enumerate(words) if "=" in w), len(words))
    if cut == 0:
        return phrase(d, " ".join(words[1:])).pre(preposition(_sense(words[0]))).as_("obl")
    *modifiers, last = words[:cut]
    node = _head(d, last)
    for form in reversed(modifiers):
        if form == "how":
            first = node.before[0] if node.before else node
            asked = first.pre(closed("how", "advmod"))
            node = replace(node, before=(asked, *node.before[1:])) if node.before else asked
        else:
            node = node.pre(_modifier(form, last.lower()))
    return node.post(phrase(d, " ".join(words[cut:])).as_("nmod")) if cut < len(words) else node


def _sense(text: str) -> Sense:
    form, _, meaning = text.partition("=")
    role, _, function = meaning.partition(">")
    return Sense(form, role, function or role)


def _head(d: Dice, text: str) -> Node:
    kind = text.rstrip("+").lower()
    if text in _CLOSED or not text.rstrip("+").isupper():
        return _CLOSED.get(text) or word(text, "NOUN", "NN")
    if kind in _SPECIAL or kind in lx.PROPER or kind in lx.FIXED:
        return np(d, kind, 1)
    return word(d.word(lx.NOUNS[kind]), "NOUN", "NNS" if text.endswith("+") else "NN")


def _modifier(form: str, kind: str) -> Node:
    if form in lx.POSSESSIVE_PRONOUNS:
        return owner_pronoun(form, Sense("", *lx.OWNERS.get(kind, ("Gestalt", "Gestalt"))))
    node = _CLOSED.get(form) or word(form, "NOUN", "NN")
    return node.as_({"DET": "det", "ADJ": "amod", "NUM": "nummod", "ADV": "advmod"}.get(node.upos, "compound"))


# --- verb phrases and clauses --------------------------------------------------------------------------------------


def vp(d: Dice, frame: Frame, depth: int = 0, gap: bool = False) -> Node:
    """A verb phrase in its base form: verb, object (unless it is the gap), prepositional phrases, adverb."""
    node = word(d.one(frame.verbs), "VERB", "VB")
    dative = frame.kind == "give" and not gap and d.chance(0.3)
    if frame.noun and not gap:
        thing = np(d, frame.noun, depth).as_("obj")
        node = node.post(np(d, "person|kin", 2).as_("iobj"), thing) if dative else node.post(thing)
    taken = ["to"] if dative else []
    if frame.kind in lx.PREPOSITIONS and d.chance(frame.bound):
        own = pp(d, frame.kind, depth, taken)
        taken.append(own.before[0].form)
        node = node.post(own)
    if frame.kind in ("motion", "travel", "roam", "throw") and d.chance(0.25):
        node = replace(node, after=(word(d.word(lx.ADVERBS["way"]), "ADV", "RB", "advmod"), *node.after))
    if d.chance(0.8 if depth == 0 else 0.6):
        extra = pp(d, "any", depth, taken)
        node = node.post(extra)
        if d.chance(0.45):
            more = pp(d, "any", depth, [*taken, extra.before[0].form])
            node = node if timely(extra) and timely(more) else node.post(more)
    elif d.chance(0.35):
        node = node.post(word(d.word(lx.ADVERBS["final"]), "ADV", "RB", "advmod"))
    elif d.chance(0.08):
        node = node.post(when(d))
    return node


def timely(phrase: Node) -> bool:
    """Whether a prepositional phrase says when, or for how long."""
    sense = phrase.before[0].sense
    return sense is not None and (sense.role in ("Duration", "Interval") or sense.role.endswith("Time"))


def phrasal(d: Dice, depth: int = 0) -> Node:
    """A verb phrase with a particle: 'pick up the phone', 'pick it up'."""
    verb, _, noun = d.one(lx.PHRASAL).partition("/")
    lemma, particle = verb.split("_")
    node, prt = word(lemma, "VERB", "VB"), word(particle, "ADP", "RP", "compound:prt")
    if noun == "-":
        node = node.post(prt)
        return node.post(pp(d, "any", depth)) if d.chance(0.5) else node
    if d.chance(0.25):
        return node.post(closed("it", "obj"), prt)
    thing = np(d, noun, depth + 1).as_("obj")
    return node.post(thing, prt) if d.chance(0.3) else node.post(prt, thing)


def when(d: Dice) -> Node:
    """A time without a preposition: 'last week', 'every day', 'yesterday'."""
    if d.chance(0.4):
        return word(d.word(("yesterday", "today", "tomorrow")), "NOUN", "NN", "obl:tmod")
    node = word(d.word(("week", "year", "night", "day", "summer", "Sunday")), "NOUN", "NN", "obl:tmod")
    return node.pre(
        closed("every", "det") if d.chance(0.4) else word(d.one(("last", "next", "past")), "ADJ", "JJ", "amod")
    )


def person(subject: Node) -> Literal["1s", "3s", "pl"]:
    """Which form of the verb the subject calls for."""
    if subject.form in ("I", "i"):
        return "1s"
    several = "Number=Plur" in subject.feats or any(n.rel == "conj" for n in subject.after)
    return "pl" if several else "3s"


def be(d: Dice, subject: Node, rel: str, past: float = 0.6) -> Node:
    """The form of 'be' that the subject calls for."""
    who = person(subject)
    if d.chance(past):
        return aux("be", "were" if who == "pl" else "was", "VBD", rel)
    return aux("be", {"1s": "am", "3s": "is", "pl": "are"}[who], "VBZ" if who == "3s" else "VBP", rel)


def auxiliaries(d: Dice, verb: Node, subject: Node, asks: bool) -> tuple[list[Node], str]:
    """Auxiliaries for a drawn tense, and the Penn tag the verb then takes."""
    third = person(subject) == "3s"
    rest = 0.5 if asks else 1  # questions keep to plain tenses
    shapes = [
        ("past", 44),
        ("present", 22),
        ("modal", 11 * rest),
        ("not", 0 if asks else 8),
        ("have", 6 * rest),
        ("be", 6 * rest),
    ]
    shape = d.weighted(shapes[:-1] if verb.lemma in lx.STATIVE else shapes)
    if shape == "modal":
        form = d.word(("will", "can", "would", "should", "might", "could", "must", "may"))
        return [aux(form, form, "MD"), *([closed("not", "advmod")] if not asks and d.chance(0.15) else [])], "VB"
    if shape == "have":
        return [aux("have", "has" if third else "have", "VBZ" if third else "VBP")], "VBN"
    if shape == "be":
        return [be(d, subject, "aux")], "VBG"
    past = shape == "past" or (shape == "not" and d.chance(0.6))
    if not asks and shape != "not":
        return [], "VBD" if past else "VBZ" if third else "VBP"
    do = aux("do", "did", "VBD") if past else aux("do", "does" if third else "do", "VBZ" if third else "VBP")
    no = closed("not", "advmod") if d.chance(0.4) else replace(closed("n't", "advmod"), glue="left")
    return [do, no] if shape == "not" else [do], "VB"


def finite(d: Dice, verb: Node, subject: Node, rel: str = "nsubj") -> Node:
    """A clause: subject, auxiliaries, verb phrase."""
    auxs, tag = auxiliaries(d, verb, subject, asks=False)
    inner = [word(d.word(lx.ADVERBS["inner"]), "ADV", "RB", "advmod")] if d.chance(0.09) else []
    return bend(verb, tag).pre(subject.as_(rel), *auxs, *inner)


def simple(d: Dice, depth: int = 0) -> Node:
    """A clause with one verb phrase."""
    if d.chance(0.16):
        return finite(d, phrasal(d, depth), np(d, "person|kin", depth + 1, "subject"))
    frame = d.weighted(_FRAME_WEIGHTS)
    return finite(d, vp(d, frame, depth), np(d, frame.subject, depth, "subject"))


def passive(d: Dice, depth: int = 0) -> Node:
    """A passive clause, at times with its agent."""
    frame = d.one(
        [f for f in lx.VERBS.values() if f.subject == "person" and f.noun and f.kind not in ("like", "spend", "go_to")]
    )
    subject = np(d, frame.noun, depth, "subject")
    verb = bend(vp(d, frame, depth + 1, gap=True), "VBN")
    if d.chance(0.45) and not any(n.before and n.before[0].form == "by" for n in verb.after):
        agent = np(d, "person|kin|name", depth + 1).pre(preposition(Sense("by", "Agent", "Agent"))).as_("obl:agent")
        verb = replace(verb, after=(agent, *verb.after)) if d.chance(0.6) else verb.post(agent)
    auxs = [be(d, subject, "aux:pass")]
    if d.chance(0.15):
        auxs = [aux("will", "will", "MD"), aux("be", "be", "VB", "aux:pass")]
    return verb.pre(subject.as_("nsubj:pass"), *auxs)


def predicate(d: Dice, depth: int = 0) -> Node:
    """A clause with a copula: adjective, comparison, noun or place."""
    kind = d.one(("person", "thing", "place", "event", "text", "food", "kin", "animal"))
    subject = np(d, kind, depth, "subject")
    what = d.weighted((("plain", 3.5), ("governs", 7), ("more", 2), ("noun", 2), ("place", 3)))
    if what == "governs":
        subject = np(d, "person|kin", depth, "subject")
        governor = d.one(("feel", "feel", "fear", "skill", "keen", "known", "near", "full"))
        if governor in ("near", "full"):
            subject = np(d, "place" if governor == "near" else "container", 1, "subject")
        node = word(d.word(lx.ADJECTIVES[governor]), "ADJ", "JJ").post(pp(d, f"a.{governor}", depth))
    elif what == "more":
        base, form = d.one(lx.COMPARATIVES).split("/")
        than = preposition(Sense("than", "ComparisonRef", "ComparisonRef"))
        node = word(base, "ADJ", "JJR", form=form).post(np(d, kind, 1).pre(than).as_("obl"))
    elif what == "noun":
        subject = np(d, "person|kin", depth, "subject")
        node = common(d, "person", depth, plural=person(subject) == "pl")
    elif what == "place":
        where = d.one(("thing", "person", "event"))
        subject = np(d, where, depth, "subject")
        node = pp(d, f"n.{where}", 1, role="Locus")
    else:
        node = adjective(d, "thing" if kind == "event" else kind)
    degree = [word(d.one(lx.ADVERBS["degree"]), "ADV", "RB", "advmod")] if what == "plain" and not node.before else []
    no = [closed("not", "advmod")] if d.chance(0.1) else []
    return node.pre(subject.as_("nsubj"), be(d, subject, "cop", 0.45), *no, *(degree if d.chance(0.8) else []))


def existential(d: Dice, depth: int = 0) -> Node:
    """A clause with 'there is'."""
    kind, where = d.one(lx.PLACED).split("/")
    thing = word(d.word(lx.NOUNS[kind]), "NOUN", "NNS" if d.chance(0.3) else "NN")
    first = number(d) if thing.xpos == "NNS" else closed("a", "det")
    thing = thing.pre(first, *([adjective(d, kind)] if d.chance(0.3) else []))
    if kind in _RELATIONAL:
        thing = thing.post(pp(d, f"n.{kind}", 1, role="QuantityItem").as_("nmod"))
    verb = replace(be(d, thing, "root", 0.4), upos="VERB").pre(closed("there", "expl"))
    return verb.post(thing.as_("nsubj"), pp(d, where, depth, role="Locus"))


def modifier_clause(d: Dice, kind: str, noun: Node) -> Node:
    """A clause behind a noun: relative, participle or infinitive."""
    doers = [f for f in lx.VERBS.values() if f.subject == kind]
    things = [f for f in lx.VERBS.values() if kind in f.noun.split("|") and f.kind not in ("tell", "thank", "compare")]
    who = closed("who", "nsubj") if kind in ("person", "kin") else word("that", "PRON", "WDT", "nsubj")
    who = replace(who if d.chance(0.5) else word("that", "PRON", "WDT", "nsubj"), feats="PronType=Rel")
    if doers and (not things or d.chance(0.6)):
        verb = vp(d, d.one(doers), 1)
        if d.chance(0.3) and verb.lemma not in lx.STATIVE:
            return bend(verb, "VBG").as_("acl")
        number = replace(who, feats=noun.feats)
        done = finite(d, verb, number).as_("acl:relcl")
        return replace(done, before=(who, *done.before[1:]))
    if not things:
        return word("see", "VERB", "VB", "acl").pre(closed("to", "mark"))
    verb = vp(d, d.one(things), 2, gap=True)
    if d.chance(0.25):
        return bend(verb, "VBN").as_("acl")
    clause = finite(d, verb, np(d, "person|kin", 2, "subject")).as_("acl:relcl")
    return clause if d.chance(0.4) else clause.pre(who.as_("obj"))


def clause(d: Dice, depth: int = 0) -> Node:
    """A clause of any simple kind."""
    return d.weighted(((simple, 8.0), (passive, 2.0), (predicate, 4.0), (existential, 1.0)))(d, depth)


# --- sentences -----------------------------------------------------------------------------------------------------


def reported(d: Dice) -> Node:
    """'She said that ...', 'he wondered whether ...', 'they told us ...'."""
    verb, marker = d.word(lx.SAYING).split("/")
    said = clause(d, 1).as_("ccomp")
    said = said if marker == "that" and d.chance(0.35) else said.pre(mark(marker))
    return finite(d, word(verb, "VERB", "VB").post(said), np(d, "person|kin", 1, "subject"))


def controlled(d: Dice) -> Node:
    """'She wanted to ...', 'he kept ...ing', 'they asked us to ...', 'it made her ...'."""
    frame = d.weighted(_PERSON_FRAMES)
    inner = phrasal(d, 1) if d.chance(0.2) else vp(d, frame, 1)
    shape = d.weighted((("to", 6), ("ing", 3), ("object to", 3), ("bare", 2)))
    if shape == "ing":
        node = word(d.word(("start", "keep", "stop", "like", "enjoy")), "VERB", "VB").post(
            bend(inner, "VBG").as_("xcomp")
        )
    elif shape == "to":
        lemma = d.word(("want", "try", "decide", "need", "hope", "plan", "like", "promise", "forget"))
        node = word(lemma, "VERB", "VB").post(inner.pre(closed("to", "mark")).as_("xcomp"))
    else:
        lemma = d.word(
            ("ask", "tell", "want", "help", "order") if shape == "object to" else ("make", "let", "see", "help")
        )
        inner = inner.pre(closed("to", "mark")) if shape == "object to" else inner
        node = word(lemma, "VERB", "VB").post(np(d, "person|kin", 2).as_("obj"), inner.as_("xcomp"))
    return finite(d, node, np(d, "person|kin", 1, "subject"))


def subordinate(d: Dice) -> Node:
    """Two clauses, one an adverbial of the other, before or behind it; or an infinitive of purpose."""
    main = clause(d, 1)
    if d.chance(0.2):
        return main.post(vp(d, d.weighted(_PERSON_FRAMES), 1).pre(closed("to", "mark")).as_("advcl"))
    form = d.word(
        ("because", "when", "so", "if", "after", "before", "while", "since", "as", "like", "although", "until")
    )
    conj = closed("when", "advmod") if form == "when" else mark(form)
    side = simple(d, 1) if form != "like" else _as_said(d)
    side = side.pre(conj).as_("advcl")
    if form not in ("like", "so") and d.chance(0.4):
        return main.pre(side.post(punct(",")))
    return main.post(side)


def _as_said(d: Dice) -> Node:
    subject = closed(d.word(lx.SUBJECT_PRONOUNS), "nsubj")
    return word(d.word(("say", "want", "plan", "hope")), "VERB", "VBD").pre(subject)


def coordinated(d: Dice) -> Node:
    """Two clauses, or two verb phrases with one subject, joined by a conjunction."""
    if d.chance(0.5):
        form = d.weighted((("and", 5), ("but", 4), ("or", 1)))
        return clause(d, 1).post(clause(d, 1).pre(punct(","), closed(form, "cc")).as_("conj"))
    subject = np(d, "person|kin", 1, "subject")
    first, second = (vp(d, d.weighted(_PERSON_FRAMES), 1) for _ in range(2))
    return bend(first, "VBD").pre(subject.as_("nsubj")).post(bend(second, "VBD").pre(closed("and", "cc")).as_("conj"))


def spoken(d: Dice) -> Node:
    """Speech in quotation marks, an aside, or a statement about a statement."""
    shape = d.weighted((("quote", 3), ("aside", 2), ("it is", 4), ("doing", 0.7), ("word", 0.7)))
    if shape == "quote":
        speaker = finite(
            d, word(d.word(("say", "ask", "shout", "whisper")), "VERB", "VB"), np(d, "person|name", 2, "subject")
        )
        said = clause(d, 1).pre(punct('"', "right")).post(punct(","), punct('"')).as_("ccomp")
        return replace(speaker, before=(said, *speaker.before))
    if shape == "aside":
        aside = bend(word(d.word(("think", "guess", "hope", "know")), "VERB", "VB"), "VBP").pre(
            punct(","), closed("I", "nsubj")
        )
        return clause(d, 1).post(aside.as_("parataxis"))
    if shape == "it is":
        node = word(d.word(lx.ADJECTIVES["report"]), "ADJ", "JJ").pre(
            closed("it", "expl"), be(d, closed("it", "expl"), "cop", 0.4)
        )
        if d.chance(0.5):
            return node.post(clause(d, 1).pre(mark("that")).as_("csubj"))
        return node.post(vp(d, d.weighted(_PERSON_FRAMES), 1).pre(closed("to", "mark")).as_("csubj"))
    if shape == "doing":
        doing = bend(vp(d, d.weighted(_PERSON_FRAMES), 2), "VBG").as_("csubj")
        return word(d.word(("hard", "easy", "good", "fun")), "ADJ", "JJ").pre(doing, aux("be", "is", "VBZ", "cop"))
    foreign = word(d.word(_FOREIGN), "X", "FW", "appos")
    thing = word("word", "NOUN", "NN", "nsubj").pre(closed("the", "det")).post(foreign)
    return bend(word("mean", "VERB", "VB"), "VBZ").pre(thing).post(common(d, "thing", 2).as_("obj"))


def imperative(d: Dice) -> Node:
    """A command, at times with the name of whom it is for."""
    node = phrasal(d, 1) if d.chance(0.35) else vp(d, d.weighted(_PERSON_FRAMES), 1)
    node = replace(node, feats="Mood=Imp|VerbForm=Fin")
    if d.chance(0.3):
        node = node.pre(aux("do", "do", "VB"), replace(closed("n't", "advmod"), glue="left"))
    if d.chance(0.3):
        return node.pre(name(d).post(punct(",")).as_("vocative"))
    return node.pre(word("please", "INTJ", "UH", "discourse")) if d.chance(0.3) else node


def fronted(d: Dice) -> Node:
    """A clause with a time, a place or an adverb in front."""
    if d.chance(0.35):
        return simple(d).pre(word(d.word(lx.ADVERBS["first"]), "ADV", "RB", "advmod").post(punct(",")))
    front = when(d) if d.chance(0.2) else pp(d, "any", 1, ("like", "by", "as", "near"))
    return clause(d, 1).pre(front.post(punct(",")))


def statement(d: Dice) -> Node:
    """A sentence that is not a question."""
    kinds = ((clause, 32.0), (reported, 8.0), (controlled, 8.0), (subordinate, 15.0), (coordinated, 9.0), (spoken, 7.0),
             (imperative, 7.0), (fronted, 8.0))  # fmt: skip
    node = d.weighted(kinds)(d)
    if d.chance(0.05):
        form = d.word(("well", "oh", "yes", "no", "right", "ah"))
        node = node.pre(word(form, "INTJ", "UH", "discourse").post(punct(",")))
    return node.post(punct("!" if d.chance(0.03) else "."))


_PAST, _FUTURE = ("yesterday", "last"), ("tomorrow", "next")
_FOREIGN = ("bonjour", "gracias", "ciao", "danke")
_FRAME_WEIGHTS = [(frame, 10 / (5 + i) + 0.3) for i, frame in enumerate(lx.VERBS.values())]
_PERSON_FRAMES = [(frame, weight) for frame, weight in _FRAME_WEIGHTS if frame.subject == "person"]


# --- questions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A row of the question table: class, shape, question phrase, subject, verbs with what follows them."""

    label: str
    shape: str
    asked: str
    subject: str = ""
    predicate: str = ""


def question(d: Dice) -> tuple[Node, str]:
    """A question and its class."""
    row = d.weighted(_QUESTIONS)
    told = d.chance(0.09)
    node = (_copular if row.shape == "be" else _fronted)(d, row, told)
    if told:
        return _ask(d, node), row.label
    if row.shape != "be" and row.label.startswith(("HUM", "ENTY", "DESC:reason")) and d.chance(0.12):
        node = node.pre(phrase(d, d.word(_WHEN)).post(punct(",")))
    if d.chance(0.04):
        node = node.pre(name(d).post(punct(",")).as_("vocative"))
    return node.post(punct("?")), row.label


def _copular(d: Dice, row: Question, told: bool) -> Node:
    """'What is the capital of Peru', 'how old is she'."""
    asked, subject = phrase(d, d.word(row.asked.split("/"))), phrase(d, d.word(row.subject.split("/")))
    cop, subject = be(d, subject, "cop", 0.25), subject.as_("nsubj")
    rest = [word(row.predicate, "ADP", "IN", "case")] if row.predicate else []
    return asked.as_("root").post(*((subject, cop) if told else (cop, subject)), *rest)


def _fronted(d: Dice, row: Question, told: bool) -> Node:
    """A question word or phrase, then a clause; or the question phrase is itself the subject."""
    asked = phrase(d, d.word(row.asked.split("/")))
    lemmas, _, rest = d.word(row.predicate.split("/")).partition(" ")
    verb = word(d.word(lemmas.split(",")), "VERB", "VB")
    if rest.startswith("~"):
        verb = verb.post(replace(preposition(_sense(rest[1:])), stranded=True))
        asked = asked.as_("obl")
    elif rest:
        node = phrase(d, rest)
        verb = verb.post(node if node.rel == "obl" else node.as_("obj"))
    if row.shape == "subject":
        tag = "VBD" if d.chance(0.65) else "VBZ" if person(asked) == "3s" else "VBP"
        return bend(verb, tag).pre(asked.as_("nsubj"))
    subject = phrase(d, d.word(row.subject.split("/")))
    if asked.rel != "obl":
        asked = asked.as_("advmod" if asked.upos == "ADV" else row.shape)
    if row.shape == "passive":
        auxs = [be(d, subject, "aux:pass", 0.4 if asked.form == "how" else 1)]
        return bend(verb, "VBN").pre(asked, *_invert(auxs, subject.as_("nsubj:pass"), told))
    auxs, tag = auxiliaries(d, verb, subject, asks=not told)
    return bend(verb, tag).pre(asked, *_invert(auxs, subject.as_("nsubj"), told))


def _invert(auxs: list[Node], subject: Node, told: bool) -> list[Node]:
    return [subject, *auxs] if told else [auxs[0], subject, *auxs[1:]]


def _ask(d: Dice, node: Node) -> Node:
    """'Do you know ...?', 'Can you tell me ...?', 'Tell me ...'."""
    shape = d.one(("know", "tell", "tell me", "wonder"))
    you, me = closed("you", "nsubj"), closed("me", "iobj")
    if shape == "know":
        return word("know", "VERB", "VB").pre(aux("do", "do", "VBP"), you).post(node.as_("ccomp"), punct("?"))
    tell = word("tell", "VERB", "VB").post(me, node.as_("ccomp"))
    if shape == "tell":
        return tell.pre(aux("can", "can", "MD"), you).post(punct("?"))
    return replace(tell, feats="Mood=Imp|VerbForm=Fin").post(punct("."))


def _question(line: str) -> tuple[Question, float]:
    head, *fields = (field.strip(" ") for field in line.split("|"))
    label, weight, shape = head.split()
    return Question(label, shape, *fields), float(weight)


_WHEN = ("in=Time YEAR", "on=Time WEEKDAY", "in=Time MONTH", "during=Time the EVENT")
_QUESTIONS = [_question(line) for line in lx.blocks(lx.QUESTIONS)]


# --- the corpus ----------------------------------------------------------------------------------------------------


def spread(node: Node, head: Node | None = None) -> Iterator[tuple[Node, Node | None]]:
    """Every word of the tree with its head, in order."""
    for child in node.before:
        yield from spread(child, node)
    yield node, head
    for child in node.after:
        yield from spread(child, _asked(node) if child.stranded else node)


def _asked(verb: Node) -> Node:
    return next(n for n in verb.before if any(w.xpos.startswith("W") for w, _ in spread(n)))


def render(root: Node, sent_id: str, label: str = "") -> str:
    """The sentence as CoNLL-U lines, with its text and, for a question, its class."""
    words = list(spread(root.as_("root")))
    index = {id(node): i for i, (node, _) in enumerate(words, start=1)}
    forms = _spelled([node for node, _ in words])
    text, lines = "", []
    for i, ((node, head), form) in enumerate(zip(words, forms, strict=True), start=1):
        joined = node.glue == "right" or (i < len(words) and words[i][0].glue == "left")
        text += form if joined or i == len(words) else form + " "
        misc = [f"Role={node.sense.role}|Function={node.sense.function}"] if node.sense else []
        misc += ["SpaceAfter=No"] if joined else []
        columns = (
            str(i),
            form,
            node.lemma,
            node.upos,
            node.xpos,
            node.feats,
            str(index[id(head)] if head else 0),
            node.rel,
            "_",
        )
        lines.append("\t".join((*columns, "|".join(misc) or "_")))
    comments = [f"# sent_id = {sent_id}", f"# text = {text}", *([f"# question = {label}"] if label else [])]
    return "\n".join([*comments, *lines]) + "\n\n"


def _spelled(nodes: list[Node]) -> list[str]:
    """Word forms as written: 'an' before a vowel, a capital at the start."""
    forms = [n.form for n in nodes]
    for i, form in enumerate(forms[1:]):
        vowel = form[0].lower() in "aeiou" and not form.startswith(("uni", "eu"))
        if forms[i] == "a" and (vowel or form in ("hour", "honest", "heir")):
            forms[i] = "an"
    first = 1 if forms[0] == '"' else 0
    forms[first] = forms[first][0].upper() + forms[first][1:]
    return forms


def sensible(root: Node) -> bool:
    """Whether the sentence is neither too short nor too long, says no content word twice and keeps to one time."""
    words = [node for node, _ in spread(root)]
    content = [n.lemma.lower() for n in words if n.upos in ("NOUN", "PROPN", "VERB")]
    cues = [n.form for n in words if n.form in _PAST + _FUTURE or n.form in lx.YEARS]
    now = any(n.xpos in ("MD", "VBZ", "VBP") for n in words)
    then = any(n.xpos == "VBD" for n in words)
    ahead = any(cue in _FUTURE for cue in cues)
    clash = (cues and not ahead and now) or (ahead and then) or len(cues) > 1
    return 3 <= len(words) <= 32 and len(set(content)) == len(content) and not clash


def labels(root: Node, label: str) -> list[str]:
    """Every label that the sentence gives to one of the five tasks, with the task's name in front."""
    found = [f"question {label}"] if label else []
    for node, _ in spread(root.as_("root")):
        found += [f"pos {node.upos}", f"dep {node.rel}"]
        found += [f"role {node.sense.role}", f"fxn {node.sense.function}"] if node.sense else []
    return found


def write_corpus(seed: int = 7, train: int = 800, test: int = 200) -> tuple[str, str]:
    """The texts of train.conllu and test.conllu: no sentence twice, every test label known from train."""
    d = Dice(Random(seed))  # noqa: S311 - a corpus is drawn, no secret
    seen: dict[str, None] = {}
    known: Counter[str] = Counter()
    texts: dict[str, list[str]] = {"train": [], "test": []}
    while len(texts["train"]) + len(texts["test"]) < train + test:
        split = "train" if len(texts["train"]) < train else "test"
        root, label = question(d) if d.chance(0.45) else (statement(d), "")
        given = labels(root, label)
        said = " ".join(node.form for node, _ in spread(root))
        rare = split == "test" and any(known[g] < FEWEST for g in given)
        if said in seen or rare or not sensible(root):
            continue
        seen[said] = None
        known.update(given if split == "train" else [])
        texts[split].append(render(root, f"{split}-{len(texts[split]) + 1:04}", label))
    return "".join(texts["train"]), "".join(texts["test"])


if __name__ == "__main__":
    for file, content in zip(("train.conllu", "test.conllu"), write_corpus(), strict=True):
        Path(__file__).with_name(file).write_text(content, encoding="utf-8", newline="\n")
