"""Vectors that rounding cannot tell apart, and what is found among them: a process of its own.

``python tests/near_ties.py arrays in.npz out.npz`` does it with the kernels that its environment
asks for; tests/test_kernels.py compares.
"""

import sys
from pathlib import Path

import numpy as np

GRID = 2.0**-26


def near_ties(count, dim, seed, dtype=np.float32):
    """Draw unit vectors about a few centres: equal, one unit of the last place apart, or a few."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(0).standard_normal((5, dim)) + 1
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    vectors = centres[generator.integers(0, 5, count)].astype(dtype)
    changed = generator.integers(0, dim, (count, 3))
    rows = np.arange(count)[:, None]
    towards = generator.choice([-2, 0, 2], (count, 3)).astype(dtype)
    vectors[rows, changed] = np.nextafter(vectors[rows, changed], towards)
    vectors[rows, changed[:, :1]] += GRID * generator.integers(-1, 2, (count, 1)).astype(dtype)
    return vectors


def whole_products(a, b):
    """Return the products of vectors on their grid by integers, to which no order matters."""
    a, b = (np.rint(side.astype(np.float64) / GRID).astype(np.int64) for side in (a, b))
    return (a @ b.T).astype(np.float64) * GRID**2


def arrays_found(images, captions, index):
    """Return what evaluation finds by numpy alone."""
    from pipeline_lib.evaluation.probes import hub_counts
    from pipeline_lib.evaluation.retrieval.ranking import bidirectional_ranks
    from pipeline_lib.evaluation.retrieval.scores import SCORES
    from pipeline_lib.evaluation.words.ranks import neighbourhood_density, unit_rows

    found = {}
    for name, scores in SCORES.items():
        found[f"{name}_images"], found[f"{name}_captions"] = bidirectional_ranks(
            images, captions, index, scores
        )
        found[f"{name}_first"] = scores(images, captions).argmax(axis=1)
    found["density"] = neighbourhood_density(images, captions, 7)
    found["hubs"] = hub_counts(images, captions, 7)
    found["unit"] = unit_rows(3 * captions)
    return found


def tensors_found(images, captions, index):
    """Return what pseudopairs find by torch."""
    import torch

    from pipeline_lib.synthesis.matching import RETRIEVALS
    from pipeline_lib.synthesis.neighbours import nearest

    a, b = torch.from_numpy(images), torch.from_numpy(captions)
    neighbours = nearest(a, b, 40)
    found = {"indices": neighbours.indices.numpy(), "scores": neighbours.scores.numpy()}
    for rule, options in {
        "csls": {"neighbours": 7},
        "one_to_one": {"neighbours": 40, "reuse_cap": 1},
    }.items():
        matches = RETRIEVALS[rule](a, b, **options)
        found |= {f"{rule}_{name}": values for name, values in vars(matches).items()}
    return found


FOUND = {"arrays": arrays_found, "tensors": tensors_found}

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    what, source, target = sys.argv[1:]
    np.savez(target, **FOUND[what](**np.load(source)))
