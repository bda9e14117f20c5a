"""What a model's sentences and images went through before they reached it."""

from collections.abc import Mapping

from pipeline_lib.settings.images import ImageFeatures
from pipeline_lib.settings.strict import Language, Strict
from pipeline_lib.settings.text import Tokenizer


class Preprocessing(Strict):
    """How sentences become tokens and photos become features; saved beside a model.

    Attributes:
        tokenizers: By language of the model.
        extractor: Settings of the features; its data set and folder say where they came from.
    """

    tokenizers: dict[Language, Tokenizer]
    extractor: ImageFeatures


def preprocessing_of(
    languages: list[str], tokenizers: Mapping[str, Tokenizer], extractor: ImageFeatures
) -> Preprocessing:
    """Return the settings that a model of these languages needs."""
    return Preprocessing(
        tokenizers={language: tokenizers[language] for language in languages}, extractor=extractor
    )
