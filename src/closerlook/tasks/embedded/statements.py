"""Sentences that are not questions: one clause, or several in reported speech, control, explanation or coordination."""

from __future__ import annotations

from dataclasses import replace

from closerlook.tasks.embedded.clauses import PERSON_FRAME_WEIGHTS, active, clause, what_a_person_does
from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.lexicon import ADJECTIVES, ADVERBS, SAYING, SUBJECT_PRONOUNS
from closerlook.tasks.embedded.names import name
from closerlook.tasks.embedded.phrases import (
    bare_time,
    common_noun_phrase,
    noun_phrase,
    phrasal_verb_phrase,
    prepositional_phrase,
    verb_phrase,
)
from closerlook.tasks.embedded.verbs import be, finite
from closerlook.tasks.embedded.words import (
    Node,
    adjective,
    adverb,
    auxiliary,
    bend,
    closed,
    conjunction,
    contracted_not,
    interjection,
    noun,
    punctuation,
    to,
    verb,
    word,
)

CONJUNCTIONS = (
    "because", "when", "so", "if", "after", "before", "while", "since", "as", "like", "although", "until"
)  # fmt: skip
TO_DO = ("want", "try", "decide", "need", "hope", "plan", "like", "promise", "forget")
"""Verbs followed by an infinitive."""
FOREIGN = ("bonjour", "gracias", "ciao", "danke")


def statement(dice: Dice) -> Node:
    """A sentence that is not a question."""
    kinds = ((clause, 32.0), (reported, 8.0), (controlled, 8.0), (subordinate, 15.0), (coordinated, 9.0), (spoken, 7.0),
             (imperative, 7.0), (fronted, 8.0))  # fmt: skip
    node = dice.weighted(kinds)(dice)
    if dice.chance(0.05):
        form = dice.early(("well", "oh", "yes", "no", "right", "ah"))
        node = node.preceded_by(interjection(form).followed_by(punctuation(",")))
    return node.followed_by(punctuation("!" if dice.chance(0.03) else "."))


def reported(dice: Dice) -> Node:
    """'She said that ...', 'he wondered whether ...'."""
    lemma, marker = dice.early(SAYING)
    said = clause(dice, 1).as_("ccomp")
    if marker != "that" or not dice.chance(0.35):
        said = said.preceded_by(conjunction(marker))
    return finite(dice, verb(lemma).followed_by(said), noun_phrase(dice, "person|kin", 1, "subject"))


def controlled(dice: Dice) -> Node:
    """'She wanted to ...', 'he kept ...ing', 'they asked us to ...', 'it made her ...'."""
    frame = dice.weighted(PERSON_FRAME_WEIGHTS)
    inner = phrasal_verb_phrase(dice, 1) if dice.chance(0.2) else verb_phrase(dice, frame, 1)
    shape = dice.weighted((("to", 6), ("ing", 3), ("object to", 3), ("bare", 2)))
    if shape == "ing":
        outer = verb(dice.early(("start", "keep", "stop", "like", "enjoy")))
        node = outer.followed_by(bend(inner, "VBG").as_("xcomp"))
    elif shape == "to":
        node = verb(dice.early(TO_DO)).followed_by(to(inner).as_("xcomp"))
    elif shape == "object to":
        outer = verb(dice.early(("ask", "tell", "want", "help", "order")))
        node = outer.followed_by(noun_phrase(dice, "person|kin", 2).as_("obj"), to(inner).as_("xcomp"))
    else:
        outer = verb(dice.early(("make", "let", "see", "help")))
        node = outer.followed_by(noun_phrase(dice, "person|kin", 2).as_("obj"), inner.as_("xcomp"))
    return finite(dice, node, noun_phrase(dice, "person|kin", 1, "subject"))


def subordinate(dice: Dice) -> Node:
    """Two clauses, one an adverbial of the other, before or after it; or an infinitive of purpose."""
    main = clause(dice, 1)
    if dice.chance(0.2):
        return main.followed_by(to(what_a_person_does(dice, 1)).as_("advcl"))
    form = dice.early(CONJUNCTIONS)
    opening = closed("when", "advmod") if form == "when" else conjunction(form)
    side = active(dice, 1) if form != "like" else _as_said(dice)
    side = side.preceded_by(opening).as_("advcl")
    if form not in ("like", "so") and dice.chance(0.4):
        return main.preceded_by(side.followed_by(punctuation(",")))
    return main.followed_by(side)


