"""What recipes are made from: worlds, splits, languages, extractors, pair sets."""

from collections.abc import Iterator
from pathlib import Path, PurePath

from pipeline_lib.checks.data import no_such_kind, raw_folder, world_of
from pipeline_lib.checks.files import NO_FACTS, named_files
from pipeline_lib.checks.known import Known
from pipeline_lib.checks.shown import source_of
from pipeline_lib.contract.tables import TRAIN, VAL
from pipeline_lib.corpora.columns import SPLITS
from pipeline_lib.corpora.corpus import intended_split
from pipeline_lib.corpora.world.generate import argument_problems, drawn_files
from pipeline_lib.images.backbones import BACKBONES
from pipeline_lib.images.transforms import crop_problems
from pipeline_lib.running.publishing import digest_in_name
from pipeline_lib.settings.entries import PAIRS, entry_of
from pipeline_lib.settings.images import Extractor, ImageFeatures
from pipeline_lib.settings.pseudopairs import Side
from pipeline_lib.settings.strict import suggest, unknown
from pipeline_lib.settings.text import WordVectorSource


def word_vector_problems(known: Known) -> Iterator[str]:
    """Yield word vectors of languages without captions, or of more numbers than photos."""
    for name, vectors in known.settings.word_vectors.items():
        yield from _languages_without_captions(known, f"word_vectors.{name}", vectors)
        pairs = entry_of(vectors.source, PAIRS)
        if vectors.method != "latent_semantic" or not known.rows_known(pairs):
            continue  # what a stage draws, or lends, is not known yet
        if (photos := len(known.training_photos(pairs))) < vectors.dim:
            yield (
                f"word_vectors.{name}.dim: expected {photos:,} or less, as many as training photos "
                f"of {pairs} have captions, found {vectors.dim}. Lower it, and word_dim of the "
                "recipes that start from it, or add captions"
            )


def _languages_without_captions(
    known: Known, where: str, vectors: WordVectorSource
) -> Iterator[str]:
    """Yield languages that vectors are asked for, and that their captions are not in."""
    words = known.training_languages(vectors.pairs) or set()
    if vectors.method == "files":
        for language in sorted({*vectors.files} - words):
            yield (
                f"{where}.files.{language}: expected a language of the training captions of "
                f"{vectors.pairs}, whose words are looked up ({', '.join(sorted(words))}), found "
                f"{language}"
            )
    if vectors.method == "fasttext":
        source = entry_of(vectors.source, PAIRS)
        if lacking := sorted(words - (known.training_languages(source) or set())):
            yield (
                f"{where}.source: expected training captions in {', '.join(lacking)}, whose words "
                f"{vectors.pairs} has, found none in {source}. Name a pair set that has them"
            )


def world_problems(known: Known) -> Iterator[str]:
    """Yield worlds that cannot be drawn, and what others expect of them that they do not have."""
    for name, world in known.settings.worlds.items():
        asked = argument_problems(**world.model_dump(exclude={"seed"}))
        yield from (f"worlds.{name}: {problem}" for problem in asked)
    for name, extractor in known.settings.networks.items():
        yield from _photos_of_another(known, f"extractors.{name}.images", extractor)
    for key, path in named_files(known.settings):
        if world := world_of(known.settings, path):
            yield from _undrawn(known, key, path, world)
    for name, borrowed in known.settings.pseudopairs.items():
        for key in ("images_of", "captions_of"):
            where = f"pseudopairs.{name}.{key}.facts"
            yield from _facts_of_another(known, where, getattr(borrowed, key))


def _photos_of_another(known: Known, where: str, extractor: ImageFeatures) -> Iterator[str]:
    """Yield that photos are not those of their data set: each world has some of the same names."""
    own = _world_behind(known, extractor.dataset)
    if not own and not world_of(known.settings, extractor.images):
        return
    photos = raw_folder(own) / "images" if own else None
    if PurePath(extractor.images) != photos:
        expected = f"{photos}, the photos" if photos else "the photos"
        yield (
            f"{where}: expected {expected} of {extractor.dataset}, of which its features are, "
            f"found {extractor.images}"
        )


def _facts_of_another(known: Known, where: str, side: Side) -> Iterator[str]:
    """Yield that facts are of another world than the captions that they are to judge."""
    pairs = known.settings.pairs.get(side.pairs)
    own, found = pairs and _world_behind(known, pairs.dataset), world_of(known.settings, side.facts)
    if pairs and found and "machine" in pairs.captions.get(side.language, ()):
        yield (
            f"{where}: expected {NO_FACTS}, as {side.pairs} has machine translations in "
            f"{side.language}, of which nobody knows the truth, found {side.facts}"
        )
    elif pairs and found and found != own:
        told = raw_folder(own) / "truth.jsonl" if own else NO_FACTS
        yield (
            f"{where}: expected {told}, the facts of {pairs.dataset}, whose captions {side.pairs} "
            f"has, found {side.facts}"
        )


