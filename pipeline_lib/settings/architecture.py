"""What a joint space is: its encoders, their sizes, and the similarity between their vectors.

Nothing here says how it learns, so that a saved model loads by these keys alone. A text encoder or
an image head is added by a class of its keys in :data:`TEXT_ENCODERS` or :data:`IMAGE_HEADS`, and
by its layers under the same name in models/encoders.py.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Literal, TypeVar

from pydantic import Field, create_model

from pipeline_lib.settings.strict import (
    NONE,
    Count,
    Language,
    Name,
    Precision,
    Several,
    Strict,
    choose,
)

Dropout = Annotated[float, Field(ge=0, lt=1)]
T = TypeVar("T", bound=Strict)

OF_TWO_SIDES = {"order", "squared_order"}
"""Those of the similarities (:class:`Architecture`) whose value changes when sides are swapped."""


class Architecture(Strict):
    """What all joint spaces have, whatever their encoders.

    Attributes:
        languages: Languages that it embeds.
        vocabulary: One table for all languages (same form, same vector) or one per language.
        word_dim: Size of word vectors.
        tune_words: Words learn with the rest; else they stay what they are.
        text_encoder: How a sentence becomes a vector (:data:`TEXT_ENCODERS`); has keys of its own.
        image_head: How features become a vector (:data:`IMAGE_HEADS`); has keys of its own.
        embed_dim: Size of the joint space.
        similarity: Of two vectors of the joint space (models.similarity.SIMILARITIES).
        absolute: Vectors of the joint space are their absolute values.
        precision: Arithmetic of the text encoder's matrix products, or of everything (``f64``).
    """

    languages: Several[Language]
    vocabulary: Literal["pooled", "per_language"]
    word_dim: Count
    tune_words: bool
    text_encoder: Name
    image_head: Name
    embed_dim: Count
    similarity: Literal["cosine", "euclidean", "order", "squared_order"]
    absolute: bool
    precision: Precision

    @property
    def text_width(self) -> int:
        """Numbers in the widest layer of a sentence, by which cores are given.

        An encoder with a wider one than the joint space overrides it.
        """
        return self.embed_dim


class RecurrentText(Strict):
    """Words, a map into one space, a recurrent layer, and a projection of its last state.

    Attributes:
        orthogonal_map: Words of every language but the first pass through an orthogonal map into
            the first one's space.
        universal_dim: Size of the layer that maps each language's words into one space, or
            ``none``.
        recurrent: Layer that reads a sentence.
        recurrent_sharing: One for all languages, or one each.
        hidden_dim: Size of its state, which is the sentence.
        projection: Affine map from that state into the joint space: one for all languages, one
            each, or ``none`` (then ``hidden_dim`` is ``embed_dim``).
        sentence_dropout: Share of the final state that is dropped in training.
    """

    orthogonal_map: bool
    universal_dim: Count | Literal["none"]
    recurrent: Literal["gru", "lstm"]
    recurrent_sharing: Literal["shared", "per_language"]
    hidden_dim: Count
    projection: Literal["none", "shared", "per_language"]
    sentence_dropout: Dropout

    @property
    def text_width(self) -> int:
        """See :class:`Architecture`."""
        return self.hidden_dim

    def problems(self) -> Iterator[str]:
        """Yield what the keys contradict."""
        if self.projection == NONE and self.hidden_dim != self.embed_dim:
            yield (
                f"projection: without one the sentence's hidden_dim is the joint space's "
                f"embed_dim; found {self.hidden_dim} and {self.embed_dim}"
            )


class BagText(Strict):
    """Words whose order plays no part: the mean of their vectors, and what stands out in any.

    Attributes:
        sentence_dropout: Share of the pooled numbers that is dropped in training.
    """

    sentence_dropout: Dropout

    def problems(self) -> Iterator[str]:
        """Yield what the keys contradict."""
        if self.precision == "bf16":
            yield (
                "precision: expected f32 or f64, found bf16, in which recurrent layers multiply: "
                "the text encoder bag has none"
            )


class ResidualImage(Strict):
    """Standardised features through an affine map, and through a network that corrects it.

    Attributes:
        image_crops: Vectors that an image's features hold side by side: training takes any one of
            them, embedding their mean.
        image_hidden_dim: Size of the correction's hidden layer.
        image_dropout: Share of the features, and of the hidden layer, that is dropped in training.
    """

    image_crops: Count
    image_hidden_dim: Count
    image_dropout: Dropout


class MLPImage(Strict):
    """Affine maps with rectified layers between, if any.

    Attributes:
        normalize_features: Scale image features to unit length before the first layer.
        image_hidden_dims: Sizes of hidden layers between features and joint space.
        image_dropout: Share of image features (of the last hidden layer, where there is one) that
            is dropped in training.
    """

    normalize_features: bool
    image_hidden_dims: list[Count]
    image_dropout: Dropout


TEXT_ENCODERS: dict[str, type[Strict]] = {"bag": BagText, "recurrent": RecurrentText}
IMAGE_HEADS: dict[str, type[Strict]] = {"mlp": MLPImage, "residual": ResidualImage}

PARTS = {"text_encoder": TEXT_ENCODERS, "image_head": IMAGE_HEADS}
"""What an architecture names, each with the keys of those that it can be."""


def chosen(
    parts: Mapping[str, Mapping[str, type[T]]], values: Mapping[str, object]
) -> tuple[type[T], ...]:
    """Return the keys of each part that ``values`` name.

    Raises:
        SettingsError: If one of them is none that is registered.
    """
    return tuple(choose(forms, str(values.get(part)), part) for part, forms in parts.items())


@cache
def joined(*forms: type[T]) -> type[T]:
    """Return the form that has the keys of several, the last of which gives it its name."""
    return create_model(forms[-1].__name__, __base__=forms)


def architecture_form(values: Mapping[str, object]) -> type[Architecture]:
    """Return the form of the architecture whose parts ``values`` name."""
    return joined(*chosen(PARTS, values), Architecture)
