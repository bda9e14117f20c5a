"""params.yaml: what the recipes are evaluated on."""

from typing import Annotated

from pydantic import Field

from pipeline_lib.settings.strict import Count, Strict


class RetrievalEvaluation(Strict):
    """Image-text retrieval: the split it is measured on, and its confidence intervals."""

    split: str
    bootstrap_samples: Count
    confidence: Annotated[float, Field(gt=0, lt=1)]
    seed: int


class Evaluations(Strict):
    """The tasks that recipes are measured on."""

    retrieval: RetrievalEvaluation
