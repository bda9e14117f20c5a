"""Mono, FME and AME: what a batch of all languages costs, and what moves words and maps."""

from functools import partial

import numpy as np
import pytest
import tiny
import torch
from scipy.linalg import orthogonal_procrustes
from tiny_models import (
    double_loop,
    image,
    moved,
    named,
    no_scores,
    pairs_in,
    prepare,
    prepare_learner,
    sentence,
    summed_hinge,
)

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.text.vocabulary import SPECIALS
from pipeline_lib.training.examples import build_vocabulary, encode_lexicon
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.rotations import Aligner

WORDS = {"sentence_encoder.words.en.weight", "sentence_encoder.words.de.weight"}
ROTATION = "sentence_encoder.rotations.de"
ITEMS = torch.tensor([0, 1, 5, 12, 14, 20, 23])
"""A batch of tiny: the first three are in one language, the others in the other."""


def watched(tmp_path, every, **changes):
    """Train and return the weights before, and after each update."""
    learner, examples, _ = prepare_learner(
        "mixed",
        alignment_every_updates=every,
        alignment_learning_rate=0.1,
        validate_every_updates=1,
        max_epochs=2,
        **changes,
    )
    seen = [named(learner.space)]

    def validate(model):
        seen.append(named(model))
        return no_scores(model)

    fit(learner, examples, validate, 1, tmp_path, "test")
    return seen


def in_both_languages(corpus):
    """Return (key, row) of the captions of ``ITEMS``, and their images."""
    captions = [(key, row) for key, of in corpus.sentences.items() for row in range(len(of))]
    chosen = [captions[item] for item in ITEMS]
    return chosen, [int(corpus.sentences[key].image_index[row]) for key, row in chosen]


def test_captions_of_all_languages_are_each_others_negatives():
    """Eq. 1 of Mohammadshahi et al. 2019; siblings in the other language are none (audit, §3.8)."""
    model, corpus, made = prepare("mixed", alignment_every_updates="never")
    chosen, group = in_both_languages(corpus)
    assert len({key for key, _ in chosen}) == 2

    def by_loops(kept):
        return summed_hinge(
            [image(model, corpus, group[n]) for n in kept],
            [sentence(model, corpus, *chosen[n]) for n in kept],
            [group[n] for n in kept],
            0.2,
        )

    found = made.tasks[0].loss(model, ITEMS).item()
    assert found == pytest.approx(by_loops(range(7)), rel=1e-4)
    assert found > by_loops(range(3)) + by_loops(range(3, 7)) + 0.1
    assert set(group[:3]) & set(group[3:]), "no image has captions in both languages"


@pytest.mark.parametrize("violations", ["max", 2])
def test_the_rule_for_negatives_counts_in_mixed_batches(violations):
    """AME's code took --max_violation and summed all the same (audit, §3.8)."""
    changes = {"violations": violations, "margin": 0.4, "alignment_every_updates": "never"}
    model, corpus, made = prepare("mixed", **changes)
    chosen, group = in_both_languages(corpus)
    vectors = torch.stack([sentence(model, corpus, *item) for item in chosen])
    images = torch.stack([image(model, corpus, i) for i in group])
    expected = double_loop((images @ vectors.T).detach(), group, 0.4, violations)
    assert made.tasks[0].loss(model, ITEMS).item() == pytest.approx(expected, rel=1e-4)


def test_the_length_of_a_word_vector_does_not_matter_to_alignment():
    """AME's RCSLS left out the unit norm of fastText's (audit, §3.8)."""
    steps = []
    for factor in (1.0, 7.0):
        learner, examples, _ = prepare_learner("mixed")
        encoder = learner.space.sentence_encoder
        with torch.no_grad():
            for table in encoder.words.values():
                table.weight *= factor
            encoder.rotations["de"].copy_(torch.eye(8))
        Aligner(examples, learner.recipe).step(learner.space, {})
        steps.append(encoder.rotations["de"].detach())
    torch.testing.assert_close(*steps)
    assert not torch.equal(steps[0], torch.eye(8))


def test_markers_are_no_words_neighbours():
    steps = []
    for place in (0, len(SPECIALS)):
        learner, examples, _ = prepare_learner("mixed")
        with torch.no_grad():
            for table in learner.space.sentence_encoder.words.values():
                table.weight[: len(SPECIALS)] = table.weight[place]
        Aligner(examples, learner.recipe).step(learner.space, {})
        steps.append(learner.space.sentence_encoder.rotations["de"].detach())
    assert torch.equal(*steps)


def test_pieces_are_no_words_neighbours():
    """Evaluation ranks words alone (JointSpace.embed_words)."""
    steps = []
    for place in (0, -1):
        learner, examples, _ = prepare_learner("mixed", oov="pieces")
        with torch.no_grad():
            for language, table in learner.space.sentence_encoder.words.items():
                words = learner.space.vocabulary.table(language).words
                pieces = table.weight[len(SPECIALS) + len(words) :]
                assert len(pieces)
                pieces.copy_(table.weight[len(SPECIALS) + place].expand_as(pieces))
        Aligner(examples, learner.recipe).step(learner.space, {})
        steps.append(learner.space.sentence_encoder.rotations["de"].detach())
    assert torch.equal(*steps)


