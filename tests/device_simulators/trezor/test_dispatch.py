"""One cable, many hosts: what is ignored while a question waits, what ends it, and who is answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from device_simulators.errors import AddressUnavailable, InvalidListenAddress
from device_simulators.panel import Happening, Panel, Script, approve_all, ask_person
from device_simulators.trezor import VirtualTrezor
from device_simulators.trezor import messages as m
from device_simulators.trezor.wire import CHUNK, PING, PONG
from device_simulators.trezor.work import ROUTES, Mode, Sort
from tests.support.trezor_host import MASTER, Host, host_of, spending
from tests.support.virtual import NETWORK, Record, seed, spend, vault

pytestmark = pytest.mark.anyio

KEY = m.GetPublicKey(address_n=MASTER, coin_name="Testnet")
MESSAGE = m.SignMessage(
    address_n=(84 | 1 << 31, 1 | 1 << 31, 1 << 31, 0, 0), message=b"hello", coin_name="Testnet"
)


class Sleep:
    """Records the delays after wrong PINs without waiting."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


class Place:
    """A device and two hosts."""

    def __init__(self, device, endpoint, one: Host, other: Host, sleep: Sleep) -> None:
        self.device = device
        self.endpoint = endpoint
        self.one = one
        self.other = other
        self.sleep = sleep
        self.record = Record(device.panel)


@asynccontextmanager
async def place(script: Script = approve_all, **options) -> AsyncIterator[Place]:
    sleep = options.pop("sleep", Sleep())
    device = VirtualTrezor(seed(), Panel(script), NETWORK, sleep=sleep, **options)
    endpoint = await device.start()
    try:
        async with host_of(endpoint) as one, host_of(endpoint) as other:
            yield Place(device, endpoint, one, other, sleep)
    finally:
        await device.stop()


async def open_prompt(it: Place) -> None:
    """Host one has a prompt on the screen, acknowledged."""
    await it.one.initialize()
    await it.one.call(MESSAGE, m.ButtonRequest)
    it.one.send(m.ButtonAck())


async def sign_through(host: Host) -> m.MessageSignature:
    """Acknowledge page after page."""
    while not isinstance(answer := await host.receive(), m.MessageSignature):
        assert isinstance(answer, m.ButtonRequest), answer
        host.send(m.ButtonAck())
    return answer


def test_the_table_says_something_of_every_case():
    idle_and_due = (Mode.IDLE, Sort.DUE)  # nothing is due to a device that does nothing
    assert set(ROUTES) == {(mode, sort) for mode in Mode for sort in Sort} - {idle_and_due}


async def test_features_are_what_hwi_asks_for():
    async with place(label="Mine", pin="12") as it:
        features = await it.one.initialize()
        assert (features.vendor, features.model, features.label) == ("trezor.io", "1", "Mine")
        assert (features.major_version, features.minor_version) > (1, 10)
        assert (features.pin_protection, features.unlocked) == (True, False)
        assert len(features.session_id) == 32
        looked = await it.one.call(m.GetFeatures(), m.Features)
        assert looked.session_id is None


async def confirmed_passphrase(host: Host) -> m.PublicKey:
    asked = await host.call(m.PassphraseAck(passphrase="x"), m.ButtonRequest)
    assert asked.code == m.ButtonCode.OTHER
    asked = await host.call(m.ButtonAck(), m.ButtonRequest)
    assert asked.code == m.ButtonCode.OTHER
    return await host.call(m.ButtonAck(), m.PublicKey)


async def test_what_a_stranger_says_while_a_question_waits_is_ignored():
    async with place(ask_person) as it:
        await open_prompt(it)
        it.device.panel.script = approve_all
        for message in (
            m.GetFeatures(),
            KEY,
            MESSAGE,
            m.Ping(message="x"),
            m.ButtonAck(),
            m.TxAck(),
            m.PinMatrixAck(pin="1"),
        ):
            it.other.send(message)
        it.other.send_raw(9999, b"")
        assert await it.other.hears_nothing()
        it.one.transport.sendto(PING)
        assert await it.one.chunk() == PONG
        it.device.panel.press_yes()
        assert isinstance(await sign_through(it.one), m.MessageSignature)
        await it.other.initialize()


async def test_the_host_that_wrote_last_gets_the_answer_even_after_a_ping():
    """legacy/emulator/udp.c: the address of the last datagram is where everything goes."""
    async with place(ask_person) as it:
        await open_prompt(it)
        it.other.transport.sendto(PING)
        assert await it.other.chunk() == PONG
        it.device.panel.press_no()
        assert (await it.other.receive()).code == m.FailureCode.ACTION_CANCELLED
        assert await it.one.hears_nothing()


