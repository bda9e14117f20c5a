import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from functools import partial
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from pickles import Code
from tiny_models import Killed, killed_at, no_scores

from pipeline_lib.compute import device
from pipeline_lib.contract.features import Features, empty_features
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.contract.reports import MEAN_RANK, RECALL_SUM
from pipeline_lib.evaluation.validation import validation_scores
from pipeline_lib.training import fitting
from pipeline_lib.training.alternating import CAPTION_CAPTION
from pipeline_lib.training.checkpoints import load_checkpoint
from pipeline_lib.training.examples import (
    build_examples,
    build_vocabulary,
    encode_lexicon,
    join_features,
)
from pipeline_lib.training.fitting import fit
from pipeline_lib.training.objectives import BUILDERS, build_objective
from pipeline_lib.training.tasks import IMAGE_CAPTION

PERFECT = 600.0  # six recalls of 100 %


def train(*arguments, **options):
    space, course = train_to_its_end(*arguments, **options)
    return space, course.history


def train_to_its_end(folder, seed=1, validate=None, pairs=None, objective="alternating", **changes):
    learner = tiny.learner(tiny.recipe(objective, **changes), seed, pairs)
    examples, val = (tiny.examples(learner, split, pairs) for split in ("train", "val"))
    validate = validate or partial(validation_scores, examples=val, tested={})
    folder.mkdir(exist_ok=True)
    return learner.space, fit(learner, examples, validate, seed, folder, "test")


def weights(model):
    return torch.cat([value.flatten() for value in model.state_dict().values()])


def test_a_training_leaves_nothing_of_its_network_and_features_in_memory(tmp_path):
    learner = tiny.learner(tiny.recipe("alternating", max_epochs=1))
    examples = tiny.examples(learner)
    left = weakref.ref(learner), weakref.ref(examples.features)
    gc.collect()
    gc.disable()
    try:
        fit(learner, examples, no_scores, 1, tmp_path, "test")
        del learner, examples
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()


def watch_updates(monkeypatch, look):
    """Return a list that grows by what ``look`` returns of the optimizer before each update."""
    make, seen = fitting.make_optimizer, []

    def watched(*arguments):
        optimizer = make(*arguments)
        optimizer.register_step_pre_hook(lambda found, *_: seen.append(look(found)))
        return optimizer

    monkeypatch.setattr(fitting, "make_optimizer", watched)
    return seen


@pytest.mark.parametrize("violations", ["sum", "max"])
@pytest.mark.parametrize("vocabulary", ["pooled", "per_language"])
def test_overfits_a_tiny_corpus(tmp_path, violations, vocabulary):
    _, history = train(tmp_path, violations=violations, vocabulary=vocabulary, max_epochs=30)
    assert history[0][RECALL_SUM] < history[-1][RECALL_SUM]
    assert max(row[RECALL_SUM] for row in history) == pytest.approx(2 * PERFECT)


@pytest.mark.parametrize("objective", BUILDERS)
def test_every_objective_overfits_a_tiny_corpus(tmp_path, objective):
    _, history = train(tmp_path, objective=objective, max_epochs=40)
    assert history[0][RECALL_SUM] < history[-1][RECALL_SUM]
    assert max(row[RECALL_SUM] for row in history) > 1.8 * PERFECT


@pytest.mark.parametrize("objective", BUILDERS)
@pytest.mark.parametrize("similarity", ["order", "squared_order", "euclidean"])
def test_every_objective_learns_under_every_similarity(tmp_path, objective, similarity):
    sizes = {"max_epochs": 24, "validate_every_updates": 4}
    _, history = train(tmp_path, objective=objective, similarity=similarity, absolute=True, **sizes)
    assert max(row[RECALL_SUM] for row in history) > 1.15 * history[0][RECALL_SUM]


@pytest.mark.parametrize("objective", BUILDERS)
def test_same_seed_same_weights_other_seed_other_weights(tmp_path, objective):
    """mulisera seeds neither its weights on the CPU nor its batches (audit, §3.5)."""
    runs = [
        train(tmp_path / str(n), seed, objective=objective, max_epochs=3, sentence_dropout=0.3)[0]
        for n, seed in enumerate((1, 1, 2))
    ]
    assert torch.equal(weights(runs[0]), weights(runs[1]))
    assert not torch.equal(weights(runs[0]), weights(runs[2]))


