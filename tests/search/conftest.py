"""Commands are run as a user does."""

import pytest


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch):
    """Mistakes end with a message, not with a traceback."""
    monkeypatch.delenv("POLYVIEW_TRACEBACK")