@pytest.mark.parametrize(("message", "answer"), [(m.Cancel(), m.Failure), (m.Initialize(), m.Features)])
async def test_a_stranger_s_cancel_or_initialize_ends_the_question_and_only_the_stranger_hears_of_it(
    message, answer
):
    async with place(ask_person) as it:
        await open_prompt(it)
        await it.other.call(message, answer)
        assert it.record.happenings[-1] is Happening.WITHDRAWN
        assert await it.one.hears_nothing()
        await it.one.call(KEY, m.PublicKey)


async def test_a_stranger_reads_a_key_while_a_transaction_is_fetched_and_that_goes_on():
    host = spending(spend(vault()), vault())
    async with place() as it:
        await it.one.initialize()
        asked = await it.one.call(host.request, m.TxRequest)
        await it.other.call(m.GetFeatures(), m.Features)
        await it.other.call(KEY, m.PublicKey)
        assert (await it.other.fails(m.ButtonAck())).code == m.FailureCode.UNEXPECTED_MESSAGE
        await it.one.call(m.TxAck(tx=host.part(asked.request_type, asked.details)), m.TxRequest)


async def test_on_a_newer_model_any_message_ends_the_question():
    """core/v2.3.6, core/src/trezor/wire/__init__.py: UnexpectedMessageError."""
    async with place(ask_person, model="T") as it:
        await open_prompt(it)
        await it.other.call(m.GetFeatures(), m.Features)
        assert it.record.happenings[-1] is Happening.WITHDRAWN
        assert await it.one.hears_nothing()


async def test_the_owner_s_cancel_withdraws_the_prompt():
    async with place(ask_person) as it:
        await open_prompt(it)
        assert (await it.one.fails(m.Cancel())).code == m.FailureCode.ACTION_CANCELLED
        assert it.record.happenings[-1] is Happening.WITHDRAWN
        assert it.device.panel.pending is None
        assert await it.one.hears_nothing()
        await it.one.call(KEY, m.PublicKey)


async def test_the_owner_s_initialize_begins_afresh():
    async with place(ask_person) as it:
        await open_prompt(it)
        await it.one.initialize()
        assert it.record.happenings[-1] is Happening.WITHDRAWN
        assert await it.one.hears_nothing()


@pytest.mark.parametrize("pin", ["", "0", "1x", "99999"])
async def test_wrong_pins_leave_it_locked(pin):
    async with place(pin="12") as it:
        await it.one.initialize()
        await it.one.call(KEY, m.PinMatrixRequest)
        wrong = m.FailureCode.PIN_INVALID if set(pin) <= set("123456789") else m.FailureCode.PIN_CANCELLED
        assert (await it.one.fails(m.PinMatrixAck(pin=pin))).code == wrong
        assert not (await it.one.call(m.GetFeatures(), m.Features)).unlocked


async def test_each_wrong_pin_doubles_the_wait_and_the_right_one_ends_that():
    """As seen: 0.9, 1.95, 3.9, 7.9, 15.9 s, then 31.5 s before the right one."""
    async with place(pin="12") as it:
        await it.one.initialize()
        for _ in range(5):
            await it.one.call(KEY, m.PinMatrixRequest)
            await it.one.fails(m.PinMatrixAck(pin="99999"))
        await it.one.call(KEY, m.PinMatrixRequest)
        places = "".join(str(it.device._access.matrix.index(digit) + 1) for digit in "12")
        await it.one.call(m.PinMatrixAck(pin=places), m.PublicKey)
        assert it.sleep.slept == pytest.approx([0.9, 1.9, 3.9, 7.9, 15.9, 31.9])
        it.device.lock()
        await it.one.call(KEY, m.PinMatrixRequest)
        await it.one.fails(m.PinMatrixAck(pin="99999"))
        assert it.sleep.slept[-1] == 0.9


async def test_while_it_makes_one_wait_for_a_pin_nothing_is_read():
    passed = asyncio.Event()

    async def wait(_seconds: float) -> None:
        await passed.wait()

    async with place(pin="12", sleep=wait) as it:
        await it.one.initialize()
        await it.one.call(KEY, m.PinMatrixRequest)
        it.one.send(m.PinMatrixAck(pin="99999"))
        it.one.send(m.GetFeatures())
        assert await it.one.hears_nothing()
        passed.set()
        assert isinstance(await it.one.receive(), m.Failure)
        assert isinstance(await it.one.receive(), m.Features)


