"""The examples of docs/build/firmware_bridge.md, run as they stand there, against virtual devices."""

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from firmware_bridge import Family
from multisig import RECEIVE, Transaction, sats, signer_progress
from tests.conformance import rigs
from tests.conformance.rigs import NETWORK, make_rig
from tests.support import wallets

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "build" / "firmware_bridge.md"
PAGES = (GUIDE, ROOT / "README.md")
EXAMPLES = [
    text for page in PAGES for text in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]
VAULT = rigs.make_vault()


def example(name):
    """The function of this name, from the one example that has it; the README may have the same."""
    (source,) = {text for text in EXAMPLES if f"def {name}(" in text}
    names = {}
    exec(compile(source, f"{GUIDE.name}:{name}", "exec"), names)
    return names[name]


@pytest.fixture
async def plugged():
    """Plugs a rig in; returns its endpoint."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(rigs.short_folder()))

        async def plug(family, **options):
            rig = make_rig(family, folder, **options)
            endpoint = await stack.enter_async_context(rigs.plugged_in(rig))
            return rig, {"endpoints": [endpoint], "usb": False, "deadlines": rigs.QUICK}

        yield plug


@pytest.mark.parametrize("family", [Family.TREZOR, Family.COLDCARD, Family.LEDGER])
async def test_ten_lines_to_a_signature(plugged, family, capsys):
    rig, where = await plugged(family)
    signed = await example("sign")(wallets.make_spend(VAULT), VAULT, **where)
    assert signer_progress(signed, VAULT, rig.seed.fingerprint).is_complete
    assert "the device" in capsys.readouterr().out


async def test_a_vault_and_a_spend(plugged):
    families = (Family.TREZOR, Family.COLDCARD, Family.LEDGER)
    there = [await plugged(family, seed=seed) for family, seed in zip(families, rigs.SEEDS, strict=True)]
    endpoints = [endpoint for _rig, where in there for endpoint in where["endpoints"]]
    vault = await example("make_vault")(NETWORK, 2, **there[0][1] | {"endpoints": endpoints})
    assert vault == VAULT
    coin = wallets.fund(vault, 100_000)
    psbt = example("make_spend")(
        vault,
        coin.previous_transaction,
        coin.outpoint.vout,
        vault.address(RECEIVE, 3),
        sats(60_000),
        sats(500),
    )
    assert [output.amount for output in psbt.outputs] == [60_000, 39_500]
    signed = [await example("sign")(psbt, vault, **place) for _rig, place in there[:2]]
    sent = Transaction.parse(bytes.fromhex(example("to_broadcast")(signed, vault)))
    assert (sent.txid, sent.has_witness) == (psbt.tx.txid, True)


async def test_states(plugged):
    rig, where = await plugged(Family.COLDCARD)
    device = await example("first_ready")(NETWORK, **where)
    assert device.fingerprint == rig.seed.fingerprint


def test_without_an_event_loop():
    with rigs.short_folder() as folder, start_blocking_portal() as portal:
        rig = make_rig(Family.COLDCARD, Path(folder))
        with portal.wrap_async_context_manager(rigs.plugged_in(rig)) as endpoint:
            where = {"endpoints": [endpoint], "usb": False, "deadlines": rigs.QUICK}
            assert example("fingerprints")(NETWORK, **where) == [str(rig.seed.fingerprint)]


async def test_pin_and_passphrase(plugged, monkeypatch):
    rig, where = await plugged(Family.TREZOR, pin="1234", passphrase_protection=True)

    def person(words):
        matrix = rig.device._access.matrix
        return "".join(str(matrix.index(digit) + 1) for digit in "1234") if "PIN" in words else "hidden"

    monkeypatch.setattr("getpass.getpass", person)
    (fingerprint,) = await example("unlock_all")(NETWORK, **where)
    assert fingerprint == str(rig.seed.with_passphrase("hidden").fingerprint)


async def test_registered_once(plugged, tmp_path):
    rig, where = await plugged(Family.LEDGER)
    shown = []
    rig.panel.watch(shown.append)
    await example("enrol_once")(VAULT, tmp_path / "kept.json", **where)
    assert shown
    shown.clear()
    await example("enrol_once")(VAULT, tmp_path / "kept.json", **where)
    assert shown == []


async def test_tests_of_your_own_program():
    assert await example("refusal_is_survived")() == "refused-by-person"
