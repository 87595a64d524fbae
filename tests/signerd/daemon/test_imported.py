"""A PSBT that an app or the person imports: asked about, signed once, handed back, and never the platform's
business.
"""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from multisig import (
    ChangeTo,
    Psbt,
    ReceivedPsbt,
    build_psbt,
    sats,
    verify_signatures,
)
from signerd.callers import GRANTABLE, TERMINAL, CallerKind, LoopbackCaller
from signerd.core.audit import Note
from signerd.core.states import State
from signerd.core.values import SigningLimits
from signerd.daemon import imported
from signerd.errors import (
    AlreadyProposed,
    IllegalEvent,
    InvalidRequest,
    NeedsAcknowledgement,
    RefusedByChecks,
    StaleApproval,
    TooManyImported,
)
from signerd.journal import Journal
from tests.support.bills import COIN, PROFILE, PROFILE_KEY, bill
from tests.support.daemons import approve, daemon_at, some_rounds, submits, until_state
from tests.support.desk import CLAIM, NETWORK, VAULT, VAULT_ID, make_pin, own_keys, snapshot_of, spend
from tests.support.fake_platform import FakePlatform
from tests.support.wallets import BOB, CAROL, fund, make_vault, pay

pytestmark = pytest.mark.anyio

WALLET = LoopbackCaller(CallerKind.APP, "Wallet", frozenset(GRANTABLE), "app-1")
OTHER = LoopbackCaller(CallerKind.APP, "Other", frozenset(GRANTABLE), "app-2")


@pytest.fixture
def platform(tmp_path: Path) -> FakePlatform:
    return FakePlatform(tmp_path, {})


@pytest.fixture
def prepared(prepared: Path) -> Path:
    """The profile is registered as well."""
    with Journal(prepared, network=NETWORK, limits=SigningLimits()) as journal:
        keys = (*own_keys(), PROFILE_KEY)
        journal.add_own_keys(keys, "key-1", Note("registered", "key-1"))
    return prepared


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
        for version in ("0", "2"):
            told = await daemon.imported.one(first.psbt_id, WALLET, version)
            assert verify_signatures(ReceivedPsbt.parse(told.signed_psbt).psbt, VAULT).progress == 2
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
    assert (await daemon.reject(no.psbt_id, "not mine")).state == "declined"
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
    with Journal(prepared, network=NETWORK, limits=SigningLimits()) as journal:
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
    same = build_psbt(
        VAULT, [fund(VAULT, 100_000, index=40)], [pay(50_000, "bill"), ChangeTo(sats(49_000), 1, 9)], 0
    )
    own = build_psbt(
        PROFILE, [fund(PROFILE, 100_000, index=3)], [pay(50_000, "bill"), ChangeTo(sats(49_000), 1, 9)], 0
    )
    await signed(daemon, bill())
    platform.proposals["p-9"] = snapshot_of(same, "p-9")
    await until_state(daemon, "p-9", State.WAITING_PERSON)
    assert (await daemon.proposal("p-9")).to_acknowledge == ("paid-twice",)
    await submits(daemon, "p-9", "paid-twice")
    assert (await daemon.imported.inspect(own.to_base64(), WALLET)).to_acknowledge == ("paid-twice",)


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
    await daemon.reject(first.psbt_id)
    await daemon.imported.import_psbt(bill(30).to_base64(), WALLET)


async def test_l6_an_app_has_few_looked_at_in_a_minute(daemon):
    now = 0.0
    daemon.imported.clock = lambda: now
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
