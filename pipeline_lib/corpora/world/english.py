"""English sentences."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline_lib.corpora.world.scenes import Entity
from pipeline_lib.corpora.world.wording import Phrase, Word

NUMERALS = {2: "two", 3: "three", 4: "four"}

NOUNS = {
    "man": ("man men", "gentleman gentlemen"),
    "woman": ("woman women", "lady ladies"),
    "boy": ("boy boys",),
    "girl": ("girl girls",),
    "dog": ("dog dogs",),
    "cat": ("cat cats",),
    "rabbit": ("rabbit rabbits", "bunny bunnies"),
    "horse": ("horse horses",),
    "cow": ("cow cows",),
    "sheep": ("sheep sheep",),
    "pig": ("pig pigs",),
    "elephant": ("elephant elephants",),
    "bird": ("bird birds",),
    "duck": ("duck ducks",),
    "ball": ("ball balls",),
    "car": ("car cars", "automobile automobiles"),
    "bus": ("bus buses",),
    "house": ("house houses",),
    "boat": ("boat boats",),
    "bicycle": ("bicycle bicycles", "bike bikes"),
    "umbrella": ("umbrella umbrellas",),
    "table": ("table tables",),
    "chair": ("chair chairs",),
    "bench": ("bench benches",),
    "tent": ("tent tents",),
    "balloon": ("balloon balloons",),
    "box": ("box boxes", "crate crates"),
    "hat": ("hat hats",),
    "guitar": ("guitar guitars",),
    "tree": ("tree trees",),
    "flower": ("flower flowers",),
}
GARMENTS = {
    "shirt": ("shirt shirts",),
    "coat": ("coat coats", "jacket jackets"),
    "dress": ("dress dresses",),
}
ADJECTIVES = {
    "red": ("red",),
    "blue": ("blue",),
    "green": ("green",),
    "yellow": ("yellow",),
    "purple": ("purple", "violet"),
    "black": ("black",),
    "white": ("white",),
    "brown": ("brown",),
    "grey": ("grey",),
    "big": ("big", "large"),
    "small": ("small", "little"),
}
VERBS = {
    "be": ("is / are",),
    "run": ("running",),
    "walk": ("walking", "strolling"),
    "sit": ("sitting",),
    "stand": ("standing",),
    "jump": ("jumping", "leaping"),
    "sleep": ("sleeping", "napping"),
    "eat": ("eating",),
    "read": ("reading",),
    "dance": ("dancing",),
    "wave": ("waving",),
    "fly": ("flying",),
    "hold": ("holding",),
}
RELATIONS = {
    "next_to": ("next to", "beside"),
    "in_front_of": ("in front of",),
    "behind": ("behind",),
    "under": ("under", "underneath"),
    "on": ("on", "on top of"),
}
PLACES = {
    "beach": ("on the beach", "at the beach"),
    "forest": ("in the forest", "in the woods"),
    "street": ("on the street", "on the road"),
    "meadow": ("in the meadow", "on the grass"),
    "kitchen": ("in the kitchen",),
    "snow": ("in the snow",),
    "desert": ("in the desert",),
    "mountains": ("in the mountains",),
    "lake": ("by the lake", "at the lake"),
    "bedroom": ("in the bedroom",),
}
CONJUNCTIONS = ("and", "while")
WEARING = "in"
SANDHI = ((r"\ba (?=[aeiou])", "an "),)
FORMS = {
    "presence": "PLACE SUBJECT RELATION BE: SUBJECT [RELATION] [PLACE]"
    " | there BE SUBJECT [RELATION] [PLACE] | PLACE there BE SUBJECT [RELATION]",
    "action": "PLACE SUBJECT RELATION BE VERB: SUBJECT BE VERB [RELATION] [PLACE]"
    " | SUBJECT VERB [RELATION] [PLACE] | PLACE , SUBJECT BE VERB [RELATION]",
    "together": "PLACE SUBJECT OTHER: SUBJECT and OTHER [PLACE]"
    " | the picture shows SUBJECT and OTHER [PLACE] | SUBJECT and OTHER are PLACE",
    "events": "PLACE VERB SUBJECT BE CONJUNCTION OTHER_VERB OTHER OTHER_BE:"
    " SUBJECT BE VERB CONJUNCTION OTHER OTHER_BE OTHER_VERB [PLACE]"
    " | PLACE , SUBJECT BE VERB CONJUNCTION OTHER OTHER_BE OTHER_VERB",
}


def verbs(action: str, subject: Entity) -> Sequence[str]:
    """Return participles and, for BE, the auxiliary."""
    return VERBS[action]


def inflect(noun: Word, adjectives: list[Word], numeral: list[Word], role: str) -> Phrase:
    """Put the article or the numeral first."""
    singular, plural = noun.text.split()
    if noun.number == "one":
        return ["a", *adjectives, replace(noun, text=singular)]
    return [*numeral, *adjectives, replace(noun, text=plural)]
