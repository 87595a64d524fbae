"""A PSBT that an app or the person imports: asked about, signed once, handed back, and never the platform's
business.
"""

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from multisig import ChangeTo, Policy, Psbt, build_psbt, sats
from signerd.callers import GRANTABLE, TERMINAL, CallerKind, LoopbackCaller
from signerd.core.audit import Note
from signerd.core.checks.case import hold
from signerd.core.review import review
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon import imported
from signerd.daemon.proposal_views import NOT_TOLD, for_an_app, proposal_view
from signerd.errors import (
    AlreadyProposed,
    IllegalEvent,
    InvalidRequest,
    NeedsAcknowledgement,
    RefusedByChecks,
    StaleApproval,
    TooManyImported,
)
from signerd.loopback.access.sessions import PageSessions
from signerd.loopback.answers import Context
from signerd.loopback.events import Streams
from tests.support.bills import COIN, bill
from tests.support.daemons import approve, daemon_at, some_rounds, submits, until_state
from tests.support.desk import (
    CLAIM,
    PROFILE,
    VAULT,
    VAULT_ID,
    judge_again,
    make_pin,
    open_journal,
    review_context,
    snapshot_of,
    spend,
)
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import BOB, CAROL, fund, make_vault, pay

pytestmark = pytest.mark.anyio

WALLET = LoopbackCaller(CallerKind.APP, "Wallet", frozenset(GRANTABLE), "app-1")
OTHER = LoopbackCaller(CallerKind.APP, "Other", frozenset(GRANTABLE), "app-2")


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    return FakePlatform(tmp_path, {})


def paid_again(policy: Policy = VAULT) -> Psbt:
    """What `bill` pays, from another coin."""
    outputs = [pay(50_000, "bill"), ChangeTo(sats(49_000), 1, 9)]
    return build_psbt(policy, [fund(policy, 100_000, index=40)], outputs, 0)


async def signed(daemon, psbt: Psbt, caller: LoopbackCaller = WALLET):
    """Imported, approved by the person, and signed: what the one who imported it is given then."""
    view = await daemon.imported.import_psbt(psbt.to_base64(), caller)
    await approve(daemon, view.psbt_id)
    await until_state(daemon, view.psbt_id, State.HANDED_OVER)
    return await daemon.imported.one(view.psbt_id, caller)


async def test_s6_s33_it_is_signed_once_and_what_came_with_another_copy_is_given_back_with_it(
    prepared, platform, bridge
):
    async with daemon_at(prepared, platform, bridge) as daemon:
        first = await signed(daemon, bill())
        again = await daemon.imported.import_psbt(BOB.sign(bill()).to_base64(), WALLET)
        assert again.psbt_id == first.psbt_id
        assert again.final is not None
        with pytest.raises(RefusedByChecks, match="input 0 is invalid"):
            await daemon.imported.import_psbt(CAROL.sign(bill(), sighash=0x02).to_base64(), WALLET)
        assert await daemon.imported.one(first.psbt_id, WALLET) == again
    async with daemon_at(prepared, platform, bridge) as daemon:
        assert await daemon.imported.one(first.psbt_id, WALLET) == again
        assert await daemon.imported.import_psbt(bill().to_base64(), WALLET) == again
    assert bridge.asked == 1


# --- who may what -------------------------------------------------------------------------------------------


async def test_another_apps_same_psbt_is_another_one(daemon):
    first = await daemon.imported.import_psbt(bill().to_base64(), WALLET)
    second = await daemon.imported.import_psbt(bill().to_base64(), OTHER)
    assert first.psbt_id != second.psbt_id
    # The one is told nothing of the other; the person is.
    told = {check.name: check.sentence for check in second.review.checks}
    assert first.psbt_id not in str(told)
    shown = await daemon.proposal(second.psbt_id)
    assert first.psbt_id in {check.name: check.sentence for check in shown.checks}["conflict"]


# --- how it may end -----------------------------------------------------------------------------------------


async def test_declined_taken_back_or_over_it_is_not_signed(daemon, platform, bridge):
    no = await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)
    assert (await daemon.decline(no.psbt_id, "not mine")).state == "declined"
    back = await daemon.imported.import_psbt(bill(2).to_base64(), WALLET)
    assert (await daemon.imported.withdraw(back.psbt_id, WALLET)).state == "withdrawn"
    for psbt_id in (no.psbt_id, back.psbt_id):
        with pytest.raises(IllegalEvent):
            await daemon.imported.withdraw(psbt_id, WALLET)
        with pytest.raises(IllegalEvent):
            await approve(daemon, psbt_id)
    await some_rounds(daemon, 1)
    assert platform.told() == []
    # The same transaction may be asked about again, under another id.
    assert (await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)).psbt_id != no.psbt_id
    assert bridge.asked == 0


