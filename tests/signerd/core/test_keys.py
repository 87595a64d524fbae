"""How many vault accounts a registration offers, and what the platform's list of keys says against ours."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.schemas.keys import Key
from signerd.core.keys import (
    ALL_ACCOUNTS,
    FEW_ACCOUNTS,
    FIRST_ACCOUNTS,
    MORE_ACCOUNTS,
    Revocation,
    RevocationReason,
    VaultAccounts,
    made_with_former,
    revocation_of,
)
from signerd.core.values import FormerKey
from tests.support.desk import own_keys
from tests.support.fake_platform import listed_key

counts = st.integers(0, ALL_ACCOUNTS)
any_accounts = st.builds(VaultAccounts, counts, counts, st.none() | counts)


# BIP-48 accounts 0 to 100 are the paths that every make takes without a warning.
OFFERS = {
    "the first registration": (VaultAccounts(), FIRST_ACCOUNTS, None),
    "enough free ones": (VaultAccounts(known=8, following=8, free=FEW_ACCOUNTS + 1), 8, None),
    "few free ones": (VaultAccounts(8, 8, FEW_ACCOUNTS), 8 + MORE_ACCOUNTS, "signerd register"),
    "every path in use": (VaultAccounts(ALL_ACCOUNTS, ALL_ACCOUNTS, free=0), ALL_ACCOUNTS, None),
    "a machine that knows fewer": (VaultAccounts(known=8, following=40, free=20), 40, "Another desktop"),
    "a platform that tells no figures": (VaultAccounts(known=8), 8, None),
}


@pytest.mark.parametrize("what", OFFERS)
def test_what_a_registration_offers_and_whether_it_is_advised(what):
    accounts, wanted, words = OFFERS[what]
    assert accounts.wanted == wanted
    assert accounts.advice is None if words is None else words in accounts.advice


@given(any_accounts)
def test_whatever_the_platform_says_the_offer_is_bounded_and_loses_no_account(accounts):
    assert max(accounts.known, FIRST_ACCOUNTS) <= accounts.wanted <= ALL_ACCOUNTS


@given(any_accounts)
def test_advice_ends_with_the_registration_that_it_asks_for(accounts):
    """The platform then has what was offered, and what is new is free."""
    fresh = accounts.wanted - accounts.registered
    free = None if accounts.free is None else accounts.free + fresh
    assert accounts.advice is None or VaultAccounts(accounts.wanted, accounts.wanted, free).advice is None


NOW = datetime(2026, 1, 2, tzinfo=UTC)
OURS, _SECOND = own_keys()
XPUB, LABEL = str(OURS.key.xpub), str(OURS.key.fingerprint)


def listed(
    key_id: str = "key-1", xpub: str = XPUB, label: str = LABEL, *, active: bool = True, reason: str = ""
) -> Key:
    status = "active" if active else "revoked"
    key = listed_key(key_id, xpub, label, str(OURS.key.origin.path), status=status)
    return Key.model_validate({**key, "RevokedReason": {"String": reason, "Valid": bool(reason)}})


REVOKED = listed(active=False)


def told(*keys: Key) -> Revocation | None:
    return revocation_of(OURS, "key-1", keys, NOW)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        (listed(),),
        (listed("key-9", "xpub-other", active=False),),
        (listed("key-9", "xpub-other"),),
        (REVOKED, listed("key-2")),
    ],
    ids=["no list", "active", "another one revoked", "another one active", "the same key under another id"],
)
def test_it_says_nothing_against_ours(keys: tuple[Key, ...]) -> None:
    assert told(*keys) is None


LOST, NEW = listed(active=False, reason="lost"), listed("key-2", "xpub-other", "deadbeef")


@pytest.mark.parametrize(
    ("keys", "why", "words"),
    [
        ((REVOKED, NEW), RevocationReason.REPLACED, "replaced by the device deadbeef from another desktop"),
        ((REVOKED,), RevocationReason.REVOKED, "2026-01-02"),
        ((LOST,), RevocationReason.LOST, f"your key {LABEL} was marked lost there"),
        ((LOST, NEW), RevocationReason.LOST, f"your key {LABEL} was marked lost there"),
        ((LOST, listed("key-2")), RevocationReason.LOST, f"your key {LABEL} was marked lost there"),
    ],
)
def test_why_it_does_not_stand_any_more(keys: tuple[Key, ...], why: RevocationReason, words: str) -> None:
    found = told(*keys)
    assert found is not None
    assert found.why is why
    assert words in found.sentence


def test_l8_the_platforms_label_is_made_plain_and_short() -> None:
    found = told(REVOKED, listed("key-2", "xpub-other", "\x1b[2J" + "f" * 500))
    assert found is not None
    assert "\x1b" not in found.sentence
    assert "f" * 9 not in found.sentence


def test_a_former_key_is_named_with_its_day_where_that_is_known() -> None:
    assert f"your former key {LABEL}, of a device of yours that was replaced;" in made_with_former(
        FormerKey(OURS)
    )
    dated = made_with_former(FormerKey(OURS, NOW))
    assert "was replaced on 2026-01-02;" in dated
    assert "`signerd register --replace`" in dated
