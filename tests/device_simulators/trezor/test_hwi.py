"""Unmodified HWI drives the virtual Trezor as it drives hardware."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest
from hwilib.common import AddressType, Chain
from hwilib.descriptor import parse_descriptor
from hwilib.devices.trezorlib import messages
from hwilib.devices.trezorlib.exceptions import TrezorException, TrezorFailure
from hwilib.errors import ActionCanceledError, BadArgumentError, DeviceNotReadyError

from device_simulators.conformance.second_program import open_trezor
from device_simulators.faults import Faults
from device_simulators.panel import (
    Decision,
    Panel,
    Script,
    approve_all,
    ask_person,
    refuse_all,
    refuse_kind,
)
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from device_simulators.trezor.wire import CHUNK
from firmware_bridge.model import Endpoint
from multisig import (
    BadSignature,
    ChangeTo,
    DerivationPath,
    Network,
    Sats,
    TxOut,
    accept_signatures,
    encode_address,
    hash160,
    multisig_account_path,
    op_return_script,
    p2pkh,
    recover_message_key,
    signer_progress,
    verify_signatures,
)
from tests.support import hwi, virtual
from tests.support.trezor_host import MASTER, host_of
from tests.support.virtual import NETWORK, PAYMENT, RECIPIENT, Record, seed, spend, vault

pytestmark = pytest.mark.anyio

ACCOUNT = multisig_account_path(NETWORK)


def legacy_address(path: DerivationPath) -> str:
    return encode_address(p2pkh(hash160(seed().public_key(path))), Network.TESTNET4)


class Bench:
    """A running device, what it showed, and HWI's client of it."""

    def __init__(self, device: VirtualTrezor, endpoint: Endpoint) -> None:
        self.device = device
        self.endpoint = endpoint
        self.record = Record(device.panel)

    async def hwi(self, work, **options):
        """Do something with a fresh HWI client, in a thread."""

        def run():
            client = open_trezor(self.endpoint, **options)
            try:
                return work(client)
            finally:
                hwi.close(client)

        return await anyio.to_thread.run_sync(run)


@asynccontextmanager
async def bench(
    script: Script = approve_all, *, number: int = 0, network: Network = NETWORK, **options
) -> AsyncIterator[Bench]:
    options.setdefault("allow_keypress", True)
    device = VirtualTrezor(seed(number), Panel(script), network, **options)
    endpoint = await device.start()
    try:
        yield Bench(device, endpoint)
    finally:
        await device.stop()


async def signed_by(psbt, number=0, script: Script = approve_all, adjust=None, **options):
    """(what HWI gave back, what was shown)."""
    async with bench(script, number=number, **options) as it:

        def work(client):
            if adjust is not None:
                adjust(client)
            return hwi.sign(client, psbt)

        return await it.hwi(work), it.record


def send_keys_in_lexicographic_order(client) -> None:
    """What our bridge does: HWI's own messages have no such field, and the device does not need them to."""
    wire = client.client
    original = wire._raw_write

    def write(message):
        parts = [message.tx] if isinstance(message, messages.TxAck) else []
        for part in parts:
            for item in [*part.inputs, *part.outputs]:
                if item.multisig is not None:
                    item.multisig.pubkeys_order = 1
        original(message)

    wire._raw_write = write


@pytest.fixture
def pubkeys_order(monkeypatch):
    """Teach HWI's message the field that firmware since 1.13.0 reads."""
    kind = messages.MultisigRedeemScriptType
    field = type(kind.FIELDS[3])("pubkeys_order", "uint32")
    monkeypatch.setattr(kind, "FIELDS", {**kind.FIELDS, 6: field})
    monkeypatch.setattr(kind, "pubkeys_order", None, raising=False)
    return send_keys_in_lexicographic_order


async def test_the_keys_are_those_of_the_seed():
    async with bench() as it:
        fingerprint, xpub = await it.hwi(
            lambda client: (
                client.get_master_fingerprint(),
                client.get_pubkey_at_path(str(ACCOUNT)).to_string(),
            )
        )
    assert fingerprint == bytes(seed().fingerprint)
    assert xpub == str(seed().xpub(ACCOUNT, NETWORK))
    assert it.record.prompts == []


