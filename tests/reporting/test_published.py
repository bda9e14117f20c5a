import pandas as pd
import pytest
from graph import ROOT

from pipeline_lib.contract.published import COLUMNS, read_published
from pipeline_lib.settings.loading import load_settings

STUDIES = ("multi30k", "coco")
REPRODUCED = {"multi30k": 30, "coco": 21}
"""Rows of each study that its authors ran on human captions alone."""
CELL = ["source", "table", "row", "language", "task", "metric"]
RETRIEVAL = [f"{way}_{score}" for way in ("i2t", "t2i") for score in ("r1", "r5", "r10", "median")]
PER_CENT = (0, 100)
BOUNDS = {
    **{metric: PER_CENT for metric in [*RETRIEVAL, "r1", "r5", "r10", "mean_recall"]},
    **{metric: PER_CENT for metric in ("p1", "exact_r1")},
    **{metric: (1, 1000) for metric in ("i2t_median", "t2i_median")},
    **{metric: PER_CENT for metric in ("bleu", "meteor", "ter")},
    **{metric: PER_CENT for metric in ("captions_used", "share_of_top_150")},
    **{f"jaccard_{between}": (0, 1) for between in ("seeds", "teachers")},
    **{f"same_image_overlap_{between}": (0, 1) for between in ("seeds", "teachers")},
    **{f"sts_pearson_{year}": (-1, 1) for year in (2014, 2015)},
    "sum_of_recalls": (0, 1200),
    "language_parameters_millions": (0, 1000),
}


def read(study):
    path = ROOT / "studies" / study / "published.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return table.assign(number=table["value"].astype(float))


@pytest.fixture(scope="module")
def tables():
    return {study: read(study) for study in STUDIES}


@pytest.fixture(scope="module")
def cells(tables):
    """Return the tables of both studies as one: {(source, table, row, language, …): value}."""
    joined = pd.concat(tables.values()).drop_duplicates([*CELL, "value"])
    return joined.set_index(CELL)["number"].sort_index()


@pytest.fixture(params=STUDIES)
def table(request, tables):
    return tables[request.param]


def test_columns_and_values_are_what_the_reports_join_on(table):
    assert list(table.columns) == [*COLUMNS, "number"]
    assert not table.duplicated(CELL).any()
    assert set(table["needs"]) <= {"", "translations", "pseudopairs", "machine_translation", "bert"}
    assert table["language"].str.fullmatch(r"[a-z]{2}([-+][a-z]{2})*").all()
    assert set(table["metric"]) <= set(BOUNDS)
    for _, cell in table.iterrows():
        low, high = BOUNDS[cell["metric"]]
        assert low <= cell["number"] <= high, dict(cell)


def test_rows_that_the_authors_ran_have_a_recipe_and_quoted_rows_a_source(table):
    authors = table["run_by"] == "authors"
    assert (authors | (table["run_by"] == "quoted")).all()
    assert table.loc[authors, "recipe"].str.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*").all()
    assert (table.loc[authors, "quoted_from"] == "").all()
    assert (table.loc[~authors, "recipe"] == "").all()
    assert table.loc[~authors, "quoted_from"].str.fullmatch(r"\w+ et al\. \d{4}").all()


@pytest.mark.parametrize("study", STUDIES)
def test_every_row_that_the_authors_ran_on_human_captions_is_a_recipe(study, tables):
    ran = tables[study][tables[study]["run_by"] == "authors"]
    wanted = set(ran.loc[ran["needs"] == "", "recipe"])
    settings = load_settings(ROOT / "studies" / study / "params.yaml")
    others = {"gella2017", "polyview"}  # no author here ran those, and ours is in no paper
    recipes = {name for name, recipe in settings.recipes.items() if recipe["paper"] not in others}
    assert len(wanted) == REPRODUCED[study]
    assert not wanted - recipes, "rows of published.csv without a recipe in params.yaml"
    assert not recipes - set(ran["recipe"]), "recipes of params.yaml that no paper's row names"


