"""Which of a model's languages a query is in."""

import math
from functools import cached_property

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.models.embedder import Embedder

_FLOOR = 1e-6
"""Least probability of a language: the identifier has a hundred, and is sure of itself."""

_UNKNOWN = 6.0
"""By how much, as a logarithm, a sentence of unknown words is less likely in a language."""


class LanguageError(ContractError):
    """A text seems to be in no language of the model; whoever catches it says how to name one."""


class LanguageDetector:
    """Finds a query's language by its letters (py3langid) and by the words that the model knows.

    Queries are short: "Hand" is English, German and Dutch. Of the model's languages the one is
    taken whose probability, times that of its unknown words, is highest. Languages that the
    identifier does not have, as most codes of three letters, share what it gives to no other.
    """

    def __init__(self, embedder: Embedder) -> None:
        """Take the model whose languages there are."""
        self.embedder = embedder

    def load(self) -> None:
        """Load the identifier now."""
        self._identifier.rank("a")

    def detect(self, text: str) -> str:
        """Return the language of a query.

        Raises:
            LanguageError: If it is in none that the model has.
        """
        probabilities = dict(self._identifier.rank(text))
        unknown = {each: self._unknown_share(text, each) for each in self.embedder.languages}
        here = sum(probabilities.get(each, 0) for each in unknown)
        scores = {
            each: math.log(max(probabilities.get(each, 1 - here), _FLOOR)) - _UNKNOWN * share
            for each, share in unknown.items()
        }
        best = max(scores, key=scores.get)
        likely = max(probabilities, key=probabilities.get)
        # Of a few letters it is sure of nothing: "old bicycle" is English by .19, its most likely.
        elsewhere = probabilities.keys() >= unknown.keys() and likely not in unknown
        if elsewhere and here < 0.5 and unknown[best] > 0.5:
            raise LanguageError(
                f"expected one of the model's languages ({', '.join(unknown)}), found {text!r}, "
                f"which looks like {likely}"
            )
        return best

    def _unknown_share(self, text: str, language: str) -> float:
        known = self.embedder.words(text, language).values()
        return 1 - sum(known) / len(known) if known else 1.0

    @cached_property
    def _identifier(self) -> LanguageIdentifier:
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
