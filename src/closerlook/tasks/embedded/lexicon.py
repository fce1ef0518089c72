"""The words of the embedded corpus: nouns, verbs and prepositions by meaning, and how English inflects them.

Word lists run from common to rare; the grammar draws from them with a skew, so that the order is a frequency.
"""

from __future__ import annotations

from dataclasses import dataclass


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS: dict[str, tuple[str, ...]] = {
    kind: _words(words)
    for kind, words in {
        "person": """man woman child teacher doctor girl boy student nurse driver farmer cook guide judge baker
            painter lawyer singer guard captain dancer sailor writer tourist pilot soldier actor carpenter thief poet
            engineer plumber widow clerk stranger tailor host orphan guest miner butcher waiter monk juror surgeon
            hunter editor barber chemist referee cyclist librarian gardener novelist drummer tenant apprentice bride
            swimmer""",
        "kin": """friend brother sister mother father neighbor boss son daughter aunt partner uncle cousin rival
            husband wife roommate grandmother colleague nephew niece fan pupil assistant mentor heir tutor
            landlord""",
        "animal": """dog cat horse bird bear fish cow fly sheep duck rabbit fox goat wolf mouse crow deer turkey seal
            bat swallow crane owl donkey beaver lizard otter goose moth heron squid badger hen""",
        "place": """house garden park kitchen school library station office church market hospital square museum
            hotel field forest bank well harbor bridge theater farm yard factory cellar court barn port cafe castle
            airport bakery valley beach chapel prison gym stable village tower lobby cave meadow attic cemetery bay
            pier inn workshop clinic nursery orchard canyon dock""",
        "surface": """table floor shelf wall roof desk bench counter bed chair stage step porch plate rock tray ledge
            stove mat rail carpet sofa""",
        "container": """box bag drawer pocket can basket bottle trunk cup jar chest safe suitcase envelope glass bowl
            crate sack barrel wallet purse""",
        "way": """street road bridge river hall path field hill gate door tunnel stairs corridor fence lawn alley
            creek border""",
        "vehicle": "car train bus boat plane bike ship truck taxi van cart ferry tram canoe",
        "tool": """knife brush hammer pen key stick spoon rope cloth saw needle ruler shovel broom file fork match
            drill rake ladder towel pencil hose plane chisel""",
        "thing": """light lamp watch clock ring picture present phone camera radio coin map chair ball mirror flag
            doll stamp toy fan drum candle pillow blanket iron stone trunk can bell kite rug tent plant vase pipe
            helmet statue sign rose hook shell wheel anchor necklace""",
        "text": """book letter story report note song play poem article will file novel list review record paper
            speech message essay card film painting diary memo script recipe sketch""",
        "clothes": "coat hat dress suit shirt uniform scarf jacket tie boot cap sweater glove apron cape belt",
        "food": """bread soup fish cheese rice cake fruit meat pie salad chicken corn butter pasta stew honey ham jam
            toast duck garlic beef squash turnip""",
        "drink": "water tea coffee milk wine beer juice cider punch lemonade brandy",
        "part": "door window roof back wheel handle lock cover light engine wall lid bottom top fence button leg",
        "body": "hand head back arm face eye hair leg nose foot knee shoulder finger ear palm heart chin",
        "event": """meeting party war run match walk concert fight race trial ride show march wedding dance game
            lunch climb visit talk drive fire strike dinner class festival trip storm play hike election parade test
            lecture flood breakfast fight fair interview funeral auction drought""",
        "act": """look smile call shout move step plan laugh answer offer promise cry touch wave change kick sigh
            dream order kiss mistake point request""",
        "topic": """music history politics work art money weather swimming law science love travel painting football
            peace trade cooking medicine reading poetry dancing physics fishing religion writing farming running
            grammar tennis math singing fashion hunting algebra""",
        "feeling": "fear love anger joy hope pride worry doubt pain envy grief shame relief surprise hunger pity",
        "manner": "care patience joy pride anger silence ease confidence style courage pleasure skill caution",
        "quality": "name price age size color history weight height cost value smell future past origin shape speed",
        "org": "company school bank team club church university firm newspaper army hospital party union agency band",
        "company": """Norvex Target Summit Alder Beacon Harbor Quarry Vantage Anchor Crown Pioneer Lumen Bridge
            Orchard Fenwick Falcon Union Horizon Match""",
        "city": """Paris London Rome Boston Nice Berlin Reading Chicago Madrid Bath Cairo Phoenix Mobile Dublin
            Vienna Cork Tokyo Lisbon Orange Denver Split Lima Prague Buffalo Athens Geneva Nairobi Seattle
            Havana""",
        "country": """France Spain Turkey Italy China Egypt Japan Canada Chile Jordan India Peru Ireland Chad Georgia
            Norway Kenya Poland Cuba Nepal Mali""",
        "given": """Anna Will Mark Rose Grace John Hope Bill May Frank Mary Dawn Tom Ruth Art Joy Peter Lucy Drew
            Chase Ben Clara Ray Sandy Miles Penny Henry Pearl Dale Lance Nora Cliff Ivy Felix Pat Faith Wade Oscar
            Olive Jack Glen Vera Violet Mason Rob Heath Summer Victor Pierce Ruby Autumn Sky Reed""",
        "surname": """Baker Stone Banks Young Price Moore Cook Wood Park Fisher Hill Keller Bishop Black Page Long
            Rivers Marsh Swift Knight Fox Sharp Frost Grant Little Brooks West White Field Strong Bush Reed Wolf Gray
            Lake Rich Carpenter Snow Bond Best Day""",
        "weekday": "Monday Friday Sunday Saturday Tuesday Wednesday Thursday",
        "month": "March May June July April January December October August September",
        "clock": "noon night midnight dawn lunchtime dusk",
        "daypart": "morning evening afternoon summer winter spring fall",
        "unit": "day hour year week minute month second",
        "measure": "cup glass bottle can drop bucket barrel sip",
        "portion": "piece pound slice bowl basket pile plate bite bag",
        "figure": "price cost value rent number size weight speed",
        "trouble": "war fire strike storm flood fight drought",
        "stuff": "stone iron glass paper silver wood gold cotton steel leather brass wool plastic",
        "group": "group crowd team pair herd line",
        "role": "guide teacher judge guard cook nurse driver spy host witness clerk captain",
        "reason": "help work courage kindness silence honesty service cooking mistake role advice",
        "sort": "kind sort type",
    }.items()
}
"""Nouns by meaning. A noun may stand in several classes, and many are verbs or adjectives as well."""

