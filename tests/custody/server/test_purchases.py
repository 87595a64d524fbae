"""The states of a purchase, and the authenticity of a delivery (P45)."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from custody.schemas.purchases import PurchaseStatus
from custody.server.purchases import is_genuine, is_news, signature_of, webhook_key

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
