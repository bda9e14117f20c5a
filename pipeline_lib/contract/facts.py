"""What each caption and each image of a generated world says, where the truth is known."""

import json
from dataclasses import dataclass
from pathlib import Path

from pipeline_lib.contract.digests import reading
from pipeline_lib.contract.problems import ContractError
from pipeline_lib.running.publishing import publish

Fact = tuple[str, str, str]


@dataclass(frozen=True)
class Facts:
    """Facts that captions state and that hold in images; empty where nobody knows them."""

    captions: dict[str, frozenset[Fact]]
    images: dict[str, frozenset[Fact]]


def read_facts(path: Path, dataset: str) -> Facts:
    """Read the truth about a generated data set (truth.jsonl), by caption id and image id."""
    facts = Facts({}, {})
    with reading(path, "lines of JSON"):
        lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            truth = json.loads(line)
            image = truth["image"].rpartition(".")[0]
            facts.images[f"{dataset}:{image}"] = _facts(truth["facts"])
            for name, stated in truth["captions"].items():
                facts.captions[f"{dataset}/{image}/{name}"] = _facts(stated)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ContractError(
                f"{path}:{number}: expected an object with image, facts and captions as a "
                f"generated world writes it, found {line[:60]!r}. Name a truth.jsonl, or "
                "data/facts/none.jsonl."
            ) from error
    return facts


def write_no_facts(path: Path) -> None:
    """Publish the facts of a data set whose truth nobody knows."""
    with publish(path) as temporary:
        temporary.write_text("\n")  # DVC warns of empty files


def _facts(rows: list[list[str]]) -> frozenset[Fact]:
    return frozenset((subject, name, value) for subject, name, value in rows)
