"""Questions and their classes, generated from a table with the forms of each class."""

from __future__ import annotations

from dataclasses import dataclass, replace

from closerlook.tasks.embedded.dice import Dice
from closerlook.tasks.embedded.names import name
from closerlook.tasks.embedded.phrases import from_recipe, preposition_from
from closerlook.tasks.embedded.tables import split_rows
from closerlook.tasks.embedded.verbs import auxiliaries, be, present_tag
from closerlook.tasks.embedded.words import Node, auxiliary, bend, closed, punctuation, verb, word

QUESTIONS = """
LOC:city 3 obl | in=Locus what city/in=Locus which city | NAME/the PERSON/you | live,work,die,stay/meet NAME
LOC:city 3 obj | what city/which city | NAME/the PERSON/she | live,stay,work ~in=Locus/come,move
    ~from=Source/go,travel ~to=Goal
LOC:city 2 subject | what city/which city | | have the largest PLACE/have the most people/host the EVENT in=Time YEAR
LOC:city 6 be | what | the capital of=Whole>Gestalt COUNTRY/the largest city in=Locus COUNTRY/the oldest city in=Locus
    COUNTRY
LOC:country 4 be | in=Locus what country/in=Locus which country | CITY/the city of=Identity CITY/the oldest PLACE
LOC:country 3 obj | what country/which country | NAME/the PERSON/they | come ~from=Source/travel,move,return ~to=Goal
LOC:country 4 subject | what country/which country | | win,lose the war/grow,sell,eat the most FOOD/drink the most
    DRINK
LOC:other 7 be | where | the PLACE/the oldest PLACE in=Locus CITY/the WAY to=Goal CITY/my THING/your KIN/the nearest
    PLACE
LOC:other 6 obj | where | you/NAME/the PERSON/they | live,go,sleep/put,keep,find the TOOL/buy the THING/get FOOD/leave
    her CLOTHES
LOC:other 2 passive | where | the TEXT/FOOD/the THING | find,make,keep,sell
LOC:other 1 subject | what river/what road/which street | | run,go through=Path CITY/lead to=Goal the PLACE
HUM:ind 8 subject | who | | write,read the TEXT/paint the PART/build the PLACE/steal,buy,find the THING/sing the
    song/win the EVENT
HUM:ind 5 be | who | the mayor of=Org>Gestalt CITY/the first PERSON in=Locus COUNTRY/the author of=Originator>Gestalt
    the TEXT/her KIN
HUM:ind 3 subject | what PERSON/which PERSON | | write the TEXT/help,know,meet NAME/work for=Org>Beneficiary COMPANY
HUM:ind 2 obj | who | NAME/the PERSON/you | marry,call,help/meet at=Locus the PLACE/talk ~to=Recipient>Goal/work
    ~with=Ancillary
HUM:gr 7 subject | what company/which company/what firm | | make,sell THING+/publish the TEXT/own,build the PLACE/sell
    CLOTHES+
HUM:gr 2 subject | what team/which band/what club | | win the EVENT/play at=Locus the EVENT/record the song
HUM:gr 3 obj | what company/which team/what school | NAME/the PERSON | work,play ~for=Org>Beneficiary/study,teach
    ~at=Org>Locus
NUM:date 4 obj | when | the EVENT/the EVENT in=Locus CITY | start,end,begin/happen
NUM:date 3 obj | when | NAME/the VEHICLE/the PERSON | leave,arrive/return to=Goal CITY
NUM:date 5 obl | in=Time what year/on=Time what day/in=Time which month | the EVENT | begin,start,end/happen in=Locus
    CITY
NUM:date 3 obl:tmod | what year/what time/what day | the EVENT/the EVENT in=Locus CITY | begin,start,end,leave
NUM:date 3 passive | when | NAME/the PERSON/your KIN | bear/bear in=Locus CITY/save,hire
NUM:date 3 passive | when | the PLACE/the TEXT/the THING | find,sell/hide,discover
NUM:count 6 subject | how many people/how many PERSON+/how many ANIMAL+ | | live in=Locus CITY/work in=Locus the
    PLACE/die in=Time the war
NUM:count 5 obj | how many TEXT+/how many THING+/how many KIN+ | NAME/the PERSON/you | have,see,own/sell in=Time
    YEAR/know in=Locus CITY
NUM:count 1 be | what | the population of=Gestalt CITY/the number of=QuantityItem>Gestalt PERSON+ in=Locus COUNTRY
NUM:money 5 obj | how much | the THING/a CLOTHES/the TEXT/a VEHICLE | cost/cost in=Locus CITY/cost in=Time YEAR
NUM:money 4 obj | how much money/how much | NAME/the PERSON/you | pay for=Theme>Purpose the THING/spend on=Theme>Locus
    FOOD/earn
NUM:money 4 be | what/how much | the price of=Gestalt a THING/the cost of=Gestalt FOOD/the price of=Gestalt the
    CLOTHES
NUM:period 4 obj | how long | the EVENT/the EVENT in=Locus CITY | last,take,continue
NUM:period 3 obj | how long | NAME/the PERSON/you | stay in=Locus CITY/wait,sleep/live in=Locus COUNTRY
NUM:period 4 be | how old | NAME/the PERSON/your KIN/the PLACE/the oldest PERSON in=Locus COUNTRY
NUM:period 2 obl:tmod | how many UNIT+ | NAME/a ANIMAL/the PERSON | live,sleep/work for=Org>Beneficiary COMPANY/wait
NUM:dist 7 be | how far/how long/how tall/how wide/how high | the WAY/the tower/the WAY to=Goal CITY/CITY from=Source
    CITY
NUM:dist 1 be | what | the height of=Gestalt the PLACE/the distance from=Source CITY to=Goal CITY/the length
    of=Gestalt the WAY
NUM:dist 1.5 obl:tmod | how many miles/how far | NAME/the PERSON/a ANIMAL | run,walk/drive,travel in=Interval SPAN/fly
DESC:def 10 be | what | a TOOL/a ANIMAL/TOPIC/a CONTAINER/a MATERIAL/a CLOTHES
DESC:def 1 be | what | the meaning of=Gestalt FEELING/the definition of=Gestalt TOPIC/the meaning of=Gestalt the word
DESC:reason 9 obj | why | NAME/the PERSON/they/you/people | leave,hate,like the PLACE/sell,need,want the
    THING/cry,laugh at=Time CLOCK/study TOPIC
DESC:reason 1 subject | what | | cause,stop,start the TROUBLE/cause her FEELING/cause the TROUBLE in=Locus CITY
DESC:reason 2 passive | why | the PLACE/the THING | sell,move/sell in=Time YEAR
DESC:manner 8 obj | how | you/I/NAME/the PERSON/people | fix,clean,open the PART/cook,make FOOD/build,use a TOOL/get
    to=Goal the PLACE
DESC:manner 3 passive | how | FOOD/the THING/the TEXT/DRINK | make,find/save,discover
DESC:desc 4 be | what | the purpose of=Gestalt a TOOL/the history of=Topic>Gestalt the PLACE/the origin of=Gestalt the
    EVENT
DESC:desc 2 obj | what | a PERSON/the PERSON/your KIN | do/do at=Locus the PLACE/do for=Org>Beneficiary COMPANY
DESC:desc 4 subject | what | | happen at=Locus the EVENT/happen during=Time the EVENT/happen in=Locus CITY
DESC:desc 1.5 be | what | the weather in=Locus CITY/your KIN/the EVENT | like
ENTY:animal 5 subject | what animal/which animal/what bird | | live in=Locus the PLACE/sleep in=Time the winter/eat
    FOOD/hunt ANIMAL+/run on=Locus ice
ENTY:animal 2 obj | what animal/what bird/what pet | NAME/the PERSON/you | have,see,keep/draw/hunt in=Locus the forest
ENTY:food 5 obj | what food/what/what dish | ANIMAL+/the PERSON/people/NAME | eat/cook,serve,order for=Time>Purpose
    dinner/eat in=Locus COUNTRY
ENTY:food 1 be | what | the best food in=Locus CITY/the main dish of=Gestalt COUNTRY/his favorite food
ENTY:cremat 5 obj | what book/what song/what film/which TEXT | NAME/the PERSON | write,read/write about=Topic
    TOPIC/sing,record in=Time YEAR
ENTY:cremat 1 be | what | the title of=Gestalt the TEXT/the first TEXT by=Originator>Agent NAME/the name of=Gestalt
    the TEXT by=Originator>Agent NAME
ENTY:color 6 be | what color/which color | the THING/the CLOTHES/a ANIMAL/the flag of=Gestalt COUNTRY
ENTY:color 1.5 be | what | the color of=Gestalt the CLOTHES/her favorite color/the color of=Gestalt a THING
ENTY:termeq 2.5 be | what | the Spanish word for=Identity TOOL/the French name for=Identity ANIMAL/the Spanish word
    for=Identity FOOD
ABBR:exp 1.6 obj | what | NATO/DNA/UNESCO | stand ~for=Identity
"""
"""Question classes: label, weight, shape | question phrase | subject | verbs with the rest; `/` for a choice."""
TIMES = ("in=Time YEAR", "on=Time WEEKDAY", "in=Time MONTH", "during=Time the EVENT")
"""Phrases of time that may precede a question."""


