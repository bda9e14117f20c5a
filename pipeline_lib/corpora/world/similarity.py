"""Pairs of sentences graded by how much of their meaning they share."""

import random
from collections.abc import Container
from dataclasses import replace

from pipeline_lib.corpora.world.languages import say
from pipeline_lib.corpora.world.messages import sample_message
from pipeline_lib.corpora.world.scenes import Scene, facts, fresh_scene
from pipeline_lib.corpora.world.wording import Choose

HIGHEST = 5
GRADES = HIGHEST + 1
Pair = tuple[float, str, str]


def similarity(first: Scene, second: Scene) -> float:
    """Grade two messages from 0 (nothing in common) to 5 (the same).

    Five times the Jaccard index of the sets of facts that they state (:func:`scenes.facts`):
    which things there are, how many, their properties, the relation, the place.
    """
    one, other = facts(first), facts(second)
    return HIGHEST * len(one & other) / len(one | other)


def sample_graded_pairs(
    count: int, rng: random.Random, choose: Choose, taken: Container[str], seen: set[Scene]
) -> list[Pair]:
    """Draw pairs of differing English sentences, as many of each rounded grade.

    Args:
        count: A multiple of six, the number of grades.
        rng: Draws scenes and messages.
        choose: Draws the wording.
        taken: Sentences that must not be used.
        seen: Scenes that must not be used; those that are used are added.
    """
    missing = {grade: count // GRADES for grade in range(GRADES)}
    pairs: list[Pair] = []
    while any(missing.values()):
        first, second = _sample_messages(rng, seen)
        score = similarity(first, second)
        sentences = [say(message, "en", choose).text for message in (first, second)]
        usable = sentences[0] != sentences[1] and not any(text in taken for text in sentences)
        if usable and missing[round(score)]:
            missing[round(score)] -= 1
            pairs.append((score, *sentences))
    rng.shuffle(pairs)
    return pairs


def _sample_messages(rng: random.Random, seen: set[Scene]) -> tuple[Scene, Scene]:
    """Draw a message, and one about the same scene, about a changed or about another one."""
    scene, other = fresh_scene(rng, seen), fresh_scene(rng, seen)
    first = sample_message(scene, rng)
    second = rng.choice(
        [
            first,
            replace(first, place=None),
            sample_message(scene, rng),
            sample_message(replace(scene, place=other.place), rng),
            sample_message(other, rng),
        ]
    )
    return first, second
