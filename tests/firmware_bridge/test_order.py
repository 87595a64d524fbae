"""One vault has one verification code, whatever the order of its cosigners: so it is one vault to a device too."""

import asyncio
from pathlib import Path

import pytest

from firmware_bridge import Family
from firmware_bridge.calls import policy_args
from multisig import Vault, signer_progress
from tests.support import rigs, wallets
from tests.support.rigs import QUICK, bridged, make_rig

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
TURNED = Vault(VAULT.network, VAULT.threshold, VAULT.cosigners[::-1])


def test_a_worker_is_told_the_same_of_it():
    assert VAULT != TURNED
    assert policy_args(VAULT, None, "Savings") == policy_args(TURNED, None, "Savings")


async def test_a_ledger_that_knows_the_vault_knows_it_in_any_order():
    """To the device each order is another wallet, whose proof is none of the other's."""
    with rigs.short_folder() as folder:
        rig = make_rig(Family.LEDGER, Path(folder))
        async with asyncio.timeout(4 * QUICK.person), bridged(rig) as (bridge, (device,)):
            await bridge.enrol(device.id, VAULT, "Savings")
            for vault in (TURNED, VAULT, TURNED):
                signed = await bridge.sign(device.id, wallets.make_spend(vault), vault)
                assert signer_progress(signed, vault, rig.seed.fingerprint).is_complete