def _as_said(dice: Dice) -> Node:
    """What follows a 'like' between clauses: 'she said'."""
    subject = closed(dice.early(SUBJECT_PRONOUNS), "nsubj")
    return word(dice.early(("say", "want", "plan", "hope")), "VERB", "VBD").preceded_by(subject)


def coordinated(dice: Dice) -> Node:
    """Two clauses, or two verb phrases with one subject, joined by a conjunction."""
    if dice.chance(0.5):
        form = dice.weighted((("and", 5), ("but", 4), ("or", 1)))
        first = clause(dice, 1)
        return first.followed_by(clause(dice, 1).preceded_by(punctuation(","), closed(form, "cc")).as_("conj"))
    subject = noun_phrase(dice, "person|kin", 1, "subject")
    first, second = (bend(what_a_person_does(dice, 1), "VBD") for _ in range(2))
    second = second.preceded_by(closed("and", "cc")).as_("conj")
    return first.preceded_by(subject.as_("nsubj")).followed_by(second)


def imperative(dice: Dice) -> Node:
    """A command, sometimes with the name of the person it is addressed to."""
    node = phrasal_verb_phrase(dice, 1) if dice.chance(0.35) else what_a_person_does(dice, 1)
    node = replace(node, feats="Mood=Imp|VerbForm=Fin")
    if dice.chance(0.3):
        node = node.preceded_by(auxiliary("do", "do", "VB"), contracted_not())
    if dice.chance(0.3):
        return node.preceded_by(name(dice).followed_by(punctuation(",")).as_("vocative"))
    return node.preceded_by(interjection("please")) if dice.chance(0.3) else node


def fronted(dice: Dice) -> Node:
    """A clause with a time, a place or an adverb in front."""
    if dice.chance(0.35):
        main = active(dice)
        return main.preceded_by(adverb(dice.early(ADVERBS["first"])).followed_by(punctuation(",")))
    if dice.chance(0.2):
        front = bare_time(dice)
    else:
        front = prepositional_phrase(dice, "any", 1, taken=("like", "by", "as", "near"))
    return clause(dice, 1).preceded_by(front.followed_by(punctuation(",")))


# --- sentences about what is said ----------------------------------------------------------------------------------


def spoken(dice: Dice) -> Node:
    """Speech in quotation marks, an aside, or a statement about a statement, an action or a word."""
    kinds = ((quotation, 3), (aside, 2), (impersonal, 4), (about_doing, 0.7), (about_a_word, 0.7))
    return dice.weighted(kinds)(dice)


def quotation(dice: Dice) -> Node:
    """'"...", she said'."""
    saying = verb(dice.early(("say", "ask", "shout", "whisper")))
    speaker = finite(dice, saying, noun_phrase(dice, "person|name", 2, "subject"))
    said = clause(dice, 1).preceded_by(punctuation('"', "right")).followed_by(punctuation(","), punctuation('"'))
    return speaker.preceded_by(said.as_("ccomp"))


def aside(dice: Dice) -> Node:
    """'..., I think'."""
    thinking = bend(verb(dice.early(("think", "guess", "hope", "know"))), "VBP")
    thinking = thinking.preceded_by(punctuation(","), closed("I", "nsubj"))
    return clause(dice, 1).followed_by(thinking.as_("parataxis"))


def impersonal(dice: Dice) -> Node:
    """'It is strange that ...', 'it was good to ...'."""
    it = closed("it", "expl")
    node = adjective(dice.early(ADJECTIVES["report"])).preceded_by(it, be(dice, it, "cop", 0.4))
    if dice.chance(0.5):
        return node.followed_by(clause(dice, 1).preceded_by(conjunction("that")).as_("csubj"))
    return node.followed_by(to(what_a_person_does(dice, 1)).as_("csubj"))


def about_doing(dice: Dice) -> Node:
    """'Reading the letter is hard'."""
    doing = bend(what_a_person_does(dice, 2), "VBG").as_("csubj")
    node = adjective(dice.early(("hard", "easy", "good", "fun")))
    return node.preceded_by(doing, auxiliary("be", "is", "VBZ", "cop"))


def about_a_word(dice: Dice) -> Node:
    """'The word ciao means ...'."""
    foreign = word(dice.early(FOREIGN), "X", "FW", "appos")
    subject = noun("word", "nsubj").preceded_by(closed("the", "det")).followed_by(foreign)
    meaning = common_noun_phrase(dice, "thing", 2).as_("obj")
    return bend(verb("mean"), "VBZ").preceded_by(subject).followed_by(meaning)
