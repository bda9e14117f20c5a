"""params.yaml: recipes, the rows of the results table.

What all recipes share stands in :class:`Recipe`; the parts that a recipe names (objective, loss,
optimizer, schedule, text encoder, image head) add their keys. In YAML all keys stand side by side.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pipeline_lib.settings.architecture import (
    OF_TWO_SIDES,
    PARTS,
    Architecture,
    architecture_form,
    chosen,
    joined,
)
from pipeline_lib.settings.losses import LOSSES
from pipeline_lib.settings.objectives import OBJECTIVES
from pipeline_lib.settings.optimization import OPTIMIZERS, SCHEDULES
from pipeline_lib.settings.strict import Count, Name, Rate, Seed, Several


class Recipe(Architecture):
    """One published row: a paper's settings with this row's inputs, departures and seeds.

    Attributes:
        paper: Entry of ``papers`` that this recipe starts from.
        dataset: Data set on whose test split it is evaluated.
        pairs: Pair set it learns from.
        features: Extractor whose features it uses.
        more_features: A second one, for pair sets that join two data sets, or ``none``.
        initial: Recipe whose trained weights it starts from (same sizes), or ``none``.
        word_vectors: Entry of ``word_vectors`` that words start from, or ``random``. Words without
            a vector, which are all of them then, start from N(0, .05).
        lexicon: Entry of ``lexicons`` that orthogonal maps learn from, or ``none``.
        seeds: One model each; the row reports their mean and standard deviation.
        min_count: Words rarer than this in the training captions are out of vocabulary.
        markers: Markers around a sentence.
        oov: What becomes of an unknown word.
        max_tokens: Longer sentences are cut.
        objective: What an update trains (settings.objectives); has keys of its own.
        loss: What similarities cost (settings.losses); has keys of its own.
        initialization: Of all weights but the words: ``xavier`` (recurrent layer as PyTorch's own)
            or ``normal`` (deviation .01; recurrent matrices orthogonal).
        batch_size: Captions, pairs or tuples of captions per update; images for ``two_branch`` and
            ``multiview``.
        optimizer: How weights follow gradients (settings.optimization); has keys of its own.
        schedule: How the learning rate goes (settings.optimization); has keys of its own.
        learning_rate: The optimizer's; the schedule changes it.
        clip_norm: Bound on the gradient's norm, or ``none``.
        validate_every_updates: Updates between two validations, or ``epoch``.
        select_by: Score of the best weights: ``recall_sum``, or ``mean_rank`` (lower is better).
        patience_validations: Stop after so many validations without a new best.
        max_epochs: Stop after so many times the updates of one pass over all captions; over those
            of its largest language in ``two_branch``, over the photos with features in
            ``multiview``, whose batches hold images.
    """

    learns_lexicon: ClassVar[bool] = False
    """Whether the objective reads ``lexicon``, and fits orthogonal maps to it."""

    reads_text_alone: ClassVar[bool] = False
    """Whether the objective learns from captions of photos that have no features, too."""

    compares_sentences: ClassVar[bool] = True
    """Whether the objective scores sentences of two languages by ``similarity``."""

    batch_of: ClassVar[str] = "captions"
    """What ``batch_size`` counts, but for tuples of captions: ``captions`` or ``photos``."""

    paper: str
    dataset: Name
    pairs: Name
    features: Name
    more_features: Name
    initial: Name
    word_vectors: Name
    lexicon: Name
    seeds: Several[Seed]
    min_count: Count
    markers: Literal["both", "end", "none"]
    oov: Literal["unk", "drop", "pieces"]
    max_tokens: Count
    objective: Name
    loss: Name
    initialization: Literal["xavier", "normal"]
    batch_size: Count
    optimizer: Name
    schedule: Name
    learning_rate: Rate
    clip_norm: Rate | Literal["none"]
    validate_every_updates: Count | Literal["epoch"]
    select_by: Literal["recall_sum", "mean_rank"]
    patience_validations: Count
    max_epochs: Count

    @property
    def _has_sparse_gradients(self) -> bool:
        return self.text_encoder == "bag" and self.tune_words and self.precision != "f64"

    @property
    def architecture(self) -> Architecture:
        """What the model is, without how it learns."""
        form = architecture_form(vars(self))
        return form.model_validate({key: getattr(self, key) for key in form.model_fields})

    def compares_turned(self, a_language: str, b_language: str) -> bool:
        """Return whether sentences a and b are compared as b and a, the other way round.

        Where two sides differ, training has the language that comes first in the alphabet as a: a
        score of the other way round is none that was learnt.
        """
        learnt = self.compares_sentences and self.similarity in OF_TWO_SIDES
        return learnt and a_language > b_language

    def problems(self) -> Iterator[str]:
        """Yield what its parts contradict in each other."""
        if self._has_sparse_gradients and not OPTIMIZERS[self.optimizer].takes_sparse:
            able = " or ".join(name for name, form in OPTIMIZERS.items() if form.takes_sparse)
            yield (
                "optimizer: text_encoder bag has sparse gradients of its words: needs "
                f"{able}, found {self.optimizer}"
            )
        if getattr(self, "orthogonal_map", False) and not self.learns_lexicon:
            yield f"orthogonal_map: no part of the objective {self.objective} fits it"

    @property
    def aligns_words(self) -> bool:
        """Whether training moves words towards their translations."""
        return False

    @property
    def fits_maps(self) -> bool:
        """Whether the text encoder has orthogonal maps, which a lexicon fits."""
        return False


def recipe_form(values: Mapping[str, object]) -> type[Recipe]:
    """Return the form of the recipe whose parts ``values`` name.

    Raises:
        SettingsError: If one of them is none that is registered.
    """
    return joined(*chosen(_PARTS, values), Recipe)


def make_recipe(values: Mapping[str, object]) -> Recipe:
    """Check a merged mapping and return its recipe."""
    return recipe_form(values).model_validate(values)


def contradictions(recipe: Recipe) -> Iterator[str]:
    """Yield what the keys of each part of a recipe contradict, each part's own first."""
    for part in type(recipe).__mro__:
        if "problems" in vars(part):
            yield from part.problems(recipe)


def recipe_keys() -> set[str]:
    """Return the keys of all recipes, whatever their parts."""
    of_parts = (form for forms in _PARTS.values() for form in forms.values())
    return {key for form in (Recipe, *of_parts) for key in form.model_fields}


def merge(
    paper: Mapping[str, object], departures: Mapping[str, object], row: Mapping[str, object]
) -> tuple[type[Recipe], dict[str, object]]:
    """Return the form of a recipe and its values: the paper's, the study's departures, its own.

    A paper's key of a part that the recipe does not have (its margin, under another loss) does not
    concern it, nor does a departure's; one that the row itself gives does.
    """
    form = recipe_form({**paper, **departures, **row})
    own, known = form.model_fields, recipe_keys()
    of_paper = {key: paper[key] for key in paper if key in own or key not in known}
    of_study = {key: departures[key] for key in departures if key in own}
    return form, {**of_paper, **of_study, **row}


def part_of(key: str, values: Mapping[str, object]) -> str:
    """Return a sentence on the part of recipes that has a key; empty if none has."""
    for part, forms in _PARTS.items():
        owners = [name for name, form in forms.items() if key in form.model_fields]
        if values[part] in owners:
            return f" It is a key of {part}: {values[part]}."
        if owners:
            return f" It is a key of {part}: {' or '.join(owners)}; here {part} is {values[part]}."
    return ""


_PARTS = {
    "objective": OBJECTIVES,
    "loss": LOSSES,
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    **PARTS,
}
