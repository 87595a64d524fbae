"""What a Coldcard is at the moment: another wallet by its passphrase, bound by a policy, an older model."""

import asyncio

import pytest
from hwilib.devices.ckcc.constants import AF_P2WPKH

from device_simulators.panel import ask_person
from multisig import DerivationPath
from tests.support.coldcard import (
    NETWORK,
    SEED,
    VAULT,
    CCProtocolPacker,
    CCProtoError,
    enrol,
    host,
    knows,
    on_thread,
    running,
    text_file,
)

pytestmark = pytest.mark.anyio

MASTER = DerivationPath(())


def _look(client):
    """Whose keys there are, and whether the vault is on record."""
    return client.send_recv(CCProtocolPacker.get_xpub("m")), knows(client, VAULT)


async def test_a_passphrase_changes_the_keys_until_the_power_goes_and_the_link_stays(tmp_path):
    own, hidden = (str(seed.xpub(MASTER, NETWORK)) for seed in (SEED, SEED.with_passphrase("x")))

    def enter(device, passphrase):
        asyncio.run_coroutine_threadsafe(device.enter_passphrase(passphrase), loop).result(5)

    def work(device, path):
        with host(path) as client:
            enrol(client, text_file(VAULT))
            enter(device, "x")
            # The wallets on record are those of the other keys.
            assert _look(client) == (hidden, False)
            enter(device, "")
            assert _look(client) == (own, True)
            enter(device, "x")

    def again(path):
        with host(path) as client:
            return _look(client)

    loop = asyncio.get_running_loop()
    async with running(tmp_path) as (device, path):
        await on_thread(work, device, path)
        assert device.fingerprint == SEED.with_passphrase("x").fingerprint
        await device.start(path)
        assert device.fingerprint == SEED.fingerprint
        assert await on_thread(again, path) == (own, True)


async def test_a_passphrase_takes_the_prompt_off_the_screen(tmp_path):
    def show(path):
        with host(path) as client:
            client.send_recv(CCProtocolPacker.show_address("m/84'/1'/0'/0/0", AF_P2WPKH))

    async with running(tmp_path, script=ask_person) as (device, path):
        await on_thread(show, path)
        assert device.panel.pending is not None
        await device.enter_passphrase("x")
        assert device.panel.pending is None


async def test_a_device_that_obeys_a_policy_proves_its_link_and_refuses_the_rest(tmp_path):
    def work(path):
        with host(path) as client:
            client.check_mitm()
            for command in (CCProtocolPacker.get_xpub("m"), CCProtocolPacker.multisig_check(2, 3, 0)):
                with pytest.raises(CCProtoError, match="HSM mode"):
                    client.send_recv(command)

    async with running(tmp_path) as (device, path):
        device.obey_policy(on=True)
        await on_thread(work, path)


@pytest.mark.parametrize(("hardware", "taken"), [("mk3", False), ("mk4", True)])
async def test_an_older_model_takes_smaller_transactions(tmp_path, hardware, taken):
    def work(path):
        with host(path) as client:
            assert client.firmware_version()[-1] == hardware
            size, digest = client.upload_file(bytes(384 * 1024 + 1), blksize=2048)
            client.send_recv(CCProtocolPacker.sign_transaction(size, digest))

    async with running(tmp_path, hardware=hardware) as (_device, path):
        if taken:
            await on_thread(work, path)
        else:
            with pytest.raises(CCProtoError, match="badlen"):
                await on_thread(work, path)
