"""The objectives that a recipe may train: one class of keys each.

An objective is added here and, under the same name, in training/objectives.py. A class may say what
else of a recipe it contradicts (``problems``).
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline_lib.settings.strict import NONE, Count, Rate, Strict, Whole

Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]


class Alternating(Strict):
    """One set and language per update, drawn at random (Kádár et al. 2019, §2); VSE with one.

    Attributes:
        caption_caption_probability: Share of updates that rank captions against captions.
        caption_caption_below_loss: They begin once the mean image–caption loss per pair since the
            last validation is below this, or at once (``none``).
    """

    caption_caption_probability: Share
    caption_caption_below_loss: Rate | Literal["none"]


class Joint(Strict):
    """All languages in each update, as tuples of an image's captions (Calixto et al. 2017).

    Attributes:
        beta: Weight of image–sentence terms; sentence–sentence terms have the rest.
        language_pairs: How often a pair of languages counts among sentence–sentence terms: once,
            or in both orders, by which they weigh twice as much.
        contrastive_terms: Negatives per query: all of the batch, or so many drawn from it anew
            each time.
    """

    beta: Share
    language_pairs: Literal["once", "both_orders"]
    contrastive_terms: Count | Literal["all"]


class Mixed(Strict):
    """Batches mix the captions of all languages (Mohammadshahi et al. 2019).

    Attributes:
        lexicon_protocol: Which of the lexicon's two training folds is learnt from: the paper's,
            which repeats test words, or the clean one.
        alignment_every_updates: Updates between two steps of the RCSLS loss (T), or ``never``.
        alignment_learning_rate: Size of such a step.
        alignment_neighbours: Nearest neighbours in that loss, k.
    """

    learns_lexicon: ClassVar[bool] = True
    compares_sentences: ClassVar[bool] = False

    lexicon_protocol: Literal["paper", "clean"]
    alignment_every_updates: Count | Literal["never"]
    alignment_learning_rate: Rate
    alignment_neighbours: Count

    @property
    def aligns_words(self) -> bool:
        """Whether training moves words towards their translations."""
        return self.alignment_every_updates != "never"

    @property
    def fits_maps(self) -> bool:
        """Whether the text encoder has orthogonal maps, which the lexicon fits."""
        return getattr(self, "orthogonal_map", False)

    def problems(self) -> Iterator[str]:
        """Yield what the keys contradict."""
        if self.aligns_words and not self.fits_maps:
            yield "alignment_every_updates: needs orthogonal_map: true"
        fitted = self.fits_maps and self.initial == NONE and len(self.languages) > 1
        if self.lexicon == NONE and (fitted or self.aligns_words):
            yield "lexicon: orthogonal_map needs one, which the maps are fitted to"


class TwoBranch(Strict):
    """Some captions of each image in every language per update (EmbN, PARALLEL-EmbN, MULE).

    Attributes:
        captions_per_image: Captions of an image and language in a batch.
        caption_image_weight: Of caption→image violations.
        image_caption_weight: Of image→caption violations.
        same_language_weight: Of violations between captions of one language.
        sentence_neighbourhood_weight: Of those between sentence vectors of two languages.
        word_neighbourhood_weight: Of those between averaged universal word vectors.
        classifier_weight: Of the adversarial language classifier's loss.
        anchor_weight: Of half the squared distance of a language's words from what they started
            from, averaged over languages.
        pretraining_epochs: Epochs before, in which only the universal layer learns, from sentence
            pairs; their validations count for nothing.
    """

    batch_of: ClassVar[str] = "photos"

    captions_per_image: Count
    caption_image_weight: Weight
    image_caption_weight: Weight
    same_language_weight: Weight
    sentence_neighbourhood_weight: Weight
    word_neighbourhood_weight: Weight
    classifier_weight: Weight
    anchor_weight: Weight
    pretraining_epochs: Whole

    def problems(self) -> Iterator[str]:
        """Yield what the keys contradict."""
        for key, needed in (("loss", "hinge"), ("text_encoder", "recurrent")):
            if getattr(self, key) != needed:
                yield f"{key}: the objective {self.objective} needs {needed}"
        if getattr(self, "universal_dim", NONE) == NONE and self.pretraining_epochs:
            yield "pretraining_epochs: there is no universal layer (universal_dim: none)"
        if self.anchor_weight and getattr(self, "optimizer", "") == "adamw":
            yield (
                "anchor_weight: expected 0 with optimizer: adamw, which moves only the words that "
                f"an update reads; found {self.anchor_weight}"
            )


class Multiview(Strict):
    """Photos and captions of all languages, each two of them contrasted.

    Attributes:
        caption_caption_weight: Of the terms between captions of two languages; those between
            photos and captions weigh 1.
        text_photos: Photos per update of which captions alone are known, if the pair set has such.
    """

    reads_text_alone: ClassVar[bool] = True
    batch_of: ClassVar[str] = "photos"

    caption_caption_weight: Weight
    text_photos: Whole


OBJECTIVES: dict[str, type[Strict]] = {
    "alternating": Alternating,
    "joint": Joint,
    "mixed": Mixed,
    "multiview": Multiview,
    "two_branch": TwoBranch,
}