def test_pivot_and_parallel_are_recipes_though_no_author_here_ran_them(tables):
    """Mohammadshahi et al. 2019 quote what Gella et al. 2017 printed."""
    recipes = load_settings(ROOT / "studies" / "multi30k" / "params.yaml").recipes
    names = {name for name, recipe in recipes.items() if recipe["paper"] == "gella2017"}
    assert names == {"pivot_sym", "parallel_sym", "pivot_asym", "parallel_asym"}
    quoted = set(tables["multi30k"].query("quoted_from == 'Gella et al. 2017'")["row"])
    assert quoted == {"Parallel, symmetric", "Pivot, asymmetric", "Parallel, asymmetric"}


@pytest.mark.parametrize("study", STUDIES)
def test_recipes_learn_the_languages_that_their_row_was_measured_in(study, tables):
    settings = load_settings(ROOT / "studies" / study / "params.yaml")
    rows = tables[study][tables[study]["task"].str.startswith("retrieval")]
    rows = rows[rows["recipe"].isin(settings.recipes)]
    for name, languages in rows.groupby("recipe")["language"]:
        measured = {code for group in languages for code in group.split("+")}
        assert measured <= set(settings.recipe(name).languages), name


def test_a_recipe_is_a_row_of_one_paper(table):
    assert (table[table["recipe"] != ""].groupby("recipe")["source"].nunique() == 1).all()


@pytest.mark.parametrize("folder", [ROOT, ROOT / "studies" / "flickr8k"], ids=["world", "flickr8k"])
def test_studies_of_our_own_compare_with_nothing(folder):
    assert read_published(folder / "published.csv").empty


def rows_of(table, ways):
    """Yield (R@1, R@5, R@10, median) of every row and direction; NaN where it is not printed."""
    wide = table.pivot(index=CELL[:-1], columns="metric", values="number")
    for way in ways:
        scores = [f"{way}{score}" for score in ("r1", "r5", "r10", "median")]
        yield from wide.reindex(columns=scores).dropna(how="all").to_numpy()


def test_recall_grows_with_k(table):
    rows = list(rows_of(table, ("i2t_", "t2i_", "")))
    assert not any(r1 > r5 or r5 > r10 or r1 > r10 for r1, r5, r10, _ in rows)
    assert sum(r1 < r5 < r10 for r1, r5, r10, _ in rows) >= 30


def test_half_of_the_queries_rank_up_to_the_median(table):
    rows = [row for row in rows_of(table, ("i2t_", "t2i_")) if pd.notna(row[3])]
    assert len(rows) >= 28
    for *recalls, median in rows:
        for k, recall in zip((1, 5, 10), recalls, strict=True):
            assert pd.isna(recall) or (recall >= 50) == (median <= k), (k, recalls, median)


def test_a_figure_that_a_paper_prints_twice_is_the_same(table):
    by_recipe = table[table["recipe"] != ""].groupby(
        ["source", "recipe", "language", "task", "metric", "needs"]
    )["value"]
    assert (by_recipe.nunique() == 1).all()
    assert (by_recipe.size() > 1).any()


@pytest.mark.parametrize(
    ("source", "table", "expected"),
    [
        ("calixto2017", "1", 11 * 8),
        ("calixto2017", "2", 6 * 2),
        ("calixto2017", "3", 6 * 3),
        ("kadar2019", "1", 5 * 3),
        ("kadar2019", "2", 4 * 3),
        ("kadar2019", "3", 2 * 6 - 1),  # T→I of En+De+c2c contradicts table 1
        ("kadar2019", "4", 7 * 3),
        ("kadar2019", "5", 8 * 7),
        ("kadar2019", "6", 3 * 3),
        ("kadar2019", "7", 6 * 2),
        ("kadar2019", "§7.2", 9),
        ("kim2020", "2", 11 * 4),
        ("kim2020", "3", 8 * 3),
        ("kim2020", "4", 7 * (4 + 3)),
        ("mohammadshahi2019", "1", 13 * 8 - 2 + 4 - 1),  # no medians of one row; one unreadable
        ("mohammadshahi2019", "2", 9 * 8 + 4),
        ("mohammadshahi2019", "3", 10 * 8 - 2 + 4),
        ("mohammadshahi2019", "4", 6 * 8 + 4 - 1),  # one unreadable
        ("mohammadshahi2019", "5", 2 * 6),
    ],
)
def test_every_table_is_whole(cells, source, table, expected):
    assert len(cells.loc[source, table]) == expected


