"""The languages of the world: one message in, one sentence out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline_lib.corpora.world import chinese, czech, english, french, german, japanese
from pipeline_lib.corpora.world.messages import form
from pipeline_lib.corpora.world.scenes import Scene
from pipeline_lib.corpora.world.wording import Choose, Phrase, Sentence, spaced, unspaced


@dataclass(frozen=True)
class Language:
    """How a language phrases each form of message, and how it is written."""

    grammar: Mapping[str, Callable[[Scene, Choose], Phrase]]
    write: Callable[[Phrase], Sentence]


LANGUAGES = {
    "cs": Language(czech.GRAMMAR, spaced),
    "de": Language(german.GRAMMAR, spaced),
    "en": Language(english.GRAMMAR, spaced),
    "fr": Language(french.GRAMMAR, spaced),
    "ja": Language(japanese.GRAMMAR, unspaced),
    "zh": Language(chinese.GRAMMAR, unspaced),
}


def say(message: Scene, language: str, choose: Choose) -> Sentence:
    """Say a message in a language, which must have all of its words."""
    spoken = LANGUAGES[language]
    return spoken.write(spoken.grammar[form(message)](message, choose))