async def test_what_was_not_decided_in_a_day_expires(daemon, bridge):
    view = await daemon.imported.import_psbt(bill().to_base64(), WALLET)
    digest = (await daemon.proposal(view.psbt_id)).digest
    real = daemon.journal._now
    daemon.journal._now = lambda: real() + timedelta(days=1)
    # To the second, even if no sweep has run yet.
    with pytest.raises((StaleApproval, IllegalEvent)):
        await daemon.approve(view.psbt_id, digest)
    await until_state(daemon, view.psbt_id, State.EXPIRED)
    assert await daemon.proposals(ended=False) == ()
    assert bridge.asked == 0


# --- what is refused, or held -------------------------------------------------------------------------------


@pytest.mark.parametrize("vault_id", ["vault-0", "vault-2"])
async def test_of_two_vaults_with_one_key_each_has_its_own(prepared, platform, bridge, vault_id):
    """What a PSBT says of a coin fits both: our key, and everybody's, is the same in them."""
    all_of_them = make_vault(threshold=3)
    with open_journal(prepared) as journal:
        journal.learn(replace(CLAIM, vault_id=vault_id, descriptor=all_of_them.descriptor))
        journal.add_pin(replace(make_pin(all_of_them), vault_id=vault_id), Note("pinned", vault_id))
    async with daemon_at(prepared, platform, bridge) as daemon:
        for vault, its_id in ((VAULT, VAULT_ID), (all_of_them, vault_id)):
            shown = await daemon.imported.inspect(bill(policy=vault).to_base64(), WALLET)
            assert (shown.allowed, shown.vault_id) == (True, its_id)


async def test_the_platforms_own_proposal_is_pointed_to(daemon, platform):
    platform.proposals["p-1"] = snapshot_of(spend())
    await until_state(daemon, "p-1", State.WAITING_PERSON)
    with pytest.raises(AlreadyProposed, match="p-1"):
        await daemon.imported.import_psbt(spend().to_base64(), WALLET)
    assert (await daemon.imported.inspect(spend().to_base64(), WALLET)).proposal_id == "p-1"
    # With a colleague's signature in it, it is the same transaction.
    with pytest.raises(AlreadyProposed):
        await daemon.imported.import_psbt(BOB.sign(spend()).to_base64(), WALLET)


async def test_s6_a_proposal_pays_what_was_imported_and_the_other_way_round(daemon, platform):
    """In both directions, regardless of which was signed first; and from the person's own profile too."""
    await signed(daemon, bill())
    platform.proposals["p-9"] = snapshot_of(paid_again(), "p-9")
    await until_state(daemon, "p-9", State.WAITING_PERSON)
    assert (await daemon.proposal("p-9")).to_acknowledge == ("paid-twice",)
    await submits(daemon, "p-9", "paid-twice")
    assert (await daemon.imported.inspect(paid_again(PROFILE).to_base64(), WALLET)).to_acknowledge == (
        "paid-twice",
    )


@pytest.mark.parametrize("policy", [VAULT, PROFILE], ids=["vault", "profile"])
@pytest.mark.parametrize("caller", [OTHER, TERMINAL], ids=["app", "person"])
async def test_s6_an_imported_cancel_of_what_was_signed_is_held(daemon, bridge, policy, caller):
    """Everything comes back, and no record says that the payment is to be stopped."""
    cancel = build_psbt(policy, [fund(policy, COIN, index=10)], [ChangeTo(sats(COIN - 9_000), 1, 99)], 0)
    first = await signed(daemon, bill(policy=policy))
    view = await daemon.imported.import_psbt(cancel.to_base64(), caller)
    shown = await daemon.proposal(view.psbt_id)
    assert shown.to_acknowledge == ("conflict",)
    assert first.psbt_id in {check.name: check.sentence for check in shown.checks}["conflict"]
    with pytest.raises(NeedsAcknowledgement):
        await approve(daemon, view.psbt_id)
    assert bridge.asked == 1


# --- L6 -----------------------------------------------------------------------------------------------------


async def test_l6_an_app_has_few_open_ones(daemon):
    for number in range(imported.MOST_OPEN_OF_AN_APP):
        await daemon.imported.import_psbt(bill(number, 10_000 + number).to_base64(), WALLET)
    with pytest.raises(TooManyImported):
        await daemon.imported.import_psbt(bill(30).to_base64(), WALLET)
    assert len(await daemon.proposals(ended=False)) == imported.MOST_OPEN_OF_AN_APP
    # Another one has its own, and the first has room again when the person has decided.
    await daemon.imported.import_psbt(bill(31).to_base64(), OTHER)
    (first, *_) = await daemon.imported.all(WALLET)
    await daemon.decline(first.psbt_id)
    await daemon.imported.import_psbt(bill(30).to_base64(), WALLET)


