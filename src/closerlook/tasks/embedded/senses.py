"""The meanings of prepositions and possessives (role and function supersenses), by the class of their governor."""

from __future__ import annotations

from dataclasses import dataclass

from closerlook.tasks.embedded.tables import split_rows


@dataclass(frozen=True)
class Sense:
    """One meaning of a preposition: role and function supersense, and the class of its object."""

    form: str
    role: str
    function: str
    noun: str = ""


def read_sense(form: str, meaning: str, noun: str = "") -> Sense:
    """A sense from its supersenses: 'Goal>Locus' for role and function, 'Goal' for both."""
    role, _, function = meaning.partition(">")
    return Sense(form, role, function or role, noun)


SENSES = """
any: in Locus place|city|daypart_place 5; in Time month|year|daypart 5; in Interval span 0.4; on Time weekday 4;
    at Time clock 4; at Locus place|company 3; for Duration span 4; for Purpose event 0.5;
    with Ancillary kin|person 4; with Manner manner 1.5; without Ancillary kin 0.5; after Time event|clock 2;
    before Time event|clock 1.5; during Time event 1.5; since StartTime year|weekday 1.5;
    until EndTime clock|weekday 1.5; from StartTime>Source clock|year 0.4; by Time clock|weekday 0.5;
    by Manner accident 0.5; near Locus place|city 1; like ComparisonRef person|animal 2; for Explanation reason 0.3;
    despite Circumstance event 0.15; because_of - event|feeling 0.7; instead_of - kin 0.2
work: as Identity role 4; at Org>Locus company|org 6; for Org>Beneficiary company|org 5;
    on Theme>Locus text|vehicle 3; with Ancillary person|animal 2; in Org>Locus org 2; by Manner hand 0.3
motion: to Goal place|city|event|kin 9; to Goal errand 4; from Source place|city 3; into Goal place 2;
    in Goal>Locus vehicle 0.6; through Path way|place 3; down Path way 1.5; up Path way 1.5; over Path way 1;
    past Path place|person 5; around Path place 1; toward Direction place|person 1; by Means vehicle_bare 3;
    on Means>Locus vehicle 1; for Goal city 1; for Purpose food|drink 0.5
travel: to Goal place|city 4; from Source place|city 2; across Path way 2; along Path way 2
stay: in Locus city|place|country 9; at Locus place|company 3; on Locus surface 4; by Locus part|way 2;
    behind Locus part|surface 1; under Locus surface 1; between Locus two 0.4
put: on Goal>Locus surface 9; in Goal>Locus container 9; under Goal>Locus surface|container 2;
    behind Goal>Locus part|surface 1
give: to Recipient>Goal person|kin|company 7; for Cost money 2.5; by Means mail 1
get: from Originator>Source person|kin|company 4; for Beneficiary person|kin 4; for Cost money 2.5;
    at Cost>Locus discount 0.3; on Means>Locus phone 0.4
make: for Beneficiary kin|company 3; about Topic topic|person 1; with Instrument tool 2; on Topic topic 1;
    to Recipient>Goal kin 1
build: with Instrument tool 3; for Beneficiary kin|person 3; of Stuff>Source material 2; out_of - material 0.6;
    from Stuff>Source material 1
fix: with Instrument tool|body 6; for Beneficiary kin 2; by Means hand 1
eat: on Locus surface 1; with Instrument tool|body 3; with Ancillary drink|kin 3; for Time>Purpose meal 1.5;
    to Recipient>Goal person 1
drink: from Source container 2; into Goal container 1; with Ancillary kin|food 2
talk: on Means phone 1; about Topic topic|person|event|text 6; to Recipient>Goal person|kin 5;
    with Ancillary person|kin 3; on Topic topic 1; over Topic money 0.4
worry: at Stimulus>Direction person|text|kin 4; about Topic topic|event|kin 4; over Stimulus>Topic event 0.4;
    from Explanation>Source feeling 0.6
look: at Stimulus>Direction person|thing|animal|place 6; through Path part 1
listen: to Stimulus>Goal person|kin|text|topic 8
search: for Theme>Purpose person|thing|vehicle|text 8; in Locus container|place 1
throw: at Direction person|animal|part 3; to Recipient>Goal person|kin 2; into Goal container|place 2;
    over Path way 2; off Source surface 2; in Goal>Locus place|container 1
meet: with Theme>Ancillary event 0.2; at Locus place 3
thank: for Explanation reason 8
happen: on Time weekday 4; at Time clock 4; in Time month|year 4; in Locus city|place 3; for Duration span 3;
    until EndTime clock|weekday 1.5; with Theme>Means text 0.3
rise: by Extent percent|money 8; to Goal money 2; from Source money 2; in Time year|month 2
spend: on Theme>Locus thing|food|clothes|vehicle 6
fill: with Theme>Instrument food|drink|tool_many 7
tell: about Topic topic|event|text|person 6; of Topic event|feeling|person 3
compare: with ComparisonRef>Ancillary text|food 2; to ComparisonRef>Goal text|food 2
roam: in Locus place|container 3; on Locus surface 2; from Source place|person 2;
    at Stimulus>Direction person|animal 1; over Path way 1; to Goal person|place 1
stand: on Locus surface 4; in Locus place|container 3; from Locus>Source part 1; off Source surface 1;
    by Locus part 1
die: of Explanation>Source feeling|reason_ill 3; from Explanation>Source reason_ill 2; in Time year 2
study: at Org>Locus org 3; with Ancillary person 2; for Purpose event 2
turn: into Goal person|animal|place 4; to Direction>Goal side 2
n.text: of Topic person|place|animal 2; about Topic topic|person|event|animal 5; on Topic topic 2;
    by Originator>Agent name|person 4; from Originator>Source kin|name 3; for Recipient>Beneficiary kin|name 1;
    to Recipient>Goal kin|person 1; in Locus container|place 1
n.thing: on Locus surface|stage 4; in Locus container|place 3; for Recipient>Beneficiary kin|name 0.5;
    from Source city|country 2; of Stuff material 2
n.person: in Characteristic>Locus clothes 5; with PartPortion>Characteristic body 2;
    with Possession>Ancillary thing 0.5; from Source city|country|place 3; at Locus place|part 3;
    in Locus place|city|vehicle 3; of Org>Gestalt company 0.3
n.kin: of SocialRel>Gestalt person|name|kin 6; from Org>Source org|company 0.7
n.part: of Whole>Gestalt place|vehicle|thing 6
n.body: of Whole>Gestalt animal|person 4
n.quality: of Gestalt thing|food|vehicle|place 6
n.event: in Locus city|place 3; on Time weekday 2; at Locus place 2; with Ancillary kin|company 2;
    between Agent>Ensemble two 0.3
n.way: to Goal city|place 3
n.feeling: of Experiencer>Gestalt person|kin 2; of Stimulus>Gestalt animal|event 3;
    for Stimulus>Beneficiary kin|topic 1
n.measure: of QuantityItem>Stuff drink 9
n.portion: of QuantityItem>Stuff food 9
n.figure: of Gestalt thing|food|vehicle|clothes 9
n.group: of QuantityItem>Whole people 9; in Locus place 0.1; at Locus place 0.1
n.sort: of Species thing|animal|food 9
n.place: in Locus city|country 4; of Identity city 0.3; near Locus city|way 1
a.fear: of Stimulus>Gestalt animal|kin|text|event 4
a.feel: with Stimulus>Ancillary kin|text|person 4; about Stimulus>Topic event|quality|topic 3;
    at Stimulus>Direction person|text 2
a.skill: at Topic>Locus topic 6; with Theme>Instrument tool 1
a.keen: in Topic>Locus topic 6
a.full: of Theme>Stuff food|drink|tool_many 6
a.near: to ComparisonRef>Goal thing|place 4
a.known: for Explanation reason 5; for Purpose event 0.5
"""
"""Preposition senses by what governs them (verb class, n.noun class, a.adjective class): form, role>function, object,
weight. A preposition of several words carries no supersense (-)."""

POSSESSIVES = """
thing   Possessor  Possessor
clothes Possessor  Possessor
animal  Possessor  Possessor
tool    Possessor  Possessor
vehicle Possessor  Possessor
place   Possessor  Possessor
text    Originator Possessor
food    Originator Possessor
kin     SocialRel  Gestalt
body    Whole      Gestalt
org     OrgMember  Possessor
event   Agent      Gestalt
feeling Experiencer Gestalt
quality Gestalt    Gestalt
reason  Agent      Gestalt
"""
"""What a possessive before a noun of this class means: role, function."""


def _read_senses(table: str) -> dict[str, list[tuple[Sense, float]]]:
    """The senses of a table with their weights, by governor."""
    senses: dict[str, list[tuple[Sense, float]]] = {}
    for row in split_rows(table):
        governor, _, entries = row.partition(":")
        fields = (entry.split() for entry in entries.split(";"))
        senses[governor] = [(read_sense(form, meaning, noun), float(weight)) for form, meaning, noun, weight in fields]
    return senses


PREPOSITIONS = _read_senses(SENSES)
OWNERS = {noun: Sense("", role, function) for noun, role, function in (row.split() for row in split_rows(POSSESSIVES))}
