"""The purchase provider's webhook and each member's own list, over HTTP; its states, and the authenticity of
a delivery (P45).
"""

import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import httpx
import pytest

from custody.common.terminal import Exit
from custody.schemas.purchases import PurchaseStatus
from custody.server.errors import DatabaseUnavailable
from custody.server.purchases import is_genuine, is_news, signature_of, webhook_key
from custody.server.secrets import Purpose
from custody.server.store import Store
from tests.support.custody import ok, refused
from tests.support.databases import everything_stored
from tests.support.operator import custody
from tests.support.platform import As, World, key_offer, open_world, register_key, seed
from tests.support.purchases import deliver, post, sign, transaction

LIST = "/api/v1/purchases"


@pytest.fixture
def alice(alice: As) -> As:
    ok(register_key(alice, seed(1)))
    return alice


@pytest.fixture
def address(alice: As) -> str:
    return ok(alice.get("/api/v1/signing-profile-address", network="testnet"))["wallet_address"]


def report(address: str) -> bytes:
    return json.dumps({"type": "transaction_updated", "data": transaction(address)}).encode()


def recorded(world: World) -> list[str]:
    return [action for action in world.audit_actions() if action.startswith("PURCHASE")]


class TestReports:
    def test_reach_the_member_whose_address_they_name(self, world: World, alice: As, address: str) -> None:
        ok(deliver(world, transaction(address)))
        (purchase,) = ok(alice.get(LIST))
        shown = {
            "id": "bda09e91-559f-4e7a-807a-cdec1a903d9d", "status": "pending",
            "created_at": "2026-03-01T11:58:03.640Z", "base_currency_amount": 295.45,
            "quote_currency_amount": 0.00481234, "fee_amount": 3.99, "network_fee_amount": 0.56,
            "wallet_address": address, "crypto_transaction_id": "", "failure_reason": None,
        }  # fmt: skip
        assert purchase.items() >= shown.items()
        assert recorded(world) == ["PURCHASE_REPORTED"]

    def test_of_an_unknown_address_are_kept_and_of_something_else_forgotten(
        self, world: World, alice: As, address: str
    ) -> None:
        """BIP-173: a bech32 address may be written in either case; in capitals it is the member's."""
        ok(deliver(world, {"id": "x"}, event="identity_check_updated"))
        ok(deliver(world, transaction("nowhere", id="p1")))
        assert (ok(alice.get(LIST)), recorded(world)) == ([], ["PURCHASE_REPORTED"])
        body = report(address.upper()).replace(b"295.45", b"1234567890.12345")
        ok(post(world, body, sign(world, body)))
        (purchase,) = ok(alice.get(LIST))
        assert purchase["base_currency_amount"] == 1234567890.12345
        news = {"status": "completed", "updatedAt": "2026-03-01T11:59:59.000Z"}
        ok(deliver(world, transaction(address, **news)))
        assert [each["status"] for each in ok(alice.get(LIST))] == ["completed"]

    def test_that_are_old_or_come_after_the_end_change_nothing(
        self, world: World, alice: As, address: str
    ) -> None:
        ok(deliver(world, transaction(address, status="failed", failureReason="card_declined")))
        before = ok(alice.get(LIST))
        for at in ("2026-03-01T11:59:31.250Z", "2026-03-01T11:59:31.251Z", "2026-03-01T11:59:59.000Z"):
            ok(deliver(world, transaction(address, status="completed", updatedAt=at)))
        assert ok(alice.get(LIST)) == before
        assert recorded(world) == ["PURCHASE_REPORTED"]

    def test_are_shown_to_their_member_alone(self, world: World, alice: As, address: str) -> None:
        """A user cannot register another's profile account to see their purchases."""
        world.member(1, "bob@example.org")
        bob = world.as_user("bob@example.org")
        refused(register_key(bob, seed(2), profile=key_offer(seed(1))["profile"]), 409, "STATE_CONFLICT")
        ok(register_key(bob, seed(2)))
        ok(deliver(world, transaction(address)))
        assert len(ok(alice.get(LIST))) == 1
        assert ok(bob.get(LIST)) == []
        refused(bob.get(LIST, after="bda09e91-559f-4e7a-807a-cdec1a903d9d"), 404, "NOT_FOUND")


