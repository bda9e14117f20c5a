"""The tasks that recipes are measured on: a report each, the scores of their models by seed.

A recipe that a task does not concern has a report with nothing but the ``reason``.
"""

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from pipeline_lib.compute.exact import lengths
from pipeline_lib.contract.lexicons import leaked, tested_pairs
from pipeline_lib.evaluation.evaluated import Evaluated
from pipeline_lib.evaluation.probes import hubness, rarest_word_counts, recalls_by_bin
from pipeline_lib.evaluation.retrieval.languages import (
    NEAREST,
    consistency,
    one_per_image,
    translated_alike,
)
from pipeline_lib.evaluation.retrieval.mixed_pool import mixed_pool_scores, shared_images
from pipeline_lib.evaluation.retrieval.pools import RankedPool, ranked_pool, ranks_in_folds
from pipeline_lib.evaluation.retrieval.recalls import summarise
from pipeline_lib.evaluation.retrieval.sentences import sentence_ranks, sentence_scores
from pipeline_lib.evaluation.similarity.sts import cosines, overlapping, sts_scores
from pipeline_lib.evaluation.vectors import Embeddings
from pipeline_lib.evaluation.words.ranks import gold_pairs
from pipeline_lib.evaluation.words.translation import translation_precision

Report = dict[str, object]


def retrieval_report(run: Evaluated) -> Report:
    """Summarise image-text retrieval.

    Returns:
        ``{"split", "pools", "per_seed": {seed: {language: scores}}}``, where scores are those of
        :func:`recalls.summarise`; those of a large pool have the same in ``folds``, ranked in
        parts (see pools.ranks_in_folds). With several languages that share images also
        ``{"mixed": {seed: scores}}`` of :func:`mixed_pool.mixed_pool_scores`.
    """

    def summary(pool: RankedPool) -> Report:
        whole = summarise(pool.ranks, **run.bootstrap)
        if len(pool.images) < 2 * fold_images:
            return whole
        folds = ranks_in_folds(pool, fold_images, run.scores)
        return {**whole, "folds": summarise(folds, **run.bootstrap)}

    def score(seed: int) -> Report:
        return {language: summary(pool) for language, pool in run.ranked[seed].items()}

    split, fold_images = run.settings.retrieval.split, run.settings.retrieval.fold_images
    report = {"split": split, "pools": dict(run.pools), "per_seed": _per_seed(run, score)}
    if len(run.pools) < 2 or not shared_images(next(iter(run.ranked.values()))):
        return report

    def mixed(seed: int) -> Report:
        return mixed_pool_scores(run.ranked[seed], run.scores, **run.bootstrap)

    return {**report, "mixed": _per_seed(run, mixed)}


def sentence_retrieval_report(run: Evaluated) -> Report:
    """Score retrieval of sentences between all ordered pairs of languages, by each protocol.

    Exact translations are those of the same sentences in all languages, one of each image.

    Returns:
        ``{"per_seed": {seed: {protocol: {"en-de": scores}}}}``, where scores are those of
        :func:`sentences.sentence_scores`.
    """
    captions = run.captions[run.captions["language"].isin(run.pools)]
    rows = {
        "first": captions["annotation"] == captions["language"].map(run.pools),
        "exact": translated_alike(captions[captions["annotation"] != "machine"]).reindex(
            captions.index, fill_value=False
        ),
    }

    def score(vectors: Embeddings, protocol: str) -> Report:
        asked = captions[rows[protocol]]
        found = sentence_ranks(
            asked, vectors.captions_of(asked["caption_id"]), protocol, run.sentence_scores
        )
        return {
            "-".join(pair): sentence_scores(ranks, **run.bootstrap) for pair, ranks in found.items()
        }

    def scores(seed: int) -> Report:
        return {protocol: score(run.embeddings[seed], protocol) for protocol in rows}

    per_seed = _per_seed(run, scores)
    if not any(by_pair for found in per_seed.values() for by_pair in found.values()):
        return {"reason": "no two of the recipe's languages have sentences to compare"}
    return {"per_seed": per_seed}