@pytest.mark.parametrize("objective", BUILDERS)
def test_the_global_random_state_does_not_matter(tmp_path, objective):
    torch.manual_seed(1)
    first, _ = train(tmp_path / "a", objective=objective, max_epochs=2, sentence_dropout=0.3)
    torch.manual_seed(2)
    np.random.seed(3)
    second, _ = train(tmp_path / "b", objective=objective, max_epochs=2, sentence_dropout=0.3)
    assert torch.equal(weights(first), weights(second))


def scripted(sums):
    remaining, seen = iter(sums), []

    def validate(model):
        seen.append(weights(model).clone())
        score = next(remaining)
        return {RECALL_SUM: score, MEAN_RANK: score}

    return validate, seen


def test_a_model_is_validated_without_dropout_and_trained_with_it_again(tmp_path):
    keys = {"caption_caption_probability": 0.0, "validate_every_updates": 1, "max_epochs": 1}
    learner, seen = tiny.learner(tiny.recipe(**keys)), []

    def note(what):
        seen.append((what, {module.training for module in learner.modules()}))

    def validate(model):
        note("validated")
        return no_scores(model)

    learner.space.image_encoder.register_forward_pre_hook(lambda *_: note("trained"))
    fit(learner, tiny.examples(learner), validate, 1, tmp_path, "test")
    assert seen == [("trained", {True}), ("validated", {False})] * 6


def test_a_validation_leaves_running_statistics_as_they_are(tmp_path):
    val = tiny.examples(tiny.learner(tiny.recipe("two_branch")), "val")
    kept = []

    def validate(model):
        kept.append(model.image_encoder.hidden[0][1].running_mean.clone())
        scores = validation_scores(model, val, {})
        kept.append(model.image_encoder.hidden[0][1].running_mean.clone())
        return scores

    keys = {"pretraining_epochs": 1, "max_epochs": 2, "validate_every_updates": "epoch"}
    train(tmp_path, validate=validate, objective="two_branch", **keys)
    before, after = kept[0::2], kept[1::2]
    assert len(before) == 3
    assert not torch.equal(after[1], before[2]), "training moves them"
    assert all(map(torch.equal, before, after))


@pytest.mark.parametrize(
    ("select_by", "scores"), [(RECALL_SUM, [10, 30, 20, 25]), (MEAN_RANK, [30, 10, 20, 25])]
)
def test_early_stopping_keeps_the_best_weights(tmp_path, select_by, scores):
    """Calixto et al.'s code selects by a mean rank that it calls the median (audit, §3.4)."""
    validate, seen = scripted([*scores, 99])
    keys = {"patience_validations": 2, "select_by": select_by}
    model, history = train(tmp_path, validate=validate, **keys)
    assert [row[select_by] for row in history] == scores
    assert torch.equal(weights(model), seen[1])


def test_the_learning_rate_falls_after_the_epochs_named(tmp_path):
    """MULE's code computes a decay that it never uses (audit, finding 4)."""
    # 6 updates an epoch; a learning rate of (almost) nothing leaves the weights where they are.
    validate, seen = scripted([1, 2, 3, 4])
    train(
        tmp_path,
        validate=validate,
        max_epochs=4,
        validate_every_updates="epoch",
        decay_epochs=[2],
        decay_factor=1e-30,
    )
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[1], seen[2])
    assert torch.equal(seen[2], seen[3])


def test_the_gradient_is_clipped(tmp_path):
    """Adam divides it by its own size and 1e-8, which is far more than what is left of it."""
    far = []
    for bound in (1e-14, "none"):
        validate, seen = scripted([1, 2])
        keys = {"max_epochs": 2, "validate_every_updates": "epoch", "clip_norm": bound}
        train(tmp_path / str(bound), validate=validate, **keys)
        far.append((seen[1] - seen[0]).abs().max().item())
    assert far[0] < 1e-6 < 1e-3 < far[1]


def gradient(optimizer):
    """Return all that moves weights, as one vector."""
    parts = [each.grad for group in optimizer.param_groups for each in group["params"]]
    return torch.cat([part.flatten() for part in parts if part is not None])


