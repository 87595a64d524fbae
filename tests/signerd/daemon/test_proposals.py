"""From the platform's word to its end: what is asked, approved, declined, signed and heard of afterwards."""

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from custody.schemas.proposals import ProposalStatus, TroubleKind
from multisig import RECEIVE, ChangeTo, Psbt, TxOut, build_psbt, sats
from signerd.cli.words import proposal_text
from signerd.core.states import State
from signerd.core.values import Snapshot, Trouble
from signerd.daemon import vaults
from signerd.daemon.service import Daemon
from signerd.errors import NeedsAcknowledgement
from tests.support.daemons import MemoryStore, approve, daemon_at, some_rounds, submits, until, until_state
from tests.support.desk import VAULT, snapshot_of, spend
from tests.support.examples import examples
from tests.support.fake_bridge import FakeBridge
from tests.support.fake_platform import FakePlatform, problem
from tests.support.patience import PATIENCE
from tests.support.wallets import fund, make_vault, pay

pytestmark = pytest.mark.anyio
HONEST = snapshot_of(spend())


async def test_a_proposal_is_seen_approved_signed_and_submitted(daemon, platform, bridge):
    port: Daemon = daemon
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    shown = await port.proposal("p-1")
    assert shown.allowed
    assert shown.money is not None
    assert (shown.money.paid_sats, shown.money.fee_sats) == (50_000, 1_000)
    assert bridge.asked == 0
    await port.approve("p-1", shown.digest, frozenset())
    await until_state(daemon, "p-1", State.SUBMITTED)
    assert bridge.asked == 1
    (told,) = platform.signatures("p-1")
    record = daemon.journal.record("p-1")
    assert record.signature is not None
    assert told["psbt"] == base64.b64encode(record.signature.psbt).decode()
    assert told["key"] == record.signature.idempotency_key
    platform.proposals["p-1"] = replace(HONEST, status=ProposalStatus.BROADCASTING, txid=HONEST.txid_expected)
    await until_state(daemon, "p-1", State.BROADCAST)
    platform.proposals["p-1"] = replace(HONEST, status=ProposalStatus.CONFIRMED, confirmations=6)
    await until_state(daemon, "p-1", State.CONFIRMED)
    assert (await daemon.verify_audit()).fault is None
    # Months of ended ones would be kept.
    assert not daemon.imported.reviews._known


async def test_what_keeps_a_transaction_back_is_told_once_and_shown_until_it_is_over(daemon, platform):
    at = "2026-01-02T03:04:05Z"
    slow = Trouble(TroubleKind.SLOW, "bump", "It pays 1 sat/vB.", at)
    taken = Trouble(TroubleKind.CONFLICT, "wait", "Another one spends its coin.", at, "ab" * 32, "p-2")
    sent = replace(HONEST, status=ProposalStatus.BROADCASTING, collected=2)

    def told(daemon: Daemon) -> list[str]:
        return [line.text for line in daemon.feed.since(0, "p-1") if line.kind == "trouble"]

    await until_state(daemon, "p-1", State.WAITING_PERSON)
    digest = (await daemon.proposal("p-1")).digest
    await submits(daemon, "p-1")
    platform.proposals["p-1"] = replace(sent, trouble=slow)
    await until(lambda: bool(told(daemon)))
    shown = (await daemon.proposal("p-1")).trouble
    assert shown is not None
    assert (shown.kind, shown.advice, shown.words, shown.since) == ("slow", "bump", slow.words, at)
    assert told(daemon) == [f"By the platform's word: {shown.sentence}"]
    assert (await daemon.proposals(ended=False))[0].trouble == shown
    # No check reads it: the platform cannot undo a yes with it.
    assert (await daemon.proposal("p-1")).digest == digest
    platform.proposals["p-1"] = replace(sent, trouble=replace(slow, words="It pays 1.1 sat/vB."))
    await until(lambda: "1.1" in daemon.journal.record("p-1").snapshot.trouble.words)
    platform.proposals["p-1"] = replace(sent, trouble=taken)
    await until(lambda: len(told(daemon)) == 2)
    shown = (await daemon.proposal("p-1")).trouble
    assert shown is not None
    assert (shown.txid, shown.psbt_id) == (taken.txid, "p-2")
    platform.proposals["p-1"] = sent
    await until(lambda: daemon.feed.since(0, "p-1")[-1].text.endswith("no trouble with it any more."))
    assert (await daemon.proposal("p-1")).trouble is None
    assert len(told(daemon)) == 2


