"""Seeds of small models train side by side."""

import tiny
import torch

from pipeline_lib.training.seeds import side_by_side


def test_only_small_models_share_the_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    small = tiny.recipe(seeds=[1, 2, 3])
    large = tiny.recipe(seeds=[1, 2, 3], hidden_dim=4096, embed_dim=4096, batch_size=128)
    found = side_by_side(small), side_by_side(large), side_by_side(tiny.recipe())
    torch.set_num_threads(before)
    assert found == (2, 1, 1)