def test_a_clipped_gradient_is_shorter_and_points_the_same_way(tmp_path, monkeypatch):
    seen = watch_updates(monkeypatch, gradient)
    train(tmp_path / "clipped", clip_norm=0.05, max_epochs=1)
    clipped = seen[0]
    seen.clear()
    train(tmp_path / "whole", clip_norm="none", max_epochs=1)
    length = seen[0].norm()
    assert length > 1
    torch.testing.assert_close(clipped, seen[0] * 0.05 / length, rtol=1e-4, atol=1e-8)


STALL = {"schedule": "stall", "decays": 1, "patience_validations": 2, "decay_factor": 1e-30}


def stalling(**changes):
    """Return a recipe's keys under the schedule; the rate falls to (almost) nothing."""
    return STALL | {"decay_epochs": None} | changes


def test_a_stall_lowers_the_rate_and_goes_on_from_the_best_weights(tmp_path):
    validate, seen = scripted([10, 30, 20, 25, 29, 28, 99])
    model, course = train_to_its_end(tmp_path, validate=validate, **stalling())
    assert [row[RECALL_SUM] for row in course.history] == [10, 30, 20, 25, 29, 28]
    assert course.ended == "stalled"
    assert not torch.equal(seen[2], seen[1])
    assert torch.equal(seen[4], seen[1]), "it began at the best weights, at a rate of 1e-32"
    assert torch.equal(weights(model), seen[1])


def test_a_stall_is_followed_by_a_new_optimizer(tmp_path, monkeypatch):
    """Moments of the weights before would move the best ones (§3 of Denkowski & Neubig 2017)."""
    is_new = watch_updates(monkeypatch, lambda optimizer: not optimizer.state)
    validate, _ = scripted([10] * 5)  # the second and third bring no new best
    train(tmp_path, validate=validate, **stalling(validate_every_updates=2))
    assert [update for update, new in enumerate(is_new) if new] == [0, 6]
    assert len(is_new) == 10


def test_a_new_best_after_a_stall_counts_anew(tmp_path):
    validate, _ = scripted([10, 9, 8, 11, 10, 12, 11, 11, 99])
    _, course = train_to_its_end(tmp_path, validate=validate, **stalling(max_epochs=99))
    assert [row[RECALL_SUM] for row in course.history] == [10, 9, 8, 11, 10, 12, 11, 11]


@pytest.mark.parametrize(("decays", "validations"), [(0, 3), (1, 5), (3, 9)])
def test_so_many_stalls_lower_the_rate_and_the_next_ends_training(tmp_path, decays, validations):
    validate, _ = scripted([10] * 20)
    keys = stalling(decays=decays, validate_every_updates=6)
    _, course = train_to_its_end(tmp_path, validate=validate, **keys)
    assert (len(course.history), course.ended) == (validations, "stalled")


def test_a_row_says_when_the_cap_ended_it(tmp_path):
    validate, _ = scripted(range(20))
    keys = stalling(max_epochs=2, validate_every_updates="epoch")
    _, course = train_to_its_end(tmp_path, validate=validate, **keys)
    assert (len(course.history), course.ended) == (2, "cap")
    steps, _ = scripted([10] * 20)
    _, course = train_to_its_end(tmp_path / "steps", validate=steps, patience_validations=2)
    assert (len(course.history), course.ended) == (3, "stalled")


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_run_killed_around_a_stall_ends_with_the_same_weights(tmp_path, number):
    scores = [10, 30, 20, 25, 29, 28]
    keys = stalling(decay_factor=0.1, sentence_dropout=0.3)
    validate, seen = scripted(scores)
    _, expected = train_to_its_end(tmp_path / "whole", validate=validate, **keys)
    dying = killed_at(number, scripted(scores)[0])
    with pytest.raises(Killed):
        train_to_its_end(tmp_path / "killed", validate=dying, **keys)
    rest, seen_after = scripted(scores[number:])
    _, course = train_to_its_end(tmp_path / "killed", validate=rest, **keys)
    assert course == expected
    assert all(map(torch.equal, seen[number:], seen_after))


