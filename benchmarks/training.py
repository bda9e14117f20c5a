"""Training speed of each family, and of the Kádár recipe against a plain PyTorch loop.

``python -m benchmarks.training`` trains on captions as long as those of Flickr8k in English and
German (mean 12 and 10 words), each recipe with its paper's sizes. The Kádár recipe is trained with
this library, and with the loop that the field's code bases use (benchmarks.plain_training). All
take turns, so that a machine that slows down slows all; figures are medians over rounds, the ratio
is that of captions per second to the plain loop's.

``encoder`` is the share of an update that the sentence encoder takes: its forward and backward
pass alone, on what the update read, over the whole update. AME's steps of alignment, one every 500
updates, are not among those measured.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import click
import numpy as np
import torch

from benchmarks.plain_training import PlainTraining
from pipeline_lib.compute.arithmetic.mode import arithmetic
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.recipes import Recipe, make_recipe, merge
from pipeline_lib.text.vocabulary import SPECIALS, Vocabulary
from pipeline_lib.training import ranks
from pipeline_lib.training.examples import Examples, Sentences
from pipeline_lib.training.learner import Learner
from pipeline_lib.training.objectives import build_objective
from pipeline_lib.training.optimization import make_optimizer
from pipeline_lib.training.preparation import new_learner

IMAGES, PER_IMAGE, WORDS, FEATURE_DIM = 5644, 5, 2859, 1280
LENGTHS = {"en": (11.75, 3.87), "de": (10.19, 4.49)}
"""Mean and standard deviation of words per caption, measured on the Flickr8k photos."""

PARAMS = Path(__file__).resolve().parent.parent / "params.yaml"
ROW = {
    "dataset": "synthetic", "pairs": "synthetic", "features": "synthetic", "more_features": "none",
    "initial": "none", "word_vectors": "random", "lexicon": "none", "languages": ["en", "de"],
    "seeds": [1],
}  # fmt: skip
ORDER = {"similarity": "squared_order", "absolute": True, "margin": 0.05}
ALIGNED = {"orthogonal_map": True, "lexicon": "synthetic", "alignment_every_updates": 500}
MULE = {
    "sentence_neighbourhood_weight": 1.0, "word_neighbourhood_weight": 1.0,
    "classifier_weight": 1e-6,
}  # fmt: skip

PLAIN, OURS = "Kádár, plain loop, f32", "Kádár"
RECIPES = {
    "Kádár, f32": {"paper": "kadar2019", "precision": "f32"},
    OURS: {"paper": "kadar2019"},
    "VSE": {"paper": "kiros2014", "languages": ["en"]},
    "MLMME": {"paper": "calixto2017", "beta": 0.5},
    "MULE": {"paper": "kim2020", **MULE},
    "AME": {"paper": "mohammadshahi2019", **ALIGNED},
    "AME, asymmetric": {"paper": "mohammadshahi2019", **ALIGNED, **ORDER},
    "Polyview, f32": {"paper": "polyview", "image_crops": 1, "text_photos": 0},
}
"""Of each family its headline row; in bf16 where nothing else is said."""


class Training:
    """Updates of one recipe by this library."""

    def __init__(self, learner: Learner, examples: Examples) -> None:
        """Train an untrained learner on examples of its device."""
        self.recipe, self.update, self.read = learner.recipe, 0, []
        self.model, self.objective = learner.space, build_objective(learner, examples, seed=1)
        self.taken = [0] * len(self.objective.tasks)
        self.tuned = [p for p in learner.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.recipe, learner)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.learning_rate
        encoder = self.model.sentence_encoder
        for reader in getattr(encoder, "recurrent", {"all": encoder}).values():
            reader.register_forward_pre_hook(lambda *call: self.read.append(call))

    @classmethod
    def synthetic(cls, recipe: Recipe, device: str | torch.device = "cpu") -> Self:
        """Train on drawn captions and features of Flickr8k's sizes."""
        examples, vocabulary = synthetic_examples(recipe, device)
        return cls(new_learner(recipe, vocabulary, FEATURE_DIM, seed=1).to(device), examples)

    def __call__(self) -> int:
        """Make one update, as fitting does, and return how many captions it read."""
        with arithmetic(self.recipe.precision):
            return self._update()

    def _update(self) -> int:
        self.read.clear()
        random = np.random.default_rng(self.update)
        number = self.objective.choose(random, self.update, [])
        task = self.objective.tasks[number]
        self.optimizer.zero_grad()
        task.loss(self.model, task.stream[self.taken[number]]).backward()
        ranks.sum_gradients(self.tuned)  # benchmarks.scale has several
        if self.recipe.clip_norm != "none":
            torch.nn.utils.clip_grad_norm_(self.tuned, self.recipe.clip_norm)
        self.optimizer.step()
        self.taken[number] += 1
        self.update += 1
        self.objective.after_update(self.model, self.update, {})
        return sum(_captions(inputs) for _, inputs in self.read)

    def encode(self) -> None:
        """Run words and sentence encoder alone, there and back, on what the last update read."""
        self.optimizer.zero_grad()
        with arithmetic(self.recipe.precision):
            for reader, inputs in tuple(self.read):
                states = reader(*inputs)
                states.backward(torch.ones_like(states))


