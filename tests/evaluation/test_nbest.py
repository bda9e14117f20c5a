"""N-best lists: what is written is read back, Moses' own lines are read, bad ones listed."""

import numpy as np
import pytest

from pipeline_lib.contract.problems import ContractError
from pipeline_lib.evaluation.reranking.nbest import NBest, read_nbest, write_nbest


def example():
    return NBest(
        sentence=np.array([0, 0, 2]),
        text=["ein ||| Hund", "|||||", "| ü =  x"],
        names=("log_likelihood", "s_s"),
        features=np.array([[-1 / 3, 0.5], [-1e-30, 0], [2, 1e300]]),
        scores=np.array([0.1, -2.5, 7]),
    )


def test_lists_are_read_as_they_were_written(tmp_path):
    write_nbest(example(), tmp_path / "lists.txt")
    found = read_nbest(tmp_path / "lists.txt")
    assert (found.text, found.names) == (example().text, example().names)
    for name in ("sentence", "features", "scores"):
        np.testing.assert_array_equal(getattr(found, name), getattr(example(), name))


def test_moses_own_lines_are_read(tmp_path):
    path = tmp_path / "moses.nbest"
    path.write_text("3 ||| das ist  ||| d= 0 -1.5 lm= -9 w= -3 ||| -0.7\n")
    found = read_nbest(path)
    assert found.names == ("d_1", "d_2", "lm", "w")
    assert found.features.tolist() == [[0, -1.5, -9, -3]]
    assert (found.sentence.tolist(), found.text, found.scores.tolist()) == (
        [3],
        ["das ist"],
        [-0.7],
    )


def test_every_bad_line_is_listed(tmp_path):
    path = tmp_path / "lists.txt"
    bad = ["1 ||| a ||| f= 1", "1 ||| a ||| g= 1 ||| 1", "0 ||| a ||| f= 1 ||| 1"]
    bad += ["x ||| a ||| f= 1 ||| 1", "1 ||| a ||| 1 f= ||| 1", "1 ||| a ||| f= inf ||| 1"]
    path.write_text("\n".join(["1 ||| a ||| f= 1 ||| 1", *bad]) + "\n")
    with pytest.raises(ContractError) as error:
        read_nbest(path)
    listed = [f"lists.txt:{line}:" in str(error.value) for line in range(1, 8)]
    assert listed == [False] + 6 * [True]


def test_lists_that_could_not_be_read_back_are_not_written(tmp_path):
    broken = NBest(np.array([1, 0]), ["a\nb", "c"], ("f",), np.ones((2, 2)), np.array([np.inf, 0]))
    with pytest.raises(ContractError, match="4 problem"):
        write_nbest(broken, tmp_path / "lists.txt")
    assert not list(tmp_path.iterdir())
