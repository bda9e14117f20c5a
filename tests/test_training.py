import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import tiny
import torch

from pipeline_lib.contract import ContractError, Features, empty_features
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.models.embedder import Embedder
from pipeline_lib.training.corpus import build_corpus, build_vocabulary, join_features
from pipeline_lib.training.loop import RECALL_SUM, fit
from pipeline_lib.training.tasks import CAPTION_CAPTION, IMAGE_CAPTION, build_tasks, choose_task

PERFECT = 600.0  # six recalls of 100 %


def train(folder, seed=1, validate=None, pairs=None, **changes):
    recipe = tiny.recipe(**changes)
    pairs = tiny.pairs() if pairs is None else pairs
    vocabulary = build_vocabulary(pairs, recipe)
    corpora = [
        build_corpus(pairs, split, tiny.features(), vocabulary, recipe)
        for split in ("train", "val")
    ]
    model = Embedder(recipe, vocabulary, corpora[0].features.shape[1], seed)
    validate = validate or partial(validation_scores, corpus=corpora[1])
    folder.mkdir(exist_ok=True)
    history = fit(model, corpora[0], validate, seed, folder, "test")
    return model, history


def weights(model):
    return torch.cat([value.flatten() for value in model.state_dict().values()])


@pytest.mark.parametrize("violations", ["sum", "max"])
@pytest.mark.parametrize("vocabulary", ["pooled", "per_language"])
def test_overfits_a_tiny_corpus(tmp_path, violations, vocabulary):
    _, history = train(tmp_path, violations=violations, vocabulary=vocabulary, max_epochs=40)
    assert history[0][RECALL_SUM] < history[-1][RECALL_SUM]
    assert max(row[RECALL_SUM] for row in history) == pytest.approx(2 * PERFECT)


def test_same_seed_same_weights_other_seed_other_weights(tmp_path):
    runs = [train(tmp_path / str(n), seed, max_epochs=3)[0] for n, seed in enumerate((1, 1, 2))]
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert not torch.equal(weights(runs[0]), weights(runs[2]))


def test_the_global_random_state_does_not_matter(tmp_path):
    torch.manual_seed(1)
    first, _ = train(tmp_path / "a", max_epochs=2)
    torch.manual_seed(2)
    np.random.seed(3)
    second, _ = train(tmp_path / "b", max_epochs=2)
    assert torch.equal(weights(first), weights(second))


def scripted(sums):
    remaining, seen = iter(sums), []

    def validate(model):
        seen.append(weights(model).clone())
        return {RECALL_SUM: next(remaining)}

    return validate, seen


def test_early_stopping_keeps_the_best_weights(tmp_path):
    validate, seen = scripted([10, 30, 20, 25, 99])
    model, history = train(tmp_path, validate=validate, patience_validations=2)
    assert [row[RECALL_SUM] for row in history] == [10, 30, 20, 25]
    assert torch.equal(weights(model), seen[1])


def test_stops_after_max_epochs_and_validates_the_last_updates(tmp_path):
    # 6 images x 2 captions in batches of 4, two languages: 6 updates an epoch.
    _, history = train(tmp_path, max_epochs=5, validate_every_updates=20)
    assert [row["update"] for row in history] == [20, 30]
    assert history[-1]["epoch"] == 5


def test_an_interrupted_run_ends_with_the_same_weights(tmp_path):
    whole, expected = train(tmp_path / "whole")

    class Killed(Exception):
        pass

    calls = iter(range(100))
    pairs, recipe = tiny.pairs(), tiny.recipe()
    val = build_corpus(pairs, "val", tiny.features(), build_vocabulary(pairs, recipe), recipe)

    def dying(model):
        if next(calls) == 3:
            raise Killed
        return validation_scores(model, val)

    with pytest.raises(Killed):
        train(tmp_path / "killed", validate=dying)
    resumed, history = train(tmp_path / "killed")
    assert torch.equal(weights(resumed), weights(whole))
    assert history == expected


