"""The reference of benchmarks.training: the loop that the field's code bases train with.

A data set that returns one item at a time, shuffled batches, packed sequences through
``torch.nn.GRU``, Adam.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from pipeline_lib.settings.recipes import Recipe
from pipeline_lib.text.vocabulary import Vocabulary
from pipeline_lib.training.examples import Examples, Sentences


class PlainDataset(Dataset):
    """One (image features, words) pair at a time."""

    def __init__(self, examples: Examples, sentences: Sentences) -> None:
        self.examples, self.sentences = examples, sentences

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        length = int(self.sentences.lengths[row])
        image = int(self.sentences.image_index[row])
        return self.examples.features[image], self.sentences.token_ids[row, :length]


def collate(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Sort by length, as packing demands, and pad."""
    items.sort(key=lambda item: len(item[1]), reverse=True)
    lengths = torch.tensor([len(words) for _, words in items])
    padded = nn.utils.rnn.pad_sequence([words for _, words in items], batch_first=True)
    return torch.stack([image for image, _ in items]), padded, lengths


class PlainModel(nn.Module):
    """Embedding, packed GRU, image layer: the model of Kádár et al. 2019, §3.1."""

    def __init__(self, recipe: Recipe, words: int, feature_dim: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, recipe.word_dim)
        self.gru = nn.GRU(recipe.word_dim, recipe.embed_dim, batch_first=True)
        self.image = nn.Linear(feature_dim, recipe.embed_dim)

    def forward(self, images: Tensor, token_ids: Tensor, lengths: Tensor) -> Tensor:
        """Return the cosines of all images and captions of a batch."""
        packed = nn.utils.rnn.pack_padded_sequence(self.words(token_ids), lengths, batch_first=True)
        captions = self.gru(packed)[1][0]
        images = self.image(F.normalize(images, dim=1))
        return F.normalize(images, dim=1) @ F.normalize(captions, dim=1).T


class PlainTraining:
    """Updates of the plain loop, its languages taken in turn."""

    def __init__(self, recipe: Recipe, examples: Examples, vocabulary: Vocabulary) -> None:
        """Make the model and a loader per language."""
        torch.manual_seed(1)
        self.recipe = recipe
        words = vocabulary.size(recipe.languages[0])
        self.model = PlainModel(recipe, words, examples.features.shape[1])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=recipe.learning_rate)
        endless = [_endless(examples, of, recipe.batch_size) for of in examples.sentences.values()]
        self.batches = (batch for batches in zip(*endless, strict=True) for batch in batches)

    def __call__(self) -> int:
        """Make one update and return how many captions it read."""
        images, token_ids, lengths = next(self.batches)
        margin, scores = self.recipe.margin, self.model(images, token_ids, lengths)
        diagonal = scores.diag().view(-1, 1)
        itself = torch.eye(len(scores), dtype=torch.bool)
        captions = (margin + scores - diagonal).clamp(min=0).masked_fill(itself, 0)
        others = (margin + scores - diagonal.T).clamp(min=0).masked_fill(itself, 0)
        self.optimizer.zero_grad()
        (captions.max(1)[0].sum() + others.max(0)[0].sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        self.optimizer.step()
        return len(images)


def _endless(
    examples: Examples, sentences: Sentences, batch_size: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    loader = DataLoader(
        PlainDataset(examples, sentences), batch_size, shuffle=True, collate_fn=collate
    )
    while True:
        yield from loader
