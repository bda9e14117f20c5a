"""French sentences: two genders, agreement of adjectives and participles, elision before vowels."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline_lib.corpora.world.concepts import SIZES
from pipeline_lib.corpora.world.scenes import Entity
from pipeline_lib.corpora.world.wording import Phrase, Word

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
# Gender, singular: "en" takes it for several people too.
GARMENTS = {
    "shirt": ("f chemise",),
    "coat": ("m manteau", "f veste"),
    "dress": ("f robe",),
}
# Masculine and feminine singular, masculine and feminine plural.
ADJECTIVES = {
    "red": ("rouge rouge rouges rouges",),
    "blue": ("bleu bleue bleus bleues",),
    "green": ("vert verte verts vertes",),
    "yellow": ("jaune jaune jaunes jaunes",),
    "purple": ("violet violette violets violettes",),
    "black": ("noir noire noirs noires",),
    "white": ("blanc blanche blancs blanches",),
    "brown": ("brun brune bruns brunes",),
    "grey": ("gris grise gris grises",),
    "big": ("grand grande grands grandes",),
    "small": ("petit petite petits petites",),
}
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
RELATIONS = {
    "next_to": ("à côté de",),
    "in_front_of": ("devant",),
    "behind": ("derrière",),
    "under": ("sous",),
    "on": ("sur",),
}
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
CONJUNCTIONS = ("et", "tandis que")
WEARING = "en"
# Elision before an indefinite article.
SANDHI = ((r"\b(d|qu)e (?=une?\b)", r"\1'"),)
FORMS = {
    "presence": "PLACE SUBJECT RELATION: SUBJECT [RELATION] [PLACE]"
    " | il y a SUBJECT [RELATION] [PLACE] | PLACE , il y a SUBJECT [RELATION]",
    "action": "PLACE SUBJECT RELATION VERB: SUBJECT VERB [RELATION] [PLACE]"
    " | PLACE , SUBJECT VERB [RELATION]",
    "together": "SUBJECT OTHER PLACE: SUBJECT et OTHER [PLACE]"
    " | il y a SUBJECT et OTHER [PLACE] | SUBJECT et OTHER sont PLACE",
    "events": "SUBJECT VERB OTHER OTHER_VERB PLACE CONJUNCTION:"
    " SUBJECT VERB CONJUNCTION OTHER OTHER_VERB [PLACE]"
    " | PLACE , SUBJECT VERB CONJUNCTION OTHER OTHER_VERB",
}


def verbs(action: str, subject: Entity) -> Sequence[str]:
    """Return the verbs, of which that of sitting has a participle that agrees."""
    gender = NOUNS[subject.noun][0][0]
    return _SITTING[gender] if action == "sit" else VERBS[action]


def inflect(noun: Word, adjectives: list[Word], numeral: list[Word], role: str) -> Phrase:
    """Let adjectives agree: the size precedes the noun, the colour follows it."""
    gender, *forms = noun.text.split()
    many = noun.number == "many" and role != "worn"
    column = "mf".index(gender) + 2 * many
    agreed = [replace(word, text=word.text.split()[column]) for word in adjectives]
    if role == "worn":
        return [Word(*forms, noun.concept), *agreed]
    sizes = [word for word in agreed if word.concept in SIZES]
    determiner = numeral or [_ARTICLES[gender]]
    return [*determiner, *sizes, replace(noun, text=forms[many]), *agreed[len(sizes) :]]
