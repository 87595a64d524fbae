"""Unmodified HWI drives the virtual Ledger as it drives hardware."""

import base64
from collections import Counter
from dataclasses import replace

import anyio.to_thread
import pytest
from hwilib.common import AddressType, Chain
from hwilib.descriptor import parse_descriptor
from hwilib.devices.ledger_bitcoin.exception.errors import (
    DenyError,
    IncorrectDataError,
    UnknownDeviceError,
)
from hwilib.errors import DeviceConnectionError
from hwilib.psbt import PSBT
from hwilib.tx import CTxOut

from device_simulators.conformance.second_program import open_ledger
from device_simulators.faults import Faults, Phase
from device_simulators.panel import approve_all, refuse_all, refuse_kind
from multisig import (
    DerivationPath,
    Network,
    multisig_account_path,
    multisig_script,
    p2wsh,
    recover_message_key,
    signer_progress,
    verify_signatures,
)
from tests.support import hwi
from tests.support.ledger_host import VAULT, policy_of, spending, table
from tests.support.virtual import NETWORK, profile, seed, spend, vault

pytestmark = pytest.mark.anyio

ACCOUNT = multisig_account_path(NETWORK)
ENROLMENT = Counter({"enrol": 1})
REVIEW = Counter({"sign-transaction": 1})


async def with_client(endpoint, work, chain=Chain.TEST):
    """Do something with a fresh HWI client, in a thread."""

    def run():
        client = open_ledger(endpoint, chain)
        try:
            return work(client)
        finally:
            client.close()

    return await anyio.to_thread.run_sync(run)


async def driven(work, script=approve_all, **options):
    """(what HWI gave back, what was shown)."""
    async with table(script, **options) as it:
        return await with_client(it.endpoint, work), it.record


async def test_the_keys_are_those_of_the_seed():
    (fingerprint, xpub), record = await driven(
        lambda client: (
            client.get_master_fingerprint(),
            client.get_pubkey_at_path(str(ACCOUNT)).to_string(),
        )
    )
    assert fingerprint == bytes(seed().fingerprint)
    assert xpub == str(seed().xpub(ACCOUNT, NETWORK))
    assert record.prompts == []


async def test_an_unusual_path_is_asked_for_again_with_a_prompt():
    path = DerivationPath.parse("m/13h/1h/0h")
    xpub, record = await driven(lambda client: client.get_pubkey_at_path(str(path)).to_string())
    assert xpub == str(seed().xpub(path, NETWORK))
    assert record.kinds == ["public-key"]


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_each_cosigner_of_a_vault_signs(number):
    psbt = spend(VAULT)
    signed, record = await driven(lambda client: hwi.sign(client, psbt), of=seed(number))
    assert signer_progress(signed, VAULT, VAULT.cosigners[number].fingerprint).is_complete
    assert verify_signatures(signed, VAULT).progress == 1
    assert Counter(record.kinds) == ENROLMENT + REVIEW


async def test_ten_inputs_take_a_registration_and_a_review_for_each_order_of_keys():
    """HWI lists a policy's keys as each script sorts them, and every order is another wallet to the
    device.
    """
    psbt = spend(VAULT, inputs=10)
    orders = {
        tuple(sorted(range(3), key=lambda at, n=n: VAULT.cosigners[at].xpub.derive_public_key(0, n)))
        for n in range(10)
    }
    signed, record = await driven(lambda client: hwi.sign(client, psbt))
    assert verify_signatures(signed, VAULT).progress == 1
    assert len(orders) > 1
    shown = Counter(record.kinds)
    assert shown == Counter({kind: n * len(orders) for kind, n in (ENROLMENT + REVIEW).items()})


async def test_one_registration_in_one_order_is_enough_for_ten_inputs():
    """What HWI does not do, with its own client: the way that a driver takes."""
    psbt, policy = spend(VAULT, inputs=10), policy_of(VAULT)

    def work(client):
        _, mark = client.client.register_wallet(policy)
        theirs = PSBT()
        theirs.deserialize(psbt.to_base64())
        theirs.convert_to_v2()
        return client.client.sign_psbt(theirs, policy, mark)

    yielded, record = await driven(work)
    signed = psbt.with_signatures({index: {key: signature} for index, key, signature in yielded})
    assert verify_signatures(signed, VAULT).progress == 1
    assert Counter(record.kinds) == ENROLMENT + REVIEW


async def test_a_person_s_own_account_is_signed_for_without_registration():
    psbt = spend(profile(), inputs=2)
    signed, record = await driven(lambda client: hwi.sign(client, psbt))
    assert verify_signatures(signed, profile()).progress == 1
    assert Counter(record.kinds) == REVIEW


async def test_without_the_cosigners_extended_keys_hwi_skips_the_input_and_says_nothing():
    psbt = replace(spend(VAULT), xpubs={})
    signed, record = await driven(lambda client: hwi.sign(client, psbt))
    assert verify_signatures(signed, VAULT).progress == 0
    assert record.prompts == []