async def test_a_message_is_signed_by_the_key_of_its_path():
    path = DerivationPath.parse("m/84h/1h/0h/0/5")
    async with bench() as it:
        answer = await it.hwi(lambda client: client.sign_message("prüfe mich", str(path)))
    assert recover_message_key("prüfe mich", base64.b64decode(answer)) == seed().public_key(path)
    # A message is signed as by a P2PKH address: every path of ours is another kind's, and text that is not
    # ASCII is shown in hexadecimal.
    assert [prompt.lines for prompt in it.record.prompts] == [
        ("Wrong address path", "for selected coin.", "Continue at your", "own risk!"),
        ("Confirm address?", "Message signed by:", legacy_address(path)),
        ("prüfe mich".encode().hex().upper(), "Sign binary message?"),
    ]


async def test_a_proof_of_possession_at_a_multisig_path_is_warned_of():
    path = ACCOUNT / "0/0"
    async with bench() as it:
        answer = await it.hwi(lambda client: client.sign_message("challenge", str(path)))
    assert recover_message_key("challenge", base64.b64decode(answer)) == seed().public_key(path)
    assert it.record.kinds == ["unknown-path", "sign-message-address", "sign-message"]


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


async def test_a_message_that_hides_characters_is_shown_as_hexadecimal():
    async with bench() as it:
        await it.hwi(lambda client: client.sign_message("a\nb", "m/84h/1h/0h/0/0"))
    assert it.record.prompts[-1].lines == ("610A62", "Sign binary message?")


async def test_a_message_at_the_bare_account_path_is_forbidden():
    async with bench() as it:
        with pytest.raises(TrezorFailure, match="Forbidden key path"):
            await it.hwi(lambda client: client.sign_message("challenge", str(ACCOUNT)))


async def test_a_refused_message():
    async with bench(refuse_kind("sign-message")) as it:
        with pytest.raises(ActionCanceledError):
            await it.hwi(lambda client: client.sign_message("challenge", "m/84h/1h/0h/0/0"))


async def test_a_2_of_3_spend_is_signed_and_each_signature_verifies():
    policy, psbt = vault(), spend(vault(), inputs=3)
    for number in (0, 1):
        returned, record = await signed_by(psbt, number)
        psbt = accept_signatures(psbt, returned, policy, seed(number).fingerprint)
        assert signer_progress(psbt, policy, seed(number).fingerprint).missing == ()
        assert record.kinds[-1] == "sign-total"
    assert all(len(item.valid) == 2 for item in verify_signatures(psbt, policy).inputs)


async def test_a_single_signature_spend_hides_its_change():
    policy = virtual.profile()
    psbt = spend(policy, inputs=2)
    returned, record = await signed_by(psbt)
    assert verify_signatures(accept_signatures(psbt, returned, policy, seed().fingerprint), policy)
    assert record.kinds == ["sign-output", "sign-total"]
    assert record.prompts[0].lines[:2] == ("Confirm sending", "0.006 TEST to")
    assert record.prompts[-1].lines[:4] == (
        "Confirm sending:",
        "0.0061 TEST",
        "including fee:",
        "0.0001 TEST",
    )


async def test_change_of_a_sorted_vault_is_shown_as_a_payment_without_the_order_of_its_keys():
    _, record = await signed_by(spend(vault(), inputs=2))
    assert record.kinds == ["sign-output", "sign-output", "sign-total"]


async def test_change_of_a_sorted_vault_is_recognised_with_the_order_of_its_keys(pubkeys_order):
    policy, psbt = vault(), spend(vault(), inputs=2)
    returned, record = await signed_by(psbt, adjust=pubkeys_order)
    assert record.kinds == ["sign-output", "sign-total"]
    signed = accept_signatures(psbt, returned, policy, seed().fingerprint)
    assert signer_progress(signed, policy, seed().fingerprint).missing == ()


