"""Parallel text for a translator, from scenes that no other part of the corpus shows."""

import random
from collections.abc import Set

from pipeline_lib.corpora.world.languages import say
from pipeline_lib.corpora.world.messages import sample_message
from pipeline_lib.corpora.world.scenes import Scene, fresh_scene
from pipeline_lib.corpora.world.wording import Choose

LANGUAGES = ("en", "de", "fr", "cs", "zh")

Line = dict[str, str]
"""The same message by language."""


def sample_line(rng: random.Random, choose: Choose, seen: set[Scene]) -> Line:
    """Draw one message about a fresh scene and say it in every language."""
    message = sample_message(fresh_scene(rng, seen), rng)
    return {language: say(message, language, choose).text for language in LANGUAGES}


def sample_parallel_lines(
    sizes: dict[str, int], rng: random.Random, choose: Choose, held_out: Set[str], seen: set[Scene]
) -> dict[str, list[Line]]:
    """Draw lines for each split; no training line has a sentence of another split.

    Args:
        sizes: Lines per split: train, val and test.
        rng: Draws scenes and messages.
        choose: Draws the wording.
        held_out: More sentences, in any language, that must not be in a training line.
        seen: Scenes that must not be used; those that are used are added.
    """
    val, test = (
        [sample_line(rng, choose, seen) for _ in range(sizes[split])] for split in ("val", "test")
    )
    forbidden = {*held_out, *(text for line in (*val, *test) for text in line.values())}
    train: list[Line] = []
    while len(train) < sizes["train"]:
        line = sample_line(rng, choose, seen)
        if forbidden.isdisjoint(line.values()):
            train.append(line)
    return {"train": train, "val": val, "test": test}
