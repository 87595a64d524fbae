"""Whom a new token lists from the start: each address is shown, whole, and decided about by the
person (S12).
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from custody.common.text import LONGEST_TEXT
from multisig import RECEIVE, encode_address
from multisig.tokens import MAX_WHITELIST, Bytecode
from signerd.cli.words import proposal_text
from signerd.core.checks.case import Verdict
from signerd.core.checks.tokens import MOST_NAMED
from signerd.core.review import ProposalReview, review
from signerd.core.states import State
from signerd.core.values import Pin, Record, ReviewContext
from signerd.daemon.proposal_views import proposal_view
from signerd.shapes import ProposalView, TokenView
from tests.multisig.tokens.samples import HOLDERS
from tests.support.desk import NETWORK, VAULT, make_pin, review_context
from tests.support.tokens import gold, token_snapshot
from tests.support.wallets import foreign_script, make_vault

FRIEND, THIEF = foreign_script("friend"), foreign_script("thief")
OTHER = Pin("vault-2", 1, "Payroll", make_vault(account=1), make_pin().own_key)


def listing(*scripts: bytes, enabled: bool = True, **changes: object) -> Bytecode:
    return gold(whitelist_enabled=enabled, whitelist=tuple(sorted(scripts)), **changes)


def knowing(token: Bytecode, **changes: object) -> ReviewContext:
    return review_context(**{"token": token, "pins": (make_pin(), OTHER), **changes})


def judged(token: Bytecode, **changes: object) -> ProposalReview:
    return review(token_snapshot(token.deployment), knowing(token, **changes))


def verdict(found: ProposalReview) -> Verdict:
    return next(one for one in found.verdicts if one.name == "token-listed")


def view(found: ProposalReview) -> ProposalView:
    return proposal_view(Record(found.snapshot, State.WAITING_PERSON, "t"), found)


def shown(found: ProposalReview) -> TokenView:
    money = view(found).money
    assert money is not None
    (data,) = money.data
    assert data.token is not None
    return data.token


def address(script: bytes) -> str:
    return encode_address(script, NETWORK) or ""


@given(st.lists(HOLDERS, max_size=3 * MOST_NAMED, unique=True), st.booleans())
def test_s12_every_listed_address_is_in_the_shown_words(scripts: list[bytes], enabled: bool) -> None:
    token = listing(*scripts, enabled=enabled)
    found = judged(token)
    addresses = [address(script) for script in token.whitelist]
    assert [one.address for one in shown(found).listed] == addresses
    lines = proposal_text(view(found)).splitlines()
    count = len(addresses)
    for number, listed in enumerate(addresses, 1):
        assert any(f"{number} of {count}: {listed}" in line for line in lines)
    assert ("token-listed" in found.to_acknowledge) is (bool(scripts) or enabled)
    assert verdict(found).figures["listed"] == count
    for listed in addresses[:MOST_NAMED]:
        assert listed in verdict(found).sentence
    if count > MOST_NAMED:
        assert f"{count - MOST_NAMED} more of {count}" in verdict(found).sentence


def test_s12_the_longest_list_is_shown_whole_and_its_sentence_is_cut_nowhere() -> None:
    token = listing(*(b"\x51\x20" + number.to_bytes(32) for number in range(MAX_WHITELIST)))
    name = replace(OTHER, name="W" * LONGEST_TEXT)
    listed_vaults = listing(*(make_vault(account=number).script_pubkey(RECEIVE, 0) for number in range(9)))
    pins = tuple(replace(name, vault=make_vault(account=number)) for number in range(9))
    text = proposal_text(view(judged(token)))
    assert all(address(script) in text for script in token.whitelist)
    assert f"{MAX_WHITELIST} of {MAX_WHITELIST}: " in text
    for found in (judged(token), judged(listed_vaults, pins=pins)):
        sentence = verdict(found).sentence
        assert len(sentence) <= LONGEST_TEXT
        assert sentence.endswith(f"The list's SHA-256 is {shown(found).listed_hash}.")


def test_an_address_that_this_machine_knows_has_its_name() -> None:
    home, other = VAULT.script_pubkey(RECEIVE, 0), OTHER.vault.script_pubkey(RECEIVE, 0)
    token = listing(home, other, FRIEND)
    payroll = f"your pinned vault 'Payroll' ({OTHER.vault.verification_code[:4]})"
    names = {one.address: one.name for one in shown(judged(token)).listed}
    assert names == {address(home): "this vault itself", address(other): payroll, address(FRIEND): None}
    found = judged(token)
    for words in (f"{address(home)} (this vault itself)", f"{address(other)} ({payroll})"):
        assert words in verdict(found).sentence
        assert words in proposal_text(view(found))


def test_s24_another_name_is_another_digest() -> None:
    """Also of an address that the sentence does not name."""
    before = (b"\x00\x14" + bytes([number]) * 20 for number in range(MOST_NAMED))
    token = listing(*before, OTHER.vault.script_pubkey(RECEIVE, 0))
    first, second = (judged(token, pins=(replace(OTHER, name=name),)) for name in ("Payroll", "Savings"))
    assert verdict(first).sentence == verdict(second).sentence
    assert first.digest != second.digest


def test_s12_without_proof_the_list_is_not_shown() -> None:
    token = listing(THIEF)
    found = review(token_snapshot(token.deployment), review_context())
    assert {one.name for one in found.refusals} == {"token-known"}
    assert verdict(found).acknowledge
    assert shown(found).listed == ()
    # Nor of a token that the payload is not of.
    other = review(token_snapshot(token.deployment), knowing(listing(FRIEND)))
    assert not other.allowed
    assert address(FRIEND) not in proposal_text(view(other))
