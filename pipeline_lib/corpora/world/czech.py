"""Czech sentences: four genders, five cases, agreement, numerals two to four."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline_lib.corpora.world.concepts import ANIMALS
from pipeline_lib.corpora.world.scenes import Entity
from pipeline_lib.corpora.world.wording import Phrase, Word

# Masculine and other nominative, genitive, instrumental.
NUMERALS = {
    2: "dva dvě dvou dvěma",
    3: "tři tři tří třemi",
    4: "čtyři čtyři čtyř čtyřmi",
}

_SINGULAR_CASES = ("nominative", "genitive", "accusative", "locative", "instrumental")
_PLURAL_CASES = ("nominative", "genitive", "instrumental")

NOUNS = {
    # Gender (a: masculine animate, i: masculine inanimate), singular and plural nominative.
    "man": ("a muž muži",),
    "woman": ("f žena ženy", "f dáma dámy"),
    "boy": ("a chlapec chlapci", "a kluk kluci"),
    "girl": ("f dívka dívky", "f holka holky"),
    "dog": ("a pes psi",),
    "cat": ("f kočka kočky",),
    "rabbit": ("a králík králíci",),
    "horse": ("a kůň koně",),
    "cow": ("f kráva krávy",),
    "sheep": ("f ovce ovce",),
    "pig": ("n prase prasata",),
    "elephant": ("a slon sloni",),
    "bird": ("a pták ptáci",),
    "duck": ("f kachna kachny",),
    # Gender and the cases that a sentence can need.
    "ball": ("i míč míče míč míči míčem míče míčů míči",),
    "car": ("n auto auta auto autě autem auta aut auty",),
    "bus": ("i autobus autobusu autobus autobusu autobusem autobusy autobusů autobusy",),
    "house": ("i dům domu dům domě domem domy domů domy",),
    "boat": ("f loď lodi loď lodi lodí lodě lodí loděmi",),
    "bicycle": ("n kolo kola kolo kole kolem kola kol koly",),
    "umbrella": ("i deštník deštníku deštník deštníku deštníkem deštníky deštníků deštníky",),
    "table": ("i stůl stolu stůl stole stolem stoly stolů stoly",),
    "chair": ("f židle židle židli židli židlí židle židlí židlemi",),
    "bench": ("f lavička lavičky lavičku lavičce lavičkou lavičky laviček lavičkami",),
    "tent": ("i stan stanu stan stanu stanem stany stanů stany",),
    "balloon": ("i balonek balonku balonek balonku balonkem balonky balonků balonky",),
    "box": (
        "f krabice krabice krabici krabici krabicí krabice krabic krabicemi",
        "f bedna bedny bednu bedně bednou bedny beden bednami",
    ),
    "hat": ("i klobouk klobouku klobouk klobouku kloboukem klobouky klobouků klobouky",),
    "guitar": ("f kytara kytary kytaru kytaře kytarou kytary kytar kytarami",),
    "tree": ("i strom stromu strom stromě stromem stromy stromů stromy",),
    "flower": (
        "f květina květiny květinu květině květinou květiny květin květinami",
        "f kytka kytky kytku kytce kytkou kytky kytek kytkami",
    ),
}
# Gender, locative singular and plural; a dress has the plural only ("-").
GARMENTS = {
    "shirt": ("f košili košilích",),
    "coat": ("i kabátě kabátech", "f bundě bundách"),
    "dress": ("- šatech",),
}
# Stem and the nominative plural of the masculine animate, which softens it.
ADJECTIVES = {
    "red": ("červen červení",),
    "blue": ("modr modří",),
    "green": ("zelen zelení",),
    "yellow": ("žlut žlutí",),
    "purple": ("fialov fialoví",),
    "black": ("čern černí",),
    "white": ("bíl bílí",),
    "brown": ("hněd hnědí",),
    "grey": ("šed šedí",),
    "big": ("velk velcí",),
    "small": ("mal malí",),
}
# Endings of hard adjectives for genders a, i, f, n.
_GENDERS = "aifn"
_SINGULAR_ENDINGS = {
    "nominative": "ý ý á é",
    "genitive": "ého ého é ého",
    "accusative": "ého ý ou é",
    "locative": "ém ém é ém",
    "instrumental": "ým ým ou ým",
}
_PLURAL_ENDINGS = {
    "nominative": "- é é á",
    "genitive": "ých ých ých ých",
    "locative": "ých ých ých ých",
    "instrumental": "ými ými ými ými",
}
VERBS = {
    "be": ("je / jsou",),
    "run": ("běží / běží",),
    "walk": ("jde / jdou", "kráčí / kráčí"),
    "sit": ("sedí / sedí",),
    "stand": ("stojí / stojí",),
    "jump": ("skáče / skáčou",),
    "sleep": ("spí / spí",),
    "eat": ("jí / jedí",),
    "read": ("čte / čtou",),
    "dance": ("tančí / tančí", "tancuje / tancují"),
    "wave": ("mává / mávají",),
    "fly": ("letí / letí",),
    "hold": ("drží / drží",),
}
_EATING_ANIMAL = ("žere / žerou",)
RELATIONS = {
    "next_to": ("vedle",),
    "in_front_of": ("před",),
    "behind": ("za",),
    "under": ("pod",),
    "on": ("na",),
}
# By role; all others take the instrumental.
_CASES = {
    "subject": "nominative",
    "worn": "locative",
    "hold": "accusative",
    "next_to": "genitive",
    "on": "locative",
}
PLACES = {
    "beach": ("na pláži",),
    "forest": ("v lese",),
    "street": ("na ulici", "na silnici"),
    "meadow": ("na louce", "v trávě"),
    "kitchen": ("v kuchyni",),
    "snow": ("ve sněhu",),
    "desert": ("v poušti",),
    "mountains": ("v horách",),
    "lake": ("u jezera",),
    "bedroom": ("v ložnici",),
}
CONJUNCTIONS = ("a", ", zatímco")
WEARING = "v"
# The preposition gains a vowel before these consonants.
SANDHI = ((r"\bv (?=[fvž])", "ve "),)
FORMS = {
    "presence": "PLACE SUBJECT RELATION BE: SUBJECT [RELATION] [PLACE]"
    " | SUBJECT BE RELATION [PLACE] | SUBJECT BE PLACE | PLACE BE SUBJECT [RELATION]",
    "action": "PLACE SUBJECT RELATION VERB: SUBJECT VERB [RELATION] [PLACE]"
    " | PLACE VERB SUBJECT [RELATION]",
    "together": "SUBJECT OTHER PLACE: SUBJECT a OTHER [PLACE] | SUBJECT a OTHER jsou PLACE",
    "events": "SUBJECT VERB OTHER OTHER_VERB PLACE CONJUNCTION:"
    " SUBJECT VERB [PLACE] CONJUNCTION OTHER OTHER_VERB"
    " | PLACE VERB SUBJECT CONJUNCTION OTHER OTHER_VERB",
}


def verbs(action: str, subject: Entity) -> Sequence[str]:
    """Return the verbs, of which people and animals have different ones for eating."""
    animal_eats = action == "eat" and subject.noun in ANIMALS
    return _EATING_ANIMAL if animal_eats else VERBS[action]


def inflect(noun: Word, adjectives: list[Word], numeral: list[Word], role: str) -> Phrase:
    """Decline numeral, adjectives and noun."""
    gender, *forms = noun.text.split()
    case = _CASES.get(role, "instrumental")
    if gender == "-":
        return [*_agreeing(adjectives, "i", case, many=True), Word(*forms, noun.concept)]
    many = noun.number == "many"
    counted = [replace(word, text=_numeral(word.text, gender, case)) for word in numeral]
    form = replace(noun, text=_noun_form(forms, case, many))
    return [*counted, *_agreeing(adjectives, gender, case, many), form]


def _numeral(entry: str, gender: str, case: str) -> str:
    masculine, other, genitive, instrumental = entry.split()
    nominative = other if gender in "fn" else masculine
    return {"genitive": genitive, "instrumental": instrumental}.get(case, nominative)


def _agreeing(adjectives: list[Word], gender: str, case: str, many: bool) -> list[Word]:
    endings = (_PLURAL_ENDINGS if many else _SINGULAR_ENDINGS)[case].split()
    ending = endings[_GENDERS.index(gender)]
    words = []
    for adjective in adjectives:
        stem, softened = adjective.text.split()
        words.append(replace(adjective, text=softened if ending == "-" else stem + ending))
    return words


def _noun_form(forms: list[str], case: str, many: bool) -> str:
    if len(forms) == 2:  # an actor or a garment, which sentences need in one case only
        return forms[many]
    if many:
        return forms[len(_SINGULAR_CASES) + _PLURAL_CASES.index(case)]
    return forms[_SINGULAR_CASES.index(case)]
