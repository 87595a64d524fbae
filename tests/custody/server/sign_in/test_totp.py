"""An authenticator's codes: RFC 6238's own vectors, and a second reading of the RFC as a model."""

import hmac
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.server.sign_in.second_factor import (
    SKEW_STEPS,
    STEP_SECONDS,
    base32,
    code_at,
    enrolment_uri,
    find_step,
    step_at,
)

RFC_SECRET = b"12345678901234567890"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

moments = st.integers(1_000, 7_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
secrets = st.binary(min_size=20, max_size=20)


def by_the_book(secret: bytes, moment: datetime) -> str:
    """RFC 4226, section 5.3, over RFC 6238's counter, written out again."""
    counter = int(moment.timestamp()) // 30
    digest = hmac.digest(secret, counter.to_bytes(8, "big"), "sha1")
    offset = digest[19] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"


@pytest.mark.parametrize(
    ("seconds", "eight_digits"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_the_rfcs_own_vectors(seconds: int, eight_digits: str) -> None:
    """RFC 6238, appendix B, whose eight digits end in our six."""
    moment = datetime.fromtimestamp(seconds, UTC)
    assert code_at(RFC_SECRET, step_at(moment)) == eight_digits[2:]
    assert find_step(RFC_SECRET, eight_digits[2:], moment, None) == seconds // 30


@given(secret=secrets, moment=moments, drift=st.integers(-200, 200), used=st.none() | st.integers(-4, 4))
def test_a_code_is_good_near_its_time_and_never_again(
    secret: bytes, moment: datetime, drift: int, used: int | None
) -> None:
    shown_at = moment + timedelta(seconds=drift)
    code, current = by_the_book(secret, shown_at), step_at(moment)
    last = None if used is None else current + used
    found = find_step(secret, code, moment, last)
    good = {
        step
        for step in range(max(0, current - SKEW_STEPS), current + SKEW_STEPS + 1)
        if (last is None or step > last) and by_the_book(secret, at(step)) == code
    }
    assert (found in good) if good else (found is None)
    own = step_at(shown_at)
    assert (own in good) == (abs(own - current) <= SKEW_STEPS and (last is None or own > last))


@given(secret=secrets, code=st.text(st.characters(codec="utf-8"), max_size=8))
def test_what_is_no_code_is_never_good(secret: bytes, code: str) -> None:
    shown = {by_the_book(secret, NOW + timedelta(seconds=30 * drift)) for drift in (-1, 0, 1)}
    assert (find_step(secret, code, NOW, None) is not None) == (code in shown)


def test_an_authenticator_can_read_the_enrolment() -> None:
    parts = urlsplit(enrolment_uri(RFC_SECRET, "alice+one@example.org"))
    assert (parts.scheme, parts.netloc, parts.path) == (
        "otpauth",
        "totp",
        "/Custody:alice%2Bone%40example.org",
    )
    assert parse_qs(parts.query) == {"secret": [base32(RFC_SECRET)], "issuer": ["Custody"]}
    assert base32(RFC_SECRET) == "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


def at(step: int) -> datetime:
    return datetime.fromtimestamp(step * STEP_SECONDS, UTC)
