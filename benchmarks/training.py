"""Training speed of the Kádár recipe against a plain PyTorch loop, in captions per second.

``python -m benchmarks.training`` trains the same model twice on captions as long as those of
Flickr8k in English and German (mean 12 and 10 words): with this library, and with the loop that
the field's code bases use, written here: a data set that returns one item at a time, shuffled
batches of 128, packed sequences through ``torch.nn.GRU``, Adam. The two alternate, so that a
machine that slows down slows both; the ratio is that of the medians.
"""

import statistics
import time
from collections.abc import Callable, Iterator

import click
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.corpus import Corpus, Sentences
from pipeline_lib.training.tasks import build_tasks

IMAGES, PER_IMAGE, WORDS, FEATURE_DIM = 5644, 5, 2859, 1280
LENGTHS = {"en": (11.75, 3.87), "de": (10.19, 4.49)}
"""Mean and standard deviation of words per caption, measured on the Flickr8k photos."""

RECIPE = Recipe(
    paper="kadar2019", dataset="synthetic", pairs="synthetic", features="synthetic",
    more_features="none", languages=["en", "de"], seeds=[1], word_dim=300, embed_dim=1024,
    vocabulary="pooled", min_count=1, markers="both", oov="unk", max_tokens=100,
    normalize_features=True, similarity="cosine", margin=0.2, violations="max", warmup_updates=0,
    batch_size=128, length_window_batches=1, caption_caption_probability=0.0, learning_rate=2e-4,
    clip_norm=2.0, validate_every_updates=500, patience_validations=10, max_epochs=1,
    precision="bf16",
)  # fmt: skip

Step = Callable[[], int]
"""One update; returns its captions."""


@click.command(help=__doc__)
@click.option("--updates", default=20, help="Updates per round and loop.")
@click.option("--rounds", default=5, help="Rounds; the two loops take turns.")
def main(updates: int, rounds: int) -> None:
    """Print a table and the ratio."""
    corpus, vocabulary = synthetic_corpus(np.random.default_rng(1))
    steps = {
        "plain loop, f32": reference_steps(corpus, vocabulary),
        "ours, f32": our_steps(corpus, vocabulary, precision="f32"),
        "ours, f32, length windows of 20": our_steps(
            corpus, vocabulary, precision="f32", length_window_batches=20
        ),
        "ours, bf16": our_steps(corpus, vocabulary),
        "ours, bf16, length windows of 20": our_steps(corpus, vocabulary, length_window_batches=20),
    }
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds + 1):
        for name, step in steps.items():
            rate = captions_per_second(step, updates)
            if number:  # the first round warms up
                rates[name].append(rate)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    reference = medians["plain loop, f32"]
    print(f"{'loop':<34} captions/s   ratio   ({torch.get_num_threads()} threads)")
    for name, rate in medians.items():
        print(f"{name:<34} {rate:10.0f} {rate / reference:7.2f}")
    print(f"training ratio={medians['ours, bf16'] / reference:.2f}")


def captions_per_second(step: Step, updates: int) -> float:
    """Return the rate of a number of updates."""
    start = time.perf_counter()
    captions = sum(step() for _ in range(updates))
    return captions / (time.perf_counter() - start)


def synthetic_corpus(random: np.random.Generator) -> tuple[Corpus, Vocabulary]:
    """Return a corpus with Flickr8k's sizes and a Zipf distribution of words."""
    words = [f"w{number}" for number in range(WORDS)]
    vocabulary = Vocabulary.build(
        {"en": [words], "de": [words]}, pooled=True, min_count=1, markers="both", oov="unk",
        max_tokens=WORDS,
    )  # fmt: skip
    features = torch.from_numpy(random.random((IMAGES, FEATURE_DIM), dtype=np.float32))
    sentences = {("synthetic", language): _sentences(language, random) for language in LENGTHS}
    return Corpus(features, sentences), vocabulary