PROPER = ("company", "city", "country", "given", "surname", "weekday", "month")
MASS = ("food", "drink", "topic", "feeling", "manner", "clock", "reason")
"""Classes that take no article: names, and nouns that are not counted."""

ADJECTIVES: dict[str, tuple[str, ...]] = {
    kind: _words(words)
    for kind, words in {
        "person": """old hired young hard trained fast early hurt tall poor kind lost quiet tired injured famous rich
            clever tired strong brave strange honest busy sick blind proud calm cruel polite lonely fair bold stubborn
            shy rude gentle wise nervous frail""",
        "thing": """old new light closed late covered early small big broken red heavy open lost cheap stolen
            black empty painted clean forgotten white long dry hidden cracked folded burning warm green locked shining
            blue expensive second round dirty flat past wet back wooden plain rough slow loose thin silver rusty spare
            odd narrow faint curious ancient hollow crooked""",
        "abstract": "great little real deep sudden simple true secret good strange bitter quiet modern early",
        "event": """long short late planned daily hard forgotten ruined great last terrible early second quiet fair good
            final bloody noisy sudden famous annual""",
        "food": "fresh cold hot sweet dry frozen warm cheap burnt good bitter cooked thick salty smoked raw sour",
        "feel": """happy angry upset glad worried sad pleased annoyed delighted""",
        "fear": "afraid proud tired ashamed jealous fond",
        "skill": "good bad great terrible quick",
        "keen": "interested involved experienced lost",
        "full": "full empty",
        "near": "close similar next near",
        "known": "famous grateful sorry known",
        "report": "strange clear true good sad possible odd funny unlikely",
    }.items()
}

