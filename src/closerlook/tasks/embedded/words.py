"""Words with their dependents (`Node`), functions that make them, and the CoNLL-U lines of a tree of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from closerlook.tasks.embedded.inflection import FEATS, inflect
from closerlook.tasks.embedded.lexicon import CLOSED
from closerlook.tasks.embedded.senses import Sense
from closerlook.tasks.embedded.tables import split_slashes

Side = Literal["", "left", "right"]


@dataclass(frozen=True, eq=False)
class Node:
    """A word and its dependents, in the order of the sentence.

    glue: the side on which no space is written.
    stranded: a stranded preposition; its head is the question word or relative pronoun before its parent.
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
    glue: Side = ""
    stranded: bool = False

    def as_(self, rel: str) -> Node:
        """The same word in another relation."""
        return replace(self, rel=rel)

    def preceded_by(self, *nodes: Node) -> Node:
        """The word with these dependents before all others."""
        return replace(self, before=(*nodes, *self.before))

    def followed_by(self, *nodes: Node) -> Node:
        """The word with these dependents after all others."""
        return replace(self, after=(*self.after, *nodes))


# --- words of open classes -----------------------------------------------------------------------------------------


def word(lemma: str, upos: str, xpos: str, rel: str = "root", form: str = "") -> Node:
    """A word of an open class, inflected for its Penn tag."""
    return Node(form or inflect(lemma, xpos), lemma, upos, xpos, FEATS.get(xpos, "_"), rel)


def noun(lemma: str, rel: str = "root", plural: bool = False) -> Node:
    """A common noun."""
    return word(lemma, "NOUN", "NNS" if plural else "NN", rel)


def proper(name: str, rel: str = "root") -> Node:
    """A proper noun."""
    return word(name, "PROPN", "NNP", rel)


def numeral(form: str, rel: str = "nummod") -> Node:
    """A number."""
    return word(form, "NUM", "CD", rel)


def adjective(lemma: str, rel: str = "root") -> Node:
    """An adjective."""
    return word(lemma, "ADJ", "JJ", rel)


def adverb(lemma: str) -> Node:
    """An adverb that modifies."""
    return word(lemma, "ADV", "RB", "advmod")


def verb(lemma: str) -> Node:
    """A verb in its base form."""
    return word(lemma, "VERB", "VB")


def bend(verb: Node, tag: str) -> Node:
    """The verb in the form of another Penn tag."""
    return replace(verb, form=inflect(verb.lemma, tag), xpos=tag, feats=FEATS[tag])


# --- words of closed classes ---------------------------------------------------------------------------------------


CLOSED_WORDS = {form: Node(form, lemma, upos, xpos, feats) for form, lemma, upos, xpos, feats in split_slashes(CLOSED)}


def closed(form: str, rel: str) -> Node:
    """A word of a closed class."""
    return replace(CLOSED_WORDS[form], rel=rel)


def auxiliary(lemma: str, form: str, xpos: str, rel: str = "aux") -> Node:
    """An auxiliary verb."""
    return word(lemma, "AUX", xpos, rel, form)


def contracted_not() -> Node:
    """The n't that is joined to an auxiliary."""
    return replace(closed("n't", "advmod"), glue="left")


def to(verb: Node) -> Node:
    """The verb as an infinitive with 'to'."""
    return verb.preceded_by(closed("to", "mark"))


def conjunction(form: str) -> Node:
    """A subordinating conjunction."""
    return word(form, "SCONJ", "IN", "mark")


def interjection(form: str) -> Node:
    """An interjection, which is not part of the clause."""
    return word(form, "INTJ", "UH", "discourse")


def preposition(sense: Sense) -> Node:
    """A preposition with its sense; a preposition of several words is a fixed expression and has no sense."""
    first, *rest = sense.form.split("_")
    node = word(first, "SCONJ" if first == "because" else "ADP", "IN", "case")
    if rest:
        return node.followed_by(*(word(form, "ADP", "IN", "fixed") for form in rest))
    return replace(node, sense=sense)


def possessive_pronoun(form: str, sense: Sense) -> Node:
    """A possessive pronoun with its sense."""
    return Node(form, form, "PRON", "PRP$", "Poss=Yes|PronType=Prs", "nmod:poss", sense=sense)


def punctuation(form: str, glue: Side = "left") -> Node:
    """A punctuation mark."""
    return Node(form, form, "PUNCT", {"?": ".", "!": "."}.get(form, form), rel="punct", glue=glue)


# --- a tree as a sentence ------------------------------------------------------------------------------------------


def linearise(node: Node, head: Node | None = None) -> Iterator[tuple[Node, Node | None]]:
    """Each word of the tree with its head, in the order of the sentence."""
    for child in node.before:
        yield from linearise(child, node)
    yield node, head
    for child in node.after:
        yield from linearise(child, _question_phrase(node) if child.stranded else node)


def _question_phrase(verb: Node) -> Node:
    """The dependent before the verb that contains a question word or a relative pronoun."""
    return next(child for child in verb.before if any(node.xpos.startswith("W") for node, _ in linearise(child)))


def render(root: Node, sent_id: str, label: str = "") -> str:
    """The sentence as CoNLL-U lines, with its text and, for a question, its class."""
    words = list(linearise(root.as_("root")))
    nodes = [node for node, _ in words]
    index = {id(node): str(i) for i, node in enumerate(nodes, start=1)}
    forms = _spell(nodes)
    joined = [node.glue == "right" or following.glue == "left" for node, following in pairwise(nodes)] + [False]
    text = "".join(form if close else form + " " for form, close in zip(forms, joined, strict=True)).rstrip()
    lines = [f"# sent_id = {sent_id}", f"# text = {text}", *([f"# question = {label}"] if label else [])]
    for (node, head), form, close in zip(words, forms, joined, strict=True):
        number, head_number = index[id(node)], index[id(head)] if head else "0"
        columns = (number, form, node.lemma, node.upos, node.xpos, node.feats, head_number, node.rel, "_")
        lines.append("\t".join((*columns, _misc(node, close))))
    return "\n".join(lines) + "\n\n"


def _misc(node: Node, joined: bool) -> str:
    """The last column: the sense of a preposition, and whether no space follows."""
    sense = [f"Role={node.sense.role}", f"Function={node.sense.function}"] if node.sense else []
    return "|".join([*sense, *(["SpaceAfter=No"] if joined else [])]) or "_"


def _spell(nodes: list[Node]) -> list[str]:
    """Word forms as written: 'an' before a vowel, a capital at the start."""
    forms = [node.form for node in nodes]
    for i, following in enumerate(forms[1:]):
        vowel = following[0].lower() in "aeiou" and not following.startswith(("uni", "eu"))
        if forms[i] == "a" and (vowel or following in ("hour", "honest", "heir")):
            forms[i] = "an"
    first = 1 if forms[0] == '"' else 0
    forms[first] = forms[first][0].upper() + forms[first][1:]
    return forms