def _sentences(language: str, random: np.random.Generator) -> Sentences:
    mean, deviation = LENGTHS[language]
    shape = (mean / deviation) ** 2
    drawn = random.gamma(shape, mean / shape, IMAGES * PER_IMAGE)
    lengths = drawn.round().clip(1).astype(np.int64) + 2  # two markers
    ranks = random.zipf(1.2, (len(lengths), lengths.max())) % WORDS
    return Sentences(
        token_ids=torch.from_numpy(4 + ranks),
        lengths=torch.from_numpy(lengths),
        image_index=torch.arange(IMAGES).repeat_interleave(PER_IMAGE),
    )


def our_steps(corpus: Corpus, vocabulary: Vocabulary, **changes: object) -> Step:
    """Return the update of this library, its tasks taken in turn."""
    recipe = RECIPE.model_copy(update=changes)
    model = JointSpace(recipe, vocabulary, FEATURE_DIM, seed=1)
    tasks = build_tasks(corpus, recipe, seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, fused=True)
    numbers = iter(range(10**9))

    def step() -> int:
        number = next(numbers)
        task = tasks[number % len(tasks)]
        rows = task.stream[number // len(tasks)]
        optimizer.zero_grad()
        task.loss(model, rows, recipe.violations).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        return len(rows)

    return step


class PlainDataset(Dataset):
    """One (image features, words) pair at a time."""

    def __init__(self, corpus: Corpus, sentences: Sentences) -> None:
        self.corpus, self.sentences = corpus, sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        length = int(self.sentences.lengths[row])
        image = int(self.sentences.image_index[row])
        return self.corpus.features[image], self.sentences.token_ids[row, :length]


def collate(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Sort by length, as packing demands, and pad."""
    items.sort(key=lambda item: len(item[1]), reverse=True)
    lengths = torch.tensor([len(words) for _, words in items])
    padded = nn.utils.rnn.pad_sequence([words for _, words in items], batch_first=True)
    return torch.stack([image for image, _ in items]), padded, lengths


class PlainModel(nn.Module):
    """Embedding, packed GRU, image layer: the model of Kádár et al. 2019, §3.1."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, RECIPE.word_dim)
        self.gru = nn.GRU(RECIPE.word_dim, RECIPE.embed_dim, batch_first=True)
        self.image = nn.Linear(FEATURE_DIM, RECIPE.embed_dim)

    def forward(self, images: Tensor, token_ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the cosines of all images and captions of a batch."""
        packed = nn.utils.rnn.pack_padded_sequence(self.words(token_ids), lengths, batch_first=True)
        captions = self.gru(packed)[1][0]
        images = self.image(F.normalize(images, dim=1))
        return F.normalize(images, dim=1) @ F.normalize(captions, dim=1).T


def reference_steps(corpus: Corpus, vocabulary: Vocabulary) -> Step:
    """Return the update of the plain loop, its languages taken in turn."""
    torch.manual_seed(1)
    model = PlainModel(vocabulary.size("en"))
    optimizer = torch.optim.Adam(model.parameters(), lr=RECIPE.learning_rate)
    endless = [_endless(corpus, sentences) for sentences in corpus.sentences.values()]
    both = (batch for pair in zip(*endless, strict=True) for batch in pair)

    def step() -> int:
        images, token_ids, lengths = next(both)
        scores = model(images, token_ids, lengths)
        diagonal = scores.diag().view(-1, 1)
        itself = torch.eye(len(scores), dtype=torch.bool)
        captions = (RECIPE.margin + scores - diagonal).clamp(min=0).masked_fill(itself, 0)
        others = (RECIPE.margin + scores - diagonal.T).clamp(min=0).masked_fill(itself, 0)
        optimizer.zero_grad()
        (captions.max(1)[0].sum() + others.max(0)[0].sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE.clip_norm)
        optimizer.step()
        return len(images)

    return step


def _endless(corpus: Corpus, sentences: Sentences) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    loader = DataLoader(
        PlainDataset(corpus, sentences), RECIPE.batch_size, shuffle=True, collate_fn=collate
    )
    while True:
        yield from loader


if __name__ == "__main__":
    main()
