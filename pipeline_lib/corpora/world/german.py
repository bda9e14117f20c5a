"""German sentences: three genders, three cases, mixed and strong adjective endings."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline_lib.corpora.world.concepts import ANIMALS
from pipeline_lib.corpora.world.scenes import Entity
from pipeline_lib.corpora.world.wording import Phrase, Word

NUMERALS = {2: "zwei", 3: "drei", 4: "vier"}
# By role; all others take the dative.
_CASES = {"subject": "nominative", "seen": "accusative", "hold": "accusative"}
_ARTICLES = {
    "nominative": {"m": "ein", "f": "eine", "n": "ein"},
    "accusative": {"m": "einen", "f": "eine", "n": "ein"},
    "dative": {"m": "einem", "f": "einer", "n": "einem"},
}
_ENDINGS = {
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
    "red": ("rot",),
    "blue": ("blau",),
    "green": ("grün",),
    "yellow": ("gelb",),
    "purple": ("violett",),
    "black": ("schwarz",),
    "white": ("weiß",),
    "brown": ("braun",),
    "grey": ("grau",),
    "big": ("groß",),
    "small": ("klein",),
}
VERBS = {
    "run": ("rennt / rennen", "läuft / laufen"),
    "walk": ("geht / gehen", "spaziert / spazieren"),
    "sit": ("sitzt / sitzen",),
    "stand": ("steht / stehen",),
    "jump": ("springt / springen", "hüpft / hüpfen"),
    "sleep": ("schläft / schlafen",),
    "eat": ("isst / essen",),
    "read": ("liest / lesen",),
    "dance": ("tanzt / tanzen",),
    "wave": ("winkt / winken",),
    "fly": ("fliegt / fliegen",),
    "hold": ("hält / halten",),
}
_EATING_ANIMAL = ("frisst / fressen",)
RELATIONS = {
    "next_to": ("neben",),
    "in_front_of": ("vor",),
    "behind": ("hinter",),
    "under": ("unter",),
    "on": ("auf",),
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
CONJUNCTIONS = ("und", ", während")
WEARING = "in"
SANDHI = ()
FORMS = {
    "presence": "PLACE SUBJECT RELATION SEEN: SUBJECT [RELATION] [PLACE]"
    " | es gibt SEEN [RELATION] [PLACE] | PLACE gibt es SEEN [RELATION]",
    "action": "PLACE SUBJECT RELATION VERB: SUBJECT VERB [RELATION] [PLACE]"
    " | PLACE VERB SUBJECT [RELATION]",
    "together": "PLACE SUBJECT OTHER SEEN OTHER_SEEN: SUBJECT und OTHER [PLACE]"
    " | das Bild zeigt SEEN und OTHER_SEEN [PLACE] | PLACE sind SUBJECT und OTHER",
    "events": "SUBJECT VERB OTHER OTHER_VERB PLACE CONJUNCTION:"
    " SUBJECT VERB [PLACE] CONJUNCTION OTHER OTHER_VERB"
    " | PLACE VERB SUBJECT CONJUNCTION OTHER OTHER_VERB",
}


def verbs(action: str, subject: Entity) -> Sequence[str]:
    """Return the verbs, of which people and animals have different ones for eating."""
    animal_eats = action == "eat" and subject.noun in ANIMALS
    return _EATING_ANIMAL if animal_eats else VERBS[action]


def inflect(noun: Word, adjectives: list[Word], numeral: list[Word], role: str) -> Phrase:
    """Decline adjectives and noun; the singular has the indefinite article."""
    gender, nominative, oblique, plural, dative_plural = noun.text.split()
    case = _CASES.get(role, "dative")
    if noun.number == "one":
        determiner: Phrase = [_ARTICLES[case][gender]]
        ending, form = _ENDINGS[case][gender], nominative if case == "nominative" else oblique
    else:
        determiner = [*numeral]
        ending, form = _PLURAL_ENDINGS[case], dative_plural if case == "dative" else plural
    declined = [replace(adjective, text=adjective.text + ending) for adjective in adjectives]
    return [*determiner, *declined, replace(noun, text=form)]
