"""The words of the embedded corpus: nouns, adjectives, adverbs and verbs by meaning, and the closed classes.

Word lists are sorted from common to rare: the grammar chooses early words more often.
"""

from __future__ import annotations

from dataclasses import dataclass

from closerlook.tasks.embedded.tables import split_rows, split_slashes, split_words

# --- nouns ---------------------------------------------------------------------------------------------------------

NOUNS: dict[str, tuple[str, ...]] = {
    kind: split_words(words)
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
"""Nouns by meaning. A noun may be in several classes, and many are also verbs or adjectives."""

PROPER = ("company", "city", "country", "given", "surname", "weekday", "month")
MASS = ("food", "drink", "topic", "feeling", "manner", "clock", "reason")
"""Classes that take no article: names, and nouns that are not counted."""

RELATIONAL = ("measure", "portion", "group", "sort", "part", "quality", "figure")
"""Classes whose nouns need a complement: 'a cup of ...'."""

COMPOUNDS = {
    kind: tuple(first.split(","))
    for kind, first in split_slashes("""person/topic,place place/food,clothes thing/place,stuff,stuff tool/place,stuff
        event/topic,food text/topic,event vehicle/stuff,food clothes/stuff surface/place,stuff
        container/stuff,food,text part/vehicle,place""")
}
"""Classes of nouns that may precede a noun of this class in a compound."""

FIXED = {
    kind: tuple(phrases.split("|"))
    for kind, phrases in {
        "phone": "the phone|the radio|the internet",
        "mail": "mail|email|phone|letter",
        "accident": "accident|chance|mistake|heart",
        "hand": "hand|machine",
        "meal": "lunch|dinner|breakfast",
        "material": "wood|stone|iron|paper|glass|silver|clay",
        "side": "the left|the right",
        "discount": "a discount|a loss",
        "stage": "the stage|the wall",
        "daypart_place": "the dark|the rain|the sun|the snow",
        "reason_ill": "a fever|cancer|hunger|a cold|the flu",
        "chore": "the work|the dishes|the laundry|the cooking|the painting|the shopping|something",
        "errand": "work|bed|school|church|court|market|war|town",
        "pause": "a walk|a look|a break|a rest|a drink|a run|a swim|a ride|a guess|a turn|a bite",
        "light": "the light|the lamp|the radio|the engine",
        "fire": "the fire|the candle|the light",
    }.items()
}
"""Classes of objects that consist of a few fixed phrases."""

PLACED = split_slashes("""person/n.person thing/n.thing animal/roam measure/n.thing group/n.person event/n.event
    text/n.thing portion/n.thing""")
"""For sentences with 'there is': the class of the noun, and the class whose prepositions give the place."""


# --- adjectives and adverbs ----------------------------------------------------------------------------------------

ADJECTIVES: dict[str, tuple[str, ...]] = {
    kind: split_words(words)
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

ABSOLUTE = split_words("second last back past wooden silver spare final annual stolen painted black")
"""Adjectives without comparative and superlative."""
COMPARATIVES = split_slashes("""old/older small/smaller big/bigger cheap/cheaper good/better heavy/heavier bad/worse
    light/lighter""")

ADVERBS: dict[str, tuple[str, ...]] = {
    "way": split_words("back up down in out past along around over through by on"),
    "inner": split_words("never always often just still also usually finally once almost quickly hardly rarely soon"),
    "final": split_words("again well fast hard early late there right long daily here straight alone together first"),
    "degree": split_words("very really quite rather so too that"),
    "first": split_words("then sometimes now later suddenly finally once there still luckily"),
}


# --- verbs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A class of verbs: the classes of its subject and object, and how often its own preposition follows."""

    kind: str
    subject: str
    noun: str
    bound: float
    verbs: tuple[str, ...]


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
"""Verb classes: class, subject, object, how often a preposition of the class follows, verbs."""

VERBS = {
    kind: Frame(kind, subject, noun.strip("-"), float(bound), tuple(verbs))
    for kind, subject, noun, bound, *verbs in (row.split() for row in split_rows(FRAMES))
}
"""Verb classes by name."""

STATIVE = split_words("""know like need love hate see hear remember believe cost mean own have miss notice want
    last happen die live say think hope own""")
"""Verbs that are not used in the progressive."""
SAYING = split_slashes("say/that think/that know/that ask/if hope/that hear/that wonder/whether believe/that")
"""Verbs of saying, and the conjunction that follows."""

PHRASAL = split_slashes("""pick/up/thing give/up/topic turn/down/text look/up/quality put/on/clothes take/off/clothes
    throw/out/thing turn/off/light bring/back/thing set/up/event call/off/event put/out/fire
    hand/in/text grow/up/- get/up/- run/out/- come/in/- sit/down/- wake/up/- go/on/- break/down/-
    come/back/- move/in/- show/off/- write/down/quality""")
"""Verbs with a particle, and the class of their object (- for none)."""


# --- closed classes ------------------------------------------------------------------------------------------------

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

POSSESSIVE_PRONOUNS = split_words("her his my their our your")
SUBJECT_PRONOUNS = split_words("he she I they we you")
OBJECT_PRONOUNS = split_words("him her them me you us")
NUMBERS = split_words("two three ten four five twenty six seven fifty eight nine thirty")
YEARS = split_words("1998 2004 1945 1912 2010 1889 1776 1968 1850 1631 1999 2001 1066 1923 1815")
