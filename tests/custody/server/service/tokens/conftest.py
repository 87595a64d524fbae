"""A vault that can make tokens, and one that cannot yet."""

import pytest

from tests.support.custody import Desk
from tests.support.token_desk import TokenDesk


@pytest.fixture
def tokens_at_none(desk: Desk) -> TokenDesk:
    """Without a coin at the vault's address."""
    return TokenDesk(desk)


@pytest.fixture
def tokens(desk: Desk) -> TokenDesk:
    """With a confirmed coin at the vault's address, read by the index."""
    found = TokenDesk(desk)
    found.fund(200_000)
    return found