SPOT_CHECKS = """
calixto2017 1 | VSE, as published | en retrieval t2i_r10 | 56.5
calixto2017 1 | MLMME β=.75 | en retrieval t2i_r1 | 24.9
calixto2017 1 | MLMME β=1 | de retrieval i2t_r5 | 58.6
calixto2017 1 | MLMME β=.25 | de retrieval i2t_median | 6
calixto2017 2 | MLMME β=.25 | en sts sts_pearson_2015 | .797
calixto2017 3 | NMT, not re-ranked | en-de reranking bleu | 30.9
calixto2017 3 | NMT + MLMME β=.25 | en-de reranking ter | 44.6
kadar2019 1 | En + De + c2c | en retrieval t2i_r1 | 32.1
kadar2019 2 | De + COCO | de retrieval sum_of_recalls | 319.7
kadar2019 4 | De + COCO + pseudo + fine-tune | de retrieval i2t_r1 | 38.0
kadar2019 5 | En + De + COCO + c2c + pseudo 25% + fine-tune | de retrieval sum_of_recalls | 347.8
kadar2019 6 | De + COCO + Translation + c2c | de retrieval sum_of_recalls | 335.5
kadar2019 7 | En + De + c2c | de-en sentence_retrieval exact_r1 | 91.2
kadar2019 §7.2 | De + COCO | de pseudopair_analysis share_of_top_150 | 23
kim2020 2 | FastText: EmbN, one model per language | cs retrieval mean_recall | 33.4
kim2020 2 | MUSE: EmbN + NC + LC + LP | fr retrieval mean_recall | 53.6
kim2020 3 | MULE: EmbN + NC + LC + LP (full) | zh retrieval mean_recall | 58.8
kim2020 3 | ML BERT: PARALLEL-EmbN | ja retrieval mean_recall | 62.1
kim2020 4 | MULE full, human + machine captions | ja retrieval mean_recall | 76.5
mohammadshahi2019 1 | AME, asymmetric | en retrieval i2t_r1 | 50.5
mohammadshahi2019 1 | VSE++, symmetric | en retrieval t2i_r5 | 60.9
mohammadshahi2019 2 | Parallel, symmetric | de retrieval i2t_r5 | 57.7
mohammadshahi2019 3 | AME, symmetric | en retrieval_5x1k t2i_r10 | 90.3
mohammadshahi2019 4 | Mono, asymmetric | ja retrieval_5x1k t2i_r1 | 39.7
mohammadshahi2019 4 | AME, asymmetric | en-ja word_translation p1 | 84.99
mohammadshahi2019 5 | AME, asymmetric | de-en caption_retrieval r1 | 49.1
"""


@pytest.mark.parametrize("line", SPOT_CHECKS.split("\n")[1:-1])
def test_figures_read_in_the_papers(cells, line):
    table, row, what, value = (part.strip() for part in line.split("|"))
    assert cells[(*table.split(), row, *what.split())] == float(value)


@pytest.mark.parametrize(
    ("place", "task", "better", "worse", "gain"),
    [
        ("1 en", "retrieval", "AME, symmetric", "UVS, symmetric", 21.28),
        ("1 en", "retrieval", "AME, symmetric", "Mono, symmetric", 1.8),
        ("1 en", "retrieval", "AME, asymmetric", "UVS, symmetric", 25.26),
        ("2 de", "retrieval", "AME, symmetric", "Parallel, symmetric", 11.05),
        ("3 en", "retrieval_5x1k", "AME, symmetric", "UVS, symmetric", 10.42),
        ("4 ja", "retrieval_5x1k", "AME, symmetric", "Mono, symmetric", 6.25),
        ("4 ja", "retrieval_5x1k", "AME, asymmetric", "Mono, asymmetric", 3.66),
    ],
)
def test_mean_gains_that_mohammadshahi_et_al_state(cells, place, task, better, worse, gain):
    table, language = place.split()
    recalls = [metric for metric in RETRIEVAL if "median" not in metric]
    of = {
        row: cells.loc["mohammadshahi2019", table, row, language, task] for row in (better, worse)
    }
    assert (of[better] - of[worse])[recalls].mean() == pytest.approx(gain, abs=0.0101)


