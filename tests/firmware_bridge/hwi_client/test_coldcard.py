"""The Coldcard's driver against virtual devices on the real wire: addresses, uncollected results,
models, states.
"""

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from device_simulators.coldcard import VirtualColdcard
from device_simulators.coldcard.approvals import SAVED, ApprovalKind, ApprovalState
from device_simulators.panel import Decision, Panel, approve_all, ask_person, refuse_all
from firmware_bridge.errors import BridgeError
from firmware_bridge.makers.coldcard import vault_file
from multisig import Psbt, Vault, multisig_account_path, signer_progress
from tests.conformance import everyday, rigs
from tests.conformance.rigs import NETWORK, SEEDS
from tests.support import wallets
from tests.support.driver import Person, drive, fails, policy_args, sign_args, under_way
from tests.support.patience import PATIENCE
from tests.support.peers import OWNER
from tests.support.virtual import Record

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
ACCOUNT = str(multisig_account_path(NETWORK))
FIRST = {"policy": policy_args(VAULT), "chain": 0, "index": 0}


@asynccontextmanager
async def coldcard(script=approve_all, *, seed=SEEDS[0], **options):
    with rigs.short_folder() as folder:
        device = VirtualColdcard(
            seed, Panel(script), NETWORK, **{"pause": rigs.no_longer_than_needed, **options}
        )
        endpoint = await device.start(Path(folder) / "coldcard-driver.sock")
        try:
            yield device, endpoint
        finally:
            await device.stop()


def enrol_args(vault=VAULT, name="Savings", *, again=False):
    return {"policy": policy_args(vault), "again": again, "file": vault_file(vault, name)}


def signed_by_device(answer, psbt) -> bool:
    signed = Psbt.parse(answer)
    assert signed.tx == psbt.tx
    return signer_progress(signed, VAULT, SEEDS[0].fingerprint).is_complete


# Uncollected results


async def _leave_result(device, endpoint, psbt) -> None:
    """A signing that the person approved, and whose result was never collected."""
    await _cut_off(device, endpoint, psbt)
    decided = asyncio.Event()
    unwatch = device.panel.watch(lambda _event: decided.set())
    device.panel.press_yes()
    await asyncio.wait_for(decided.wait(), PATIENCE)
    unwatch()
    device.panel.script = approve_all


async def test_an_approval_given_after_the_host_stopped_waiting():
    """It is given to no new link, and the person is asked again."""
    psbt = wallets.make_spend(VAULT)
    async with coldcard() as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        await _leave_result(device, endpoint, psbt)
        record, person = Record(device.panel), Person()
        answer = await drive(endpoint, "sign", sign_args(psbt, VAULT, resume=True), person=person)
        assert signed_by_device(answer, psbt)
        assert record.kinds == ["sign-transaction"]
        assert person.steps[:3] == ["receiving", "asked-again", "sending"]
        assert person.steps[3:] == ["checking", "confirm-transaction", "receiving"]


async def _cut_off(device, endpoint, psbt):
    """The device asks about `psbt`, and its host no longer waits for the answer."""
    device.panel.script = ask_person
    shown = asyncio.Event()
    unwatch = device.panel.watch(lambda _event: shown.set())
    async with under_way(endpoint, "sign", sign_args(psbt, VAULT)) as (client, signing):
        await asyncio.wait_for(shown.wait(), PATIENCE)
        await asyncio.to_thread(client.cancel)
        with pytest.raises(BridgeError):
            await signing
    unwatch()


