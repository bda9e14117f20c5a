"""docs/scale.md is what benchmarks.scale_model makes of the measured costs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from graph import ROOT

from benchmarks import scale_model
from benchmarks.scale_costs import COSTS, Cost, caption_bytes, cost
from benchmarks.scale_model import A100, CAPTIONS, gpu_seconds, tables, tasks

COST = Cost("image, ten_crop", "bf16", flops=3e6, share=0.5, rate=1.0)


def test_the_tables_of_the_page_are_the_models():
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for table in tables().split("\n\n"):
        assert table in page


def test_an_item_takes_its_operations_at_its_share_of_the_gpus_peak():
    assert gpu_seconds(COST) == pytest.approx(3e6 / (0.5 * 312e12))
    scored = replace(COST, item="pair scored")  # where products have to be exact
    assert gpu_seconds(scored) == pytest.approx(3e6 / (0.5 * 19.5e12))


def test_hours_of_a_pseudopair_search_grow_with_the_square_and_the_others_with_the_images():
    measured = json.loads(COSTS.read_text(encoding="utf-8"))["costs"]
    for task in tasks({row["item"]: Cost(**row) for row in measured}):
        growth = task.seconds(1000) / task.seconds(10)
        assert growth == pytest.approx(1e4 if task.name.startswith("pseudopairs") else 1e2)


def test_photos_are_decoded_on_all_cores_of_a_gpu_and_the_slower_side_counts():
    names = ["image, ten_crop", "image, dense_ten_crop", "photo decoded and cut", "pair scored"]
    names += ["caption embedded", *(f"caption trained, {name}" for name in scale_model.FAMILIES)]
    costs = {name: COST for name in names}
    costs["photo decoded and cut"] = Cost("", "uint8", 0, 0, rate=2.0)
    ten_crop = next(tasks(costs))
    assert ten_crop.seconds(64) == pytest.approx(64 / 2 / A100.cores)
    costs["photo decoded and cut"] = Cost("", "uint8", 0, 0, rate=1e12)
    assert next(tasks(costs)).seconds(64) == pytest.approx(64 * gpu_seconds(COST))


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0123, "0.012"), (7.0, "7"), (43.4, "43"), (123456, "120,000"), (104, "100")],
)
def test_two_digits_count(value, said):
    assert scale_model._number(value) == said


def test_a_product_of_matrices_runs_at_its_own_peak():
    matrix = torch.rand(512, 512)

    def multiply():
        torch.mm(matrix, matrix)
        return 1

    found = cost("product", "f32", 2 * 512**3, multiply)
    assert 0 < found.share < 3  # loose: two sizes of matrix, and the clock of a busy machine
    assert found.share * 0.1 < found.rate  # items per second, not seconds per item


def test_a_caption_in_memory_is_larger_than_on_disk():
    found = caption_bytes()
    assert 10 < found["disk"] < found["memory"] < 10_000
    assert np.isfinite(found["memory"])
    assert CAPTIONS == 30
