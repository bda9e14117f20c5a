"""Czech sentences: four genders, five cases, agreement, numerals two to four."""

from pipeline_lib.corpora.world.concepts import ANIMALS
from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

# By case, masculine then feminine and neuter where they differ.
NUMERALS = {
    2: {"nominative": "dva dvě", "genitive": "dvou", "instrumental": "dvěma"},
    3: {"nominative": "tři", "genitive": "tří", "instrumental": "třemi"},
    4: {"nominative": "čtyři", "genitive": "čtyř", "instrumental": "čtyřmi"},
}

# Gender (a: masculine animate, i: masculine inanimate), singular and plural nominative.
ACTORS = {
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
}
# Gender and the cases that a sentence can need.
_SINGULAR_CASES = ("nominative", "genitive", "accusative", "locative", "instrumental")
_PLURAL_CASES = ("nominative", "genitive", "instrumental")
THINGS = {
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
# Gender, locative singular and plural; a dress is one in the plural only ("-").
GARMENTS = {
    "shirt": ("f košili košilích",),
    "coat": ("i kabátě kabátech", "f bundě bundách"),
    "dress": ("- šatech šatech",),
}
# Stem and the nominative plural of the masculine animate, which softens it.
ADJECTIVES = {
    "red": "červen červení",
    "blue": "modr modří",
    "green": "zelen zelení",
    "yellow": "žlut žlutí",
    "purple": "fialov fialoví",
    "black": "čern černí",
    "white": "bíl bílí",
    "brown": "hněd hnědí",
    "grey": "šed šedí",
    "big": "velk velcí",
    "small": "mal malí",
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
    "run": ("běží běží",),
    "walk": ("jde jdou", "kráčí kráčí"),
    "sit": ("sedí sedí",),
    "stand": ("stojí stojí",),
    "jump": ("skáče skáčou",),
    "sleep": ("spí spí",),
    "eat": ("jí jedí",),
    "read": ("čte čtou",),
    "dance": ("tančí tančí", "tancuje tancují"),
    "wave": ("mává mávají",),
    "fly": ("letí letí",),
    "hold": ("drží drží",),
}
_EATING_ANIMAL = ("žere žerou",)
PREPOSITIONS = {
    "next_to": ("vedle", "genitive"),
    "in_front_of": ("před", "instrumental"),
    "behind": ("za", "instrumental"),
    "under": ("pod", "instrumental"),
    "on": ("na", "locative"),
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


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    subject, action, place = message.entities[0], predicate(message), _place(message, choose)
    phrase, rest = _noun_phrase(subject, "nominative", choose), _relation(message, choose)
    forms: list[Phrase] = []
    if action is None:
        verb: str | Word = "je" if subject.count == 1 else "jsou"
        forms.append([*phrase, *rest, *place])
    else:
        verb = _verb(action, subject, choose)
    if action or rest or place:
        forms.append([*phrase, verb, *rest, *place])
    return choose([*forms, [*place, verb, *phrase, *rest]] if place else forms)


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    first, second = (_noun_phrase(entity, "nominative", choose) for entity in message.entities)
    both, place = [*first, "a", *second], _place(message, choose)
    return choose([[*both, *place], [*both, "jsou", *place]]) if place else both


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    (subject, verb), (other, other_verb) = (_event(entity, choose) for entity in message.entities)
    place = _place(message, choose)
    rest = [*choose([["a"], [",", "zatímco"]]), *other, other_verb]
    plain = [*subject, verb, *place, *rest]
    return choose([plain, [*place, verb, *subject, *rest]]) if place else plain


def _event(entity: Entity, choose: Choose) -> tuple[Phrase, Word]:
    return _noun_phrase(entity, "nominative", choose), _verb(entity.action, entity, choose)


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    if message.relation == "hold":
        return _noun_phrase(message.entities[1], "accusative", choose)
    preposition, case = PREPOSITIONS[message.relation]
    return [
        Word(preposition, message.relation),
        *_noun_phrase(message.entities[1], case, choose),
    ]


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    preposition, noun = choose(PLACES[message.place]).split()
    return [preposition, Word(noun, message.place)]


def _verb(action: str, subject: Entity, choose: Choose) -> Word:
    animal_eats = action == "eat" and subject.noun in ANIMALS
    singular, plural = choose(_EATING_ANIMAL if animal_eats else VERBS[action]).split()
    return Word(singular if subject.count == 1 else plural, action)


def _noun_phrase(entity: Entity, case: str, choose: Choose) -> Phrase:
    gender, *forms = choose(ACTORS[entity.noun] if entity.acts else THINGS[entity.noun]).split()
    noun = Word(_noun_form(forms, entity, case), entity.noun, entity.number)
    attributes = [entity.size] if entity.garment else [entity.size, entity.colour]
    adjectives = _agreeing(attributes, gender, case, entity.number)
    phrase = [*_numeral(entity, gender, case), *adjectives, noun]
    return phrase if entity.garment is None else [*phrase, *_clothes(entity, choose)]


def _noun_form(forms: list[str], entity: Entity, case: str) -> str:
    if entity.acts:  # always the subject
        return forms[entity.count > 1]
    if entity.count == 1:
        return forms[_SINGULAR_CASES.index(case)]
    return forms[len(_SINGULAR_CASES) + _PLURAL_CASES.index(case)]


def _numeral(entity: Entity, gender: str, case: str) -> Phrase:
    if entity.count == 1:
        return []
    masculine, *others = NUMERALS[entity.count][case].split()
    return [Word(others[0] if others and gender in "fn" else masculine, str(entity.count))]


def _clothes(entity: Entity, choose: Choose) -> Phrase:
    gender, singular, plural = choose(GARMENTS[entity.garment]).split()
    plural_only = gender == "-"
    number = "many" if plural_only else entity.number
    colour = _agreeing([entity.colour], "i" if plural_only else gender, "locative", number)
    # The preposition gains a vowel before these consonants.
    preposition = "ve" if colour[0].text[0] in "fvž" else "v"
    clothes = Word(
        singular if entity.count == 1 else plural,
        entity.garment,
        None if plural_only else entity.number,
    )
    return [preposition, *colour, clothes]


def _agreeing(concepts: list[str | None], gender: str, case: str, number: str) -> list[Word]:
    column = _GENDERS.index(gender)
    endings = _SINGULAR_ENDINGS if number == "one" else _PLURAL_ENDINGS
    words = []
    for concept in (c for c in concepts if c is not None):
        stem, softened = ADJECTIVES[concept].split()
        ending = endings[case].split()[column]
        words.append(Word(softened if ending == "-" else stem + ending, concept))
    return words


GRAMMAR = {"clause": clause, "together": together, "events": events}
