"""What is shown: figures of the transaction's own bytes (S13), in words that no other party can alter (L8).
Reviews are kept while nothing changes, and not for ever.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from firmware_bridge import Device, DeviceState, Endpoint, missing
from multisig import RECEIVE, ChangeTo, Network, TxOut, Vault, build_psbt, op_return_script, sats
from multisig.tokens import encode_payload, token_script, token_words
from signerd.account.vaults import SeenVault
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.tokens import PublishedToken
from signerd.core.values import Record
from signerd.daemon.imported import Reviews
from signerd.daemon.proposal_views import proposal_line, proposal_view
from signerd.daemon.views import ADVICE, device_view, vault_view
from tests.multisig.tokens.samples import PAYLOADS
from tests.signerd.journal.test_journal import prepared
from tests.support.command import is_tame
from tests.support.desk import (
    NETWORK,
    VAULT,
    VAULT_ID,
    make_pin,
    own_keys,
    review_context,
    snapshot_of,
    spend,
)
from tests.support.tokens import call, gold, token_snapshot
from tests.support.wallets import ALICE, foreign_script, fund, pay

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u200b\r\nApproved: yes\x9b31m\u2028"


def shown(snapshot, context=None, **record):
    found = review(snapshot, context or review_context())
    return proposal_view(Record(snapshot, State.WAITING_PERSON, "t", **record), found)


def every_text(value) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in [*value, *value.values()] for text in every_text(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in every_text(item)]
    return []


def test_where_the_money_goes_adds_up():
    view = shown(snapshot_of(spend()))
    money = view.money
    assert money is not None
    assert money.paid_sats == sum(p.amount_sats for p in money.payments) == view.paid_sats
    assert money.change_sats == sum(c.amount_sats for c in money.change)
    assert money.paid_sats + money.change_sats + money.fee_sats == money.total_in_sats
    assert money.fee_sats == view.fee_sats
    assert view.allowed
    assert view.network == "regtest"
    assert view.verification_code == VAULT.verification_code
    assert [check.outcome for check in view.checks] == ["allow"] * len(view.checks)


@pytest.mark.parametrize("pinned", [True, False])
def test_l8_nothing_from_the_platform_moves_a_cursor(pinned):
    snapshot = snapshot_of(spend(), description=HOSTILE, created_by=HOSTILE, txid=HOSTILE)
    pin = replace(make_pin(), name=HOSTILE) if pinned else None
    view = shown(snapshot, review_context(pin=pin), reason=HOSTILE, alarm=HOSTILE)
    texts = every_text(view.model_dump(mode="json"))
    assert any("owned" in text for text in texts)
    assert all(is_tame(text) and "\n" not in text for text in texts)


@pytest.mark.parametrize(
    ("data", "text"), [(b"invoice 7", "invoice 7"), (b"\x1b[2J", None), (b"\xff\xfe", None)]
)
def test_s10_data_is_shown_whole_and_read_only_where_all_of_it_can_be(data, text):
    output = TxOut(sats(0), op_return_script(data))
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(90_000), output], 0)
    money = shown(snapshot_of(psbt)).money
    assert money is not None
    assert [(d.data, d.text) for d in money.data] == [(data.hex(), text)]


@given(PAYLOADS)
def test_s12_a_tokens_data_is_shown_in_words_with_the_devices_hex_and_refused_as_a_payment(payload):
    output = TxOut(sats(0), token_script(payload))
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [pay(99_000), output], 0)
    view = shown(snapshot_of(psbt, op_return=f"0x{encode_payload(payload).hex()}"))
    assert view.money is not None
    (data,) = view.money.data
    words = token_words(payload, NETWORK)
    assert data.token is not None
    assert (data.token.sentence, data.token.details, data.token.hex) == (
        words.sentence,
        words.details,
        data.data,
    )
    assert [check.name for check in view.checks if check.outcome == "refuse"] == ["data"]


def test_a_second_payload_is_told_in_no_tokens_decimals():
    first, second = gold(whitelist=(foreign_script("friend"),)), gold(decimals=0)
    data = [TxOut(sats(0), token_script(token.deployment)) for token in (first, second)]
    psbt = build_psbt(VAULT, [fund(VAULT, 100_000)], [*data, ChangeTo(sats(99_000), RECEIVE, 0)], 0)
    view = shown(token_snapshot(first.deployment, psbt), review_context(token=first))
    assert not view.allowed
    assert view.money is not None
    tokens = [found.token for found in view.money.data]
    assert [(token.proven, len(token.listed)) for token in tokens] == [(True, 1), (False, 0)]


def test_s13_a_line_says_what_a_proven_token_does_and_nothing_of_another():
    record = Record(token_snapshot(call()), State.WAITING_PERSON, "t")
    for token, told in ((gold(), "token GOLD: transfer 12.50"), (None, None)):
        found = review(record.snapshot, review_context(token=token))
        assert proposal_line(record, found).token == told


# --- devices, keys, vaults ----------------------------------------------------------------------------------


def test_where_hwi_is_missing_no_other_device_is_advised(monkeypatch):
    trezor, ledger = (
        replace(Device.at(Endpoint.parse(f"{family}:1"), family), state=DeviceState.UNSUPPORTED)
        for family in ("trezor:udp:127.0.0.1", "ledger:tcp:127.0.0.1")
    )
    assert device_view(ledger).advice == ADVICE[DeviceState.UNSUPPORTED]
    monkeypatch.setattr(missing, "find_spec", lambda _name: None)
    assert device_view(ledger).advice is None
    assert device_view(trezor).advice == ADVICE[DeviceState.UNSUPPORTED]


def test_l8_a_devices_own_words_are_tame():
    device = Device.at(Endpoint.parse("trezor:udp:127.0.0.1:1"), HOSTILE)
    words = {"label": HOSTILE, "detail": HOSTILE, "firmware": HOSTILE}
    view = device_view(replace(device, fingerprint=ALICE.fingerprint, **words))
    assert all(is_tame(text) for text in every_text(view.model_dump(mode="json")))
    assert view.fingerprint == str(ALICE.fingerprint)


def seen(vault: Vault | None, **changes: object) -> SeenVault:
    own = own_keys()[0] if vault else None
    usual = SeenVault(VAULT_ID, 1, HOSTILE, vault, own, fault=None)
    return replace(usual, **changes)


def test_s16_cosigners_are_shown_whole_and_ours_is_marked():
    view = vault_view(seen(VAULT), Network.REGTEST)
    keys = sorted(VAULT.cosigners, key=str)
    assert [(key.fingerprint, key.ours) for key in view.cosigners] == [
        (str(key.fingerprint), key.fingerprint == ALICE.fingerprint) for key in keys
    ]
    assert [key.xpub for key in view.cosigners] == [str(key.xpub) for key in keys]


def test_l8_what_is_said_of_a_vault_is_tame():
    told = {"changes": (HOSTILE,), "renamed": HOSTILE, "fault": HOSTILE}
    view = vault_view(seen(VAULT, pinned=True, **told), Network.REGTEST)
    assert all(is_tame(text) for text in (view.name, *view.changes, view.renamed, view.fault))


@pytest.fixture
def three(tmp_path: Path) -> Iterator[tuple[Reviews, tuple[Record, ...]]]:
    """Room for two, and three of one size."""
    with prepared(tmp_path) as journal:
        for number in range(1, 4):
            journal.poll(snapshot_of(spend(fee=1_000 + number), f"p-{number}"))
        records = journal.records()
        yield Reviews(journal, most=2 * len(records[0].snapshot.psbt)), records


def test_within_the_bound_they_are_kept_and_beyond_it_not(three, judged: list[str]) -> None:
    kept, (first, second, third) = three
    for record in (first, second, first, second):
        kept.of(record)
    assert judged == ["p-1", "p-2"]
    for record in (third, third, first):
        kept.of(record)
    assert judged[2:] == ["p-3", "p-1"]
    # The newest is kept however large it is.
    alone = Reviews(kept._journal, most=1)
    assert alone.of(first) is alone.of(first)


def test_what_a_token_lists_counts_though_its_psbt_is_small(tmp_path: Path, judged: list[str]) -> None:
    scripts = tuple(sorted(foreign_script(f"holder {number}") for number in range(100)))
    tokens = [gold(whitelist=scripts, decimals=decimals) for decimals in (1, 2)]
    with prepared(tmp_path) as journal:
        for number, token in enumerate(tokens, 1):
            journal.poll(token_snapshot(token.deployment, psbt_id=f"t-{number}"))
            journal.learn_token(token.deployment, PublishedToken(token.blob))
        records = journal.records()
        kept = Reviews(journal, most=3 * len(records[0].snapshot.psbt))
        for record in (*records, records[0]):
            kept.of(record)
        assert judged == ["t-1", "t-2", "t-1"]