@dataclass(frozen=True)
class Question:
    """A row of the question table: class, shape, question phrase, subject, verbs with what follows them."""

    label: str
    shape: str
    wh_phrase: str
    subject: str = ""
    predicate: str = ""


def question(dice: Dice) -> tuple[Node, str]:
    """A question and its class."""
    row = dice.weighted(QUESTION_WEIGHTS)
    indirect = dice.chance(0.09)
    node = (_copular if row.shape == "be" else _fronted)(dice, row, indirect)
    if indirect:
        return _ask(dice, node), row.label
    may_name_time = row.shape != "be" and row.label.startswith(("HUM", "ENTY", "DESC:reason"))
    if may_name_time and dice.chance(0.12):
        node = node.preceded_by(_choose(dice, TIMES).followed_by(punctuation(",")))
    if dice.chance(0.04):
        node = node.preceded_by(name(dice).followed_by(punctuation(",")).as_("vocative"))
    return node.followed_by(punctuation("?")), row.label


def _choose(dice: Dice, recipes: tuple[str, ...] | list[str]) -> Node:
    """A phrase from one of the recipes."""
    return from_recipe(dice, dice.early(recipes))


def _copular(dice: Dice, row: Question, indirect: bool) -> Node:
    """'What is the capital of Peru', 'how old is she'."""
    wh_phrase, subject = _choose(dice, row.wh_phrase.split("/")), _choose(dice, row.subject.split("/"))
    copula, subject = be(dice, subject, "cop", 0.25), subject.as_("nsubj")
    rest = [word(row.predicate, "ADP", "IN", "case")] if row.predicate else []
    return wh_phrase.as_("root").followed_by(*_invert([copula], subject, indirect), *rest)


