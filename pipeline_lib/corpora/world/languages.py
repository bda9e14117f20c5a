"""The languages of the world: one message in, one sentence out."""

from pipeline_lib.corpora.world import (
    chinese,
    czech,
    english,
    european,
    french,
    german,
    japanese,
)
from pipeline_lib.corpora.world.messages import form
from pipeline_lib.corpora.world.patterns import Language, realise
from pipeline_lib.corpora.world.scenes import Scene
from pipeline_lib.corpora.world.wording import Choose, Sentence, unspaced

LANGUAGES = {
    "cs": european.language(czech),
    "de": european.language(german),
    "en": european.language(english),
    "fr": european.language(french),
    "ja": Language(japanese.FORMS, japanese.PARTS, unspaced),
    "zh": Language(chinese.FORMS, chinese.PARTS, unspaced),
}


def say(message: Scene, language: str, choose: Choose) -> Sentence:
    """Say a message in a language, which must have all of its words."""
    spoken = LANGUAGES[language]
    return spoken.write(realise(spoken.forms[form(message)], spoken.parts, message, choose))
