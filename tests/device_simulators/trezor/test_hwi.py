"""What the virtual Trezor shows when unmodified HWI drives it. That it drives every make as hardware:
firmware_bridge/test_parity.py.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest
from hwilib.common import AddressType
from hwilib.descriptor import parse_descriptor

from device_simulators.panel import Decision, Panel, Script, approve_all
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from firmware_bridge.model import Endpoint
from multisig import (
    ChangeTo,
    Sats,
    TxOut,
    accept_signatures,
    multisig_account_path,
    op_return_script,
)
from tests.conformance.second_program import open_trezor
from tests.support import hwi, virtual
from tests.support.virtual import NETWORK, Record, seed, spend, vault

pytestmark = pytest.mark.anyio

ACCOUNT = multisig_account_path(NETWORK)


class Bench:
    """A running device, what it showed, and HWI's client of it."""

    def __init__(self, device: VirtualTrezor, endpoint: Endpoint) -> None:
        self.device = device
        self.endpoint = endpoint
        self.record = Record(device.panel)

    async def hwi(self, work):
        """Do something with a fresh HWI client, in a thread."""

        def run():
            client = open_trezor(self.endpoint)
            try:
                return work(client)
            finally:
                hwi.close(client)

        return await anyio.to_thread.run_sync(run)


@asynccontextmanager
async def bench(script: Script = approve_all, **options) -> AsyncIterator[Bench]:
    options.setdefault("allow_keypress", True)
    device = VirtualTrezor(seed(), Panel(script), NETWORK, **options)
    endpoint = await device.start()
    try:
        yield Bench(device, endpoint)
    finally:
        await device.stop()


async def signed_by(psbt, **options):
    """(what HWI gave back, what was shown)."""
    async with bench(**options) as it:
        return await it.hwi(lambda client: hwi.sign(client, psbt)), it.record


async def test_a_long_message_is_shown_page_after_page_with_the_codes_of_the_firmware():
    text = "a proof of possession of a vault's key, long enough for three pages: " + "0123456789" * 10
    async with bench() as it:
        codes = []

        def work(client):
            press = client.client.ui.button_request
            client.client.ui.button_request = lambda asked: (codes.append(asked.code), press(asked))
            return client.sign_message(text, str(ACCOUNT / "0/0"))

        await it.hwi(work)
    warned, other = m.ButtonCode.UNKNOWN_DERIVATION_PATH, m.ButtonCode.OTHER
    assert codes == [warned, other, other, other, other]
    pages = [prompt.lines for prompt in it.record.prompts if prompt.kind == "sign-message"]
    assert [title for _, title in pages] == ["Sign message?"] * 3
    assert [len(part) for part, _ in pages] == [72, 72, len(text) - 144]
    assert "".join(part for part, _ in pages) == text


BINARY = bytes(range(1, 76))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (BINARY[:1], "01"),
        (BINARY[:32], BINARY[:32].hex().upper()),
        (BINARY[:33], BINARY[:31].hex().upper() + ".."),
        (BINARY, BINARY[:31].hex().upper() + ".."),
        (b"t" * 75, "t" * 75),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) == 1 else str(len(value)),
)
async def test_op_return_data_is_shown_as_far_as_the_screen_goes_and_signed_whole(data, shown):
    policy = virtual.profile()
    outputs = [TxOut(Sats(0), op_return_script(data)), ChangeTo(Sats(990_000), 1, 0)]
    psbt = spend(policy, outputs=outputs)
    returned, record = await signed_by(psbt)
    assert record.kinds == ["sign-op-return", "sign-total"]
    assert record.prompts[0].lines == ("Confirm OP_RETURN:", shown)
    accept_signatures(psbt, returned, policy, seed().fingerprint)


async def test_the_left_button_turns_the_pages_of_an_address_and_refuses_nothing():
    """fsm_layoutAddress: the address, its QR code, two pages for each cosigner's key, and from the
    beginning.
    """
    turns = iter([Decision.TURN] * 9 + [Decision.YES])
    policy = vault()
    origins = ",".join(f"{key}/0/4" for key in policy.cosigners)
    descriptor = parse_descriptor(f"wsh(sortedmulti(2,{origins}))").subdescriptors[0]
    async with bench(lambda _prompt: next(turns), allow_keypress=False) as it:
        await it.hwi(lambda client: client.display_multisig_address(AddressType.WIT, descriptor))
    pages = ["address", "address-qr", *["address-xpub"] * 6]
    assert it.record.kinds == [*pages, *pages[:2]]
    titles = [prompt.lines[0] for prompt in it.record.prompts[2:8]]
    assert [title for title in titles if "(yours)" in title]
    assert titles[0].startswith("XPUB #1  1/2 (")
    assert all(prompt.lines[1].startswith("vpub") for prompt in it.record.prompts[2:8:2])
