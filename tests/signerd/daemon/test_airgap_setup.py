"""A device without a cable is registered by its files and a signed message, and pins a vault by a file."""

import base64
import json

import pytest

from firmware_bridge import DeviceState
from multisig import profile_account_path
from signerd.core.states import State
from signerd.daemon import airgap_setup, vaults
from signerd.errors import (
    AddressDiffers,
    AnswerRefused,
    PlatformAnswersWrongly,
    RegistrationStale,
)
from tests.support.daemons import daemon_at, noted, until, until_state
from tests.support.desk import NETWORK, VAULT, VAULT_ID
from tests.support.fake_bridge import FakeBridge
from tests.support.ur_keys import proof
from tests.support.wallets import ALICE, MALLORY

pytestmark = pytest.mark.anyio


@pytest.fixture
def bridge() -> FakeBridge:
    return FakeBridge(state=DeviceState.ABSENT)


def lines_of(signer=ALICE, accounts: int = 1) -> str:
    keys = [signer.vault_key(NETWORK, account) for account in range(accounts)]
    return "\n".join(str(key) for key in (*keys, signer.origin_key(profile_account_path(NETWORK))))


def generic_json(signer=ALICE) -> str:
    """Coldcard: Advanced, Export Wallet, Generic JSON."""
    vault, profile = signer.vault_key(NETWORK), signer.origin_key(profile_account_path(NETWORK))
    return json.dumps(
        {
            "chain": "XRT",
            "xfp": str(signer.fingerprint).upper(),
            "account": 0,
            "bip84": {"xpub": str(profile.xpub), "deriv": str(profile.origin.path).replace("h", "'")},
            "bip48_2": {"xpub": str(vault.xpub), "deriv": str(vault.origin.path).replace("h", "'")},
        }
    )


@pytest.mark.parametrize("exports", [(generic_json(),), tuple(lines_of(accounts=3).splitlines())])
async def test_from_files_to_a_pinned_vault(state, platform, bridge, exports):
    async with daemon_at(state, platform, bridge) as daemon:
        preview = await airgap_setup.preview(daemon, exports)
        assert preview.fingerprint == str(ALICE.fingerprint)
        asked = await airgap_setup.challenge(daemon, exports, preview.digest)
        assert asked.path == "m/48h/1h/0h/2h/0/0"
        assert asked.file.splitlines() == [asked.challenge, asked.path, "p2wpkh"]
        done = await airgap_setup.register(
            daemon, exports, preview.digest, asked.challenge, proof(asked.challenge), replace=False
        )
        assert done.fingerprint == str(ALICE.fingerprint)
        (key,) = platform.keys
        assert key["MasterFingerprint"]["String"] == str(ALICE.fingerprint)
        await until(lambda: bool(daemon.journal.claims()))
        given = await airgap_setup.enrolment(daemon, VAULT_ID, "coldcard")
        # Coldcard's screens know no regtest.
        assert given.first_address.startswith("tb1")
        assert "Policy: 2 of 3" in given.text
        pinned = await vaults.pin(daemon, VAULT_ID, VAULT.verification_code, airgapped="same")
        assert (pinned.pinned, pinned.address_shown) == (True, True)
        (note,) = noted(daemon, "pinned")
        assert note.facts["address_on_device"] == "compared by the person"
        await until_state(daemon, "p-1", State.WAITING_PERSON)
        assert bridge.messages == []


async def test_another_address_on_the_device_is_an_alarm_and_nothing_is_pinned(daemon):
    await vaults.unpin(daemon, VAULT_ID, VAULT.verification_code)
    with pytest.raises(AddressDiffers):
        await vaults.pin(daemon, VAULT_ID, VAULT.verification_code, airgapped="another")
    assert daemon.journal.pin(VAULT_ID) is None
    assert [note.subject for note in noted(daemon, "address-differs")] == [VAULT_ID]


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
