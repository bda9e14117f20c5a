"""Caption the images of one pair set with captions of another that a teacher finds similar."""

from pathlib import Path

import click
import pandas as pd

from pipeline_lib.contract.facts import read_facts
from pipeline_lib.contract.reports import write_report
from pipeline_lib.contract.tables import pairs_of_seed, read_pairs, write_pairs
from pipeline_lib.models.joint_space import JointSpace
from pipeline_lib.running.edge import EdgeCommand
from pipeline_lib.settings.loading import load_settings
from pipeline_lib.settings.strict import choose
from pipeline_lib.synthesis.pseudopair_analysis import (
    agreement,
    known_truth,
    overlap,
    reuse,
    similarities,
    stability,
)
from pipeline_lib.synthesis.pseudopairs import borrow, match_captions, training_captions


@click.command(cls=EdgeCommand, help=__doc__)
@click.argument("name")
def main(name: str) -> None:
    """Write data/pairs/NAME.parquet; metrics/reports/pseudopairs/NAME.json, of the first seed."""
    chosen = choose(load_settings().pseudopairs, name, "pseudopair set")
    sides = (chosen.images_of, chosen.captions_of)
    borrowing, lent = (training_captions(_read(side.pairs), side) for side in sides)
    facts = (
        read_facts(Path(s.facts), t["dataset"].iloc[0])
        for s, t in zip(sides, (borrowing, lent), strict=True)
    )
    truth = known_truth(borrowing, lent, *facts)
    teachers = (Path(f"data/models/{chosen.teacher}/seed-{seed}") for seed in chosen.seeds)
    matches = [
        match_captions(JointSpace.load(teacher).to_best_device(), borrowing, lent, chosen)
        for teacher in teachers
    ]
    pseudopairs = [
        borrow(borrowing, lent, found, name, seed)
        for found, seed in zip(matches, chosen.seeds, strict=True)
    ]
    others = pairs_of_seed(_read(chosen.compare_with), chosen.seeds[0])
    report = {
        "similarities": similarities(matches[0], len(borrowing)),
        "reuse": reuse(matches[0].lent, len(lent)),
        "overlap": overlap(pseudopairs[0], others[others["set"] == chosen.compare_with]),
        "between_seeds": stability(pseudopairs),
        "agreement": agreement(truth, matches[0]),
    }
    tables = [table for table in (_read(chosen.plus), *pseudopairs) if len(table)]
    write_pairs(pd.concat(tables), Path(f"data/pairs/{name}.parquet"))
    write_report(report, Path(f"metrics/reports/pseudopairs/{name}.json"))


def _read(pairs: str) -> pd.DataFrame:
    return read_pairs(Path(f"data/pairs/{pairs}.parquet"))


if __name__ == "__main__":
    main()