def test_kill_9_and_resume_end_with_the_same_weights(tmp_path):
    code = (
        "import sys; from pathlib import Path; import torch\n"
        "from test_training import train, weights\n"
        "model, _ = train(Path(sys.argv[1]), max_epochs=60)\n"
        "torch.save(weights(model), sys.argv[2])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.path.dirname(__file__)}

    def start(folder, output):
        command = [sys.executable, "-c", code, str(tmp_path / folder), str(tmp_path / output)]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    assert start("whole", "whole.pt").wait() == 0
    process = start("killed", "killed.pt")
    while not (tmp_path / "killed" / "checkpoint.pt").exists():
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed.pt").exists()
    assert start("killed", "killed.pt").wait() == 0
    assert torch.equal(torch.load(tmp_path / "whole.pt"), torch.load(tmp_path / "killed.pt"))


def test_a_nan_loss_stops_the_run(tmp_path):
    with pytest.raises(FloatingPointError, match="learning_rate"):
        train(tmp_path, learning_rate=1e38)


def tasks(pairs, **changes):
    recipe = tiny.recipe(**changes)
    vocabulary = build_vocabulary(pairs, recipe)
    return build_tasks(build_corpus(pairs, "train", tiny.features(), vocabulary, recipe), recipe, 1)


def test_caption_caption_pairs_stay_within_one_set_and_are_all_pairs():
    both = pd.concat([tiny.pairs("a"), tiny.pairs("b")])
    made = tasks(both)
    names = [task.name for task in made if task.kind == CAPTION_CAPTION]
    assert names == ["a de-en", "b de-en"]
    c2c = made[-1].stream
    assert len(c2c.lengths) == tiny.IMAGES * 2 * 2


def test_no_caption_caption_task_without_its_probability_or_without_common_images():
    assert {t.kind for t in tasks(tiny.pairs(), caption_caption_probability=0)} == {IMAGE_CAPTION}
    pairs = tiny.pairs()
    number = pairs["image_id"].str[-1].astype(int)
    disjoint = pairs[(number < 3) == (pairs["language"] == "en")]
    assert {task.kind for task in tasks(disjoint)} == {IMAGE_CAPTION}


def test_tasks_alternate_with_the_given_probability_and_data_sets_uniformly():
    made = tasks(pd.concat([tiny.pairs("a"), tiny.pairs("b")]))
    chosen = np.array([choose_task(made, 0.25, 1, update) for update in range(4000)])
    share = np.bincount(chosen, minlength=len(made)) / len(chosen)
    assert share[:4] == pytest.approx([0.75 / 4] * 4, abs=0.03)
    assert share[4:] == pytest.approx([0.25 / 2] * 2, abs=0.03)


def test_vocabulary_never_sees_validation_captions():
    pairs = tiny.pairs()
    before = build_vocabulary(pairs, tiny.recipe()).to_json()
    val = pairs["split"] == "val"
    pairs.loc[val, "tokens"] = pd.Series([["unseen"]] * val.sum(), index=pairs.index[val])
    assert build_vocabulary(pairs, tiny.recipe()).to_json() == before


def test_each_caption_keeps_its_tokens_and_its_image():
    pairs, recipe = tiny.pairs(), tiny.recipe(vocabulary="per_language")
    vocabulary = build_vocabulary(pairs, recipe)
    corpus = build_corpus(
        pairs.sample(frac=1, random_state=1), "train", tiny.features(), vocabulary, recipe
    )
    by_id = dict(zip(tiny.features().image_ids, tiny.features().vectors, strict=True))
    for language in ("en", "de"):
        found = corpus.sentences["tiny", language]
        for row in range(len(found)):
            ids = found.token_ids[row, : found.lengths[row]].tolist()
            number = next(
                n
                for n in range(tiny.IMAGES)
                if vocabulary.encode([f"{language}{n}"], language)[1] == ids[1]
            )
            vector = corpus.features[found.image_index[row]].numpy()
            np.testing.assert_array_equal(vector, by_id[f"tiny:{number}"])


def test_missing_languages_and_features_are_named():
    recipe = tiny.recipe(languages=["en", "de", "fr"])
    pairs = tiny.pairs()
    vocabulary = build_vocabulary(pairs, tiny.recipe())
    with pytest.raises(ContractError, match="no train caption in fr"):
        build_corpus(pairs, "train", tiny.features(), vocabulary, recipe)
    whole = tiny.features()
    some = Features(whole.image_ids[2:], whole.vectors[2:], {})
    with pytest.raises(ContractError, match="2 images have captions but no features"):
        build_corpus(pairs, "train", some, vocabulary, tiny.recipe())


def test_features_of_two_data_sets_are_joined_by_id():
    first, second = tiny.features(0), tiny.features(1)
    second.image_ids[0] = "other:0"
    joined = join_features(first, second)
    assert joined.image_ids.tolist() == [*first.image_ids, "other:0"]
    np.testing.assert_array_equal(joined.vectors[-1], second.vectors[0])
    assert join_features(first, empty_features()) is first
    narrow = Features(second.image_ids, second.vectors[:, :5], {})
    with pytest.raises(ContractError, match="one size, found 10 and 5"):
        join_features(first, narrow)