@pytest.mark.parametrize(("small", "cores"), [(65, 1), (64, 2)])
def test_small_recipes_train_on_one_core_and_leave_the_others_as_they_were(
    tmp_path, monkeypatch, small, cores
):
    # A batch of 4 sentences has states of 16 numbers each.
    monkeypatch.setattr(device, "SMALL", small)
    before, found = torch.get_num_threads(), set()

    def validate(model):
        found.add(torch.get_num_threads())
        return {RECALL_SUM: 0.0, MEAN_RANK: 0.0}

    torch.set_num_threads(2)
    try:
        train(tmp_path, validate=validate, max_epochs=1)
        assert (found, torch.get_num_threads()) == ({cores}, 2)
    finally:
        torch.set_num_threads(before)


def test_stops_after_max_epochs_and_validates_the_last_updates(tmp_path):
    # 6 images x 2 captions in batches of 4, two languages: 6 updates an epoch.
    _, history = train(tmp_path, max_epochs=5, validate_every_updates=20)
    assert [row["update"] for row in history] == [20, 30]
    assert history[-1]["epoch"] == 5


@pytest.mark.parametrize("objective", BUILDERS)
def test_an_interrupted_run_goes_on_and_ends_with_the_same_weights(
    tmp_path, objective, monkeypatch
):
    changes = {
        "objective": objective,
        "sentence_dropout": 0.3,
        "validate_every_updates": 5,
        "max_epochs": 8,
    }
    whole, expected = train(tmp_path / "whole", **changes)
    val = tiny.examples(tiny.learner(tiny.recipe(objective)), "val")
    dying = killed_at(3, lambda model: validation_scores(model, val, {}))
    with pytest.raises(Killed):
        train(tmp_path / "killed", validate=dying, **changes)
    updates = watch_updates(monkeypatch, id)
    resumed, history = train(tmp_path / "killed", **changes)
    assert torch.equal(weights(resumed), weights(whole))
    assert history == expected
    assert len(updates) == history[-1]["update"] - 3 * 5, "it began anew"


def _flip_a_bit(whole):
    archive = ZipFile(BytesIO(whole))
    largest = max(archive.infolist(), key=lambda info: info.file_size)
    place = whole.index(archive.read(largest))  # what pads the archive says nothing
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def _unpickle_nothing(whole):
    """Return an archive with right checksums whose pickle takes items of an empty stack."""
    changed = BytesIO()
    with ZipFile(BytesIO(whole)) as archive, ZipFile(changed, "w") as other:
        for info in archive.infolist():
            pickled = info.filename.endswith("data.pkl")
            other.writestr(info, b"\x80\x02s." if pickled else archive.read(info))
    return changed.getvalue()


def test_no_code_of_a_checkpoint_is_run(tmp_path, capsys):
    made = tmp_path / "made"
    torch.save({"network": Code(made)}, tmp_path / "checkpoint.pt")
    assert load_checkpoint(tmp_path / "checkpoint.pt", torch.device("cpu")) is None
    assert "the run begins anew" in capsys.readouterr().err
    assert not made.exists()


KILLED = {
    "steps": {"max_epochs": 40},
    "stall": {"max_epochs": 400, "decay_factor": 0.5, "decays": 9, "patience_validations": 1},
}


@pytest.mark.parametrize("schedule", KILLED)
def test_kill_9_and_resume_end_with_the_same_weights(tmp_path, schedule, capsys):
    """One run is killed in another process and continued in this one."""
    keys = KILLED[schedule] | {"schedule": schedule}
    keys |= {"decay_epochs": None} if schedule == "stall" else {}
    code = (
        "import sys, time; from pathlib import Path; import torch; torch.set_num_threads(1)\n"
        "from pipeline_lib.training import loop\n"
        "from test_training import train\n"
        "save = loop.save_checkpoint\n"  # slower, so that it is not done before it is killed
        "loop.save_checkpoint = lambda *what: (save(*what), time.sleep(0.2))\n"
        f"train(Path(sys.argv[1]), **{keys})\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, stderr=subprocess.DEVNULL
    )
    while not (tmp_path / "checkpoint.pt").exists():
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it had ended before"
    whole, expected = train(tmp_path / "whole", **keys)
    assert " 0/" in capsys.readouterr().err
    resumed, history = train(tmp_path, **keys)
    assert " 0/" not in capsys.readouterr().err, "it began anew"
    assert history == expected
    assert torch.equal(weights(resumed), weights(whole))


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-1000], lambda whole: b"", _flip_a_bit, _unpickle_nothing]
)
def test_a_damaged_checkpoint_is_no_dead_end(tmp_path, damage, capsys):
    whole, expected = train(tmp_path)
    checkpoint = tmp_path / "checkpoint.pt"
    checkpoint.write_bytes(damage(checkpoint.read_bytes()))
    capsys.readouterr()
    again, history = train(tmp_path)
    said = [line for line in capsys.readouterr().err.splitlines() if "checkpoint" in line]
    assert said == [f"{checkpoint}: the checkpoint is damaged: the run begins anew"]
    assert history == expected
    assert torch.equal(weights(again), weights(whole))