async def test_every_move_of_a_proposal_reaches_its_followers(daemon, platform):
    await submits(daemon, "p-1")
    platform.proposals["p-1"] = replace(HONEST, status=ProposalStatus.SIGNED, collected=2)
    # A round that was under way when the status changed may still tell of one signature.
    await until(lambda: daemon.feed.since(0, "p-1")[-1].text.startswith("Signatures: 2"))
    for confirmations, status in (
        (0, ProposalStatus.BROADCASTING),
        (1, ProposalStatus.CONFIRMED),
        (2, ProposalStatus.CONFIRMED),
    ):
        before = daemon.feed.last
        said = {"collected": 2, "confirmations": confirmations, "txid": HONEST.txid_expected}
        platform.proposals["p-1"] = replace(HONEST, status=status, **said)
        await until(lambda before=before: daemon.feed.last > before)
    assert [(line.kind, line.text) for line in daemon.feed.since(0, "p-1")][-4:] == [
        ("info", "Signatures: 2 of 2; confirmations: 0."),
        ("state", "broadcast"),
        ("state", "confirmed"),
        ("info", "Signatures: 2 of 2; confirmations: 2."),
    ]


async def test_a_decline_waits_for_the_platform_and_survives_a_restart(prepared, platform, bridge):
    store = MemoryStore()
    platform.before = lambda r: problem(503, "BACKEND_UNAVAILABLE") if "sign-psbt" in r.url.path else None
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await daemon.decline("p-1", "not our invoice\x1b[2J")
    platform.before = lambda _request: None
    async with daemon_at(prepared, platform, bridge, store=store) as daemon:
        await until(lambda: bool(platform.told()))
        await some_rounds(daemon)
    (told,) = platform.told()
    assert (told["decision"], told["reason"]) == ("reject", "not our invoice·[2J")


async def test_f_many_pending_proposals(prepared, platform, bridge):
    """``TEST_EXAMPLES=5``: a thousand."""
    many = examples(200)
    platform.proposals = {f"p-{n}": snapshot_of(one_coin(n), f"p-{n}") for n in range(many)}
    async with daemon_at(prepared, platform, bridge) as daemon:
        # Counted, not read: others are served while the list is judged, and reading it each time would be all
        # they do.
        await until(lambda: len(daemon.journal.ids([State.WAITING_PERSON])) == many, patience=10 * PATIENCE)
        lines = await daemon.proposals(ended=False)
        assert len(lines) == many
        last = f"p-{many - 1}"
        await submits(daemon, last)


async def test_l11_a_long_list_lets_others_in_while_it_is_made(prepared, platform, bridge, monkeypatch):
    monkeypatch.setattr("signerd.feed.AT_ONCE_SECONDS", 0.0)
    platform.proposals = {f"p-{n}": snapshot_of(one_coin(n), f"p-{n}") for n in range(10)}
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-9", State.WAITING_PERSON)
        listing = asyncio.create_task(daemon.proposals(ended=False))
        rounds = 0
        while not listing.done():
            await asyncio.sleep(0)
            rounds += 1
        assert rounds >= 10
        # In the order in which they came, decided in the middle or not.
        assert [line.psbt_id for line in await listing] == [f"p-{n}" for n in range(10)]


def one_coin(salt: int) -> Psbt:
    change = ChangeTo(sats(89_000 - salt), 1, 0)
    return build_psbt(VAULT, [fund(VAULT, 100_000, salt=salt)], [pay(10_000 + salt), change], 0)


def platform_with(folder: Path, *snapshots: Snapshot) -> FakePlatform:
    return FakePlatform(folder, {snapshot.psbt_id: snapshot for snapshot in snapshots})


async def test_s16_a_sweep_into_a_vault_that_the_platform_names_is_held_until_that_vault_is_pinned(
    prepared: Path, tmp_path: Path, bridge: FakeBridge
) -> None:
    new = make_vault(account=1)
    outputs = [TxOut(sats(99_000), new.script_pubkey(RECEIVE, 0))]
    platform = platform_with(tmp_path, snapshot_of(build_psbt(VAULT, [fund(VAULT, 100_000)], outputs, 0)))
    platform.replaced_by = "vault-2"
    platform.bad_vaults.append({**FakePlatform(tmp_path, vault=new)._vault(), "id": "vault-2", "name": "New"})
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        shown = await daemon.proposal("p-1")
        assert shown.to_acknowledge == ("replacement-not-pinned",)
        assert "0.00099000 BTC (99,000 sats) go to no vault" in proposal_text(shown)
        with pytest.raises(NeedsAcknowledgement):
            await approve(daemon, "p-1")
        await vaults.pin(daemon, "vault-2", new.verification_code)
        shown = await daemon.proposal("p-1")
        assert shown.to_acknowledge == ()
        assert f"your vault 'New' ({new.verification_code.partition('-')[0]})" in proposal_text(shown)
        await submits(daemon, "p-1")
