"""English inflection of the corpus's verbs and nouns, and the morphological features of Penn tags."""

from __future__ import annotations

from closerlook.tasks.embedded.tables import split_slashes, split_words

FEATS = {
    "NN": "Number=Sing", "NNS": "Number=Plur", "NNP": "Number=Sing", "NNPS": "Number=Plur",
    "JJ": "Degree=Pos", "JJR": "Degree=Cmp", "JJS": "Degree=Sup", "CD": "NumType=Card", "FW": "Foreign=Yes",
    "VB": "VerbForm=Inf", "VBD": "Mood=Ind|Tense=Past|VerbForm=Fin", "VBP": "Mood=Ind|Tense=Pres|VerbForm=Fin",
    "VBZ": "Mood=Ind|Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", "VBG": "Tense=Pres|VerbForm=Part",
    "VBN": "Tense=Past|VerbForm=Part", "MD": "VerbForm=Fin",
}  # fmt: skip
"""The morphological features that follow from a Penn tag."""

IRREGULAR_VERBS = {
    base: (past, participle)
    for base, past, participle in split_slashes("""
        go/went/gone run/ran/run drive/drove/driven come/came/come fly/flew/flown ride/rode/ridden
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
        dream/dreamt/dreamt forget/forgot/forgotten wear/wore/worn
    """)
}
IRREGULAR_PLURALS = dict(
    pair.split("/")
    for pair in split_words("""
    man/men woman/women child/children wife/wives knife/knives shelf/shelves mouse/mice goose/geese
    foot/feet sheep/sheep fish/fish deer/deer squid/squid wolf/wolves leaf/leaves thief/thieves stairs/stairs
    person/people
    """)
)
DOUBLED = split_words("stop plan chat drop slip sip hug run sit put set swim cut begin forget get win let")


def inflect(lemma: str, tag: str) -> str:
    """The form of a verb (VB, VBP, VBZ, VBD, VBN, VBG) or a noun (NN, NNS) with a Penn tag."""
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
    """The plural of a noun, or the third person of a verb."""
    if _ends_in_hard_y(lemma):
        return lemma[:-1] + "ies"
    return lemma + ("es" if lemma.endswith(("s", "x", "ch", "sh", "go", "do")) else "s")


def _ends_in_hard_y(lemma: str) -> bool:
    """Whether the word ends in a consonant and y."""
    return lemma.endswith("y") and lemma[-2] not in "aeiou"