async def test_l6_an_app_has_few_looked_at_in_a_minute(daemon):
    now = 0.0
    daemon.imported.outside = replace(daemon.outside, clock=lambda: now)
    for _ in range(imported.MOST_A_MINUTE):
        await daemon.imported.inspect(bill().to_base64(), WALLET)
    with pytest.raises(TooManyImported):
        await daemon.imported.inspect(bill().to_base64(), WALLET)
    await daemon.imported.inspect(bill().to_base64(), OTHER)
    await daemon.imported.inspect(bill().to_base64(), TERMINAL)
    now = 60.0
    await daemon.imported.inspect(bill().to_base64(), WALLET)


@pytest.mark.parametrize("text", ["", "cHNidP8=\n", "cHNidP9=", "%%%%", "cHNid"])
async def test_base64_is_read_strictly(daemon, text):
    with pytest.raises((InvalidRequest, RefusedByChecks)) as refused:
        await daemon.imported.import_psbt(text, WALLET)
    assert text == "" or refused.type is InvalidRequest


def of_inputs(count: int):
    coins = [fund(VAULT, 10_000, index=number) for number in range(count)]
    return build_psbt(VAULT, coins, [pay(count * 9_500)], 0).to_base64()


async def test_l6_who_takes_back_and_brings_again_asks_no_oftener(daemon, monkeypatch) -> None:
    monkeypatch.setattr(imported, "MOST_A_DAY", 3)
    for number in range(3):
        view = await daemon.imported.import_psbt(bill(number, 10_000 + number).to_base64(), WALLET)
        await daemon.imported.withdraw(view.psbt_id, WALLET)
    with pytest.raises(TooManyImported, match="in a day"):
        await daemon.imported.import_psbt(bill(4).to_base64(), WALLET)
    for caller in (OTHER, TERMINAL):
        await daemon.imported.import_psbt(bill(4).to_base64(), caller)
    real = daemon.journal.now
    daemon.journal.now = lambda: real() + timedelta(days=1)
    await daemon.imported.import_psbt(bill(4).to_base64(), WALLET)


def of_outputs(count: int):
    coin = fund(VAULT, count * 10_000 + 500, index=1)
    change = [ChangeTo(sats(10_000), 1, number) for number in range(count - 1)]
    return build_psbt(VAULT, [coin], [pay(10_000), *change], 0).to_base64()


async def test_l6_an_app_has_few_inputs_and_outputs_judged_in_a_minute(daemon, monkeypatch) -> None:
    monkeypatch.setattr(imported, "MOST_PARTS_A_MINUTE", 8)
    now = 0.0
    daemon.imported.outside = replace(daemon.outside, clock=lambda: now)
    # A larger one than all together may be, where it is the first.
    assert (await daemon.imported.inspect(of_inputs(7), WALLET)).allowed
    for ask in (daemon.imported.inspect, daemon.imported.import_psbt):
        with pytest.raises(TooManyImported, match="8 inputs and outputs"):
            await ask(of_inputs(1), WALLET)
    await daemon.imported.inspect(of_inputs(7), OTHER)
    await daemon.imported.inspect(of_inputs(7), TERMINAL)
    now = 60.0
    # Outputs as inputs: each may be change, and is derived again.
    await daemon.imported.import_psbt(of_outputs(3), WALLET)
    # Known by now, and counted: the signatures that a copy carries are verified.
    await daemon.imported.import_psbt(of_outputs(3), WALLET)
    with pytest.raises(TooManyImported, match="8 inputs and outputs"):
        await daemon.imported.inspect(of_inputs(1), WALLET)


async def test_l6_a_list_of_what_was_imported_judges_nothing(prepared, platform, bridge, judged) -> None:
    """For any caller, after a restart, and for finished entries: the figures are stored with each entry."""
    async with daemon_at(prepared, platform, bridge) as daemon:
        first = await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)
        second = await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), WALLET)
        await daemon.imported.withdraw(first.psbt_id, WALLET)
    async with daemon_at(prepared, platform, bridge) as daemon:
        judged.clear()
        lines = await daemon.imported.all(WALLET)
        assert lines == await daemon.imported.all(TERMINAL)
        shown = await daemon.proposals(ended=True)
        assert judged == []
        view = await daemon.proposal(second.psbt_id)
    assert [(line.psbt_id, line.state) for line in lines] == [
        (first.psbt_id, "withdrawn"),
        (second.psbt_id, "waiting-for-person"),
    ]
    for listed in (lines, shown):
        assert [(line.paid_sats, line.fee_sats) for line in listed] == [(50_000, 1_000), (20_000, 1_000)]
    assert lines[1].model_dump().items() <= second.model_dump().items()
    assert shown[1].model_dump().items() <= view.model_dump().items()