def _fronted(dice: Dice, row: Question, indirect: bool) -> Node:
    """A question word or phrase, then a clause; or the question phrase is itself the subject."""
    wh_phrase = _choose(dice, row.wh_phrase.split("/"))
    node = _predicate(dice, row)
    if row.shape == "subject":
        tag = "VBD" if dice.chance(0.65) else present_tag(wh_phrase)
        return bend(node, tag).preceded_by(wh_phrase.as_("nsubj"))
    subject = _choose(dice, row.subject.split("/"))
    if any(child.stranded for child in node.after):
        wh_phrase = wh_phrase.as_("obl")
    elif wh_phrase.rel != "obl":
        wh_phrase = wh_phrase.as_("advmod" if wh_phrase.upos == "ADV" else row.shape)
    if row.shape == "passive":
        helpers = [be(dice, subject, "aux:pass", 0.4 if wh_phrase.form == "how" else 1)]
        return bend(node, "VBN").preceded_by(wh_phrase, *_invert(helpers, subject.as_("nsubj:pass"), indirect))
    helpers, tag = auxiliaries(dice, node, subject, asks=not indirect)
    return bend(node, tag).preceded_by(wh_phrase, *_invert(helpers, subject.as_("nsubj"), indirect))


def _predicate(dice: Dice, row: Question) -> Node:
    """A verb with its object, its prepositional phrase or the preposition that the question leaves behind (~)."""
    lemmas, _, rest = dice.early(row.predicate.split("/")).partition(" ")
    node = verb(dice.early(lemmas.split(",")))
    if rest.startswith("~"):
        return node.followed_by(replace(preposition_from(rest[1:]), stranded=True))
    if not rest:
        return node
    phrase = from_recipe(dice, rest)
    return node.followed_by(phrase if phrase.rel == "obl" else phrase.as_("obj"))


def _invert(helpers: list[Node], subject: Node, indirect: bool) -> list[Node]:
    """Subject and auxiliaries in order: the first auxiliary comes first, but not in an indirect question."""
    return [subject, *helpers] if indirect else [helpers[0], subject, *helpers[1:]]


def _ask(dice: Dice, node: Node) -> Node:
    """'Do you know ...?', 'Can you tell me ...?', 'Tell me ...'."""
    shape = dice.one(("know", "tell", "tell me", "wonder"))
    you, me = closed("you", "nsubj"), closed("me", "iobj")
    if shape == "know":
        know = verb("know").preceded_by(auxiliary("do", "do", "VBP"), you)
        return know.followed_by(node.as_("ccomp"), punctuation("?"))
    tell = verb("tell").followed_by(me, node.as_("ccomp"))
    if shape == "tell":
        return tell.preceded_by(auxiliary("can", "can", "MD"), you).followed_by(punctuation("?"))
    return replace(tell, feats="Mood=Imp|VerbForm=Fin").followed_by(punctuation("."))


def _read_question(row: str) -> tuple[Question, float]:
    """A row of the table, and its weight."""
    head, *fields = (field.strip(" ") for field in row.split("|"))
    label, weight, shape = head.split()
    return Question(label, shape, *fields), float(weight)


QUESTION_WEIGHTS = [_read_question(row) for row in split_rows(QUESTIONS)]
