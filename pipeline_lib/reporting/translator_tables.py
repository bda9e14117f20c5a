"""The tables of machine translation: how well translators translate, and what re-ranking brings."""

from collections.abc import Mapping

from pipeline_lib.reporting.reports import Reports
from pipeline_lib.reporting.study_tables import number
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
    """Return the quality of the translations that come first before and after re-ranking."""
    rows = []
    for name, report in reports.items():
        for split in ("val", "test"):
            found = report[split]
            own, ranked = found["own"], found["reranked"]
            rows.append(
                [
                    f"{name}: {', '.join(report['weights'])}",
                    split,
                    f"{own['n_segments']:,}",
                    *_scores(own)[:2],
                    *_scores(ranked)[:2],
                    *(number(each.get("meteor", float("nan"))) for each in (own, ranked)),
                    f"{found['p_bleu']:.3f}",
                    f"{found['p_ter']:.3f}",
                    f"{found['random_bleu']:.1f}",
                    f"{found['oracle_bleu']:.1f}",
                ]
            )
    header = ["re-ranking: features", "split", "sentences", "own BLEU", "own TER", "BLEU", "TER"]
    header += ["own METEOR", "METEOR", "p of BLEU", "p of TER", "chance BLEU", "oracle BLEU"]
    title = (
        "N-best lists: the translator's own first choice, and that of weights tuned on val; "
        "chance and the best choice in hindsight bound both. Tokenised lower-case text"
    )
    return Table("rerankings", title, header, rows, labels=2) if rows else None


def _scores(found: Mapping[str, object]) -> list[str]:
    """Return BLEU and TER with their intervals, and chrF."""
    cells = []
    for name in ("bleu", "ter"):
        low, high = found[f"{name}_interval"]
        cells.append(f"{found[name]:.1f} ({low:.1f}–{high:.1f})")
    return [*cells, f"{found['chrf']:.1f}"]
