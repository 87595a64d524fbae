"""What a person is told of a decline, against the number of those who are left; and declines as a hostile
platform may tell of them.
"""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from custody.common.text import LONGEST_TEXT, UNSEEN
from custody.schemas.proposals import Proposal, ProposalSigner, TxType
from custody.schemas.vaults import MAX_SIGNERS
from signerd.account.wire import PlatformWorkspace, read_each, snapshot_of
from signerd.cli.words import proposal_text, proposals_text
from signerd.core.declining import on_decline
from signerd.core.states import State
from signerd.core.values import Decline, DeclineClaim, Record, SignedPsbt
from signerd.daemon.proposal_views import proposal_view
from tests.support.desk import VAULT_ID, make_pin, open_journal, prepared_journal, reviewed, spend
from tests.support.desk import snapshot_of as honest
from tests.support.examples import examples
from tests.support.fake_platform import answer_of
from tests.support.wallets import THREE, make_vault

SENT = honest(spend())
WORKSPACE = PlatformWorkspace(1, "Main", "testnet")


@given(
    threshold=st.integers(1, 3),
    others=st.integers(0, 2),
    own=st.sampled_from([None, Decline("no"), Decline("no", delivered=True)]),
    out=st.booleans(),
)
def test_a_decline_is_said_to_stop_it_where_the_platform_ends_it(threshold, others, own, out):
    """Before this signer's own, after it, and once the platform lists it."""
    said = tuple(DeclineClaim(f"signer {n}", "", None) for n in range(others + bool(own and own.delivered)))
    record = Record(replace(SENT, declines=said), State.WAITING_PERSON, "", decline=own)
    pin = make_pin(make_vault(THREE, threshold))
    words = on_decline(record, pin)
    ends = others + 1 > len(THREE) - threshold
    assert ("stops it" in words or "ends it" in words, "may not stop it" in words) == (ends, not ends)
    if out:
        signed = replace(record, signature=SignedPsbt(b"", ""))
        assert "revokes no signature" in on_decline(signed, pin)
    forward = replace(record, snapshot=replace(SENT, kind=TxType.FORWARD))
    assert "stops it" in on_decline(forward, pin)


# What a platform may write into a signer: texts of all of Unicode, and far too long ones; and what is no
# text, half of a pair, no decision, no time, which leave the proposal out.
SOUND = st.one_of(st.text(max_size=60), st.sampled_from(["\u202e\x1b[2J\n", "W" * 400, "`signerd approve`"]))
LONG = st.one_of(SOUND, st.just("W" * 10_000))
NAMES = st.sampled_from(["7", "", "\u200b", "9" * 400])
AT = st.sampled_from([None, "2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z"])
DECLINES = st.fixed_dictionaries(
    {"user_id": NAMES, "name": SOUND, "reason": LONG, "decision": st.just("reject"), "decided_at": AT}
)
BROKEN = st.fixed_dictionaries(
    {"user_id": st.sampled_from(["7", None, "9" * 401])},
    optional={
        "name": st.sampled_from(["\ud800", 7, "W" * 401]),
        "reason": st.sampled_from(["\ud800", 7, "W" * 10_001]),
        "decision": st.sampled_from(["approve", "perhaps"]),
        "decided_at": st.sampled_from(["x", "0001-01-01T00:00:00+14:00"]),
    },
)
MANY = st.lists(DECLINES, min_size=MAX_SIGNERS + 1, max_size=40)
SIGNERS = st.one_of(MANY, st.lists(st.one_of(DECLINES, BROKEN), max_size=5))


def listed(psbt_id: str, signers: list[dict[str, Any]]) -> dict[str, Any]:
    usual = {"psbt_base64": spend().to_base64(), "tx_type": "send", "status": "PENDING", "vault_id": VAULT_ID}
    told = [answer_of(ProposalSigner, **one) for one in signers]
    return answer_of(Proposal, psbt_id=psbt_id, signers=told, **usual)


@settings(max_examples=examples(40), deadline=None)
@given(signers=SIGNERS)
def test_declines_of_a_hostile_platform_break_no_list_and_no_start(tmp_path_factory, signers):
    """They are bounded in number and length, seen as they are, and outlive the program."""
    answer = json.loads(json.dumps([listed("p-1", signers), listed("p-2", [])]))
    read = read_each(answer, "psbt_id", Proposal, lambda shape: snapshot_of(shape, WORKSPACE))
    assert {one.psbt_id for one in read.items} | {one.name for one in read.unreadable} == {"p-1", "p-2"}
    assert read.items[-1].psbt_id == "p-2"
    folder = tmp_path_factory.mktemp("state")
    with prepared_journal(folder) as journal:
        for snapshot in read.items:
            journal.poll(snapshot)
        kept = journal.records()
    with open_journal(folder) as journal:
        assert journal.records() == kept
        views = [proposal_view(one, reviewed(journal, one.psbt_id)) for one in kept]
    assert len(views) == len(read.items)
    for view, record in zip(views, kept, strict=True):
        words = (proposal_text(view) + proposals_text([view])).replace("\n", "")
        assert UNSEEN.search(words) is None
        declines = record.snapshot.declines
        assert len(view.declines) == len(declines) <= MAX_SIGNERS
        assert all(len(one.reason) <= LONGEST_TEXT + 10 and 0 < len(one.by) <= 40 for one in declines)
