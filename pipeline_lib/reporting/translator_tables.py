"""The tables of machine translation: how well translators translate, and what re-ranking brings."""

from collections.abc import Mapping

from pipeline_lib.reporting.reports import Reports
from pipeline_lib.reporting.study_tables import NOTHING, number
from pipeline_lib.reporting.tables import Table


def translator_table(reports: Reports) -> Table | None:
    """Return the quality of every translator's best translations, by split."""
    rows = [
        [
            name,
            split,
            f"{found['n_segments']:,}",
            *_scores(found),
            f"{report['updates']:,}",
            f"{report['pairs']['train']:,}",
        ]
        for name, report in reports.items()
        for split, found in sorted(report["quality"].items())
    ]
    header = ["translator", "split", "sentences", "BLEU", "TER", "chrF", "updates", "trained on"]
    title = "Translators: sacrebleu's BLEU, TER and chrF of the best translation of each sentence"
    return Table("translators", title, header, rows, labels=2) if rows else None


def reranking_table(reports: Reports) -> Table | None:
    """Return the quality of the test translations that come first, and its bounds."""
    rows = []
    for name, report in reports.items():
        test, own = report["test"], report["control"]["weights"]
        added = [feature for feature in report["reranked"]["weights"] if feature not in own]
        for key, words, p in (
            ("own", "the translator", ()),
            ("control", f"its {', '.join(own)}", ()),
            ("reranked", f"these and {', '.join(added)}", ("p_bleu", "p_ter", "p_bleu_control")),
        ):
            found = test[key]
            cells = [name, words, f"{found['n_segments']:,}", *_scores(found)]
            cells.append(number(found.get("meteor", float("nan"))))
            rows.append([*cells, *(f"{test[each]:.3f}" for each in p)] + [NOTHING] * (3 - len(p)))
        for key, words in (("random_bleu", "chance"), ("oracle_bleu", "hindsight")):
            rows.append([name, words, rows[-1][2], f"{test[key]:.1f}", *[NOTHING] * 6])
    header = ["re-ranking", "ranked by", "sentences", "BLEU", "TER", "chrF", "METEOR"]
    header += ["p of BLEU", "p of TER", "p of BLEU, second line"]
    title = (
        "N-best lists of the test split, ranked with weights that were tuned on val; p against the "
        "translator's own choice, or against the second line. Tokenised lower-case text"
    )
    return Table("rerankings", title, header, rows, labels=2) if rows else None


def _scores(found: Mapping[str, object]) -> list[str]:
    """Return BLEU and TER with their intervals, and chrF."""
    cells = []
    for name in ("bleu", "ter"):
        low, high = found[f"{name}_interval"]
        cells.append(f"{found[name]:.1f} ({low:.1f}–{high:.1f})")
    return [*cells, f"{found['chrf']:.1f}"]