def _world_behind(known: Known, dataset: str) -> str | None:
    """Return the world that a data set is read from, if it is one."""
    own = known.settings.datasets.get(source_of(known.settings, dataset))
    return world_of(known.settings, own.raw) if own else None


def _undrawn(known: Known, key: str, path: Path, world: str) -> Iterator[str]:
    drawn = known.settings.worlds[world]
    file = path.relative_to(raw_folder(world)).as_posix()
    files = drawn_files(drawn.graded_pairs, drawn.parallel)
    if file not in files:
        yield (
            f"{key}: expected a file that the world {world} writes into {raw_folder(world)}, "
            f"found {file}.{suggest(file, files)}"
        )


def split_problems(known: Known) -> Iterator[str]:
    """Yield splits that training or evaluation needs and that have no two photos to tell apart."""
    sets = known.settings.pairs.values()
    places = {chosen.dataset: source_of(known.settings, chosen.dataset) for chosen in sets}
    validated = {places[chosen.dataset] for chosen in sets if chosen.validation_kinds}
    for name in sorted({*places.values()}):
        photos = known.data[name].photos if name in known.data else {}
        asked = (TRAIN, VAL) if name in validated else (TRAIN,)
        for split in asked if photos else ():
            if photos.get(split, 0) < 2:
                yield (
                    f"datasets.{name}: expected 2 photos or more in the split {split}, found "
                    f"{photos.get(split, 0)} ({_listed(photos)}){_meant(split, photos)}"
                )
    if known.split == TRAIN:
        yield "evaluations.retrieval.split: expected photos that no recipe learns, found train"
    for recipe in known.recipes.values():
        photos = known.data[recipe.dataset].photos if recipe.dataset in known.data else {}
        if photos and known.split not in photos:
            yield (
                f"evaluations.retrieval.split: expected a split of {recipe.dataset}, found "
                f"{known.split!r}.{suggest(known.split, photos)}"
            )


def _listed(photos: dict[str, int]) -> str:
    return ", ".join(f"{split}: {count}" for split, count in sorted(photos.items()))


def _meant(split: str, photos: dict[str, int]) -> str:
    """Return a hint at a split that is there by another name."""
    other = [name for name in photos if name not in SPLITS and intended_split(name) == split]
    return f". Did you mean {split!r} for {other[0]!r}?" if other else ""


def language_problems(known: Known) -> Iterator[str]:
    """Yield languages that cannot become tokens, and those that a lexicon finds no words in."""
    for name in known.settings.datasets.keys() & known.data.keys():
        spoken = {language for _, language, _ in known.data[name].captions}
        for language in sorted(spoken - {*known.settings.tokenizers}):
            yield (
                f"datasets.{name}: has captions in {language}, found no tokenizer for it. Add "
                f"tokenizers.{language}"
            )
    for name, lexicon in known.settings.lexicons.items():
        learnt = known.training_languages(lexicon.pairs)
        for language in lexicon.languages if learnt else ():
            if language not in learnt:
                yield (
                    f"lexicons.{name}.languages: {language} is in no captions of the pair set "
                    f"{lexicon.pairs}, which has {', '.join(sorted(learnt))}"
                )


def extractor_problems(known: Known) -> Iterator[str]:
    """Yield backbones that there are not, and settings that contradict each other."""
    for name, extractor in known.settings.networks.items():
        yield from unknown(f"extractors.{name}.backbone", [extractor.backbone], BACKBONES)
        yield from (f"extractors.{name}.{problem}" for problem in crop_problems(extractor))
        yield from (f"extractors.{name}.{problem}" for problem in _weights_problems(extractor))


def _weights_problems(extractor: Extractor) -> Iterator[str]:
    """Yield how its weights are named amiss."""
    weights, backbone = extractor.weights, BACKBONES.get(extractor.backbone)
    if not extractor.weights_are_named and not digest_in_name(Path(weights)):
        yield (
            "weights: expected a file named after the first 8 digits of its SHA-256, such as "
            f"resnet50-0676ba61.pth, found {weights}"
        )
    if backbone and extractor.weights_are_named:
        yield from unknown("weights", [weights], backbone.weights)


def pair_set_problems(known: Known) -> Iterator[str]:
    """Yield kinds of captions that a pair set asks for and its data set does not have."""
    for name, chosen in known.settings.pairs.items():
        data = known.data.get(chosen.dataset)
        for language, kinds in chosen.captions.items() if data else ():
            where = f"pairs.{name}.captions.{language}"
            there = data.annotations(TRAIN, language)
            for kind in set(kinds) - set(there):
                yield no_such_kind(where, kind, TRAIN, chosen.dataset, there)
        for language, kinds in chosen.validation_kinds.items() if data else ():
            there = data.annotations(VAL, language)
            if not set(kinds) & set(there):
                key = "captions" if chosen.validation == "same" else "validation"
                where = f"pairs.{name}.{key}.{language}"
                yield no_such_kind(where, " or ".join(kinds), VAL, chosen.dataset, there)
