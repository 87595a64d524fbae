"""Sign-in and one's own record through the SDK, against the real platform."""

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.client import Client
from custody.schemas.users import UpdateUserInfoRequest
from tests.support.accounts import register
from tests.support.platform import World, open_world
from tests.support.sdk import connect, sdk

ALICE, BOB = "alice@example.org", "bob@example.org"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", ALICE)
        opened.member(1, BOB)
        yield opened


@pytest.fixture
def alice(world: World) -> Client:
    return sdk(world, ALICE)


def test_an_empty_text_takes_away_and_what_is_left_out_stays(alice: Client) -> None:
    """None is not sent at all."""
    alice.update_user_info(UpdateUserInfoRequest(first_name="Alice", surname="Ng"))
    told = alice.update_user_info(UpdateUserInfoRequest(surname=""))
    assert (told.first_name.value, told.surname.value) == ("Alice", None)


@pytest.fixture
def mailed(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        register(opened)
        yield opened


def test_what_a_call_takes_is_shown_by_help(mailed: World) -> None:
    client = connect(mailed)
    assert list(inspect.signature(client.login).parameters) == ["body"]
    assert list(inspect.signature(client.logout).parameters) == []
    assert inspect.getdoc(Client.login) == inspect.getdoc(client.login)
