"""A real node with ``-signer=signerd-hwi``: its wallet's keys, an address on the device, and a payment, end
to end.
"""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from device_simulators.conformance.rigs import VIRTUAL
from device_simulators.panel import Panel, approve_all
from firmware_bridge import Bridge, Family
from multisig import Network, encode_address, p2wsh
from signerd.core.audit import Note
from signerd.core.values import Limits, OwnKey
from signerd.journal import Journal
from signerd.loopback.serve import serving
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.daemons import daemon_at, make_config
from tests.support.fake_platform import FakePlatform
from tests.support.hwi_parity import approving
from tests.support.real_signer import ready
from tests.support.regtest import open_script
from tests.support.virtual import profile, seed

NETWORK = Network.REGTEST
PROFILE = profile(0, NETWORK)
FINGERPRINT = str(seed().fingerprint)


@pytest.fixture(scope="module")
def program():
    found = find_bitcoind()
    if found is None:
        pytest.skip(MISSING)
    told = subprocess.run([found, "-help"], capture_output=True, text=True, check=True).stdout
    if "-signer=" not in told:
        pytest.skip("this node was built without external signers")
    return found


@asynccontextmanager
async def signer_at(state):
    """A daemon whose registered device is a virtual Trezor, and who says yes to all."""
    state.mkdir(mode=0o700)
    with Journal(state, network=NETWORK, limits=Limits()) as journal:
        journal.add_own_keys((OwnKey(PROFILE.key, "profile", 0),), "key-1", Note("registered", "key-1"))
    device = VIRTUAL[Family.TREZOR](seed(), Panel(approve_all), NETWORK)
    endpoint = await device.start()
    try:
        async with (
            Bridge(network=NETWORK, endpoints=[endpoint], usb=False) as bridge,
            daemon_at(state, FakePlatform(state), bridge, config=make_config()) as daemon,
            serving(daemon, state),
        ):
            await ready(daemon)
            yield daemon
    finally:
        await device.stop()


@asynccontextmanager
async def node_at(program, folder, state):
    signer = f"{sys.executable} -m signerd.hwi --state {state} --wait 60"
    node = running_node(program, folder, f"-signer={signer}", "-disablewallet=0", "-fallbackfee=0.0001")
    with node as running:
        rig = await asyncio.to_thread(NodeRig, running)
        yield rig, lambda *call: asyncio.to_thread(running.call, *call)
        rig.close()


async def create_wallet(call):
    """Core asks for the descriptors here. Watch-only for Core, and signed by ``-signer``."""
    no_keys, blank, passphrase, avoid_reuse, descriptors, at_start, external = (
        True, False, "", False, True, False, True,
    )  # fmt: skip
    return await call(
        "createwallet", "hww", no_keys, blank, passphrase, avoid_reuse, descriptors, at_start, external
    )


async def whole_story(program, tmp_path):
    state = tmp_path / "s"
    async with signer_at(state) as daemon, node_at(program, tmp_path / "node", state) as (rig, call):
        seen = {"signers": await call("enumeratesigners")}
        await create_wallet(call)
        seen["descriptors"] = (await call("listdescriptors"))["descriptors"]
        address = await call("getnewaddress", "", "bech32")
        seen["address"] = address
        with pytest.raises(AssertionError, match="No legacy addresses available"):
            await call("getnewaddress", "", "legacy")
        seen["displayed"] = await call("walletdisplayaddress", address)
        await asyncio.to_thread(rig.pay, PROFILE.script_pubkey(0, 0), 1_000_000)
        await asyncio.to_thread(rig.mine)
        elsewhere = encode_address(open_address(), NETWORK)
        async with asyncio.timeout(300), person(daemon):
            seen["sent"] = await call("send", [{elsewhere: 0.002}], None, "unset", 10)
            funded = await call("walletcreatefundedpsbt", [], [{elsewhere: 0.001}], 0, {"fee_rate": 10})
            seen["processed"] = await call("walletprocesspsbt", funded["psbt"])
        seen["mempool"] = await call("getrawmempool")
        return seen


def open_address():
    return p2wsh(open_script(1))


@asynccontextmanager
async def person(daemon):
    task = asyncio.create_task(approving(daemon))
    try:
        yield
    finally:
        task.cancel()


@pytest.fixture(scope="module")
def story(program, tmp_path_factory):
    return asyncio.run(whole_story(program, tmp_path_factory.mktemp("core")))


def test_core_finds_the_signer(story):
    assert story["signers"] == {"signers": [{"fingerprint": FINGERPRINT, "name": "trezor_1_simulator"}]}


def test_core_takes_the_one_pair_of_descriptors_and_gives_their_addresses(story):
    texts = [entry["desc"] for entry in story["descriptors"]]
    assert len(texts) == 2
    for chain in (0, 1):
        assert any(
            text.startswith(f"wpkh([{FINGERPRINT}/84h/1h/0h]{PROFILE.key.xpub}/{chain}/*)") for text in texts
        )
    assert story["address"] == PROFILE.address(0, 0)


def test_core_has_the_device_show_its_address(story):
    assert story["displayed"] == {"address": PROFILE.address(0, 0)}


def test_core_sends_what_the_person_approved_and_the_device_signed(story):
    assert story["sent"]["complete"] is True
    assert story["sent"]["txid"] in story["mempool"]


def test_core_processes_a_psbt_of_a_watched_coin(story):
    assert story["processed"]["complete"] is True
