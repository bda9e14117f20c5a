"""docs/scale.md is what benchmarks.scale_model makes of the measured costs."""

import json

import numpy as np
import pytest
import torch
from graph import ROOT

from benchmarks import scale_model
from benchmarks.scale_costs import COSTS, Cost, caption_bytes, cost
from benchmarks.scale_model import CAPTIONS, GPU, gpu_rates, tables, tasks

NEW = "dense_ten_crop"


def test_the_tables_of_the_page_are_the_models():
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for table in tables().split("\n\n"):
        assert table in page


def measured():
    costs = {row["item"]: Cost(**row) for row in json.loads(COSTS.read_text("utf-8"))["costs"]}
    return costs, json.loads(GPU.read_text("utf-8"))["rows"]


def test_a_gpu_has_a_rate_of_every_item_in_the_faster_precision():
    costs, rows = measured()
    rates = gpu_rates(costs, rows)
    assert set(rates) == set(costs)
    of_mule = [row["rate"] for row in rows if row["what"] == "training MULE"]
    assert len(of_mule) == 2
    assert rates["caption trained, MULE"] == max(of_mule)
    [search] = [row for row in rows if row["what"] == "pseudopairs 566,000 x 145,000"]
    assert rates["pair scored"] == search["rate"] * 145_000


def test_what_no_gpu_has_done_takes_its_operations_at_the_speed_of_what_is_like_it():
    costs, rows = measured()
    rates = gpu_rates(costs, rows)
    speeds = [rates[f"image, {t}"] * costs[f"image, {t}"].flops for t in ("ten_crop", NEW)]
    assert speeds[0] == pytest.approx(speeds[1])
    assert rates[f"image, {NEW}"] > 3 * rates["image, ten_crop"]


def test_hours_of_a_pseudopair_search_grow_with_the_square_and_the_others_with_the_images():
    for task in tasks(gpu_rates(*measured())):
        growth = task.seconds(1000) / task.seconds(10)
        assert growth == pytest.approx(1e4 if task.name.startswith("pseudopairs") else 1e2)


def test_photos_are_decoded_while_the_network_works_and_the_slower_side_counts():
    rates = gpu_rates(*measured()) | {"image, ten_crop": 5.0, "photo decoded and cut": 2.0}
    assert next(tasks(rates)).seconds(64) == pytest.approx(64 / 2)
    rates["photo decoded and cut"] = 1e12
    assert next(tasks(rates)).seconds(64) == pytest.approx(64 / 5)


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