STATIVE = _words("""know like need love hate see hear remember believe cost mean own have miss notice want
    last happen die live say think hope own""")
"""Verbs that are not said in the progressive."""
ABSOLUTE = _words("second last back past wooden silver spare final annual stolen painted black")
"""Adjectives that have no degrees."""
COMPARATIVES = _words(
    "old/older small/smaller big/bigger cheap/cheaper good/better heavy/heavier bad/worse light/lighter"
)
SAYING = _words("say/that think/that know/that ask/if hope/that hear/that wonder/whether believe/that")
"""Verbs of saying, and the conjunction that follows."""
PLACED = _words("""person/n.person thing/n.thing animal/roam measure/n.thing group/n.person event/n.event text/n.thing
    portion/n.thing""")
"""What there is, and whose prepositions say where."""
COMPOUNDS = {
    kind: _words(first.replace(",", " "))
    for kind, first in (
        row.split("/")
        for row in _words("""person/topic,place place/food,clothes thing/place,stuff,stuff
        tool/place,stuff event/topic,food text/topic,event vehicle/stuff,food clothes/stuff surface/place,stuff
        container/stuff,food,text part/vehicle,place""")
    )
}
"""Classes of noun that may stand before a noun of this class."""

ADVERBS: dict[str, tuple[str, ...]] = {
    "way": _words("back up down in out past along around over through by on"),
    "inner": _words("never always often just still also usually finally once almost quickly hardly rarely soon"),
    "final": _words("again well fast hard early late there right long daily here straight alone together first"),
    "degree": _words("very really quite rather so too that"),
    "first": _words("then sometimes now later suddenly finally once there still luckily"),
}

FRAMES = """
motion  person -                    0.92 go walk run drive come travel race fly ride march head hurry return climb
                                        hike rush dash
travel  person -                    0.85 crawl sail swim move float bike jog cruise slip drift
stay    person -                    0.95 live stay sit sleep rest stand hide camp lie park kneel
put     person thing|text|tool      1.00 put leave place hide keep hang set drop store plant
give    person thing|text|clothes   0.85 give send sell show hand mail lend ship bring offer pass
get     person thing|clothes|tool   0.80 buy get order borrow take rent receive book steal
make    person text                 0.60 write read record finish copy draft file publish review edit
build   person thing|clothes|tool   0.60 make design paint build shape draw model carve stamp
fix     person part|thing           0.65 fix open clean paint close light break cover touch cut lock wash brush hammer
                                        dust empty oil dry frame iron
eat     person food                 0.60 eat cook share bake serve taste smell toast fry slice butter sample
drink   person drink                0.55 drink pour order spill cool sip warm
talk    person -                    0.95 talk speak write joke complain chat lie lecture fight
work    person -                    0.95 work volunteer train serve
worry   person -                    0.95 laugh worry smile cry dream shout frown sigh
look    person -                    1.00 look point stare wave glance peek shout
listen  person -                    1.00 listen react object
search  person -                    1.00 wait look ask search pay hope
throw   person thing                0.85 throw kick toss roll pitch bat
like    person thing|text|person    0.15 like see know remember love need watch want miss fear hate hear notice
                                        picture
act     person act                  0.10 hear notice remember see like fear make
go_to   person place|city|event     0.30 visit leave enter miss pass reach
meet    person person|kin           0.45 meet help call follow watch visit teach invite phone back guide judge trust
                                        host
thank   person person|kin           0.95 thank blame praise pay forgive reward
happen  event  -                    0.90 start end begin happen last continue stop
rise    figure -                    0.90 rise fall drop grow change jump
spend   person money                1.00 spend waste
fill    person container            0.95 fill cover load pack stock
tell    person person|kin           0.95 tell warn remind ask teach
compare person text|food            1.00 compare
roam    animal -                    0.90 run sleep hide fly swim wander jump bark
hunt    animal animal|food          0.40 chase eat follow watch smell bite trap
stand   thing  -                    1.00 stand lie hang fall rest
die     person -                    0.60 die suffer recover faint
own     person thing|animal|kin     0.05 have own keep want
do      person chore                0.10 do
take    person pause                0.10 take have want need
study   person topic                0.55 study teach practice play love
turn    person -                    1.00 turn grow change
"""
"""Verb classes: class, subject, object, how often a preposition of the class's own follows, verbs."""

