"""A vault that can make tokens, and one that cannot yet."""

import pytest

from custody.server.store.models import ContractRow
from tests.support.custody import Desk
from tests.support.prepared import Story, nothing
from tests.support.token_desk import TokenDesk


@pytest.fixture
def beginning(request: pytest.FixtureRequest) -> Story:
    if "uid" in request.fixturenames:
        return a_token
    return a_coin if "tokens" in request.fixturenames else nothing


def a_coin(desk: Desk) -> None:
    TokenDesk(desk).fund(200_000)


def a_token(desk: Desk) -> None:
    a_coin(desk)
    TokenDesk(desk).started()


@pytest.fixture
def tokens_at_none(desk: Desk) -> TokenDesk:
    """Without a coin at the vault's address."""
    return TokenDesk(desk)


@pytest.fixture
def tokens(desk: Desk) -> TokenDesk:
    """With a confirmed coin at the vault's address, read by the index."""
    found = TokenDesk(desk)
    found.look()
    return found


@pytest.fixture
def uid(tokens: TokenDesk) -> int:
    """Of a token that is started, of 900 of 1,000."""
    (token,) = tokens.desk.rows(ContractRow)
    return token.uid
