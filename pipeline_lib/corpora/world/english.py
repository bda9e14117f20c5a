"""English sentences."""

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word

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


def clause(message: Scene, choose: Choose) -> Phrase:
    """Say what one entity is like, does, and how it stands to a thing."""
    subject, action, place = message.entities[0], predicate(message), _place(message, choose)
    phrase, rest = _noun_phrase(subject, choose), _relation(message, choose)
    to_be = _to_be(subject)
    if action is None:
        forms = [[*phrase, *rest, *place], ["there", to_be, *phrase, *rest, *place]]
        fronted = [*place, "there", to_be, *phrase, *rest]
    else:
        verb = Word(choose(VERBS[action]), action)
        forms = [[*phrase, to_be, verb, *rest, *place], [*phrase, verb, *rest, *place]]
        fronted = [*place, ",", *phrase, to_be, verb, *rest]
    return choose([*forms, fronted] if place else forms)


def together(message: Scene, choose: Choose) -> Phrase:
    """Say that two entities are there."""
    first, second = message.entities
    place = _place(message, choose)
    both = [*_noun_phrase(first, choose), "and", *_noun_phrase(second, choose)]
    forms = [[*both, *place], ["the", "picture", "shows", *both, *place]]
    return choose([*forms, [*both, "are", *place]] if place else forms)


def events(message: Scene, choose: Choose) -> Phrase:
    """Say what two entities do."""
    first, second = message.entities
    place = _place(message, choose)
    events = [*_event(first, choose), choose(("and", "while")), *_event(second, choose)]
    return choose([[*events, *place], [*place, ",", *events]]) if place else events


def _event(entity: Entity, choose: Choose) -> Phrase:
    verb = Word(choose(VERBS[entity.action]), entity.action)
    return [*_noun_phrase(entity, choose), _to_be(entity), verb]


def _to_be(entity: Entity) -> str:
    return "is" if entity.count == 1 else "are"


def _relation(message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    target = _noun_phrase(message.entities[1], choose)
    if message.relation == "hold":
        return target
    preposition = choose(RELATIONS[message.relation])
    tagged = preposition if " " in preposition else Word(preposition, message.relation)
    return [tagged, *target]


def _place(message: Scene, choose: Choose) -> Phrase:
    if message.place is None:
        return []
    *function_words, noun = choose(PLACES[message.place]).split()
    return [*function_words, Word(noun, message.place)]


def _noun_phrase(entity: Entity, choose: Choose) -> Phrase:
    noun = _noun(NOUNS, entity.noun, entity, choose)
    attributes = [entity.size] if entity.garment else [entity.size, entity.colour]
    phrase = [*_adjectives(attributes, choose), noun]
    phrase = [*_determiner(entity, phrase[0].text), *phrase]
    if entity.garment is None:
        return phrase
    clothes = _noun(GARMENTS, entity.garment, entity, choose)
    article = ["a"] if entity.count == 1 else []
    return [*phrase, "in", *article, *_adjectives([entity.colour], choose), clothes]


def _determiner(entity: Entity, next_word: str) -> Phrase:
    if entity.count > 1:
        return [Word(NUMERALS[entity.count], str(entity.count))]
    return ["an" if next_word[0] in "aeiou" else "a"]


def _noun(table: dict[str, tuple[str, ...]], concept: str, entity: Entity, choose: Choose) -> Word:
    singular, plural = choose(table[concept]).split()
    return Word(singular if entity.count == 1 else plural, concept, entity.number)


def _adjectives(concepts: list[str | None], choose: Choose) -> list[Word]:
    return [Word(choose(ADJECTIVES[c]), c) for c in concepts if c is not None]


GRAMMAR = {"clause": clause, "together": together, "events": events}