def test_retrieval_moves_words_and_alignment_moves_maps():
    """No gradient from retrieval to R, none from alignment to the words (audit, §3.8)."""
    model, _, made = prepare("mixed", alignment_every_updates=1, alignment_learning_rate=0.1)
    made.tasks[0].loss(model, torch.arange(24)).backward()
    gradients = {name for name, p in model.named_parameters() if p.grad is not None}
    assert gradients >= WORDS
    assert ROTATION not in gradients
    before = named(model)
    made.after_update(model, 1, {})
    assert moved(before, named(model)) == {ROTATION}


def test_maps_move_every_t_updates_and_stay_orthogonal(tmp_path):
    """AME's code takes a step at every update, over the whole lexicon (audit, §3.8)."""
    seen = watched(tmp_path, every=4)
    changed = [n for n in range(1, len(seen)) if ROTATION in moved(seen[n - 1], seen[n])]
    assert changed == [4, 8, 12]
    for weights in seen:
        rotation = weights[ROTATION]
        torch.testing.assert_close(rotation @ rotation.T, torch.eye(8), rtol=0, atol=1e-5)
    assert moved(seen[0], seen[3]) >= WORDS


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_words_that_training_has_broken_are_named_and_not_the_map(tmp_path, precision):
    learner, examples, _ = prepare_learner(
        "mixed",
        alignment_every_updates=2,
        validate_every_updates=4,
        max_epochs=3,
        learning_rate=1e300,
        clip_norm="none",
        precision=precision,
    )
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        fit(learner, examples, no_scores, 1, tmp_path, "test")


def test_fme_never_moves_its_words(tmp_path):
    seen = watched(tmp_path, every="never", tune_words=False, orthogonal_map=False)
    others = set(seen[0]) - WORDS
    assert moved(seen[0], seen[-1]) == others
    assert ROTATION not in others


def test_the_first_language_passes_no_map():
    """AME's code maps both languages, each into the other's space (audit, §3.8)."""
    model, corpus, _ = prepare("mixed")
    embed = partial(sentence, model, corpus)
    before = {language: embed(("tiny", language), 0).clone() for language in ("en", "de")}
    with torch.no_grad():
        model.sentence_encoder.rotations["de"].neg_()
    assert torch.equal(embed(("tiny", "en"), 0), before["en"])
    assert not torch.allclose(embed(("tiny", "de"), 0), before["de"], atol=1e-3)


def test_maps_start_where_procrustes_puts_the_lexicon():
    random = np.random.default_rng(0)
    words = {k: [f"{k}{n}" for n in range(tiny.IMAGES)] + ["in", "filler"] for k in ("en", "de")}
    vectors = {k: (v, random.normal(size=(8, 8)).astype(np.float32)) for k, v in words.items()}
    model, _, _ = prepare("mixed", vectors=vectors)
    source, target = (vectors[k][1][: tiny.IMAGES] for k in ("de", "en"))
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (source, target)]
    found = model.sentence_encoder.rotations["de"].numpy()
    best, _ = orthogonal_procrustes(*unit)  # unit[0] @ best is nearest to unit[1]
    np.testing.assert_allclose(unit[0] @ found.T, unit[0] @ best, atol=1e-4)


@pytest.mark.parametrize("protocol", ["clean", "paper"])
def test_translations_are_learnt_of_the_training_fold_and_one_protocol_alone(protocol):
    kinds = [(fold, of) for fold in ("train", "test") for of in ("clean", "paper")]
    every = tiny.lexicon().set_index(["fold", "protocol", "source_word"])
    lexicon = every.loc[[(*kind, f"de{n}") for n, kind in enumerate(kinds)]].reset_index()
    recipe = tiny.recipe("mixed", lexicon_protocol=protocol)
    vocabulary = build_vocabulary(tiny.pairs(), recipe)
    learnt = kinds.index(("train", protocol))
    ids = [vocabulary.word_ids([f"{of}{learnt}"], of).item() for of in ("de", "en")]
    assert encode_lexicon(lexicon, vocabulary, recipe)["de"].tolist() == [ids]


def test_words_start_from_their_vectors_and_unknown_ones_near_zero():
    """As AME's code: words without a vector are drawn from N(0, .05) (audit, §3.8)."""
    vectors = {"en": (["en3", "unused"], np.ones((2, 8), np.float32))}
    model, _, _ = prepare("mixed", vectors=vectors)
    table = model.sentence_encoder.word_table("en").weight.detach()
    row = model.vocabulary.encode(["en3"], "en")[1]
    assert torch.equal(table[row], torch.ones(8))
    others = torch.cat([table[: row - 1], table[row + 1 :]])
    assert others.std().item() == pytest.approx(0.05, rel=0.3)
    assert len(table) == len(SPECIALS) + tiny.IMAGES + 2


def test_a_language_without_lexicon_is_named():
    with pytest.raises(ContractError, match="between en and fr"):
        prepare("mixed", pairs_in("en", "de", "fr"), languages=["en", "de", "fr"])


def test_a_continued_recipe_without_lexicon_is_refused_before_it_trains():
    more = {"languages": ["en", "de", "fr"], "initial": "teacher"}
    with pytest.raises(ContractError, match="between en and fr"):
        prepare("mixed", pairs_in("en", "de", "fr"), **more)
    prepare("mixed", pairs_in("en", "de", "fr"), alignment_every_updates="never", **more)


def test_vectors_of_another_size_are_refused():
    vectors = {"en": (["en3"], np.ones((1, 5), np.float32))}
    with pytest.raises(ValueError, match="expected word_dim 8, found 5"):
        prepare("mixed", vectors=vectors)
