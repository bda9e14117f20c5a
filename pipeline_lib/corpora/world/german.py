"""German sentences: three genders, three cases, mixed and strong adjective endings."""

from pipeline_lib.corpora.world.concepts import ANIMALS
from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

NUMERALS = {2: "zwei", 3: "drei", 4: "vier"}
_ARTICLES = {
    "nominative": {"m": "ein", "f": "eine", "n": "ein"},
    "accusative": {"m": "einen", "f": "eine", "n": "ein"},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
}
_SINGULAR_ENDINGS = {
    "nominative": {"m": "er", "f": "e", "n": "es"},
    "accusative": {"m": "en", "f": "e", "n": "es"},
    "dative": {"m": "en", "f": "en", "n": "en"},
}
_PLURAL_ENDINGS = {"nominative": "e", "accusative": "e", "dative": "en"}

# Gender, nominative, accusative and dative, plural, dative plural.
NOUNS = {
    "man": ("m Mann Mann Männer Männern",),
    "woman": ("f Frau Frau Frauen Frauen", "f Dame Dame Damen Damen"),
    "boy": ("m Junge Jungen Jungen Jungen",),
    "girl": ("n Mädchen Mädchen Mädchen Mädchen",),
    "dog": ("m Hund Hund Hunde Hunden",),
    "cat": ("f Katze Katze Katzen Katzen",),
    "rabbit": ("n Kaninchen Kaninchen Kaninchen Kaninchen", "m Hase Hasen Hasen Hasen"),
    "horse": ("n Pferd Pferd Pferde Pferden",),
    "cow": ("f Kuh Kuh Kühe Kühen",),
    "sheep": ("n Schaf Schaf Schafe Schafen",),
    "pig": ("n Schwein Schwein Schweine Schweinen",),
    "elephant": ("m Elefant Elefanten Elefanten Elefanten",),
    "bird": ("m Vogel Vogel Vögel Vögeln",),
    "duck": ("f Ente Ente Enten Enten",),
    "ball": ("m Ball Ball Bälle Bällen",),
    "car": ("n Auto Auto Autos Autos", "m Wagen Wagen Wagen Wagen"),
    "bus": ("m Bus Bus Busse Bussen",),
    "house": ("n Haus Haus Häuser Häusern",),
    "boat": ("n Boot Boot Boote Booten",),
    "bicycle": ("n Fahrrad Fahrrad Fahrräder Fahrrädern", "n Rad Rad Räder Rädern"),
    "umbrella": ("m Regenschirm Regenschirm Regenschirme Regenschirmen",),
    "table": ("m Tisch Tisch Tische Tischen",),
    "chair": ("m Stuhl Stuhl Stühle Stühlen",),
    "bench": ("f Bank Bank Bänke Bänken",),
    "tent": ("n Zelt Zelt Zelte Zelten",),
    "balloon": ("m Luftballon Luftballon Luftballons Luftballons",),
    "box": ("f Kiste Kiste Kisten Kisten", "f Schachtel Schachtel Schachteln Schachteln"),
    "hat": ("m Hut Hut Hüte Hüten",),
    "guitar": ("f Gitarre Gitarre Gitarren Gitarren",),
    "tree": ("m Baum Baum Bäume Bäumen",),
    "flower": ("f Blume Blume Blumen Blumen",),
}
GARMENTS = {
    "shirt": ("n Hemd Hemd Hemden Hemden",),
    "coat": ("m Mantel Mantel Mäntel Mänteln", "f Jacke Jacke Jacken Jacken"),
    "dress": ("n Kleid Kleid Kleider Kleidern",),
}
ADJECTIVES = {
    "red": "rot",
    "blue": "blau",
    "green": "grün",
    "yellow": "gelb",
    "purple": "violett",
    "black": "schwarz",
    "white": "weiß",
    "brown": "braun",
    "grey": "grau",
    "big": "groß",
    "small": "klein",
}
VERBS = {
    "run": ("rennt rennen", "läuft laufen"),
    "walk": ("geht gehen", "spaziert spazieren"),
    "sit": ("sitzt sitzen",),
    "stand": ("steht stehen",),
    "jump": ("springt springen", "hüpft hüpfen"),
    "sleep": ("schläft schlafen",),
    "eat": ("isst essen",),
    "read": ("liest lesen",),
    "dance": ("tanzt tanzen",),
    "wave": ("winkt winken",),
    "fly": ("fliegt fliegen",),
    "hold": ("hält halten",),
}
_EATING_ANIMAL = ("frisst fressen",)
PREPOSITIONS = {
    "next_to": "neben",
    "in_front_of": "vor",
    "behind": "hinter",
    "under": "unter",
    "on": "auf",
}
PLACES = {
    "beach": ("am Strand",),
    "forest": ("im Wald",),
    "street": ("auf der Straße",),
    "meadow": ("auf der Wiese", "im Gras"),
    "kitchen": ("in der Küche",),
    "snow": ("im Schnee",),
    "desert": ("in der Wüste",),
    "mountains": ("in den Bergen", "im Gebirge"),
    "lake": ("am See",),
    "bedroom": ("im Schlafzimmer",),
}


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    subject, action, place = message.entities[0], predicate(message), _place(message, choose)
    phrase, rest = _noun_phrase(subject, "nominative", choose), _relation(message, choose)
    if action is None:
        seen = _noun_phrase(subject, "accusative", choose)
        forms = [[*phrase, *rest, *place], ["es", "gibt", *seen, *rest, *place]]
        fronted = [*place, "gibt", "es", *seen, *rest]
    else:
        verb = _verb(action, subject, choose)
        forms = [[*phrase, verb, *rest, *place]]
        fronted = [*place, verb, *phrase, *rest]
    return choose([*forms, fronted] if place else forms)


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    place = _place(message, choose)
    subject, seen = (_both(message, case, choose) for case in ("nominative", "accusative"))
    forms = [[*subject, *place], ["das", "Bild", "zeigt", *seen, *place]]
    return choose([*forms, [*place, "sind", *subject]] if place else forms)


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    (subject, verb), (other, other_verb) = (_event(entity, choose) for entity in message.entities)
    place = _place(message, choose)
    rest = choose([["und", *other, other_verb], [",", "während", *other, other_verb]])
    plain = [*subject, verb, *place, *rest]
    return choose([plain, [*place, verb, *subject, *rest]]) if place else plain


