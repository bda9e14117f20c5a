"""The pictures of the corpus: their scenes and captions, before anything is drawn."""

import random
from dataclasses import dataclass

from pipeline_lib.corpora.world.languages import say
from pipeline_lib.corpora.world.messages import sample_messages
from pipeline_lib.corpora.world.scenes import Scene, fresh_scene
from pipeline_lib.corpora.world.wording import Choose, Sentence

CAPTION_LANGUAGES = ("en", "de", "ja")
TRANSLATION_LANGUAGES = ("de", "fr", "cs", "zh")
CAPTIONS_PER_IMAGE = 5


@dataclass(frozen=True)
class Caption:
    """A sentence about an image, what it says, and which caption it translates, if any."""

    language: str
    annotation: str
    position: int
    message: Scene
    sentence: Sentence
    translation_of: str = ""

    @property
    def name(self) -> str:
        """Return what names the caption among those of its image."""
        return f"{self.language}/{self.annotation}/{self.position}"


@dataclass(frozen=True)
class Picture:
    """An image to draw, named by its file, and its captions."""

    name: str
    split: str
    scene: Scene
    captions: tuple[Caption, ...]


def sample_pictures(
    images: dict[str, int], rng: random.Random, choose: Choose, seen: set[Scene]
) -> list[Picture]:
    """Draw scenes, all different, and describe them.

    Args:
        images: Number of images per split.
        rng: Draws scenes and what is said of them.
        choose: Draws the wording.
        seen: Scenes that must not be used; those that are used are added.
    """
    splits = [split for split, count in images.items() for _ in range(count)]
    scenes = [fresh_scene(rng, seen) for _ in splits]
    return [
        Picture(f"{number:06d}.jpg", split, scene, _sample_captions(scene, rng, choose))
        for number, (split, scene) in enumerate(zip(splits, scenes, strict=True))
    ]


def _sample_captions(scene: Scene, rng: random.Random, choose: Choose) -> tuple[Caption, ...]:
    """Describe a scene independently in some languages; translate one English caption."""
    captions = [
        Caption(language, "caption", position, message, say(message, language, choose))
        for language in CAPTION_LANGUAGES
        for position, message in enumerate(sample_messages(scene, CAPTIONS_PER_IMAGE, rng))
    ]
    source = rng.choice([caption for caption in captions if caption.language == "en"])
    translations = [
        Caption(
            language,
            "translation",
            0,
            source.message,
            say(source.message, language, choose),
            source.name,
        )
        for language in TRANSLATION_LANGUAGES
    ]
    return (*captions, *translations)