async def test_a_message_is_signed_by_the_key_of_its_path():
    path = DerivationPath.parse("m/84h/1h/0h/0/5")
    answer, record = await driven(lambda client: client.sign_message("check me", str(path)))
    signature = base64.b64decode(answer)
    assert recover_message_key("check me", signature) == seed().public_key(path)
    assert signature[0] in {31, 32}
    assert record.kinds == ["sign-message"]
    assert "Message check me" in record.prompts[0].lines


async def test_a_proof_of_possession_at_a_multisig_path_is_signed_without_a_warning():
    path = ACCOUNT / "0/0"
    answer, record = await driven(lambda client: client.sign_message("challenge", str(path)))
    assert recover_message_key("challenge", base64.b64decode(answer)) == seed().public_key(path)
    assert record.kinds == ["sign-message"]


async def test_a_vault_s_address_is_registered_and_shown():
    text = VAULT.descriptor.partition("#")[0].replace("<0;1>/*", "0/7")
    descriptor = parse_descriptor(text).subdescriptors[0]
    address, record = await driven(
        lambda client: client.display_multisig_address(AddressType.WIT, descriptor)
    )
    assert address == vault(network=Network.TESTNET4).address(0, 7)
    assert Counter(record.kinds) == ENROLMENT + Counter({"address": 1})
    assert f"Address {address}" in record.prompts[-1].lines


async def test_an_own_address_is_shown():
    address, record = await driven(
        lambda client: client.display_singlesig_address("m/84h/1h/0h/1/3", AddressType.WIT)
    )
    assert address == profile(network=Network.TESTNET4).address(1, 3)
    assert record.kinds == ["address"]


async def test_a_person_s_no_is_the_app_s_own_exception():
    for work in (
        lambda client: hwi.sign(client, spend(VAULT)),
        lambda client: client.sign_message("no", "m/84h/1h/0h/0/0"),
    ):
        with pytest.raises(DenyError):
            await driven(work, refuse_all)
    with pytest.raises(DenyError):
        await driven(lambda client: hwi.sign(client, spend(VAULT)), refuse_kind("sign-transaction"))


async def test_a_vault_that_it_does_not_belong_to_is_refused_without_asking():
    async with table(of=seed(9)) as it:
        with pytest.raises(IncorrectDataError):
            await with_client(it.endpoint, lambda client: client.client.register_wallet(policy_of(VAULT)))
        assert it.record.prompts == []


async def test_an_unsorted_multisig_is_registered_as_a_sorted_one_and_fails():
    """HWI's mistake: the policy it registers is of other addresses, so that no input is the wallet's."""
    psbt, policy = unsorted_spend()

    def work(client):
        _, mark = client.client.register_wallet(policy)
        return client.client.sign_psbt(psbt, policy, mark)

    async with table() as it:
        with pytest.raises(IncorrectDataError):
            await with_client(it.endpoint, work)
        assert Counter(it.record.kinds) == ENROLMENT


def unsorted_spend():
    """A coin whose keys stand in the other order, and HWI's sorted policy for it."""
    psbt = spend(VAULT)
    keys = sorted(psbt.inputs[0].derivations, reverse=True)
    script = multisig_script(2, keys)
    theirs = PSBT()
    theirs.deserialize(psbt.to_base64())
    theirs.convert_to_v2()
    item = theirs.inputs[0]
    item.non_witness_utxo = None
    item.witness_script = script
    item.witness_utxo = CTxOut(psbt.inputs[0].witness_utxo.amount, p2wsh(script))
    return theirs, policy_of(VAULT)


async def test_another_app_is_named():
    async with table(app_name="Ethereum") as it:
        with pytest.raises(DeviceConnectionError, match="not in either the Bitcoin"):
            await with_client(it.endpoint, lambda client: client)


async def test_a_locked_device_says_so():
    async with table() as it:
        it.device.lock()
        with pytest.raises(UnknownDeviceError, match="0x5515"):
            await with_client(it.endpoint, lambda client: client)


async def test_a_device_that_vanishes_while_it_signs_ends_hwi_s_call():
    async with table(faults=Faults(vanish_at=Phase.SIGN)) as it:
        with pytest.raises((UnknownDeviceError, ConnectionError)):
            await with_client(it.endpoint, lambda client: hwi.sign(client, spend(VAULT)))


async def test_hwi_is_served_again_after_a_host_that_left_in_the_middle():
    async with table() as it:
        it.host.send(**spending(spend(profile()), policy_of(profile())).apdu(None))
        assert (await it.host.receive())[0] == 0xE000
        with pytest.raises(IncorrectDataError):
            await with_client(it.endpoint, lambda client: client)
        fingerprint = await with_client(it.endpoint, lambda client: client.get_master_fingerprint())
    assert fingerprint == bytes(seed().fingerprint)