async def test_change_to_another_quorum_is_shown_s2(pubkeys_order):
    other = vault(threshold=1).script_pubkey(1, 3)
    psbt = spend(vault(), outputs=[TxOut(PAYMENT, RECIPIENT), TxOut(Sats(390_000), other)])
    _, record = await signed_by(psbt, adjust=pubkeys_order)
    assert record.kinds == ["sign-output", "sign-output", "sign-total"]


async def test_a_lock_time_is_shown():
    _, record = await signed_by(spend(virtual.profile(), locktime=880_000))
    assert record.kinds == ["sign-output", "sign-lock-time", "sign-total"]
    assert record.prompts[1].lines[2:] == ("blockheight:", "880000", "Continue?")


BINARY = bytes(range(1, 76))


@pytest.mark.parametrize(
    ("model", "data", "shown"),
    [
        ("1", BINARY[:1], "01"),
        ("1", BINARY[:32], BINARY[:32].hex().upper()),
        ("1", BINARY[:33], BINARY[:31].hex().upper() + ".."),
        ("1", BINARY, BINARY[:31].hex().upper() + ".."),
        ("1", b"t" * 75, "t" * 75),
        ("T", BINARY[:44], BINARY[:44].hex()),
        ("T", BINARY[:45], BINARY[:44].hex()[:87] + "..."),
        ("T", BINARY, BINARY[:44].hex()[:87] + "..."),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) == 1 else str(len(value)),
)
async def test_op_return_data_is_shown_as_far_as_the_screen_goes_and_signed_whole(model, data, shown):
    policy = virtual.profile()
    outputs = [TxOut(Sats(0), op_return_script(data)), ChangeTo(Sats(990_000), 1, 0)]
    psbt = spend(policy, outputs=outputs)
    returned, record = await signed_by(psbt, model=model)
    assert record.kinds == ["sign-op-return", "sign-total"]
    assert record.prompts[0].lines == ("Confirm OP_RETURN:" if model == "1" else "OP_RETURN", shown)
    accept_signatures(psbt, returned, policy, seed().fingerprint)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            b"omni" + bytes(4) + (31).to_bytes(4, "big") + (150_000_000).to_bytes(8, "big"),
            "Simple send of 1.5 USDT",
        ),
        (b"omni and forty bytes that nobody gets to see", "Unknown transaction"),
    ],
)  # fmt: skip
async def test_data_that_begins_as_an_omni_transaction_hides_everything_else(data, words):
    outputs = [TxOut(Sats(0), op_return_script(data)), ChangeTo(Sats(990_000), 1, 0)]
    _, record = await signed_by(spend(virtual.profile(), outputs=outputs))
    assert record.prompts[0].lines == ("Confirm OMNI Transaction:", words)


@pytest.mark.parametrize("length", [76, 78])
async def test_long_op_return_data_is_signed_wrongly_by_unmodified_hwi(length):
    """HWI cuts two bytes off the script where it should cut three: the device signs another transaction."""
    policy = virtual.profile()
    outputs = [TxOut(Sats(0), op_return_script(bytes(length))), ChangeTo(Sats(990_000), 1, 0)]
    psbt = spend(policy, outputs=outputs)
    returned, _ = await signed_by(psbt)
    with pytest.raises(BadSignature):
        accept_signatures(psbt, returned, policy, seed().fingerprint)


async def test_the_longest_op_return_data_is_refused_as_hwi_sends_it():
    outputs = [TxOut(Sats(0), op_return_script(bytes(80))), ChangeTo(Sats(990_000), 1, 0)]
    with pytest.raises(TrezorFailure, match="80 bytes"):
        await signed_by(spend(virtual.profile(), outputs=outputs))


@pytest.mark.parametrize("kind", ["sign-output", "sign-total"])
async def test_a_refusal_is_hwi_s_cancelled(kind):
    with pytest.raises(ActionCanceledError):
        await signed_by(spend(vault()), script=refuse_kind(kind))