PHRASAL = _words("""pick_up/thing give_up/topic turn_down/text look_up/quality put_on/clothes take_off/clothes
    throw_out/thing turn_off/light bring_back/thing set_up/event call_off/event put_out/fire
    hand_in/text grow_up/- get_up/- run_out/- come_in/- sit_down/- wake_up/- go_on/- break_down/-
    come_back/- move_in/- show_off/- write_down/quality""")
"""Verbs with a particle, and the class of their object."""

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

FIXED = {
    "phone": "the phone|the radio|the internet",
    "mail": "MASS mail|MASS email|MASS phone|MASS letter",
    "accident": "MASS accident|MASS chance|MASS mistake|MASS heart",
    "hand": "MASS hand|MASS machine",
    "meal": "MASS lunch|MASS dinner|MASS breakfast",
    "material": "MASS wood|MASS stone|MASS iron|MASS paper|MASS glass|MASS silver|MASS clay",
    "side": "the left|the right",
    "discount": "a discount|a loss",
    "stage": "the stage|the wall",
    "daypart_place": "the dark|the rain|the sun|the snow",
    "reason_ill": "a fever|MASS cancer|MASS hunger|a cold|the flu",
    "chore": "the work|the dishes|the laundry|the cooking|the painting|the shopping|MASS something",
    "errand": "MASS work|MASS bed|MASS school|MASS church|MASS court|MASS market|MASS war|MASS town",
    "pause": "a walk|a look|a break|a rest|a drink|a run|a swim|a ride|a guess|a turn|a bite",
    "light": "the light|the lamp|the radio|the engine",
    "fire": "the fire|the candle|the light",
}
"""Object classes that are a few set phrases; MASS stands for no article."""


