"""A person's own money into a vault: every make signs it with the profile's key, and shows the vault's
address (S12).
"""

import pytest

from device_simulators.conformance import payments
from device_simulators.conformance.makes import VAULT, Shown, profile_of
from device_simulators.conformance.rigs import bridged
from multisig import CHANGE, RECEIVE, ChangeTo, TxOut, build_psbt, sats, signer_progress

pytestmark = pytest.mark.anyio


def shown_by(address: str) -> tuple[str, str]:
    """On regtest every device writes the test network's prefix: all but it and the checksum are the same."""
    body = address.rsplit("1", 1)[1][:-6]
    return body[:8], body[-8:]


@pytest.mark.parametrize("left", [0, 39_000])
async def test_s12_a_forward_is_signed_and_the_vaults_address_is_shown(rig, left):
    profile = profile_of(rig)
    coins = [payments.fund(profile, 50_000, index=index) for index in range(2)]
    into = TxOut(sats(99_000 - left), VAULT.script_pubkey(RECEIVE, 0))
    back = [ChangeTo(sats(left), CHANGE, 3)] if left else []
    psbt = build_psbt(profile, coins, [into, *back], 0)
    shown = Shown(rig)
    async with bridged(rig) as (bridge, [device]):
        signed = await bridge.sign(device.id, psbt, profile, signer=rig.seed.fingerprint)
    assert signer_progress(signed, profile, rig.seed.fingerprint).is_complete
    first, last = shown_by(VAULT.address(RECEIVE, 0))
    text = "".join(shown.text.split())
    assert first in text
    assert last in text