def _captions(inputs: tuple[object, ...]) -> int:
    """Return of how many captions an encoder was given the lengths."""
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    return next(len(each) for each in tensors if each.dim() == 1)


@click.command(help=__doc__)
@click.option("--captions", default=2560, help="Captions per round and recipe, or a few more.")
@click.option("--rounds", default=5, help="Rounds; the recipes take turns.")
def main(captions: int, rounds: int) -> None:
    """Print a table and the ratio."""
    recipes = load_recipes()
    trainings = {name: Training.synthetic(recipe) for name, recipe in recipes.items()}
    kadar = recipes[OURS]
    plain = PlainTraining(kadar, *synthetic_examples(kadar))
    rates: dict[str, list[float]] = {name: [] for name in (PLAIN, *trainings)}
    shares: dict[str, list[float]] = {name: [] for name in rates}
    for number in range(rounds + 1):
        found = {PLAIN: measure(plain, None, captions)}
        found |= {name: measure(t, t.encode, captions) for name, t in trainings.items()}
        for name, (rate, share) in found.items():
            if number:  # the first round warms up
                rates[name].append(rate)
                shares[name].append(share)
    report({name: statistics.median(of) for name, of in rates.items()}, shares)


def load_recipes() -> dict[str, Recipe]:
    """Return the recipes of :data:`RECIPES` at their papers' sizes."""
    return {name: load_recipe(name) for name in RECIPES}


def load_recipe(name: str, **changes: object) -> Recipe:
    """Return one of them, with some keys changed."""
    row, settings = ROW | RECIPES[name] | changes, load_settings(PARAMS)
    return make_recipe(merge(settings.shared | settings.papers[row["paper"]], {}, row)[1])


def measure(
    update: Callable[[], int], encode: Callable[[], None] | None, captions: int
) -> tuple[float, float]:
    """Return captions per second, and the time of ``encode`` over that of the updates."""
    read, updating, encoding = 0, 0.0, 0.0
    while read < captions:
        start = time.perf_counter()
        read += update()
        done = time.perf_counter()
        if encode:
            encode()
        updating, encoding = updating + done - start, encoding + time.perf_counter() - done
    return read / updating, encoding / updating


def report(rates: dict[str, float], shares: dict[str, list[float]]) -> None:
    """Print the table, and the ratio of the Kádár recipe to the plain loop."""
    print(f"{'recipe':<28} captions/s   ratio   encoder   ({torch.get_num_threads()} threads)")
    for name, rate in rates.items():
        of_kadar = name.startswith(OURS)
        ratio = f"{rate / rates[PLAIN]:7.2f}" if of_kadar else " " * 7
        share = " " * 9 if name == PLAIN else f"{statistics.median(shares[name]):9.0%}"
        print(f"{name:<28} {rate:10.0f} {ratio} {share}")
    print(f"training ratio={rates[OURS] / rates[PLAIN]:.2f}")


def synthetic_examples(
    recipe: Recipe, device: str | torch.device = "cpu"
) -> tuple[Examples, Vocabulary]:
    """Return examples with Flickr8k's sizes and a Zipf distribution of words."""
    random = np.random.default_rng(1)
    words = [f"w{number}" for number in range(WORDS)]
    vocabulary = Vocabulary.build(
        {language: [words] for language in recipe.languages}, min_count=1,
        pooled=recipe.vocabulary == "pooled", markers=recipe.markers, oov=recipe.oov,
        max_tokens=WORDS,
    )  # fmt: skip
    features = torch.from_numpy(random.random((IMAGES, FEATURE_DIM), dtype=np.float32)).to(device)
    sentences = {
        ("synthetic", name): _sentences(name, random).to(device) for name in recipe.languages
    }
    lexicon = torch.arange(len(SPECIALS), len(SPECIALS) + WORDS).repeat(2, 1).T
    return Examples(features, sentences, dict.fromkeys(recipe.languages[1:], lexicon)), vocabulary


def _sentences(language: str, random: np.random.Generator) -> Sentences:
    mean, deviation = LENGTHS[language]
    shape = (mean / deviation) ** 2
    drawn = random.gamma(shape, mean / shape, IMAGES * PER_IMAGE)
    lengths = drawn.round().clip(1).astype(np.int64) + 2  # two markers
    ranks = random.zipf(1.2, (len(lengths), lengths.max())) % WORDS
    return Sentences(
        token_ids=torch.from_numpy(len(SPECIALS) + ranks),
        lengths=torch.from_numpy(lengths),
        image_index=torch.arange(IMAGES).repeat_interleave(PER_IMAGE),
    )


if __name__ == "__main__":
    main()
