"""params.yaml: translators that the graph trains, and data sets that a translator makes."""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from pipeline_lib.settings.corpora import Annotation
from pipeline_lib.settings.strict import Count, Language, Name, Precision, Rate, Seed, Strict

Share = Annotated[float, Field(ge=0, lt=1)]


class TranslatorRecipe(Strict):
    """What all architectures of a trained translator share.

    Attributes:
        dataset: Data set whose human translations it learns from: split ``train``, validated on
            ``val``, measured on the others.
        source_language: Language it reads.
        target_language: Language it writes.
        exclude_images: Data set whose validation and test images it must not see, or ``none``:
            their sentences are left out of training and validation.
        exclude_pairs: Pair set whose images it must not see either, or ``none``: one of people's
            captions over the photos that recipes learn from with its translations.
        subwords: Size of the subword vocabulary that both languages share.
        dropout: Share of units that is dropped in training.
        label_smoothing: Share of the target probability that all subwords share equally.
        learning_rate: Highest rate of Adam, reached at the end of the warm-up; after it the rate
            falls with the inverse square root of the update.
        warmup_updates: Updates in which the rate rises linearly.
        clip_norm: Bound on the gradient's norm, or ``none``.
        batch_tokens: A batch has at most so many tokens of either language, padding included.
        max_updates: Training ends after so many updates at the latest.
        validate_every_updates: Updates between two validations (BLEU of greedy translations).
        patience_validations: Stop after so many validations without a new best.
        averaged_checkpoints: The final weights are the mean of those of the so many best
            validations.
        beam: Hypotheses that the search keeps.
        length_normalization: Exponent alpha of the length penalty (Wu et al. 2016, Eq. 14).
        n_best: Translations per sentence in n-best lists.
        precision: Arithmetic of matrix products in training; search is ``f32``, or all is ``f64``.
        seed: Of initial weights, order of batches and dropout.
    """

    dataset: Name
    source_language: Language
    target_language: Language
    exclude_images: Name
    exclude_pairs: Name
    subwords: Count
    dropout: Share
    label_smoothing: Share
    learning_rate: Rate
    warmup_updates: Count
    clip_norm: Rate | Literal["none"]
    batch_tokens: Count
    max_updates: Count
    validate_every_updates: Count
    patience_validations: Count
    averaged_checkpoints: Count
    beam: Count
    length_normalization: Annotated[float, Field(ge=0)]
    n_best: Count
    precision: Precision
    seed: Seed


class TransformerRecipe(TranslatorRecipe):
    """A Transformer (Vaswani et al. 2017) with normalisation before each sublayer.

    Attributes:
        layers: Of the encoder, and of the decoder.
        dim: Size of a position's vector.
        feed_forward: Size of the hidden layer of a feed-forward sublayer.
        heads: Attention heads; they divide ``dim`` among them.
    """

    architecture: Literal["transformer"]
    layers: Count
    dim: Count
    feed_forward: Count
    heads: Count

    @field_validator("heads")
    @classmethod
    def _divide(cls, heads: int, other: ValidationInfo) -> int:
        dim = other.data.get("dim", heads)
        if dim % heads:
            raise PydanticCustomError("heads", "a number that divides dim, {dim}", {"dim": dim})
        return heads


class AttentionGRURecipe(TranslatorRecipe):
    """The GRU with attention of Bahdanau et al. 2015.

    Attributes:
        word_dim: Size of subword vectors (m in the paper) and of the maxout layer (l).
        hidden_dim: Size of the encoder's two states and of the decoder's (n), and of the
            attention's hidden layer (n').
    """

    architecture: Literal["gru_attention"]
    word_dim: Count
    hidden_dim: Count


AnyTranslator = Annotated[
    TransformerRecipe | AttentionGRURecipe, Field(discriminator="architecture")
]


class _Translation(Strict):
    """A data set with captions of one language translated into another, beside all it had.

    Attributes:
        dataset: Data set to translate, or another translation, which this one adds to.
        source_language: Language of the captions to translate.
        annotation: Their kind.
        target_language: Language of the translations, which are of the kind ``machine``.
        model: Folder or file that the engine reads.
    """

    dataset: Name
    source_language: Language
    annotation: Annotation
    target_language: Language
    model: str


class OwnTranslation(_Translation):
    """By a translator of this graph; ``model`` is ``data/translators/<name>``."""

    engine: Literal["translator"]


class CTranslate2Translation(_Translation):
    """By a model in CTranslate2's format, whose folder is ``model``.

    Attributes:
        beam: Hypotheses that the search keeps.
        length_penalty: CTranslate2's exponent of the length.
    """

    engine: Literal["ctranslate2"]
    beam: Count
    length_penalty: Annotated[float, Field(ge=0)]


class FileTranslation(_Translation):
    """Ready translations; ``model`` is a tab-separated file with ``source`` and ``translation``."""

    engine: Literal["file"]


Translation = Annotated[
    OwnTranslation | CTranslate2Translation | FileTranslation, Field(discriminator="engine")
]
