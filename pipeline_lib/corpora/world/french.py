"""French sentences: two genders, agreement of adjectives and participles, elision before vowels."""

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

NUMERALS = {2: "deux", 3: "trois", 4: "quatre"}
_ARTICLES = {"m": "un", "f": "une"}

# Gender, singular, plural.
NOUNS = {
    "man": ("m homme hommes",),
    "woman": ("f femme femmes", "f dame dames"),
    "boy": ("m garçon garçons",),
    "girl": ("f fille filles", "f fillette fillettes"),
    "dog": ("m chien chiens",),
    "cat": ("m chat chats",),
    "rabbit": ("m lapin lapins",),
    "horse": ("m cheval chevaux",),
    "cow": ("f vache vaches",),
    "sheep": ("m mouton moutons",),
    "pig": ("m cochon cochons", "m porc porcs"),
    "elephant": ("m éléphant éléphants",),
    "bird": ("m oiseau oiseaux",),
    "duck": ("m canard canards",),
    "ball": ("f balle balles",),
    "car": ("f voiture voitures", "f auto autos"),
    "bus": ("m bus bus", "m autobus autobus"),
    "house": ("f maison maisons",),
    "boat": ("m bateau bateaux",),
    "bicycle": ("m vélo vélos", "f bicyclette bicyclettes"),
    "umbrella": ("m parapluie parapluies",),
    "table": ("f table tables",),
    "chair": ("f chaise chaises",),
    "bench": ("m banc bancs",),
    "tent": ("f tente tentes",),
    "balloon": ("m ballon ballons",),
    "box": ("f boîte boîtes", "f caisse caisses"),
    "hat": ("m chapeau chapeaux",),
    "guitar": ("f guitare guitares",),
    "tree": ("m arbre arbres",),
    "flower": ("f fleur fleurs",),
}
GARMENTS = {
    "shirt": ("f chemise",),
    "coat": ("m manteau", "f veste"),
    "dress": ("f robe",),
}
# Masculine and feminine singular, masculine and feminine plural.
ADJECTIVES = {
    "red": "rouge rouge rouges rouges",
    "blue": "bleu bleue bleus bleues",
    "green": "vert verte verts vertes",
    "yellow": "jaune jaune jaunes jaunes",
    "purple": "violet violette violets violettes",
    "black": "noir noire noirs noires",
    "white": "blanc blanche blancs blanches",
    "brown": "brun brune bruns brunes",
    "grey": "gris grise gris grises",
    "big": "grand grande grands grandes",
    "small": "petit petite petits petites",
}
# Third person, singular / plural; the last word carries the meaning.
VERBS = {
    "run": ("court / courent",),
    "walk": ("marche / marchent", "se promène / se promènent"),
    "stand": ("est debout / sont debout",),
    "jump": ("saute / sautent", "bondit / bondissent"),
    "sleep": ("dort / dorment",),
    "eat": ("mange / mangent",),
    "read": ("lit / lisent",),
    "dance": ("danse / dansent",),
    "wave": ("salue / saluent",),
    "fly": ("vole / volent",),
    "hold": ("tient / tiennent",),
}
_SITTING = {"m": ("est assis / sont assis",), "f": ("est assise / sont assises",)}
PREPOSITIONS = {"in_front_of": "devant", "behind": "derrière", "under": "sous", "on": "sur"}
PLACES = {
    "beach": ("sur la plage", "à la plage"),
    "forest": ("dans la forêt",),
    "street": ("dans la rue", "sur la route"),
    "meadow": ("dans le pré", "dans la prairie"),
    "kitchen": ("dans la cuisine",),
    "snow": ("dans la neige",),
    "desert": ("dans le désert",),
    "mountains": ("à la montagne",),
    "lake": ("au bord du lac", "près du lac"),
    "bedroom": ("dans la chambre",),
}


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    subject, action, place = message.entities[0], predicate(message), _place(message, choose)
    phrase, rest = _noun_phrase(subject, choose), _relation(message, choose)
    if action is None:
        forms = [[*phrase, *rest, *place], ["il", "y", "a", *phrase, *rest, *place]]
        fronted = [*place, ",", "il", "y", "a", *phrase, *rest]
    else:
        verb = _verb(action, subject, choose)
        forms = [[*phrase, *verb, *rest, *place]]
        fronted = [*place, ",", *phrase, *verb, *rest]
    return choose([*forms, fronted] if place else forms)


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    first, second = (_noun_phrase(entity, choose) for entity in message.entities)
    both, place = [*first, "et", *second], _place(message, choose)
    forms = [[*both, *place], ["il", "y", "a", *both, *place]]
    return choose([*forms, [*both, "sont", *place]] if place else forms)


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    first, second = (_event(entity, choose) for entity in message.entities)
    place = _place(message, choose)
    both = [*first, *choose([["et"], ["tandis", _elided("que", second)]]), *second]
    return choose([[*both, *place], [*place, ",", *both]]) if place else both


def _event(entity: Entity, choose: Choose) -> Phrase:
    return [*_noun_phrase(entity, choose), *_verb(entity.action, entity, choose)]


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    target = _noun_phrase(message.entities[1], choose)
    if message.relation == "hold":
        return target
    if message.relation == "next_to":
        return ["à", "côté", _elided("de", target), *target]
    return [Word(PREPOSITIONS[message.relation], message.relation), *target]


def _elided(word: str, following: Phrase) -> str:
    """Drop the final vowel of ``de`` or ``que`` before an indefinite article."""
    return f"{word[:-1]}'" if following[0] in ("un", "une") else word


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    *function_words, noun = choose(PLACES[message.place]).split()
    return [*function_words, Word(noun, message.place)]


def _verb(action: str, subject: Entity, choose: Choose) -> Phrase:
    gender = NOUNS[subject.noun][0][0]
    singular, plural = choose(_SITTING[gender] if action == "sit" else VERBS[action]).split(" / ")
    *auxiliary, verb = (singular if subject.count == 1 else plural).split()
    return [*auxiliary, Word(verb, action)]


def _noun_phrase(entity: Entity, choose: Choose) -> Phrase:
    gender, singular, plural = choose(NOUNS[entity.noun]).split()
    determiner = _ARTICLES[gender]
    if entity.count > 1:
        determiner = Word(NUMERALS[entity.count], str(entity.count))
    noun = Word(singular if entity.count == 1 else plural, entity.noun, entity.number)
    size = _agreeing([entity.size], gender, entity.count)
    if entity.garment is None:
        return [determiner, *size, noun, *_agreeing([entity.colour], gender, entity.count)]
    # "en" takes the singular for several people too, so one form serves both numbers.
    gender, clothes = choose(GARMENTS[entity.garment]).split()
    colour = _agreeing([entity.colour], gender, 1)
    return [determiner, *size, noun, "en", Word(clothes, entity.garment), *colour]


def _agreeing(concepts: list[str | None], gender: str, count: int) -> list[Word]:
    column = "mf".index(gender) + (2 if count > 1 else 0)
    return [Word(ADJECTIVES[c].split()[column], c) for c in concepts if c is not None]


GRAMMAR = {"clause": clause, "together": together, "events": events}