@pytest.mark.parametrize(
    "error",
    [RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError(), OSError(5, "I/O")],
)
def test_a_whole_checkpoint_that_cannot_be_read_now_is_kept(tmp_path, monkeypatch, error):
    train(tmp_path)

    def load(*_, **__):
        raise error

    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(type(error)):
        load_checkpoint(tmp_path / "checkpoint.pt", torch.device("cpu"))


def test_a_checkpoint_that_a_limit_forbids_names_the_limit(tmp_path):
    """PyTorch alone would say no more than that it could not write."""
    code = """
import resource, sys
from pathlib import Path
import torch
from pipeline_lib.training.checkpoints import save_checkpoint
resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
save_checkpoint(Path(sys.argv[1]), {"network": torch.zeros(2**16)})
"""
    path = tmp_path / "checkpoint.pt"
    ended = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert f"[Errno 27] File too large: '{path}'" in ended.stderr
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("objective", ["alternating", "joint"])
def test_a_language_may_have_one_image_of_a_batch(tmp_path, objective, precision):
    """It has no deviation to be normalised by."""
    pairs = tiny.pairs()
    lonely = (pairs["image_id"] == "tiny:0") & (pairs["position"] == 0)
    pairs = pairs[(pairs["language"] == "en") | lonely]
    changes = {"image_hidden_dims": [8], "precision": precision, "max_epochs": 2}
    _, history = train(tmp_path, pairs=pairs, objective=objective, **changes)
    assert np.isfinite(history[-1][RECALL_SUM])


def test_a_nan_loss_stops_the_run(tmp_path):
    with pytest.raises(FloatingPointError, match="learning_rate"):
        train(tmp_path, learning_rate=1e38)


def test_an_update_that_breaks_the_weights_stops_the_run_before_they_are_validated(tmp_path):
    with pytest.raises(FloatingPointError, match=r"a weight is .*: lower learning_rate"):
        train(tmp_path, learning_rate=1e38, validate_every_updates=1)


def test_weights_whose_vectors_are_no_numbers_stop_the_run(tmp_path, monkeypatch):
    def overflow(*_):
        raise FloatingPointError("vectors of the validation are infinite")

    monkeypatch.setattr("pipeline_lib.training.fitting._Fitting.validate", overflow)
    with pytest.raises(FloatingPointError, match=r"vectors .* infinite: lower learning_rate"):
        train(tmp_path)


def objective_of(pairs, **changes):
    learner = tiny.learner(tiny.recipe(**changes), captions=pairs)
    return build_objective(learner, tiny.examples(learner, captions=pairs), 1)


def test_caption_caption_pairs_are_all_pairs_of_an_image_in_two_languages():
    made = objective_of(tiny.pairs()).tasks
    assert [t.name for t in made if t.kind == CAPTION_CAPTION] == ["tiny de-tiny en"]
    assert made[-1].stream.items == tiny.IMAGES * 2 * 2


def test_sets_pair_by_the_images_that_both_describe():
    """The authors' code pairs only the first two sets of an image (audit, §3.6)."""
    pairs = [tiny.pairs("a"), tiny.pairs("b"), tiny.pairs("c")]
    pairs[0] = pairs[0][pairs[0]["language"] == "en"]
    pairs[2] = pairs[2][(pairs[2]["language"] == "de") & (pairs[2]["image_id"] < "tiny:2")]
    made = objective_of(pd.concat(pairs)).tasks
    sizes = {t.name: t.stream.items for t in made if t.kind == CAPTION_CAPTION}
    whole, some = tiny.IMAGES * 2 * 2, 2 * 2 * 2
    assert sizes == {
        "a en-b de": whole,
        "a en-c de": some,
        "b de-b en": whole,
        "b en-c de": some,
    }


