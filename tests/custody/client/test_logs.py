"""The audit log and the purchases through the SDK, against the real platform; and what of their answers is
refused.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from custody.client import Client
from custody.server.domain.audit import Category, Event
from custody.server.domain.credentials import Caller
from custody.server.service.stored_vaults import place_of
from tests.support.custody import ok
from tests.support.platform import World, open_world, register_key, seed
from tests.support.purchases import deliver, transaction
from tests.support.sdk import sdk


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        opened.organisation("Acme", "alice@example.org")
        yield opened


@pytest.fixture
def alice(world: World) -> Client:
    return sdk(world, "alice@example.org")


@pytest.fixture
def rows(world: World) -> int:
    """More than the largest page."""
    services = world.platform.services
    with services.store.write() as db:
        place, tried = place_of(db, 1), Event("TRIED", "row {number}", category=Category.KEYS)
        for number in range(520):
            who = Caller(1, 1, "alice@example.org", "t")
            services.tools.audit.record(db, who, tried, place, number=number)
    return 520


def test_the_whole_log(alice: Client, rows: int) -> None:
    entries = alice.every_log(1, 1, category="keys")
    assert [entry.description for entry in entries] == [f"row {number}" for number in range(rows)]
    today = date(2026, 3, 1)
    assert len(alice.every_log(1, 1, from_day=today, to_day=today)) > rows
    assert alice.every_log(1, 1, from_day=date(2026, 3, 2)) == []


@pytest.fixture
def bought(world: World) -> int:
    """More than the largest page of purchases."""
    user = world.as_user("alice@example.org")
    ok(register_key(user, seed(1)))
    address = ok(user.get("/api/v1/signing-profile-address", network="testnet"))["wallet_address"]
    for number in range(3):
        ok(deliver(world, transaction(address, id=f"p{number}", quoteCurrencyAmount="0.00000001")))
    return 3


def test_all_of_ones_purchases(alice: Client, bought: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("custody.client.records.MAX_PURCHASES", 1)
    assert [each.id for each in alice.every_purchase()] == ["p2", "p1", "p0"]