async def test_unknown_and_malformed_messages_are_failures():
    async with place() as it:
        it.one.send_raw(5, b"")  # WipeDevice: not from here
        assert (await it.one.receive()).code == m.FailureCode.UNEXPECTED_MESSAGE
        it.one.send_raw(15, b"\x08")
        failure = await it.one.receive()
        assert failure.code == m.FailureCode.DATA_ERROR
        assert "Malformed" in failure.message
        it.one.send(m.Success(message="not a command"))
        assert (await it.one.receive()).code == m.FailureCode.UNEXPECTED_MESSAGE


async def test_noise_is_dropped_and_the_device_goes_on():
    async with place() as it:
        for noise in (b"", b"PING", b"\xff" * CHUNK, bytes(1000)):
            it.one.transport.sendto(noise)
        await it.one.initialize()


async def test_hosts_cannot_press_the_buttons_unless_they_may():
    async with place(ask_person) as it, host_of(it.endpoint, 1) as debug:
        await open_prompt(it)
        debug.send(m.DebugLinkDecision(yes_no=True))
        debug.send(m.DebugLinkGetState())
        assert await debug.hears_nothing()
        assert it.device.panel.pending is not None


async def test_hosts_press_yes_and_no_through_the_debug_link_where_they_may():
    async with place(ask_person, allow_keypress=True) as it, host_of(it.endpoint, 1) as debug:
        debug.send(m.DebugLinkDecision(yes_no=True))  # nothing to press: dropped
        debug.transport.sendto(b"noise")
        debug.send(m.PinMatrixAck(pin="1"))
        debug.send_raw(101, b"\x0a")
        await open_prompt(it)
        state = await debug.call(m.DebugLinkGetState(), m.DebugLinkState)
        assert "Wrong address path" in state.layout_lines
        debug.send(m.DebugLinkDecision(yes_no=False))
        failure = await it.one.receive()
        assert failure.code == m.FailureCode.ACTION_CANCELLED
        await open_prompt(it)
        it.device.panel.script = approve_all
        debug.send(m.DebugLinkDecision(yes_no=True))
        assert isinstance(await sign_through(it.one), m.MessageSignature)


async def test_a_decision_counts_only_once_the_host_has_acknowledged():
    async with place(approve_all) as it:
        await it.one.initialize()
        await it.one.call(MESSAGE, m.ButtonRequest)
        assert await it.one.hears_nothing()
        it.one.send(m.ButtonAck())
        await sign_through(it.one)


async def test_stopping_withdraws_the_prompt_and_frees_the_ports():
    async with place(ask_person, pin="12") as it:
        it.device.unlock()
        await open_prompt(it)
        await it.device.stop()
        assert it.record.happenings[-1] is Happening.WITHDRAWN
        port = int(it.endpoint.place.rsplit(":", 1)[1])
        assert await it.device.start(port=port) == it.endpoint
        assert not (await it.other.initialize()).unlocked, "who is unplugged is locked again"


async def test_a_passphrase_does_not_outlive_the_power_s18():
    async with place(passphrase_protection=True) as it:
        session = (await it.one.initialize()).session_id
        await it.one.call(KEY, m.PassphraseRequest)
        await confirmed_passphrase(it.one)
        async with host_of(await it.device.start()) as host:
            assert (await host.call(m.Initialize(session_id=session), m.Features)).session_id != session
            await host.call(KEY, m.PassphraseRequest)


async def test_a_host_cannot_write_control_characters_on_the_screen_l8():
    async with place() as it:
        for text in ("\x1b[2J", "a\u202eb", ""):
            it.one.send(replace(MESSAGE, message=text.encode()))
            await sign_through(it.one)
    assert [prompt.lines for prompt in it.record.prompts if prompt.kind == "sign-message"] == [
        ("1B5B324A", "Sign binary message?"),
        ("61E280AE62", "Sign binary message?"),
        ("", "Sign message?"),
    ]


async def test_a_taken_address():
    async with place() as it:
        port = int(it.endpoint.place.rsplit(":", 1)[1])
        second = VirtualTrezor(seed(1), Panel(), NETWORK)
        for taken in (port, port - 1):  # the port itself, and the place for the debug link
            with pytest.raises(AddressUnavailable):
                await second.start(port=taken)


@pytest.mark.parametrize(
    ("host", "port"),
    [("0.0.0.0", 0), ("192.0.2.1", 0), ("localhost", 0), ("127.0.0.1", 65535), ("127.0.0.1", -1)],
)
async def test_addresses_that_others_could_reach_or_that_do_not_exist(host, port):
    with pytest.raises(InvalidListenAddress):
        await VirtualTrezor(seed(), Panel(), NETWORK).start(host, port)