def one_caption_report(run: Evaluated) -> Report:
    """Summarise retrieval in pools that can be compared over languages (retrieval.languages).

    Returns:
        ``{"per_seed": {seed: {language: scores}}}``, where scores are those of
        :func:`recalls.summarise`; with several languages also ``worst``, the lowest sum of recalls.
    """

    def score(seed: int) -> Report:
        pools = _comparable_pools(run, seed)
        found = {name: summarise(pool.ranks, **run.bootstrap) for name, pool in pools.items()}
        if len(found) < 2:
            return found
        sums = [scores["sum_of_recalls"] for scores in found.values()]
        return {**found, "worst": {"sum_of_recalls": min(sums)}}

    return _of_shared_images(run, score, at_least=2)


def consistency_report(run: Evaluated) -> Report:
    """Measure whether an image's captions find the same images in each pair of languages.

    Returns:
        ``{"per_seed": {seed: {"en-de": scores}}}``, where scores are those of
        :func:`languages.consistency`.
    """
    if len(run.pools) < 2:
        return {"reason": "the recipe has one language"}

    def score(seed: int) -> Report:
        pools = _comparable_pools(run, seed)
        return {
            f"{one}-{other}": consistency(pools[one], pools[other], run.scores, **run.bootstrap)
            for one, other in combinations(pools, 2)
        }

    return _of_shared_images(run, score, at_least=NEAREST + 1)


def sts_report(run: Evaluated) -> Report:
    """Correlate cosines with human scores, with and without pairs that training has seen.

    Returns:
        ``{"per_seed": {seed: {set: scores}}}``, where scores are those of :func:`sts.sts_scores`.
    """
    if not run.scored:
        return {"reason": "no scored set is in one of the recipe's languages"}
    languages = {name: run.settings.sts.sets[name].language for name in run.scored}

    def score(seed: int, name: str) -> Report:
        pairs, language = run.scored[name], languages[name]
        learnt = run.pairs_of(seed)
        learnt = learnt[(learnt["split"] == "train") & (learnt["language"] == language)]
        vectors = run.embeddings[seed]
        sides = (vectors.sentences_of(pairs[side], language) for side in ("first", "second"))
        gold = pairs["score"].to_numpy()
        return sts_scores(
            gold, cosines(*sides), overlapping(pairs, learnt["text"]), **run.bootstrap
        )

    return {
        "per_seed": _per_seed(run, lambda seed: {name: score(seed, name) for name in languages})
    }


def word_translation_report(run: Evaluated) -> Report:
    """Measure how precisely words find their translations in the test fold of a lexicon.

    Candidates are all words of the target language's training captions that have a vector.

    Returns:
        ``{"lexicon", "learnt", "per_seed": {seed: {"en-de": scores}}}``, where scores are those of
        :func:`words.translation.translation_precision`, and ``learnt`` is the share in per cent of
        tested words whose translations the recipe was trained on.
    """
    settings, languages = run.settings.word_translation, run.recipe.languages
    of_languages = tested_pairs(run.lexicon, languages)
    if not of_languages:
        return {"reason": f"lexicon {settings.lexicon!r} is not of the recipe's languages"}
    tested = {pair: words for pair, words in of_languages.items() if _has_vectors(run, pair, words)}
    if not tested:
        return {"reason": f"no tested pair of {settings.lexicon!r} stands in training captions"}

    def score(seed: int) -> Report:
        return {
            "-".join(pair): translation_precision(
                *(run.words(seed, language) for language in pair),
                words,
                csls_neighbours=settings.csls_neighbours,
                **run.bootstrap,
            )
            for pair, words in tested.items()
        }

    learnt = _learnt_share(run, tested)
    return {"lexicon": settings.lexicon, "learnt": learnt, "per_seed": _per_seed(run, score)}


def probe_report(run: Evaluated) -> Report:
    """Describe hubs, and recall by length and by rarest word of the caption that queries.

    Returns:
        ``{"per_seed": {seed: {language: {"hubness", "caption_length", "rarest_word"}}}}``: see
        :func:`probes.hubness` and :func:`probes.recalls_by_bin`.
    """

    def probe(seed: int, language: str, pool: RankedPool) -> Report:
        _, words = run.words(seed, language)
        return {
            "hubness": _hubs(pool, words, run.settings.probes.neighbours),
            **_recalls_by_kind(run, seed, language, pool),
        }

    def probes(seed: int) -> Report:
        pools = run.ranked[seed].items()
        return {language: probe(seed, language, pool) for language, pool in pools}

    return {"per_seed": _per_seed(run, probes)}