CLOSED = """
the/the/DET/DT/Definite=Def|PronType=Art a/a/DET/DT/Definite=Ind|PronType=Art
this/this/DET/DT/Number=Sing|PronType=Dem that/that/DET/DT/Number=Sing|PronType=Dem
these/this/DET/DT/Number=Plur|PronType=Dem those/that/DET/DT/Number=Plur|PronType=Dem some/some/DET/DT/PronType=Ind
every/every/DET/DT/PronType=Tot no/no/DET/DT/PronType=Neg any/any/DET/DT/PronType=Ind all/all/DET/PDT/PronType=Tot
both/both/CCONJ/CC/_ what/what/DET/WDT/PronType=Int which/which/DET/WDT/PronType=Int
I/I/PRON/PRP/Case=Nom|Number=Sing|Person=1|PronType=Prs you/you/PRON/PRP/Case=Nom|Number=Plur|Person=2|PronType=Prs
he/he/PRON/PRP/Case=Nom|Number=Sing|Person=3|PronType=Prs she/she/PRON/PRP/Case=Nom|Number=Sing|Person=3|PronType=Prs
we/we/PRON/PRP/Case=Nom|Number=Plur|Person=1|PronType=Prs
they/they/PRON/PRP/Case=Nom|Number=Plur|Person=3|PronType=Prs it/it/PRON/PRP/Number=Sing|Person=3|PronType=Prs
me/I/PRON/PRP/Case=Acc|Number=Sing|Person=1|PronType=Prs him/he/PRON/PRP/Case=Acc|Number=Sing|Person=3|PronType=Prs
her/she/PRON/PRP/Case=Acc|Number=Sing|Person=3|PronType=Prs us/we/PRON/PRP/Case=Acc|Number=Plur|Person=1|PronType=Prs
them/they/PRON/PRP/Case=Acc|Number=Plur|Person=3|PronType=Prs something/something/PRON/NN/Number=Sing|PronType=Ind
everyone/everyone/PRON/NN/Number=Sing|PronType=Tot nobody/nobody/PRON/NN/Number=Sing|PronType=Neg
there/there/PRON/EX/PronType=Dem who/who/PRON/WP/PronType=Int not/not/PART/RB/Polarity=Neg
n't/not/PART/RB/Polarity=Neg to/to/PART/TO/_ 's/'s/PART/POS/_ where/where/ADV/WRB/PronType=Int
when/when/ADV/WRB/PronType=Int why/why/ADV/WRB/PronType=Int how/how/ADV/WRB/PronType=Int and/and/CCONJ/CC/_
but/but/CCONJ/CC/_ or/or/CCONJ/CC/_ many/many/ADJ/JJ/Degree=Pos much/much/ADV/RB/_ most/many/ADJ/JJS/Degree=Sup
long/long/ADV/RB/_ far/far/ADV/RB/_ old/old/ADJ/JJ/Degree=Pos tall/tall/ADJ/JJ/Degree=Pos wide/wide/ADJ/JJ/Degree=Pos
high/high/ADJ/JJ/Degree=Pos oldest/old/ADJ/JJS/Degree=Sup largest/large/ADJ/JJS/Degree=Sup
best/good/ADJ/JJS/Degree=Sup nearest/near/ADJ/JJS/Degree=Sup first/first/ADJ/JJ/NumType=Ord
main/main/ADJ/JJ/Degree=Pos favorite/favorite/ADJ/JJ/Degree=Pos Spanish/Spanish/ADJ/JJ/Degree=Pos
French/French/ADJ/JJ/Degree=Pos people/person/NOUN/NNS/Number=Plur miles/mile/NOUN/NNS/Number=Plur
NATO/NATO/PROPN/NNP/Number=Sing DNA/DNA/PROPN/NNP/Number=Sing UNESCO/UNESCO/PROPN/NNP/Number=Sing
"""
"""Words of closed classes: form, lemma, UPOS, XPOS, FEATS."""

POSSESSIVE_PRONOUNS = _words("her his my their our your")
SUBJECT_PRONOUNS = _words("he she I they we you")
OBJECT_PRONOUNS = _words("him her them me you us")
NUMBERS = _words("two three ten four five twenty six seven fifty eight nine thirty")
YEARS = _words("1998 2004 1945 1912 2010 1889 1776 1968 1850 1631 1999 2001 1066 1923 1815")

FEATS = {
    "NN": "Number=Sing", "NNS": "Number=Plur", "NNP": "Number=Sing", "NNPS": "Number=Plur",
    "JJ": "Degree=Pos", "JJR": "Degree=Cmp", "JJS": "Degree=Sup", "CD": "NumType=Card", "FW": "Foreign=Yes",
    "VB": "VerbForm=Inf", "VBD": "Mood=Ind|Tense=Past|VerbForm=Fin", "VBP": "Mood=Ind|Tense=Pres|VerbForm=Fin",
    "VBZ": "Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", "VBG": "Tense=Pres|VerbForm=Part",
    "VBN": "Tense=Past|VerbForm=Part", "MD": "VerbForm=Fin",
}  # fmt: skip
"""Features that a Penn tag says by itself."""