def test_no_caption_caption_task_without_its_probability_or_without_common_images():
    without = objective_of(tiny.pairs(), caption_caption_probability=0.0)
    pairs = tiny.pairs()
    number = pairs["image_id"].str[-1].astype(int)
    disjoint = objective_of(pairs[(number < 3) == (pairs["language"] == "en")])
    for made in (without, disjoint):
        assert {task.kind for task in made.tasks} == {IMAGE_CAPTION}
        assert {made.choose(np.random.default_rng(i), i, []) for i in range(50)} == {0, 1}


def test_tasks_alternate_with_the_given_probability_and_data_sets_uniformly():
    both = pd.concat([tiny.pairs("a"), tiny.pairs("b")])
    made = objective_of(both, caption_caption_probability=0.25)
    chosen = np.array([made.choose(np.random.default_rng(i), i, []) for i in range(4000)])
    share = np.bincount(chosen, minlength=len(made.tasks)) / len(chosen)
    assert share[:4] == pytest.approx([0.75 / 4] * 4, abs=0.03)
    assert share[4:] == pytest.approx([0.25 / 4] * 4, abs=0.03)


def test_caption_caption_updates_wait_for_the_image_loss():
    made = objective_of(tiny.pairs(), caption_caption_below_loss=0.38)

    def kinds(history):
        chosen = {made.choose(np.random.default_rng(i), i, history) for i in range(50)}
        return {made.tasks[number].kind for number in chosen}

    high, low = {"loss_image_caption": 0.39}, {"loss_image_caption": 0.37}
    assert kinds([]) == kinds([high]) == {IMAGE_CAPTION}
    assert kinds([high, low]) == kinds([low, high]) == {IMAGE_CAPTION, CAPTION_CAPTION}


def test_vocabulary_never_sees_validation_captions():
    """Those of VSE++ and Calixto et al. do (audit, §3.3 and §3.4)."""
    pairs = tiny.pairs()
    before = build_vocabulary(pairs, tiny.recipe()).to_json()
    val = pairs["split"] == "val"
    pairs.loc[val, "tokens"] = pd.Series([["unseen"]] * val.sum(), index=pairs.index[val])
    assert build_vocabulary(pairs, tiny.recipe()).to_json() == before


def test_each_caption_keeps_its_tokens_and_its_image():
    """The field finds captions by 5 x index and language by index % 10 (audit, §3.3, §3.8)."""
    pairs, recipe = tiny.pairs(), tiny.recipe(vocabulary="per_language")
    vocabulary = build_vocabulary(pairs, recipe)
    corpus = build_examples(
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


def test_a_caption_in_two_sets_counts_once():
    """Of min_count, for one."""
    pairs = [tiny.pairs(name) for name in ("a", "b")]
    of_one = [each[each["position"] == 0] for each in pairs]
    once, twice = (
        build_vocabulary(each, tiny.recipe(min_count=2)).to_json()
        for each in (of_one[0], pd.concat(of_one))
    )
    assert once == twice
    assert once != build_vocabulary(of_one[0], tiny.recipe(min_count=1)).to_json()


def test_a_lexicon_is_read_in_both_directions():
    """MUSE's files lead from English, the first language of most recipes, to the others."""
    recipe = tiny.recipe("mixed")
    vocabulary = build_vocabulary(tiny.pairs(), recipe)
    into, swap = tiny.lexicon(), {"source": "target", "target": "source"}
    out_of = into.rename(columns=lambda name: "_".join(swap.get(p, p) for p in name.split("_")))
    [ids] = encode_lexicon(into, vocabulary, recipe).values()
    [swapped] = encode_lexicon(out_of, vocabulary, recipe).values()
    assert len(ids) == tiny.IMAGES
    assert torch.equal(ids, swapped)


def test_missing_languages_and_features_are_named():
    recipe = tiny.recipe(languages=["en", "de", "fr"])
    pairs = tiny.pairs()
    vocabulary = build_vocabulary(pairs, tiny.recipe())
    with pytest.raises(ContractError, match="no train caption in fr"):
        build_examples(pairs, "train", tiny.features(), vocabulary, recipe)
    whole = tiny.features()
    some = Features(whole.image_ids[2:], whole.vectors[2:], {})
    with pytest.raises(ContractError, match="2 images have no features"):
        build_examples(pairs, "train", some, vocabulary, tiny.recipe())


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