async def test_after_a_refusal_the_next_command_works():
    async with bench(refuse_all) as it:
        with pytest.raises(ActionCanceledError):
            await it.hwi(lambda client: hwi.sign(client, spend(vault())))
        assert await it.hwi(lambda client: client.get_master_fingerprint())


async def test_hwi_presses_yes_itself_through_the_debug_link():
    psbt = spend(vault())
    returned, record = await signed_by(psbt, script=ask_person)
    assert record.kinds == ["sign-output", "sign-output", "sign-total"]
    accept_signatures(psbt, returned, vault(), seed().fingerprint)


async def test_a_person_decides_where_hosts_may_not_press():
    async with bench(ask_person, allow_keypress=False) as it:

        def press_no_on_the_total(event) -> None:
            if event.happening == "shown":
                button = (
                    it.device.panel.press_no
                    if event.prompt.kind == "sign-total"
                    else it.device.panel.press_yes
                )
                button(event.id)

        it.device.panel.watch(press_no_on_the_total)
        with pytest.raises(ActionCanceledError):
            await it.hwi(lambda client: hwi.sign(client, spend(vault())))


async def test_a_device_that_is_no_cosigner():
    with pytest.raises(BadArgumentError, match="Cannot sign external inputs"):
        await signed_by(spend(vault()), number=7)


async def test_a_spend_of_another_network_is_shown_as_one_s14():
    """A Trezor is set to no network: it signs for the one that the host names, and says so."""
    psbt = spend(vault(network=Network.MAINNET))
    async with bench() as it:
        await it.hwi(lambda client: hwi.sign(client, psbt), chain=Chain.MAIN)
    assert all(" BTC" in prompt.lines[1] for prompt in it.record.prompts)
    async with bench() as it:
        with pytest.raises(TrezorFailure, match="Forbidden key path"):
            await it.hwi(lambda client: hwi.sign(client, psbt), chain=Chain.TEST)


async def test_an_address_of_a_quorum_is_shown_and_returned():
    policy = vault()
    origins = ",".join(f"{key}/0/4" for key in policy.cosigners)
    descriptor = parse_descriptor(f"wsh(sortedmulti(2,{origins}))").subdescriptors[0]
    async with bench() as it:
        address = await it.hwi(lambda client: client.display_multisig_address(AddressType.WIT, descriptor))
    assert address == vault(network=Network.TESTNET4).address(0, 4), (
        "the makers write every test network as tb1"
    )
    assert it.record.kinds == ["address"]
    assert it.record.prompts[0].lines == ("Multisig  2 of  3:", address, "Path: m/48'/1'/0'/2'/0/4")


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


async def test_a_touchscreen_shows_each_cosigners_key_on_a_page_of_its_own():
    """core/v2.3.6, core/src/apps/bitcoin/get_address.py."""
    turns = iter([Decision.TURN] * 6 + [Decision.YES])
    policy = vault(network=Network.TESTNET4)
    origins = ",".join(f"{key}/0/4" for key in policy.cosigners)
    descriptor = parse_descriptor(f"wsh(sortedmulti(2,{origins}))").subdescriptors[0]
    async with bench(lambda _prompt: next(turns), allow_keypress=False, model="T") as it:
        await it.hwi(lambda client: client.display_multisig_address(AddressType.WIT, descriptor))
    first, code, *keys, again, _code = [(prompt.lines, prompt.turn) for prompt in it.record.prompts]
    address = policy.address(0, 4)
    assert first == again == (("Multisig 2 of 3", address), "QR")
    assert code == (("Multisig 2 of 3", address.upper()), "XPUBs")
    assert [turn for _lines, turn in keys] == ["Next", "Next", "Address"]
    assert keys[0][0][0].startswith("XPUB #1 (")
    assert all(lines[1].startswith("Vpub") and len(lines[1]) == 111 for lines, _turn in keys)


async def test_an_address_of_one_key():
    async with bench() as it:
        address = await it.hwi(
            lambda client: client.display_singlesig_address("m/84h/1h/0h/0/2", AddressType.WIT)
        )
    assert address == virtual.profile(network=Network.TESTNET4).address(0, 2)
    assert it.record.prompts[0].lines == ("Address:", address, "TEST SegWit account #1")