@pytest.mark.parametrize(("first", "asked_again"), [(2, 0), (1, 1)], ids=["the same", "another"])
async def test_a_question_that_is_still_open_is_waited_for(first, asked_again):
    """Of a cut-off attempt at the same; or another program's, whose answer is not taken for ours."""
    psbt, person = wallets.make_spend(VAULT, n_inputs=2), Person()
    async with coldcard() as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        await _cut_off(device, endpoint, wallets.make_spend(VAULT, n_inputs=first))
        record = Record(device.panel)
        waits = person.hears("confirm-transaction")
        call = drive(endpoint, "sign", sign_args(psbt, VAULT, resume=True), person=person)
        again = asyncio.create_task(call)
        await asyncio.wait_for(waits.wait(), PATIENCE)
        assert record.prompts == []
        device.panel.script = approve_all
        device.panel.press_yes()
        assert signed_by_device(await again, psbt)
        assert record.kinds == ["sign-transaction"] * asked_again


# Models


@pytest.mark.parametrize(
    ("hardware", "most"), [("mk3", 384 * 1024), ("mk4", 2 * 1024 * 1024), ("mk5", 2 * 1024 * 1024)]
)
async def test_a_transaction_that_is_too_large_is_not_sent(hardware, most):
    async with coldcard(hardware=hardware) as (device, endpoint):
        record = Record(device.panel)
        args = {"psbt": b64encode(bytes(most + 1)).decode(), "policy": policy_args(VAULT)}
        person = Person()
        assert await fails(endpoint, "sign", args, person=person) == (
            "unsupported",
            (
                f"A Coldcard {hardware.capitalize()} takes transactions of {most} bytes, "
                f"and this one has {most + 1}."
            ),
        )
        assert person.told == []
        assert record.prompts == []


# States


async def test_s18_a_passphrase_entered_on_the_device_is_seen_no_longer_than_needed():
    async with coldcard() as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        await device.enter_passphrase("x")
        hidden = SEEDS[0].with_passphrase("x").fingerprint.hex
        assert await drive(endpoint, "fingerprint") == hidden
        assert (await fails(endpoint, "show_address", FIRST))[0] == "wrong-device"
        await device.enter_passphrase("")
        assert await drive(endpoint, "show_address", FIRST) == VAULT.address(0, 0)


def vault_of_account(number: int, threshold: int = 2) -> Vault:
    """Another vault of the same three devices."""
    return wallets.make_vault(rigs.COSIGNERS, threshold, account=number)


async def test_s16_another_vault_of_the_same_devices_is_not_taken_for_one_that_it_knows():
    """All that its own question compares is the number of keys and their fingerprints."""
    async with coldcard() as (device, endpoint):
        record = Record(device.panel)
        await drive(endpoint, "enrol", enrol_args())
        await drive(endpoint, "enrol", enrol_args(vault_of_account(1), "Other"))
        assert record.kinds == ["enrol-wallet", "enrol-wallet"]
        await drive(endpoint, "enrol", enrol_args(vault_of_account(1), "Other"))
        await drive(endpoint, "enrol", enrol_args())
        assert record.kinds == ["enrol-wallet", "enrol-wallet"]
        args = {"policy": policy_args(vault_of_account(1)), "chain": 0, "index": 0}
        assert await drive(endpoint, "show_address", args)


PROFILE = OWNER.profile()


@pytest.mark.parametrize(
    ("op", "args"),
    [("sign", sign_args(wallets.make_spend(PROFILE), PROFILE)), ("enrol", enrol_args(vault_of_account(1)))],
)
async def test_nothing_is_sent_while_a_transaction_is_asked_about(op, args):
    """Firmware before 5.6.1 would write it over the transaction that is on the screen."""
    psbt = wallets.make_spend(VAULT)
    async with coldcard() as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        await _cut_off(device, endpoint, psbt)
        device.panel.script = approve_all
        person, record = Person(), Record(device.panel)
        assert (await fails(endpoint, op, args, person=person))[0] == "busy"
        assert (person.steps, record.prompts) == ([], [])
        device.panel.press_yes()
        assert signed_by_device(await drive(endpoint, "sign", sign_args(psbt, VAULT, resume=True)), psbt)