TASKS: dict[str, Callable[[Evaluated], Report]] = {
    "retrieval": retrieval_report,
    "one_caption": one_caption_report,
    "consistency": consistency_report,
    "sentence_retrieval": sentence_retrieval_report,
    "sts": sts_report,
    "word_translation": word_translation_report,
    "probes": probe_report,
}
"""A report by task: ``per_seed``, by seed and item (a language, or a pair) its numbers.

A new one needs nothing else: its file, tables and figures bear its name.
"""


def _per_seed(run: Evaluated, score: Callable[[int], Report]) -> dict[str, Report]:
    return {str(seed): score(seed) for seed in sorted(run.embeddings)}


def _of_shared_images(run: Evaluated, score: Callable[[int], Report], at_least: int) -> Report:
    """Score images that the languages share, unless too few are left for a search to go wrong."""
    shared = one_per_image(run.captions, run.pools)["image_id"].nunique()
    if shared < at_least:
        return {
            "reason": f"{shared} images have a caption in each of the recipe's languages, expected "
            f"{at_least} or more"
        }
    return {"per_seed": _per_seed(run, score)}


def _comparable_pools(run: Evaluated, seed: int) -> dict[str, RankedPool]:
    captions = one_per_image(run.captions, run.pools)
    return {
        language: ranked_pool(
            run.embeddings[seed], captions[captions["language"] == language], run.scores
        )
        for language in run.pools
    }


def _has_vectors(run: Evaluated, pair: tuple[str, str], words: list[tuple[str, str]]) -> bool:
    """Return whether a pair of words has vectors on both sides, in the models of all seeds."""
    return all(len(_gold(run, seed, pair, words)) for seed in run.embeddings)


def _gold(
    run: Evaluated, seed: int, pair: tuple[str, str], words: list[tuple[str, str]]
) -> np.ndarray:
    """Return the pairs of words that have vectors, as rows of both sides ``[pairs, 2]``."""
    return gold_pairs(*(run.words(seed, language)[0] for language in pair), words)


def _learnt_share(
    run: Evaluated, tested: Mapping[tuple[str, str], list[tuple[str, str]]]
) -> float | None:
    """Return which share of the tested words the recipe's lexicon held; None if not known.

    Tested are source words of a pair that have vectors on both sides, in some seed's model.
    """
    if not (run.recipe.aligns_words or run.recipe.fits_maps):
        return 0.0
    if run.recipe.lexicon != run.settings.word_translation.lexicon:
        return None
    rows = leaked(run.lexicon, run.recipe.lexicon_protocol)
    key = ["source_language", "target_language", "source_word"]
    queries = {
        (*pair, run.words(seed, pair[0])[0][row])
        for seed in run.embeddings
        for pair, words in tested.items()
        for row in _gold(run, seed, pair, words)[:, 0]
    }
    return 100 * len(queries & set(rows[key].itertuples(index=False, name=None))) / len(queries)


def _hubs(pool: RankedPool, words: np.ndarray, neighbours: int) -> Report:
    """Describe the hubs among images, captions and words, where there are enough of them."""
    norms = lengths(words)[:, None]
    spaces = {
        "images": (pool.sentences, pool.images),
        "captions": (pool.images, pool.sentences),
        "words": (words / np.where(norms, norms, 1), None),
    }
    return {
        name: hubness(queries, candidates, neighbours)
        for name, (queries, candidates) in spaces.items()
        if neighbours < len(queries if candidates is None else candidates)
    }


def _recalls_by_kind(run: Evaluated, seed: int, language: str, pool: RankedPool) -> Report:
    tokens, settings = list(pool.captions["tokens"]), run.settings.probes
    rarest = rarest_word_counts(tokens, run.training_words[seed][language])
    kinds = {
        "caption_length": (np.array([*map(len, tokens)]), settings.caption_length),
        "rarest_word": (rarest, settings.rarest_word),
    }
    ranks, images = pool.ranks, len(pool.images)
    return {
        name: recalls_by_bin(
            ranks.text_to_image, values, edges, ranks.caption_image, images, **run.bootstrap
        )
        for name, (values, edges) in kinds.items()
    }