def test_sums_over_languages_that_kadar_et_al_state(cells):
    sums = cells.loc["kadar2019", "5"].xs("sum_of_recalls", level="metric").unstack("language")
    assert len(sums) == 8
    rounding = pytest.approx(sums["en+de"].to_numpy(), abs=0.101)
    assert (sums["en"] + sums["de"]).to_numpy() == rounding


# Table 1 prints beside each figure how far it is above the better of the two baselines (English)
# or above the retrained one (German).
GAINS = {
    ("en", "t2i"): ["6.2 8.1 5.5 4.5", "7.3 10.3 6.3 3.5", "4.6 7.1 1.9 0.2"],
    ("de", "t2i"): ["8.1 6.8 6.8 6.0", "12.2 8.4 7.1 6.4", "10.5 7.6 6.4 5.4"],
    ("en", "i2t"): ["2.4 0.0 -3.3 -4.0", "-0.6 -2.4 -3.3 -6.4", "-1.9 -5.0 -6.6 -8.7"],
    ("de", "i2t"): ["1.7 -5.6 -7.5 -8.7", "2.6 -3.7 -7.6 -6.2", "-0.8 -5.3 -6.1 -7.6"],
}


@pytest.mark.parametrize(("language", "way"), GAINS)
def test_gains_that_calixto_et_al_print(cells, language, way):
    table = cells.loc["calixto2017", "1"].xs((language, "retrieval"), level=("language", "task"))
    for k, gains in zip((1, 5, 10), GAINS[language, way], strict=True):
        column = table.xs(f"{way}_r{k}", level="metric")
        baseline = column[column.index.str.startswith("VSE")].max()
        ours = column[[f"MLMME β={beta}" for beta in ("1", ".75", ".5", ".25")]]
        printed = [float(gain) for gain in gains.split()]
        assert (ours - baseline).tolist() == pytest.approx(printed, abs=0.101)


def test_calixto_et_al_ranked_captions_for_514_images(cells):
    table = cells.loc["calixto2017", "1"].drop("VSE, as published", level="row")
    recalls = table[table.index.get_level_values("metric").str.match("i2t_r")]
    assert len(recalls) == 30
    images = (recalls * 514 / 100).round()
    assert (images * 100 / 514).to_numpy() == pytest.approx(recalls.to_numpy(), abs=0.0501)


@pytest.mark.parametrize(
    ("place", "better", "worse", "gain"),
    [
        ("2 fr", "MULE: EmbN + NC + LC + LP (full)", "FastText: PARALLEL-EmbN", 4.4),
        ("2 cs", "MULE: EmbN + NC + LC + LP (full)", "FastText: PARALLEL-EmbN", 7.1),
        ("3 zh", "MULE: EmbN + NC + LC + LP (full)", "FastText: PARALLEL-EmbN", 5.9),
        ("3 ja", "MULE: EmbN + NC + LC + LP (full)", "FastText: PARALLEL-EmbN", 1.6),
        ("4 zh", "MULE full, human + machine captions", "PARALLEL-EmbN, human captions", 20.2),
    ],
)
def test_gains_that_kim_et_al_state(cells, place, better, worse, gain):
    table, language = place.split()
    row = cells.loc["kim2020", table].xs((language, "mean_recall"), level=("language", "metric"))
    assert row[better].item() - row[worse].item() == pytest.approx(gain)


def test_alignment_losses_that_mohammadshahi_et_al_state(cells):
    for table, loss in (("1", 6.80), ("3", 8.93)):
        alignment = cells.loc["mohammadshahi2019", table].xs("p1", level="metric")
        assert len(alignment) == 4
        mean = {row: alignment[alignment.index.get_level_values("row").str.startswith(row)].mean()
                for row in ("FME", "AME")}  # fmt: skip
        assert mean["FME"] - mean["AME"] == pytest.approx(loss, abs=0.0101)
