"""Errors that must say several things at once."""

from contextlib import contextmanager

import pytest

from pipeline_lib.contract.problems import ContractError


@contextmanager
def refused(*said, by=ContractError):
    """Expect an error whose message has all of these parts."""
    with pytest.raises(by) as error:
        yield
    missing = [part for part in said if part not in str(error.value)]
    assert not missing, str(error.value)