async def test_a_locked_device_is_unlocked_by_the_places_of_its_pin():
    async with bench(pin="1357") as it:
        with pytest.raises(DeviceNotReadyError):
            await it.hwi(lambda client: client.get_master_fingerprint())

        def unlock(client):
            client.prompt_pin()
            places = client.client.debug.encode_pin("1357")
            return client.send_pin(places), client.get_master_fingerprint()

        done, fingerprint = await it.hwi(unlock)
        assert done
        assert fingerprint == bytes(seed().fingerprint)
        it.device.lock()
        with pytest.raises(DeviceNotReadyError):
            await it.hwi(lambda client: client.get_master_fingerprint())


async def test_a_wrong_pin():
    async with bench(pin="1357") as it:

        def guess(client):
            client.prompt_pin()
            return client.send_pin(client.client.debug.encode_pin("1358"))

        assert await it.hwi(guess) is False
        with pytest.raises(DeviceNotReadyError):
            await it.hwi(lambda client: client.get_master_fingerprint())


async def test_a_pin_may_come_from_another_process_than_the_one_that_asked():
    """`hwi promptpin` and `hwi sendpin` are two processes, and so two UDP ports."""
    async with bench(pin="1357") as it:
        assert await it.hwi(lambda client: client.prompt_pin())
        matrix = "".join(reversed(it.record.events[-1].prompt.lines[1:]))
        places = "".join(str(matrix.index(digit) + 1) for digit in "1357")
        assert await it.hwi(lambda client: client.send_pin(places))
        assert await it.hwi(lambda client: client.get_master_fingerprint())


async def test_a_passphrase_is_another_wallet_and_none_is_the_empty_one():
    async with bench(passphrase_protection=True) as it:
        plain = await it.hwi(lambda client: client.get_master_fingerprint())
        hidden = await it.hwi(lambda client: client.get_master_fingerprint(), password="hidden")
    assert plain == bytes(seed().fingerprint)
    assert hidden == bytes(seed().with_passphrase("hidden").fingerprint)


async def test_a_wrong_signature_comes_back_without_an_error_and_is_caught_by_us():
    psbt = spend(vault(), inputs=2)
    returned, _ = await signed_by(psbt, faults=Faults(wrong_signatures=frozenset({1})))
    with pytest.raises(BadSignature):
        accept_signatures(psbt, returned, vault(), seed().fingerprint)


async def test_a_missing_signature_is_hwi_s_error():
    with pytest.raises(TrezorException, match="signatures are missing"):
        await signed_by(spend(vault(), inputs=2), faults=Faults(missing_signatures=frozenset({0})))


async def test_a_scan_during_a_prompt_is_ignored_and_the_signature_completes():
    """A foreign program opens the device while a prompt is on its screen. HWI alone hears nothing once
    another host has written: what comes next goes to the one that wrote last. So ours writes once more
    before the person answers, a chunk that is no message.
    """
    psbt = spend(vault())
    async with bench(ask_person, allow_keypress=False) as it:
        scans, wires = [], []

        def sign(client):
            wires.append(client.client)
            return hwi.sign(client, psbt)

        async def scan() -> None:
            events = it.device.panel.events()
            async for event in events:
                if event.happening != "shown":
                    continue
                async with host_of(it.endpoint) as stranger:
                    stranger.send(m.GetFeatures())
                    stranger.send(m.GetPublicKey(address_n=MASTER, coin_name="Testnet"))
                    assert await stranger.hears_nothing()
                wires[0].transport.socket.send(bytes(CHUNK))
                scans.append(event.prompt.kind)
                it.device.panel.press_yes(event.id)
                if event.prompt.kind == "sign-total":
                    break
            await events.aclose()

        async with anyio.create_task_group() as group:
            group.start_soon(scan)
            returned = await it.hwi(sign)
    assert scans == ["sign-output", "sign-output", "sign-total"]
    accept_signatures(psbt, returned, vault(), seed().fingerprint)
