"""A proposal for a device without a cable: given out once it is recorded, and signed by the answer. The
device is registered by its files and a signed message, and pins a vault by a file.
"""

import base64
from dataclasses import replace
from hashlib import sha256

import pytest

from custody.schemas.proposals import TxType
from firmware_bridge import DeviceState
from firmware_bridge.airgap.handoff import request_bytes
from multisig import Psbt, profile_account_path, signer_progress
from multisig.bip322 import build_proof
from signerd.callers import TERMINAL
from signerd.core.states import State
from signerd.core.tokens import ModelScreen
from signerd.daemon import airgap, airgap_setup
from signerd.errors import (
    AnswerRefused,
    DecisionError,
    NotExported,
    PlatformAnswersWrongly,
    RefusedByChecks,
    RegistrationStale,
    StaleApproval,
)
from tests.signerd.journal.test_journal import NOW, open_one
from tests.support.bills import bill
from tests.support.daemons import approve, daemon_at, noted, until, until_state
from tests.support.desk import NETWORK, VAULT, snapshot_of, spend
from tests.support.fake_bridge import FakeBridge
from tests.support.proofs import MESSAGE
from tests.support.ur_keys import proof
from tests.support.wallets import ALICE, BOB, MALLORY, fund

pytestmark = pytest.mark.anyio


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge(state=DeviceState.ABSENT)


async def exported(daemon, psbt_id: str = "p-1") -> Psbt:
    await until_state(daemon, psbt_id, State.WAITING_PERSON)
    await approve(daemon, psbt_id)
    return Psbt.parse((await airgap.export(daemon, psbt_id, TERMINAL)).psbt)


def signed(psbt: Psbt, signer=ALICE, **how: object) -> str:
    return signer.sign(psbt, **how).to_base64()


async def test_it_is_given_out_as_a_device_gets_it_and_its_answer_is_submitted(daemon, platform, bridge):
    given = await exported(daemon)
    assert given.to_bytes() == request_bytes(spend(), VAULT)
    (told,) = [note.facts for note in noted(daemon, "exported")]
    assert told["request_sha256"] == sha256(given.to_bytes()).hexdigest()
    assert told["psbt_sha256"] == sha256(daemon.journal.record("p-1").exported).hexdigest()
    assert told["request_sha256"] != told["psbt_sha256"]
    assert daemon.journal.record("p-1").state is State.EXPORTED
    line = await airgap.answer(daemon, signed(given), TERMINAL)
    assert (line.psbt_id, line.state) == ("p-1", "signed")
    await until_state(daemon, "p-1", State.SUBMITTED)
    (sent,) = platform.signatures("p-1")
    assert signer_progress(Psbt.parse(sent["psbt"]), VAULT, ALICE.fingerprint).is_complete
    kinds = [entry.note.kind for entry in daemon.journal.audit() if entry.note.subject == "p-1"]
    assert kinds == ["received", "judged", "approved", "exported", "signed", "submitting", "submitted"]
    # Brought a second time it changes nothing.
    assert (await airgap.answer(daemon, signed(given), TERMINAL)).state == "submitted"
    assert bridge.asked == 0


async def test_p95_a_message_is_given_out_only_for_a_device_that_is_known_to_sign_it(
    prepared, platform, bridge
):
    psbt = build_proof(VAULT, MESSAGE, 0, 0, [fund(VAULT, 40_000, index=1)]).psbt
    record = {"kind": TxType.PROOF, "recipients": (), "amounts": (), "op_return": None}
    platform.proposals["p-1"] = snapshot_of(psbt, **record, fee=0, txid_expected=psbt.tx.txid)
    async with daemon_at(prepared, platform, bridge) as daemon:
        with pytest.raises(RefusedByChecks, match="not known whether"):
            await exported(daemon)
        assert daemon.journal.record("p-1").exported is None
        # As where the device was seen after the person approved.
        daemon.journal.see_screen(ALICE.fingerprint, ModelScreen("Ledger 2.4.6", 80, no_funds="a fee"))
        with pytest.raises(RefusedByChecks, match="a fee"):
            await airgap.export(daemon, "p-1", TERMINAL)
        daemon.journal.see_screen(ALICE.fingerprint, ModelScreen("Coldcard 5.6.1", None))
        with pytest.raises(StaleApproval):
            await airgap.export(daemon, "p-1", TERMINAL)
        await approve(daemon, "p-1")
        await airgap.export(daemon, "p-1", TERMINAL)
        assert daemon.journal.record("p-1").state is State.EXPORTED


async def test_s19_a_signature_that_does_not_verify_is_told_and_written_down_and_the_right_one_still_taken(
    daemon,
):
    given = await exported(daemon)
    with pytest.raises(AnswerRefused):
        await airgap.answer(daemon, signed(given, sighash=0x83), TERMINAL)
    assert [note.subject for note in noted(daemon, "answer-refused")] == ["p-1"]
    assert any(line.kind == "alarm" for line in daemon.feed.since(0, "p-1"))
    assert (await airgap.answer(daemon, signed(given), TERMINAL)).state == "signed"


async def test_s19_an_answer_to_what_was_not_exported_is_refused_in_words(prepared, platform, bridge):
    platform.proposals["p-2"] = snapshot_of(bill(), "p-2")
    async with daemon_at(prepared, platform, bridge) as daemon:
        given = await exported(daemon)
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        more = replace(given, tx=replace(given.tx, locktime=7))
        for other in (bill(), spend(fee=1_001), more):
            with pytest.raises(NotExported, match="not exported here"):
                await airgap.answer(daemon, signed(other), TERMINAL)