class TestForged:
    """P45: 401, and nothing changes."""

    def refuse(self, world: World, answer: httpx.Response) -> None:
        refused(answer, 401, "UNAUTHENTICATED")
        assert recorded(world) == []

    def test_another_body(self, world: World, address: str) -> None:
        signed = sign(world, report(address))
        self.refuse(world, deliver(world, transaction(address, status="completed"), header=signed))

    def test_a_replay(self, world: World, address: str) -> None:
        """Many at once, and later."""
        body = report(address)
        header = sign(world, body)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: post(world, body, header), range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
        for minutes in (4, 4, 60):
            world.clock.advance(minutes=minutes)
            refused(post(world, body, header), 401, "UNAUTHENTICATED")
        assert recorded(world) == ["PURCHASE_REPORTED"]

    def test_a_delivery_that_could_not_be_stored_may_come_again(
        self, world: World, alice: As, address: str, monkeypatch
    ) -> None:
        def fails(*_: object) -> None:
            raise DatabaseUnavailable("The disk is full.")

        with monkeypatch.context() as full:
            full.setattr(Store, "_commit", fails)
            refused(deliver(world, transaction(address)), 503, "BACKEND_UNAVAILABLE")
        assert ok(alice.get(LIST)) == []
        ok(deliver(world, transaction(address)))
        assert len(ok(alice.get(LIST))) == 1


class TestSecret:
    def test_is_shown_to_the_operator_and_signs(self, tmp_path: Path) -> None:
        """On the standard output alone, so that it can go from there into the provider's page (P49)."""
        shown = custody("admin", "webhook-secret", state=tmp_path / "state")
        with open_world(tmp_path / "state") as world:
            (secret,) = world.platform.services.tools.secrets.of(Purpose.PURCHASE_WEBHOOK)
            assert (shown.exit_code, shown.stdout, shown.stderr) == (0, f"{webhook_key(secret)}\n", "")
            assert webhook_key(secret) not in everything_stored(world.platform.services.store)

    def test_may_be_one_that_the_provider_issued(self, tmp_path: Path) -> None:
        key = "wk_live_0123456789abcdefghijklmnop"
        taken = custody("admin", "webhook-secret", "--set", state=tmp_path / "state", typed=f"{key}\n")
        assert (taken.exit_code, taken.stdout, taken.stderr) == (0, "", "")
        assert custody("admin", "webhook-secret", state=tmp_path / "state").stdout == f"{key}\n"
        with open_world(tmp_path / "state") as world:
            body = report("")
            timestamp = str(int(world.clock.now.timestamp()))
            signed = hmac.new(key.encode(), f"{timestamp}.".encode() + body, "sha256").hexdigest()
            ok(post(world, body, f"t={timestamp},s={signed}"))
            assert world.audit_actions() == ["SECRET_ROTATED", "PURCHASE_REPORTED"]
            assert key not in everything_stored(world.platform.services.store)

    @pytest.mark.parametrize("key", ["", "short", "a" * 201, "with a space in the middle of it", "ключ" * 10])
    def test_is_refused_where_it_cannot_be_one(self, tmp_path: Path, key: str) -> None:
        answer = custody("admin", "webhook-secret", "--set", state=tmp_path / "state", typed=f"{key}\n")
        assert answer.exit_code == Exit.USAGE
        assert "That is not a key" in answer.stderr


class TestSignedNonsense:
    """A provider's mistake is refused with words, and may be delivered again once it is mended."""

    def test_is_named(self, world: World, address: str) -> None:
        for changes in (
            {"id": "../1"},
            {"id": None},
            {"status": "won"},
            {"updatedAt": "yesterday"},
            {"updatedAt": "2026-03-01T11:59:31.251"},
            {"updatedAt": "9999-12-31T23:59:59-01:00"},
            {"createdAt": "0001-01-01T00:00:00+14:00"},
            {"baseCurrencyAmount": -1},
            {"baseCurrencyAmount": 1e300},
            {"baseCurrencyAmount": "1e999999999"},
            {"baseCurrencyAmount": "NaN"},
            {"baseCurrencyAmount": True},
            {"baseCurrencyAmount": "0.1234567890123456"},
            {"feeAmount": 10**200},
            {"currency": None},
            {"walletAddress": "x" * 201},
            {"walletAddress": "a\nb"},
            {"failureReason": "\u202e"},
            {"externalTransactionId": "\x00"},
            {"externalTransactionId": "\ud800"},
        ):
            refused(deliver(world, transaction(address, **changes)), 422, "VALIDATION")
        assert recorded(world) == []
        ok(deliver(world, transaction(address)))

    def test_that_is_not_even_a_report(self, world: World) -> None:
        for body in (
            b"",
            b"{",
            b"[]",
            b"[" * 60_000,
            b"\xff",
            b'{"type":"transaction_updated","data":[]}',
            b'{"type":"transaction_updated","data":{"feeAmount":NaN}}',
            b"1" * 5_000,
        ):
            refused(deliver(world, body), 422, "VALIDATION")


