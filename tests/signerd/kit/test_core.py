"""A vault restored in a real node from its emergency kit alone; two devices sign through HWI, and it is
spent.
"""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from device_simulators.coldcard.wallet_file import parse_wallet_file
from firmware_bridge import Family
from multisig import Network, Psbt, encode_address
from signerd.core.values import Pin
from signerd.kit.document import kit
from tests.conformance.rigs import SEEDS, make_rig, make_vault, plugged_in, short_folder
from tests.support import bare_hwi
from tests.support.bitcoind import MISSING, NodeRig, find_bitcoind, running_node
from tests.support.kits import parsed
from tests.support.regtest import open_output

VAULT = make_vault(network=Network.REGTEST)
PIN = Pin("vault-1", 1, "Treasury", VAULT, VAULT.cosigners[0])
ELSEWHERE = encode_address(open_output(1), Network.REGTEST)


@pytest.fixture(scope="module")
def program():
    found = find_bitcoind()
    if found is None:
        pytest.skip(MISSING)
    return found


def typed(node, step, **filled):
    """What is typed at the shell beside the node: its arguments are what bitcoin-cli makes of them."""
    words = [_filled(word, filled) for word in step]
    assert words[:2] == ["bitcoin-cli", "-chain=regtest"]
    method, *arguments = [word for word in words[2:] if not word.startswith("-")]
    return node.call(method, *(_argument(word) for word in arguments))


def _filled(word, filled):
    for name, value in filled.items():
        word = word.replace(name, value)
    return word


def _argument(word):
    try:
        return json.loads(word)
    except ValueError:
        return word


@pytest.fixture(scope="module")
def story(program, tmp_path_factory):
    return asyncio.run(moved(program, tmp_path_factory.mktemp("kit") / "node"))


async def moved(program: Path, folder: Path):
    """Nothing of the vault is used but what the document says."""
    found = parsed(kit(PIN, datetime(2026, 1, 2, tzinfo=UTC)))
    with running_node(program, folder, "-disablewallet=0") as node, short_folder() as name:
        rig = await asyncio.to_thread(NodeRig, node)
        try:
            return await asyncio.to_thread(_restored, node, rig, found), await _spent(
                node, rig, found, Path(name)
            )
        finally:
            rig.close()


def _restored(node, rig, found):
    seen = {"created": typed(node, found.steps["create"]), "imported": typed(node, found.steps["import"])}
    seen["first"] = typed(node, found.steps["check"])
    # The address to pay to is that of the paper.
    script = node.call("validateaddress", found.rows["addresses"][0][2])["scriptPubKey"]
    rig.pay(bytes.fromhex(script), 1_000_000)
    rig.mine()
    seen["balance"] = typed(node, found.steps["balance"])
    return seen


def coldcard(folder, found):
    """It reads the vault from the text of the document."""
    device = make_rig(Family.COLDCARD, folder, seed=SEEDS[1])
    text = f"{found.texts['coldcard']}\n".encode()
    device.device.wallets.keep(parse_wallet_file(text, device.seed, Network.TESTNET4))
    return device


async def _spent(node, rig, found, folder):
    draft = await asyncio.to_thread(typed, node, found.steps["draft"], ADDRESS=ELSEWHERE, RATE="5")
    assert found.steps["sign"][-1] == "PSBT"
    fingerprints = [row[0][:8] for row in found.rows["keys"]]
    signed = []
    for device in (make_rig(Family.TREZOR, folder, seed=SEEDS[0]), coldcard(folder, found)):
        assert str(device.seed.fingerprint) in fingerprints
        async with plugged_in(device):
            signed.append((await bare_hwi.sign(device, Psbt.parse(draft["psbt"]))).to_base64())
    assert len(list(device.device.wallets)) == 1, "the one of the document, and none that the payment brought"
    one, two = signed
    put_together = await asyncio.to_thread(typed, node, found.steps["combine"], PSBT1=one, PSBT2=two)
    final = await asyncio.to_thread(typed, node, found.steps["finalise"], PSBT=put_together)
    taken = await asyncio.to_thread(typed, node, found.steps["test"], HEX=final["hex"])
    txid = await asyncio.to_thread(typed, node, found.steps["send"], HEX=final["hex"])
    await asyncio.to_thread(rig.mine)
    confirmed = await asyncio.to_thread(node.call, "gettransaction", txid)
    return {"draft": draft, "final": final, "taken": taken, "confirmed": confirmed}


def test_the_node_restores_the_vault(story):
    restored, _ = story
    assert [entry["success"] for entry in restored["imported"]] == [True, True]
    assert restored["first"] == [VAULT.address(0, 0)]
    assert restored["balance"] == 0.01


def test_two_devices_spend_it(story):
    _, spent = story
    assert spent["draft"]["complete"] is False
    assert spent["final"]["complete"] is True
    assert spent["taken"][0]["allowed"] is True
    assert spent["confirmed"]["confirmations"] == 1
