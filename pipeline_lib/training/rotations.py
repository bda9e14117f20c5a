"""The orthogonal maps between word spaces: where they start, and their steps during training.

§3.2 of Mohammadshahi et al. 2019. Each language but the recipe's first is mapped into the first.
Retrieval tunes words and never the maps; alignment moves the maps and never the words.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.alignment import Translations, procrustes, rcsls_step
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.settings.objectives import Mixed
from pipeline_lib.text.vocabulary import SPECIALS
from pipeline_lib.training.examples import Examples
from pipeline_lib.training.loop import State


@torch.no_grad()
def start_rotations(model: JointSpace, examples: Examples, recipe: Mixed) -> None:
    """Set each map to the orthogonal one that fits the lexicon best (Procrustes).

    Raises:
        ContractError: Lists the languages of which the lexicon has no word pair.
    """
    _check_lexicon(examples, recipe)
    for language, rotation in model.sentence_encoder.rotations.items():
        words = _translations(model, examples.lexicon[language], language, recipe)
        source, target = words.pairs.T
        rotation.copy_(procrustes(words.source[source], words.target[target]))


class Aligner:
    """Takes the steps of the alignment loss, one per map each time."""

    def __init__(self, examples: Examples, recipe: Mixed) -> None:
        """Remember the lexicon, in ids.

        Raises:
            ContractError: As :func:`start_rotations`.
        """
        _check_lexicon(examples, recipe)
        self.lexicon, self.recipe = examples.lexicon, recipe

    def step(self, model: JointSpace, state: State) -> None:
        """Move each map one step down the RCSLS loss (Eq. 3); ``state`` keeps step sizes."""
        for language, rotation in model.sentence_encoder.rotations.items():
            words = _translations(model, self.lexicon[language], language, self.recipe)
            if not (words.source.isfinite().all() and words.target.isfinite().all()):
                return  # training has broken them, which the next validation says
            key = f"alignment_step_{language}"
            (size,) = state.get(key, [self.recipe.alignment_learning_rate])
            step = rcsls_step(rotation.detach(), words, self.recipe.alignment_neighbours, size)
            with torch.no_grad():
                rotation.copy_(step.rotation)
            state[key] = [step.step_size]


def _check_lexicon(examples: Examples, recipe: Mixed) -> None:
    first, *others = recipe.languages
    lonely = [language for language in others if not len(examples.lexicon.get(language, ()))]
    if lonely:
        raise ContractError(
            f"lexicon {recipe.lexicon}: no translation of training words between "
            f"{first} and {', '.join(lonely)}. Name a lexicon of these languages, or "
            "set orthogonal_map: false."
        )


def _translations(model: JointSpace, lexicon: Tensor, language: str, recipe: Mixed) -> Translations:
    source, target = (_unit_words(model, name) for name in (language, recipe.languages[0]))
    return Translations(source, target, lexicon.to(source.device) - len(SPECIALS))


def _unit_words(model: JointSpace, language: str) -> Tensor:
    # Markers are no words, nor are pieces: nobody's neighbours.
    first, words = len(SPECIALS), len(model.vocabulary.table(language).words)
    table = model.sentence_encoder.word_table(language).weight.detach()
    return F.normalize(table[first : first + words], dim=1)
