"""A study's settings and raw data sets, and what follows from both."""

from functools import cached_property

from pipeline_lib.checks.data import Data
from pipeline_lib.checks.shown import (
    Photos,
    photos_of_rows,
    photos_shown,
    source_of,
    translator_photos,
)
from pipeline_lib.contract.tables import TRAIN
from pipeline_lib.settings.entries import PAIRS, entry_of
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.settings.strict import NONE
from pipeline_lib.settings.study import Settings


class Known:
    """A study's settings, what its raw data sets hold, and what follows from both.

    Attributes:
        settings: Of the study.
        data: What is known of each data set; those that are not known are not in it.
        recipes: The merged recipes by name.
        split: Whose photos the recipes are tested on.
    """

    def __init__(self, settings: Settings, data: dict[str, Data]) -> None:
        self.settings, self.data = settings, data
        self.recipes = {name: settings.recipe(name) for name in settings.recipes}
        self.split = settings.evaluations.retrieval.split

    @cached_property
    def rows(self) -> dict[str, Photos]:
        """Photos of the rows of each pair set; none that a stage draws."""
        return photos_of_rows(self.settings, self.data)

    @cached_property
    def shown(self) -> dict[str, Photos]:
        """Photos that each pair set shows; pseudopairs show those of the lent captions, too."""
        return photos_shown(self.settings, self.rows)

    @cached_property
    def taught(self) -> dict[str, Photos | None]:
        """Photos that each translator learns, and is validated on; None if unknown."""
        names = self.settings.translators
        return {name: translator_photos(self.settings, self.data, name) for name in names}

    def photos(self, dataset: str) -> set[str] | None:
        """Return the ids of a data set's photos, a name for all that are drawn; None if unknown."""
        dataset = source_of(self.settings, dataset)
        data = self.data.get(dataset)
        if data is None:
            return None
        return {f"{dataset}:*"} if data.images is None else set(data.images["image_id"])

    def datasets(self, pairs: str) -> set[str]:
        """Return the data sets of a pair set: of its images, and of its ``plus``."""
        own = self.settings.pairs
        borrowed = self.settings.pseudopairs
        names = self.settings.pair_sets(pairs)
        more = [borrowed[name].images_of.pairs for name in names if name in borrowed]
        return {own[name].dataset for name in [*names, *more] if name in own}

    def training_languages(self, pairs: str) -> set[str] | None:
        """Return the languages of training captions; None if there is no such pair set."""
        own, borrowed = self.settings.pairs, self.settings.pseudopairs
        found: set[str] = set()
        for name in self.settings.pair_sets(pairs):
            found |= {*own[name].captions} if name in own else {borrowed[name].captions_of.language}
        return found or None

    def vector_languages(self, name: str) -> set[str]:
        """Return the languages whose words an entry of ``word_vectors`` has vectors of."""
        vectors = self.settings.word_vectors[name]
        if vectors.method == "files":
            return {*vectors.files}
        learnt = self.training_languages(entry_of(vectors.source, PAIRS)) or set()
        return learnt | (self.training_languages(vectors.pairs) or set())

    def rows_known(self, pairs: str) -> bool:
        """Return whether :attr:`rows` has the photos of a pair set and of its ``plus``.

        It has none that a stage draws, and none where data is not there, or not read: before its
        own work, a stage reads the files of one data set.
        """
        own, borrowed = self.settings.pairs, self.settings.pseudopairs
        names = self.settings.pair_sets(pairs)
        chosen = [own[n if n in own else borrowed[n].images_of.pairs] for n in names]
        read = {each for one in chosen for each in (one.dataset, one.exclude_images)} - {NONE}
        if not read <= self.data.keys():
            return False
        return all(self.data[each.dataset].images is not None for each in chosen)

    def training_photos(self, pairs: str) -> set[str]:
        """Return the ids of the training photos of a pair set and of its ``plus``."""
        return set().union(*(self.rows[name][TRAIN] for name in self.settings.pair_sets(pairs)))

    def extractors_and_photos(self, recipe: Recipe) -> tuple[list[str], set[str] | None]:
        """Return a recipe's extractors and the photos that they see; None if some are unknown."""
        extractors = [e for e in (recipe.features, recipe.more_features) if e != NONE]
        photos = [self.photos(self.settings.extractors[e].dataset) for e in extractors]
        return extractors, None if None in photos else set().union(*photos)

    def training_captions(self, recipe: Recipe) -> int | None:
        """Return how many captions a recipe can draw a batch from at most; None if unknown."""
        total = 0
        for name in self.settings.pair_sets(recipe.pairs):
            chosen = self.settings.pairs.get(name)
            data = self.data.get(chosen.dataset) if chosen else None
            if data is None:
                return None
            total += sum(
                data.captions.get((TRAIN, language, kind), 0)
                for language, kinds in chosen.captions.items()
                for kind in kinds
            )
        return total
