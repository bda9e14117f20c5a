"""From features to the joint space, in evaluation mode, against the formulas written out."""

import pytest
import tiny
import torch
from torch import nn
from torch.nn import functional as F

MLP = tiny.recipe(image_hidden_dims=[20, 12])
RESIDUAL = tiny.polyview(image_crops=3)
DIM = 10


def drawn_head(recipe, crops=1):
    """Return an image head, in doubles, of drawn weights and running statistics."""
    head = tiny.space(recipe, dim=crops * DIM).image_encoder.requires_grad_(False).double()
    for name, value in head.state_dict().items():
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif value.is_floating_point():
            value.normal_()
    return head


def drawn_features(crops=1):
    return torch.randn(4, crops * DIM, dtype=torch.float64)


def affine(layer, x):
    return torch.stack([(layer.weight * row).sum(dim=1) + layer.bias for row in x])


def standardized(layer, x):
    return (x - layer.running_mean) / (layer.running_var + 1e-5) ** 0.5 * layer.weight + layer.bias


def rectified(x):
    return torch.where(x > 0, x, 0.0)


def test_a_hidden_layer_is_affine_normalised_and_rectified():
    head, features = drawn_head(MLP), drawn_features()
    x = features / (features**2).sum(dim=1, keepdim=True) ** 0.5
    for linear, norm, _ in head.hidden:
        x = rectified(standardized(norm, affine(linear, x)))
    torch.testing.assert_close(head(features), affine(head.linear, x))


def test_a_residual_head_adds_a_rectified_layer_to_an_affine_map_of_the_mean_crop():
    head, features = drawn_head(RESIDUAL, crops=3), drawn_features(crops=3)
    crops = features[:, :DIM], features[:, DIM : 2 * DIM], features[:, 2 * DIM :]
    x = standardized(head.standardize, sum(crops) / 3)
    expected = affine(head.linear, x) + affine(head.correction, rectified(affine(head.hidden, x)))
    torch.testing.assert_close(head(features), expected)


def test_one_image_alone_is_normalised_by_running_statistics_in_training_too():
    """It has no deviation of its own."""
    norm = drawn_head(MLP).train().hidden[0][1]
    row = torch.randn(1, 20, dtype=torch.float64)
    by = norm.running_mean, norm.running_var, norm.weight, norm.bias
    torch.testing.assert_close(norm(row), F.batch_norm(row, *by))


@pytest.mark.parametrize(("recipe", "layers"), [(MLP, 2), (RESIDUAL, 1)], ids=["mlp", "residual"])
def test_running_statistics_move_a_tenth_of_the_way_in_an_update(recipe, layers):
    head = drawn_head(recipe, getattr(recipe, "image_crops", 1)).train()
    norms = [layer for layer in head.modules() if isinstance(layer, nn.BatchNorm1d)]
    assert len(norms) == layers
    for norm in norms:
        mean, variance = norm.running_mean.clone(), norm.running_var.clone()
        values = 3 * torch.randn(5, len(mean), dtype=torch.float64) + 1
        norm(values)
        torch.testing.assert_close(norm.running_mean, 0.9 * mean + 0.1 * values.mean(dim=0))
        torch.testing.assert_close(norm.running_var, 0.9 * variance + 0.1 * values.var(dim=0))