async def test_after_a_restore_the_file_that_was_signed_before_is_taken_once_it_is_exported_again(
    prepared, platform, bridge
):
    with open_one(prepared) as journal:
        journal.restore(NOW)
    async with daemon_at(prepared, platform, bridge) as daemon:
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        await until(lambda: not daemon.journal.behind())
        # Exported after the backup, and signed: the journal knows nothing of it.
        file = signed(Psbt.parse(request_bytes(spend(), VAULT)))
        with pytest.raises(NotExported) as refused:
            await airgap.answer(daemon, file, TERMINAL)
        assert "export it again" in refused.value.hint
        await exported(daemon)
        await airgap.answer(daemon, file, TERMINAL)
        await until_state(daemon, "p-1", State.SUBMITTED)


async def test_of_two_exports_of_one_transaction_the_one_that_can_takes_the_answer(
    prepared, platform, bridge
):
    platform.proposals["p-2"] = replace(platform.proposals["p-1"], psbt_id="p-2")
    async with daemon_at(prepared, platform, bridge) as daemon:
        given = await exported(daemon)
        await until_state(daemon, "p-2", State.WAITING_PERSON)
        shown = await daemon.proposal("p-2")
        await daemon.approve("p-2", shown.digest, frozenset(shown.to_acknowledge))
        await airgap.export(daemon, "p-2", TERMINAL)
        platform.proposals["p-1"] = replace(platform.proposals["p-1"], description="Invoice 8")
        await until(lambda: daemon.journal.record("p-1").snapshot.description == "Invoice 8")
        assert daemon.journal.record("p-1").state is State.EXPORTED
        # What neither takes is refused in words.
        with pytest.raises(AnswerRefused, match="another cosigner's device"):
            await airgap.answer(daemon, signed(given, BOB), TERMINAL)
        line = await airgap.answer(daemon, signed(given), TERMINAL)
        assert (line.psbt_id, line.state) == ("p-2", "signed")


async def test_s5_what_no_device_would_take_is_not_recorded_as_exported(daemon, platform):
    await approve(daemon, "p-1")
    record = daemon.journal.record("p-1")
    bare = Psbt.parse(record.snapshot.psbt)
    bare = replace(bare, inputs=tuple(replace(item, non_witness_utxo=None) for item in bare.inputs))
    platform.proposals["p-1"] = replace(record.snapshot, psbt=bare.to_bytes())
    await until(lambda: daemon.journal.record("p-1").snapshot.psbt == bare.to_bytes())
    with pytest.raises(DecisionError):
        await airgap.export(daemon, "p-1", TERMINAL)
    assert daemon.journal.record("p-1").exported is None


def lines_of(signer=ALICE, accounts: int = 1) -> str:
    keys = [signer.vault_key(NETWORK, account) for account in range(accounts)]
    return "\n".join(str(key) for key in (*keys, signer.origin_key(profile_account_path(NETWORK))))


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        pytest.param(lambda text: proof(text, MALLORY), "not a signature of the challenge", id="another key"),
        pytest.param(lambda text: proof(text + " "), "not a signature of the challenge", id="another text"),
        pytest.param(
            lambda text: proof(text, path=ALICE.vault_key(NETWORK).origin.path / "0/1"),
            "not a signature of the challenge",
            id="another path",
        ),
        pytest.param(lambda _text: base64.b64encode(b"\x1f" + bytes(64)).decode(), "signature", id="zeros"),
        pytest.param(lambda _text: "signed, I promise", "no signature", id="words"),
    ],
)
async def test_s15_a_proof_that_the_key_did_not_make_registers_nothing(
    state, platform, bridge, signature, words
):
    exports = (lines_of(),)
    async with daemon_at(state, platform, bridge) as daemon:
        digest = (await airgap_setup.preview(daemon, exports)).digest
        asked = await airgap_setup.challenge(daemon, exports, digest)
        with pytest.raises(AnswerRefused, match=words):
            await airgap_setup.register(
                daemon, exports, digest, asked.challenge, signature(asked.challenge), replace=False
            )
        assert (platform.keys, daemon.journal.own_keys()) == ([], ())


async def test_s15_other_files_than_those_shown_register_nothing(state, platform, bridge):
    async with daemon_at(state, platform, bridge) as daemon:
        digest = (await airgap_setup.preview(daemon, (lines_of(),))).digest
        asked = await airgap_setup.challenge(daemon, (lines_of(),), digest)
        other = (lines_of(MALLORY),)
        with pytest.raises(RegistrationStale):
            await airgap_setup.challenge(daemon, other, digest)
        with pytest.raises(RegistrationStale):
            await airgap_setup.register(
                daemon, other, digest, asked.challenge, proof(asked.challenge, MALLORY), replace=False
            )
        # A challenge that is not for these keys is not sent on, whoever signed it.
        digest = (await airgap_setup.preview(daemon, other)).digest
        with pytest.raises(PlatformAnswersWrongly):
            await airgap_setup.register(
                daemon, other, digest, asked.challenge, proof(asked.challenge, MALLORY), replace=False
            )
        assert platform.keys == []