def _both(message: Scene, case: str, choose: Choose) -> Phrase:
    first, second = (_noun_phrase(entity, case, choose) for entity in message.entities)
    return [*first, "und", *second]


def _event(entity: Entity, choose: Choose) -> tuple[Phrase, Word]:
    return _noun_phrase(entity, "nominative", choose), _verb(entity.action, entity, choose)


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    if message.relation == "hold":
        return _noun_phrase(message.entities[1], "accusative", choose)
    target = _noun_phrase(message.entities[1], "dative", choose)
    return [Word(PREPOSITIONS[message.relation], message.relation), *target]


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    *function_words, noun = choose(PLACES[message.place]).split()
    return [*function_words, Word(noun, message.place)]


def _verb(action: str, subject: Entity, choose: Choose) -> Word:
    animal_eats = action == "eat" and subject.noun in ANIMALS
    singular, plural = choose(_EATING_ANIMAL if animal_eats else VERBS[action]).split()
    return Word(singular if subject.count == 1 else plural, action)


def _noun_phrase(entity: Entity, case: str, choose: Choose) -> Phrase:
    attributes = [entity.size] if entity.garment else [entity.size, entity.colour]
    phrase = _declined(NOUNS[entity.noun], entity.noun, entity, attributes, case, choose)
    if entity.count > 1:
        phrase = [Word(NUMERALS[entity.count], str(entity.count)), *phrase]
    if entity.garment is None:
        return phrase
    forms = GARMENTS[entity.garment]
    clothes = _declined(forms, entity.garment, entity, [entity.colour], "dative", choose)
    return [*phrase, "in", *clothes]


def _declined(
    forms: tuple[str, ...],
    concept: str,
    entity: Entity,
    attributes: list[str | None],
    case: str,
    choose: Choose,
) -> Phrase:
    """Decline adjectives and noun; the singular has the indefinite article, the plural none."""
    gender, nominative, oblique, plural, dative_plural = choose(forms).split()
    if entity.count == 1:
        article, ending = [_ARTICLES[case][gender]], _SINGULAR_ENDINGS[case][gender]
        noun = nominative if case == "nominative" else oblique
    else:
        article, ending = [], _PLURAL_ENDINGS[case]
        noun = dative_plural if case == "dative" else plural
    adjectives = [Word(ADJECTIVES[a] + ending, a) for a in attributes if a is not None]
    return [*article, *adjectives, Word(noun, concept, entity.number)]


GRAMMAR = {"clause": clause, "together": together, "events": events}