IRREGULAR_VERBS = {
    base: (past, participle)
    for base, past, participle in (
        row.split("/")
        for row in _words("""go/went/gone run/ran/run drive/drove/driven come/came/come fly/flew/flown ride/rode/ridden
        sit/sat/sat sleep/slept/slept stand/stood/stood hide/hid/hidden lie/lay/lain put/put/put leave/left/left
        keep/kept/kept hang/hung/hung set/set/set give/gave/given sell/sold/sold send/sent/sent lend/lent/lent
        show/showed/shown bring/brought/brought buy/bought/bought get/got/got take/took/taken steal/stole/stolen
        write/wrote/written read/read/read make/made/made build/built/built draw/drew/drawn break/broke/broken
        light/lit/lit cut/cut/cut eat/ate/eaten drink/drank/drunk speak/spoke/spoken throw/threw/thrown see/saw/seen
        know/knew/known hear/heard/heard meet/met/met teach/taught/taught begin/began/begun rise/rose/risen
        fall/fell/fallen grow/grew/grown spend/spent/spent tell/told/told swim/swam/swum bite/bit/bitten
        forgive/forgave/forgiven think/thought/thought say/said/said feel/felt/felt find/found/found win/won/won
        lose/lost/lost kneel/knelt/knelt pay/paid/paid wake/woke/woken let/let/let mean/meant/meant cost/cost/cost
        hold/held/held bear/bore/born become/became/become have/had/had do/did/done be/was/been sing/sang/sung
        dream/dreamt/dreamt forget/forgot/forgotten wear/wore/worn""")
    )
}
IRREGULAR_PLURALS = {
    row.split("/")[0]: row.split("/")[1]
    for row in _words("""man/men woman/women child/children wife/wives knife/knives shelf/shelves mouse/mice goose/geese
    foot/feet sheep/sheep fish/fish deer/deer squid/squid wolf/wolves leaf/leaves thief/thieves stairs/stairs
    person/people""")
}
DOUBLED = _words("stop plan chat drop slip sip hug run sit put set swim cut begin forget get win let")


def inflect(lemma: str, tag: str) -> str:
    """The form of a verb (VB, VBP, VBZ, VBD, VBN, VBG) or a noun (NN, NNS) under a Penn tag."""
    stem = lemma + lemma[-1] if lemma in DOUBLED else lemma
    soft = lemma[:-1] if lemma.endswith("e") else stem
    if tag == "NNS":
        return IRREGULAR_PLURALS.get(lemma) or _with_s(lemma)
    if tag == "VBZ":
        return {"have": "has", "be": "is"}.get(lemma) or _with_s(lemma)
    if tag == "VBG":
        return {"lie": "lying", "die": "dying", "be": "being"}.get(lemma) or soft + "ing"
    if tag in ("VBD", "VBN"):
        if lemma in IRREGULAR_VERBS:
            return IRREGULAR_VERBS[lemma][tag == "VBN"]
        return (lemma[:-1] + "i" if _ends_in_hard_y(lemma) else soft) + "ed"
    return lemma


def _with_s(lemma: str) -> str:
    if _ends_in_hard_y(lemma):
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "ch", "sh", "go", "do")) else "s")


def _ends_in_hard_y(lemma: str) -> bool:
    return lemma.endswith("y") and lemma[-2] not in "aeiou"


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


@dataclass(frozen=True)
class Sense:
    """One meaning of a preposition: role and function supersense, and the class of its object."""

    form: str
    role: str
    function: str
    noun: str = ""


@dataclass(frozen=True)
class Frame:
    """One class of verbs: who does it, to what, and how often a preposition of its own follows."""

    kind: str
    subject: str
    noun: str
    bound: float
    verbs: tuple[str, ...]


def blocks(table: str) -> list[str]:
    """The rows of a table, each with its indented continuation lines."""
    return [" ".join(block.split()) for block in table.replace("\n  ", " ").strip().split("\n")]


def _frames() -> tuple[Frame, ...]:
    rows = (row.split() for row in blocks(FRAMES))
    return tuple(
        Frame(kind, who, what.strip("-"), float(bound), tuple(verbs)) for kind, who, what, bound, *verbs in rows
    )


def _senses() -> dict[str, list[tuple[Sense, float]]]:
    table: dict[str, list[tuple[Sense, float]]] = {}
    for block in blocks(SENSES):
        governor, _, rows = block.partition(":")
        for form, meaning, noun, weight in (row.split() for row in rows.split(";")):
            role, _, function = meaning.partition(">")
            table.setdefault(governor, []).append((Sense(form, role, function or role, noun), float(weight)))
    return table


VERBS = {frame.kind: frame for frame in _frames()}
PREPOSITIONS = _senses()
OWNERS = {noun: (role, function) for noun, role, function in (row.split() for row in POSSESSIVES.split("\n") if row)}