async def test_l6_what_apps_have_open_is_bounded_in_bytes(daemon, monkeypatch) -> None:
    size = len(bill(1).to_bytes())
    monkeypatch.setattr(imported, "MOST_OPEN_BYTES_OF_AN_APP", 2 * size + 10)
    monkeypatch.setattr(imported, "MOST_OPEN_BYTES", 3 * size + 10)
    first = await daemon.imported.import_psbt(bill(1, 10_000).to_base64(), WALLET)
    await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), WALLET)
    with pytest.raises(TooManyImported, match="imported PSBTs of this app"):
        await daemon.imported.import_psbt(bill(3, 30_000).to_base64(), WALLET)
    await daemon.imported.import_psbt(bill(3, 30_000).to_base64(), OTHER)
    with pytest.raises(TooManyImported, match="imported PSBTs of apps"):
        await daemon.imported.import_psbt(bill(4, 40_000).to_base64(), OTHER)
    # The person's own are the person's; and there is room again where something is over.
    await daemon.imported.import_psbt(bill(4, 40_000).to_base64(), TERMINAL)
    await daemon.imported.withdraw(first.psbt_id, WALLET)
    await daemon.imported.import_psbt(bill(5, 45_000).to_base64(), WALLET)


async def test_l8_an_app_is_told_as_one_whatever_it_calls_itself_and_a_site_by_its_address(daemon) -> None:
    imitator = replace(WALLET, name=TERMINAL.name)
    site = replace(OTHER, name="Shop", origin="https://evil.example")
    told = {
        imitator: "the program 'command line'",
        site: "the site https://evil.example ('Shop')",
        TERMINAL: "command line",
    }
    for number, (caller, name) in enumerate(told.items()):
        view = await daemon.imported.import_psbt(bill(number, 10_000 + number).to_base64(), caller)
        shown = await daemon.proposal(view.psbt_id)
        assert shown.imported_by == name
        assert f"{name} imported it" in shown.checks[0].sentence
        await daemon.imported.withdraw(view.psbt_id, caller)
        reason = (await daemon.proposal(view.psbt_id)).reason
        assert reason == f"{name[0].upper()}{name[1:]} took it back."


async def test_l13_an_app_hears_of_a_refusal_and_not_of_the_persons_rules(daemon) -> None:
    theirs = await daemon.imported.import_psbt(bill(1).to_base64(), WALLET)
    own = await daemon.imported.import_psbt(bill(2, 20_000).to_base64(), TERMINAL)
    # As after a change of the configuration, or when a rule's window has filled.
    daemon.journal.limits = replace(daemon.journal.limits, max_fee=sats(500))
    daemon.runner.announce(judge_again(daemon.journal))
    (told,) = (line.text for line in daemon.feed.since(0, theirs.psbt_id) if line.kind == "attention")
    assert told == "Refused by a check or by your rules: look at it for the reason."
    (told,) = (line.text for line in daemon.feed.since(0, own.psbt_id) if line.kind == "attention")
    assert "500 sats" in told
    assert "500 sats" in (await daemon.proposal(theirs.psbt_id)).reason


async def test_l13_a_proposals_checks_tell_an_app_nothing_of_what_another_one_imported(
    daemon, platform
) -> None:
    theirs = await signed(daemon, bill())
    platform.proposals["p-9"] = snapshot_of(paid_again(), "p-9")
    await until_state(daemon, "p-9", State.WAITING_PERSON)
    for caller, told in ((TERMINAL, True), (WALLET, True), (OTHER, False)):
        view = await Context(daemon, Streams(), PageSessions(time.monotonic), caller).proposal("p-9")
        (check,) = (check for check in view.checks if check.name == "paid-twice")
        assert (theirs.psbt_id in check.sentence, theirs.psbt_id in str(check.figures)) == (told, told)
        assert check.acknowledge


def test_l13_nor_does_a_list_that_is_too_long_to_be_shown_whole() -> None:
    names = [f"a{n:x}-{'x' * 61}" for n in range(40)]
    verdict = hold("Long.", proposals=", ".join([*names, "b-theirs"])).under("paid-twice")
    found = replace(review(snapshot_of(spend()), review_context()), verdicts=(verdict,))
    view = proposal_view(Record(found.snapshot, State.WAITING_PERSON, "t"), found)
    assert "b-theirs" not in str(view.checks[0].figures)
    (check,) = for_an_app(view, found, lambda psbt_id: psbt_id == "b-theirs").checks
    assert (check.sentence, check.figures) == (NOT_TOLD, {})
    assert for_an_app(view, found, lambda _psbt_id: False).checks == view.checks
