"""The audit log and the purchases through the SDK, against the real platform; and what of their answers is
refused.
"""

import io
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from custody.client import ApiError, BadAnswer, Client
from custody.schemas.purchases import PurchaseStatus
from custody.server.domain.audit import Category, ExportSummary, find_export_fault, read_csv
from custody.server.domain.credentials import Caller
from custody.server.service.stored_vaults import place_of
from tests.custody.client.test_clients import client, scripted
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
        place = place_of(db, 1)
        for number in range(520):
            who = Caller(1, 1, "alice@example.org", "t")
            services.tools.audit.record(db, who, Category.KEYS, "TRIED", f"row {number}", access=place)
    return 520


def test_one_page_of_the_log(alice: Client, rows: int) -> None:
    page = alice.logs(1, 1, category="KEYS", page_size=2, page=3)
    assert [entry.description for entry in page.logs] == ["row 4", "row 5"]
    assert (page.total, page.page, page.page_size) == (rows, 3, 2)
    following = alice.logs(1, 1, category="KEYS", page_size=2, cursor=page.next_cursor)
    assert [entry.description for entry in following.logs] == ["row 6", "row 7"]


def test_the_whole_log(alice: Client, rows: int) -> None:
    entries = alice.every_log(1, 1, category="keys")
    assert [entry.description for entry in entries] == [f"row {number}" for number in range(rows)]
    today = date(2026, 3, 1)
    assert len(alice.every_log(1, 1, from_day=today, to_day=today)) > rows
    assert alice.every_log(1, 1, from_day=date(2026, 3, 2)) == []


def test_an_export_that_its_reader_can_check(alice: Client, rows: int) -> None:
    seen = ExportSummary()
    text = alice.export_audit_logs(1, "1").csv
    assert find_export_fault(read_csv(io.StringIO(text, newline="")), seen) is None
    assert seen.rows > rows
    with pytest.raises(ApiError) as caught:
        alice.export_audit_logs(2, "1")
    assert caught.value.problem.code == "NOT_ORG_MEMBER"


@pytest.fixture
def bought(world: World) -> int:
    """More than the largest page of purchases."""
    user = world.as_user("alice@example.org")
    ok(register_key(user, seed(1)))
    address = ok(user.get("/api/v1/signing-profile-address", network="testnet"))["wallet_address"]
    for number in range(3):
        ok(deliver(world, transaction(address, id=f"p{number}", quoteCurrencyAmount="0.00000001")))
    return 3


def test_ones_own_purchases(alice: Client, bought: int) -> None:
    page = alice.purchases(limit=2)
    assert [each.id for each in page] == ["p2", "p1"]
    assert page[0].quote_currency_amount == Decimal("0.00000001")
    assert page[0].status is PurchaseStatus.PENDING
    assert [each.id for each in alice.purchases(after="p1")] == ["p0"]


def test_all_of_ones_purchases(alice: Client, bought: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("custody.client.records.MAX_PURCHASES", 1)
    assert [each.id for each in alice.every_purchase()] == ["p2", "p1", "p0"]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            lambda made: made.logs(1, 1),
            {"logs": [{}], "page": 1, "page_size": 50, "total": 1, "next_cursor": None},
        ),
        (lambda made: made.logs(1, 1), {"logs": []}),
        (lambda made: made.export_audit_logs(1, "1"), {"text": ""}),
        (lambda made: made.purchases(), [{"id": "p"}]),
        (lambda made: made.purchases(), {}),
    ],
)
def test_an_answer_of_another_shape_is_refused(call, answer: object) -> None:
    handler, _ = scripted(httpx.Response(200, json=answer))
    with pytest.raises(BadAnswer):
        call(client(handler))