class Held:
    """The device's first pause ends when the test says so, the later ones when the host has heard of the
    outcome.
    """

    def __init__(self):
        self.over = asyncio.Event()
        self.closings = []

    async def __call__(self, closing, over):
        if closing is not SAVED:
            self.closings.append(closing)
            await (self.over if len(self.closings) == 1 else over).wait()


async def taken(device, kind):
    """The device has taken a request of this kind."""

    def is_taken():
        pending = device._firmware.approvals.pending
        return (pending.kind, pending.state) == (kind, ApprovalState.ASKING)

    async with asyncio.timeout(PATIENCE):
        while not is_taken():  # noqa: ASYNC110 - the screen does not change: nothing tells of it
            await asyncio.sleep(0)


@pytest.mark.parametrize("answers", [[Decision.YES], [Decision.WAIT, Decision.YES]], ids=["at-once", "later"])
async def test_an_enrolment_tried_again_right_after_a_refusal_ends_as_the_person_decides(answers):
    """The refusal's pause ends with a clean-up that forgets the new request, which stays on the screen; its
    yes still enrols.
    """
    held = Held()
    async with coldcard(refuse_all, pause=held) as (device, endpoint):
        assert (await fails(endpoint, "enrol", enrol_args()))[0] == "refused-by-person"
        assert [closing.seconds for closing in held.closings] == [2.0]
        decisions = iter([*answers, Decision.YES])
        device.panel.script = lambda _prompt: next(decisions)
        again = asyncio.create_task(drive(endpoint, "enrol", enrol_args()))
        await taken(device, ApprovalKind.ENROLMENT)
        # The device is still busy with saying "Refused.": the new question is not there yet.
        assert device.panel.pending is None
        held.over.set()
        assert await again is None
        assert [wallet.name for wallet in device.wallets] == ["Savings"]


@pytest.mark.parametrize(
    ("op", "args", "kind"),
    [
        ("sign", sign_args(wallets.make_spend(VAULT), VAULT), ApprovalKind.TRANSACTION),
        ("sign_message", {"text": "I am here", "path": f"{ACCOUNT}/0/0"}, ApprovalKind.TEXT),
    ],
)
async def test_a_request_that_was_forgotten_in_the_pause_of_a_refusal_is_made_once_more(op, args, kind):
    held = Held()
    async with coldcard(pause=held) as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        device.panel.script = refuse_all
        await fails(endpoint, "enrol", enrol_args(vault_of_account(1)))
        # What is answered to the forgotten question is lost; the person is asked once more.
        device.panel.script = approve_all
        record = Record(device.panel)
        asked = asyncio.create_task(drive(endpoint, op, args))
        await taken(device, kind)
        assert record.kinds == []
        held.over.set()
        assert await asked
        assert len(record.kinds) == 2


# Large transactions


async def test_the_person_is_told_to_look_when_the_question_is_on_the_screen_and_not_before():
    """The upload and the device's own checks are told as they go, and are not the person's time."""
    psbt, done, sizes = everyday.large(), asyncio.Event(), []

    async def work(size):
        sizes.append(size)
        await done.wait()

    async with coldcard(work=work) as (device, endpoint):
        await drive(endpoint, "enrol", enrol_args())
        record, person = Record(device.panel), Person()
        checking = person.hears("checking")
        signing = asyncio.create_task(drive(endpoint, "sign", sign_args(psbt, VAULT), person=person))
        await asyncio.wait_for(checking.wait(), PATIENCE)
        # Longer than from one look to the next: the device answers none of them.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(signing), 0.3)
        assert (person.steps[-1], record.prompts) == ("checking", [])
        done.set()
        assert signed_by_device(await signing, psbt)
    (size,) = sizes
    assert person.steps[-3:] == ["checking", "confirm-transaction", "receiving"]
    assert [(sent, whole) for step, _, sent, whole in person.told if step == "sending"] == [
        (at, size) for at in range(0, size, 32 * 1024)
    ]
