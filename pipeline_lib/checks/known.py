"""What can be known of a study before its work, from its parameters and its tables of captions."""

from functools import cached_property

from pipeline_lib.checks.data import Data
from pipeline_lib.checks.shown import Photos, of_kinds, photos_of_rows, photos_shown, source_of
from pipeline_lib.contract.tables import TRAIN, VAL
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
        """Photos that each pair set shows: of pseudopairs, those of the lent captions, too."""
        return photos_shown(self.settings, self.rows)

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

    def languages(self, pairs: str) -> set[str] | None:
        """Return the languages of training captions; None if there is no such pair set."""
        own, borrowed = self.settings.pairs, self.settings.pseudopairs
        found: set[str] = set()
        for name in self.settings.pair_sets(pairs):
            found |= {*own[name].captions} if name in own else {borrowed[name].captions_of.language}
        return found or None

    def validated(self, pairs: str) -> set[str] | None:
        """Return the languages of validation captions; None if there is no such pair set.

        A teacher lends training captions alone.
        """
        own, chain = self.settings.pairs, self.settings.pair_sets(pairs)
        sets = [own[name] for name in chain if name in own]
        return {language for each in sets for language in each.validation_kinds} if chain else None

    def learnt(self, pairs: str) -> set[str]:
        """Return the ids of the training photos of a pair set and of its ``plus``."""
        return set().union(*(self.rows[name][TRAIN] for name in self.settings.pair_sets(pairs)))

    def captioned(self, pairs: str, language: str) -> set[str]:
        """Return the ids of the training photos of pair sets with captions of a language."""
        found = set()
        for name in self.settings.pair_sets(pairs):
            own = self.settings.pairs[name]
            kinds = {language: own.captions.get(language, [])}
            found |= self.rows[name][TRAIN] & of_kinds(self.data[own.dataset], TRAIN, kinds)
        return found

    def seen(self, recipe: Recipe) -> tuple[list[str], set[str] | None]:
        """Return a recipe's extractors and the photos that they see; None if some are unknown."""
        extractors = [e for e in (recipe.features, recipe.more_features) if e != NONE]
        photos = [self.photos(self.settings.extractors[e].dataset) for e in extractors]
        return extractors, None if None in photos else set().union(*photos)

    def photos_learnt(self, recipe: Recipe) -> int:
        """Return how many training photos with features a recipe has (most, of drawn ones)."""
        _, seen = self.seen(recipe)
        data = self.data.get(recipe.dataset)
        if data is None or seen is None:
            return 0
        if data.images is None:
            return data.photos.get(TRAIN, 0)
        return len(self.learnt(recipe.pairs) & seen)

    def training_captions(self, recipe: Recipe) -> int | None:
        """Return how many captions a recipe can draw a batch from at most; None if unknown."""
        total = 0
        for name in self.settings.pair_sets(recipe.pairs):
            chosen = self.settings.pairs.get(name)
            data = self.data.get(chosen.dataset) if chosen else None
            if data is None:
                return None
            total += sum(
                data.captions.get(("train", language, kind), 0)
                for language, kinds in chosen.captions.items()
                for kind in kinds
            )
        return total

    def largest_batch(self, recipe: Recipe) -> int | None:
        """Return how many of what batches hold a recipe has at most; None if unknown."""
        captions = self.training_captions(recipe)
        if recipe.batch_of == "captions" or captions is None:
            return captions
        datasets = {
            source_of(self.settings, self.settings.pairs[name].dataset)
            for name in self.settings.pair_sets(recipe.pairs)
        }
        return sum(self.data[name].photos.get("train", 0) for name in datasets)

    def validation(self, recipe: Recipe) -> tuple[int, dict[str, int]]:
        """Return a recipe's validation photos and captions by language; 0 of what is not known."""
        counts, photos = dict.fromkeys(recipe.languages, 0), 0
        for name in self.settings.pair_sets(recipe.pairs):
            chosen = self.settings.pairs.get(name)
            data = self.data.get(chosen.dataset) if chosen else None
            kinds = chosen.validation_kinds if data else {}
            photos = max(photos, data.photos.get(VAL, 0) if kinds else 0)
            for language in kinds.keys() & counts.keys():
                counts[language] += sum(
                    data.captions.get((VAL, language, kind), 0) for kind in kinds[language]
                )
        return photos, counts
