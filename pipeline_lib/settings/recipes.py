"""params.yaml: recipes, the rows of the results table.

What all recipes share stands in :class:`Recipe`; the objective that a recipe trains adds its keys.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from pipeline_lib.settings.strict import Count, Language, Name, Precision, Rate, Strict, choose

Share = Annotated[float, Field(ge=0, le=1)]
Dropout = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(ge=0)]


class Recipe(Strict):
    """One published row: a paper's settings with this row's inputs, departures and seeds.

    Attributes:
        paper: Entry of ``papers`` that this recipe starts from.
        dataset: Data set on whose test split it is evaluated.
        pairs: Pair set it learns from.
        features: Extractor whose features it uses.
        more_features: A second one, for pair sets that join two data sets, or ``none``.
        initial: Recipe whose trained weights it starts from (same sizes), or ``none``.
        word_vectors: Entry of ``word_vectors`` that words start from, or ``random``.
        lexicon: Entry of ``lexicons`` that orthogonal maps learn from, or ``none``.
        languages: Languages it learns and is evaluated in.
        seeds: One model each; the row reports their mean and standard deviation.
        tune_words: Words learn with the rest; else they stay what they are.
        word_dim: Size of word vectors.
        orthogonal_map: Words of every language but the first pass through an orthogonal map into
            the first one's space.
        universal_dim: Size of the layer that maps each language's words into one space, or
            ``none``.
        recurrent: Layer that reads a sentence.
        recurrent_sharing: One for all languages, or one each.
        hidden_dim: Size of its state, which is the sentence.
        projection: Affine map from that state into the joint space: one for all languages, one
            each, or ``none`` (then ``hidden_dim`` is ``embed_dim``).
        image_hidden_dims: Sizes of hidden layers between features and joint space.
        embed_dim: Size of the joint space.
        image_dropout: Share of image features (of the last hidden layer, where there is one) that
            is dropped in training.
        sentence_dropout: Share of the final state that is.
        initialization: ``xavier`` (words uniform in ±.1, recurrent layer as PyTorch's own) or
            ``normal`` (deviation .01; recurrent matrices orthogonal).
        vocabulary: One table for all languages (same form, same vector) or one per language.
        min_count: Words rarer than this in the training captions are out of vocabulary.
        markers: Markers around a sentence.
        oov: What becomes of an unknown word.
        max_tokens: Longer sentences are cut.
        normalize_features: Scale image features to unit length before the image layer.
        similarity: Entry of models.similarity.SIMILARITIES.
        absolute: Vectors of the joint space are their absolute values.
        margin: The hinge's margin, alpha.
        violations: Negatives that count: ``sum`` of all, the hardest (``max``), or the mean of so
            many of the hardest.
        batch_size: Captions, pairs or tuples of captions per update; images for two branches.
        length_window_batches: Batches are cut from windows of so many shuffled batches sorted by
            length; 1 is plain shuffling.
        learning_rate: Adam's.
        decay_epochs: Epochs after which it is multiplied by ``decay_factor``.
        decay_factor: See there.
        clip_norm: Bound on the gradient's norm, or ``none``.
        validate_every_updates: Updates between two validations, or ``epoch``.
        select_by: Score of the best weights: ``recall_sum``, or ``mean_rank`` (lower is better).
        patience_validations: Stop after so many validations without a new best.
        max_epochs: Stop after so many times the updates of one pass over all captions; a two-branch
            recipe's batches hold images, and pass over the captions of its largest language.
        precision: Arithmetic of the recurrent layer's matrix products, or of everything (``f64``).
    """

    paper: str
    dataset: Name
    pairs: Name
    features: Name
    more_features: Name
    initial: Name
    word_vectors: Name
    lexicon: Name
    languages: list[Language]
    seeds: list[int]
    tune_words: bool
    word_dim: Count
    orthogonal_map: bool
    universal_dim: Count | Literal["none"]
    recurrent: Literal["gru", "lstm"]
    recurrent_sharing: Literal["shared", "per_language"]
    hidden_dim: Count
    projection: Literal["none", "shared", "per_language"]
    image_hidden_dims: list[Count]
    embed_dim: Count
    image_dropout: Dropout
    sentence_dropout: Dropout
    initialization: Literal["xavier", "normal"]
    vocabulary: Literal["pooled", "per_language"]
    min_count: Count
    markers: Literal["both", "end", "none"]
    oov: Literal["unk", "drop"]
    max_tokens: Count
    normalize_features: bool
    similarity: Literal["cosine", "euclidean", "order", "squared_order"]
    absolute: bool
    margin: Rate
    violations: Literal["sum", "max"] | Count
    batch_size: Count
    length_window_batches: Count
    learning_rate: Rate
    decay_epochs: list[Count]
    decay_factor: Rate
    clip_norm: Rate | Literal["none"]
    validate_every_updates: Count | Literal["epoch"]
    select_by: Literal["recall_sum", "mean_rank"]
    patience_validations: Count
    max_epochs: Count
    precision: Precision


class AlternatingRecipe(Recipe):
    """One set and language per update, drawn at random (Kádár et al. 2019, §2); VSE with one.

    Attributes:
        caption_caption_probability: Share of updates that rank captions against captions.
        caption_caption_below_loss: They begin once the mean image–caption loss per pair since the
            last validation is below this, or at once (``none``).
    """

    objective: Literal["alternating"]
    caption_caption_probability: Share
    caption_caption_below_loss: Rate | Literal["none"]


class JointRecipe(Recipe):
    """All languages in each update, as tuples of an image's captions (Calixto et al. 2017).

    Attributes:
        beta: Weight of image–sentence terms; sentence–sentence terms have the rest.
        contrastive_terms: Negatives per query: all of the batch, or so many drawn from it anew
            each time.
    """

    objective: Literal["joint"]
    beta: Share
    contrastive_terms: Count | Literal["all"]


class MixedRecipe(Recipe):
    """Batches mix the captions of all languages (Mohammadshahi et al. 2019).

    Attributes:
        lexicon_protocol: Which of the lexicon's two training folds is learnt from: the paper's,
            which repeats test words, or the clean one.
        alignment_every_updates: Updates between two steps of the RCSLS loss (T), or ``never``.
        alignment_learning_rate: Size of such a step.
        alignment_neighbours: Nearest neighbours in that loss, k.
    """

    objective: Literal["mixed"]
    lexicon_protocol: Literal["paper", "clean"]
    alignment_every_updates: Count | Literal["never"]
    alignment_learning_rate: Rate
    alignment_neighbours: Count


class TwoBranchRecipe(Recipe):
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
            pairs.
    """

    objective: Literal["two_branch"]
    captions_per_image: Count
    caption_image_weight: Weight
    image_caption_weight: Weight
    same_language_weight: Weight
    sentence_neighbourhood_weight: Weight
    word_neighbourhood_weight: Weight
    classifier_weight: Weight
    anchor_weight: Weight
    pretraining_epochs: Annotated[int, Field(ge=0)]


AnyRecipe = AlternatingRecipe | JointRecipe | MixedRecipe | TwoBranchRecipe
RECIPE = TypeAdapter(Annotated[AnyRecipe, Field(discriminator="objective")])
"""Checks a merged mapping and returns the recipe of its objective."""

OBJECTIVES = {
    "alternating": AlternatingRecipe,
    "joint": JointRecipe,
    "mixed": MixedRecipe,
    "two_branch": TwoBranchRecipe,
}


def merge(
    paper: Mapping[str, object], departures: Mapping[str, object], row: Mapping[str, object]
) -> tuple[type[AnyRecipe], dict[str, object]]:
    """Return the form of a recipe and its values: the paper's, the study's departures, its own.

    A departure that the form has no key for does not concern the recipe.
    """
    form = choose(OBJECTIVES, str({**paper, **row}.get("objective")), "objective")
    concerned = {key: value for key, value in departures.items() if key in form.model_fields}
    return form, {**paper, **concerned, **row}
