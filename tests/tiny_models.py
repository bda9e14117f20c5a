"""Untrained tiny models with their objectives, and what they compute one vector at a time."""

from itertools import count

import pandas as pd
import tiny

from pipeline_lib.contract.reports import MEAN_RANK, RECALL_SUM
from pipeline_lib.training.objectives import build_objective


def pairs_in(*languages):
    """Return the pairs of tiny in these languages, each with words of its own."""
    english = tiny.pairs().query("language == 'en'")
    made = [
        english.assign(
            language=language,
            caption_id=english["caption_id"].str.replace("/en/", f"/{language}/"),
            tokens=[[w.replace("en", language) for w in words] for words in english["tokens"]],
        )
        for language in languages
    ]
    return pd.concat(made, ignore_index=True)


def without(pairs, image, language, positions=(0, 1)):
    """Take captions of one image in one language out."""
    gone = (pairs["image_id"] == f"tiny:{image}") & (pairs["language"] == language)
    return pairs[~(gone & pairs["position"].isin(positions))]


def prepare(*arguments, **changes):
    """Return a model in evaluation mode, its examples and its objective."""
    learner, examples, made = prepare_learner(*arguments, **changes)
    return learner.space, examples, made


def prepare_learner(objective, pairs=None, vectors=None, **changes):
    """Return a model behind its recipe, as :func:`prepare` does."""
    recipe = tiny.recipe(objective, **changes)
    learner = tiny.learner(recipe, 1, pairs, vectors=vectors).eval()
    examples = tiny.examples(learner, captions=pairs)
    return learner, examples, build_objective(learner, examples, 1)


def sentence(model, corpus, key, row):
    """Return the vector of one caption, embedded alone and without a pad."""
    found, row = corpus.sentences[key], int(row)
    length = found.lengths[row : row + 1]
    return model.sentence_vectors(found.token_ids[row : row + 1, : int(length)], length, key[1])[0]


def image(model, corpus, index):
    """Return the vector of one image, embedded alone."""
    return model.image_vectors(corpus.features[int(index)][None])[0]


def summed_hinge(a, b, group, margin):
    """Return Eq. 1 of Calixto et al. 2017, one query and one contrastive term at a time."""
    total = 0.0
    for i in range(len(group)):
        for r in range(len(group)):
            if group[i] != group[r]:
                own = (a[i] @ b[i]).item()
                total += max(0.0, margin - own + (a[i] @ b[r]).item())
                total += max(0.0, margin - own + (a[r] @ b[i]).item())
    return total


def named(model):
    """Return copies of the weights by name."""
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def moved(before, after):
    """Return the names of the weights that differ."""
    return {name for name in before if not before[name].equal(after[name])}


def double_loop(scores, group, margin, violations):
    """Written from Eq. 1 of Kádár et al. 2019 and Eq. 1 of Calixto et al. 2017."""
    total = 0.0
    for matrix in (scores, scores.T):
        for i in range(len(matrix)):
            terms = [
                max(0.0, margin - float(matrix[i, i]) + float(matrix[i, j]))
                for j in range(len(matrix))
                if group[j] != group[i]
            ]
            # A candidate that is no negative costs nothing, and is there to be averaged.
            terms = sorted([*terms, *[0.0] * (len(matrix) - len(terms))], reverse=True)
            hardest = terms[: violations if isinstance(violations, int) else 1]
            total += sum(terms) if violations == "sum" else sum(hardest) / len(hardest)
    return total


GAPS = without(without(pairs_in("en", "de", "fr"), 2, "de"), 3, "fr", [1])
"""Image 2 has no German caption, image 3 one French instead of two."""


def no_scores(model):
    return {RECALL_SUM: 0.0, MEAN_RANK: 0.0}


class Killed(Exception):
    """What stands for a kill."""


def killed_at(number, validate=no_scores):
    """Return a validation that is killed at the call of this number, counted from 0."""
    calls = count()

    def dying(model):
        if next(calls) == number:
            raise Killed
        return validate(model)

    return dying
