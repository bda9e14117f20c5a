"""The study that benchmarks.dense_ten_crop makes."""

import pandas as pd
from graph import ROOT

from benchmarks import dense_ten_crop
from benchmarks.photos import draw_photos
from pipeline_lib.checks.study import check_study
from pipeline_lib.settings.loading import load_settings


def test_two_recipes_on_each_kind_of_features_and_their_comparison(tmp_path, monkeypatch):
    data = tmp_path / "data"
    (data / "captions").mkdir(parents=True)
    paths = draw_photos(data / "images", 12)
    splits = ["train"] * 5 + ["val"] * 3 + ["test"] * 4
    photos = {"image_id": range(12), "file": [f"images/{path.name}" for path in paths]}
    pd.DataFrame({**photos, "flickr8k_split": splits}).to_csv(data / "images.csv", index=False)
    rows = [(image, 0, f"a photo of number {image}") for image in range(12)]
    table = pd.DataFrame(rows, columns=["image_id", "index", "text"])
    table.to_csv(data / "captions" / "en.human.tsv", sep="\t", index=False)

    dense_ten_crop.make_study(tmp_path / "root", data, train=5, test=4)

    monkeypatch.chdir(tmp_path / "root" / "studies" / dense_ten_crop.STUDY)
    settings = load_settings()
    assert not check_study(settings).problems
    assert {e.transform for e in settings.extractors.values()} == {"ten_crop", "dense_ten_crop"}
    for name in ("polyview", "vse"):
        exact, dense = (settings.recipe(f"{name}_{features}") for features in ("exact", "dense"))
        assert exact.model_copy(update={"features": "dense"}) == dense
        assert settings.comparisons[name].baseline == f"{name}_exact"
    modules = {stage[0] for stage in dense_ten_crop.stages()}
    assert all((ROOT / f"{module.replace('.', '/')}.py").is_file() for module in modules)