class TestList:
    def test_is_paged_newest_first(self, world: World, alice: As, address: str) -> None:
        for number in range(5):
            at = f"2026-03-01T11:0{number // 2}:00.000Z"
            ok(deliver(world, transaction(address, id=f"p{number}", createdAt=at)))
        seen, query = [], {"limit": 2}
        while True:
            answer = alice.get(LIST, **query)
            assert answer.headers["X-Total-Count"] == "5"
            seen.append([each["id"] for each in ok(answer)])
            following = answer.links.get("next")
            if following is None:
                break
            assert following["url"].startswith("/api/v1/purchases?")
            query = dict(httpx.URL(following["url"]).params)
        assert seen == [["p4", "p3"], ["p2", "p1"], ["p0"]]


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECRET, OTHER = bytes([1]) * 32, bytes([2]) * 32
T = str(int(NOW.timestamp()))
BODY = b'{"type":"transaction_updated"}'
GOOD = f"t={T},s={signature_of(SECRET, T, BODY)}"


def genuine(header: str | None, body: bytes = BODY, secrets=(SECRET,), now: datetime = NOW) -> bool:
    return is_genuine(header, body, secrets, now)


class TestSignature:
    def test_is_an_hmac_of_time_and_body_as_the_provider_documents_it(self) -> None:
        """Made once with OpenSSL: printf '1492774577.{}' | openssl dgst -sha256 -hmac <64 hex digits>."""
        assert webhook_key(SECRET) == "01" * 32
        assert signature_of(SECRET, "1492774577", b"{}") == KNOWN

    def test_of_any_current_secret_is_good(self) -> None:
        assert genuine(GOOD)
        assert genuine(GOOD, secrets=(OTHER, SECRET))
        assert genuine(f"s={GOOD.split('s=')[1]}, t={T}")
        assert genuine(GOOD + ",v=2")

    @pytest.mark.parametrize(
        "header",
        [
            None,
            "",
            GOOD.split(",", maxsplit=1)[0],
            GOOD.split(",")[1],
            GOOD[:-1],
            GOOD.replace("s=", "s=00"),
            GOOD.upper(),
            GOOD + f",t={T}",
            GOOD + "," + GOOD.split(",")[1],
            GOOD.replace(T, f" {T}"),
            GOOD.replace(T, f"0{T}"),
            GOOD.replace(T, str(int(T) + 1)),
            GOOD.replace(T, "9" * 40),
            GOOD.replace(T, "-1"),
            GOOD.replace(T, "٣"),
            f"t={T},s=" + signature_of(OTHER, T, BODY),
            f"t={T},s=" + "0" * 64,
            GOOD + "," * 1000,
            "\r\n",
        ],
    )
    def test_anything_else_is_forged(self, header: str | None) -> None:
        """P45, P50."""
        assert not genuine(header)

    def test_covers_the_body_to_the_byte(self) -> None:
        assert not genuine(GOOD, BODY + b" ")

    @pytest.mark.parametrize("seconds", [0, 299, 300, -300])
    def test_is_good_for_five_minutes_either_way(self, seconds: int) -> None:
        assert genuine(GOOD, now=NOW + timedelta(seconds=seconds))

    @pytest.mark.parametrize("seconds", [301, -301, 10**8])
    def test_is_good_for_no_longer(self, seconds: int) -> None:
        assert not genuine(GOOD, now=NOW + timedelta(seconds=seconds))

    def test_without_a_secret_nothing_is_good(self) -> None:
        assert not genuine(GOOD, secrets=())


KNOWN = "6eeed6fbb00d666edf547bb2d58d268edc8d0d24e53dfd2482bd61c4add85ada"


class TestStates:
    def test_are_one_table(self) -> None:
        """The contract's line, with the steps in between left out where a delivery was lost."""
        later = NOW + timedelta(seconds=1)
        allowed = {
            (one.value, other.value)
            for one, other in product(PurchaseStatus, PurchaseStatus)
            if is_news((one, NOW), other, later)
        }
        open_ones = ("waitingPayment", "pending", "waitingAuthorization")
        everything = {(one, other) for one in open_ones for other in (*open_ones, "completed", "failed")}
        assert allowed == everything - {
            ("pending", "waitingPayment"),
            ("waitingAuthorization", "waitingPayment"),
        }

    @pytest.mark.parametrize("status", list(PurchaseStatus))
    def test_a_first_report_may_say_anything(self, status: PurchaseStatus) -> None:
        assert is_news(None, status, NOW)

    def test_what_is_older_or_no_newer_is_no_news(self) -> None:
        known = (PurchaseStatus.PENDING, NOW)
        assert not is_news(known, PurchaseStatus.COMPLETED, NOW - timedelta(milliseconds=1))
        assert not is_news(known, PurchaseStatus.PENDING, NOW)
        assert is_news(known, PurchaseStatus.COMPLETED, NOW + timedelta(milliseconds=1))
