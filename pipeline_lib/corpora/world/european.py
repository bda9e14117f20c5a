"""The parts of sentences in European languages; each is a module with these names.

``FORMS``
    The forms of sentences (``patterns``), of the parts below.
``NOUNS``, ``GARMENTS``, ``ADJECTIVES``, ``NUMERALS``
    Entries for ``inflect``: alternatives by concept, numerals by count.
``RELATIONS``, ``PLACES``, ``CONJUNCTIONS``, ``WEARING``
    Alternatives for prepositions by relation, for places (the last word carries the meaning), and
    for what joins two events; the preposition before clothes.
``verbs(action, subject)``
    Alternatives, each ``singular / plural`` or one form for both; the last word carries the
    meaning. For the part BE the action is ``be``.
``inflect(noun, adjectives, numeral, role)``
    The noun phrase, inflected and in order, with an article where the language has one. The lists
    can be empty. The role is ``subject``, ``seen``, ``worn``, or the relation to the subject.
``SANDHI``
    Regular expressions and replacements that change words by their neighbours.
"""

from functools import partial
from types import ModuleType

from pipeline_lib.corpora.world.messages import predicate
from pipeline_lib.corpora.world.patterns import Language
from pipeline_lib.corpora.world.scenes import Entity, Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Word, spaced, tagged_last


def language(grammar: ModuleType) -> Language:
    """Return the language of a module."""
    parts = {name: partial(part, grammar) for name, part in _PARTS.items()}
    return Language(grammar.FORMS, parts, partial(spaced, sandhi=grammar.SANDHI))


def _noun_phrase(
    index: int, role: str, grammar: ModuleType, message: Scene, choose: Choose
) -> Phrase:
    entity = message.entities[index]
    if entity.garment is None:
        return _inflected(role, [entity.size, entity.colour], entity, grammar, choose)
    wearer = _inflected(role, [entity.size], entity, grammar, choose)
    clothes = _inflected("worn", [entity.colour], entity, grammar, choose)
    return [*wearer, grammar.WEARING, *clothes]


def _inflected(
    role: str, attributes: list[str | None], entity: Entity, grammar: ModuleType, choose: Choose
) -> Phrase:
    worn = role == "worn"
    table, concept = (grammar.GARMENTS, entity.garment) if worn else (grammar.NOUNS, entity.noun)
    noun = Word(choose(table[concept]), concept, entity.number)
    adjectives = [Word(choose(grammar.ADJECTIVES[a]), a) for a in attributes if a]
    counted = entity.count > 1 and not worn
    numeral = [Word(grammar.NUMERALS[entity.count], str(entity.count))] if counted else []
    return grammar.inflect(noun, adjectives, numeral, role)


def _verb(index: int, grammar: ModuleType, message: Scene, choose: Choose) -> Phrase:
    action = predicate(message, index)
    return tagged_last(_conjugated(action, message.entities[index], grammar, choose), action)


def _be(index: int, grammar: ModuleType, message: Scene, choose: Choose) -> Phrase:
    return [_conjugated("be", message.entities[index], grammar, choose)]


def _conjugated(action: str, subject: Entity, grammar: ModuleType, choose: Choose) -> str:
    forms = choose(grammar.verbs(action, subject)).split(" / ")
    return forms[0] if subject.count == 1 else forms[-1]


def _relation(grammar: ModuleType, message: Scene, choose: Choose) -> Phrase:
    if message.relation is None:
        return []
    target = _noun_phrase(1, message.relation, grammar, message, choose)
    if message.relation == "hold":
        return target
    preposition = choose(grammar.RELATIONS[message.relation])
    # Of several words, none by itself means the relation.
    return [preposition if " " in preposition else Word(preposition, message.relation), *target]


def _place(grammar: ModuleType, message: Scene, choose: Choose) -> Phrase:
    place = message.place
    return tagged_last(choose(grammar.PLACES[place]), place) if place else []


def _conjunction(grammar: ModuleType, message: Scene, choose: Choose) -> Phrase:
    return [choose(grammar.CONJUNCTIONS)]


_PARTS = {
    "SUBJECT": partial(_noun_phrase, 0, "subject"),
    "SEEN": partial(_noun_phrase, 0, "seen"),
    "BE": partial(_be, 0),
    "VERB": partial(_verb, 0),
    "OTHER": partial(_noun_phrase, 1, "subject"),
    "OTHER_SEEN": partial(_noun_phrase, 1, "seen"),
    "OTHER_BE": partial(_be, 1),
    "OTHER_VERB": partial(_verb, 1),
    "RELATION": _relation,
    "PLACE": _place,
    "CONJUNCTION": _conjunction,
}
