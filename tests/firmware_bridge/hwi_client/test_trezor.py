"""The Trezor's driver against virtual devices: PIN, passphrase, addresses, outputs, progress, models."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest

from device_simulators.panel import Happening, Panel, approve_all, ask_person
from device_simulators.trezor import VirtualTrezor
from firmware_bridge.protocol import Question, WorkerCall, encode
from firmware_bridge.worker import spawn
from multisig import Psbt, multisig_account_path
from tests.conformance import rigs
from tests.conformance.rigs import NETWORK, SEEDS
from tests.support import wallets
from tests.support.driver import Person, drive, fails, opened, sign_args
from tests.support.virtual import Record

pytestmark = pytest.mark.anyio

VAULT = rigs.make_vault()
ACCOUNT = str(multisig_account_path(NETWORK))
PIN = "1379"


async def no_wait(_seconds: float) -> None:
    """No delay after wrong PINs."""


@asynccontextmanager
async def trezor(script=approve_all, *, seed=SEEDS[0], **options):
    device = VirtualTrezor(seed, Panel(script), NETWORK, sleep=no_wait, **options)
    endpoint = await device.start()
    try:
        yield device, endpoint
    finally:
        await device.stop()


def places(device, pin=PIN) -> str:
    """The places that the person types, from the matrix on the device's screen."""
    return "".join(str(device._access.matrix.index(digit) + 1) for digit in pin)


def knows_pin(device, pin=PIN, passphrase=None) -> Person:
    def answer(question):
        return places(device, pin) if question is Question.PIN else passphrase

    return Person(on_ask=answer)


def hidden(passphrase) -> str:
    return SEEDS[0].with_passphrase(passphrase).fingerprint.hex


# PIN, passphrase and session


@pytest.mark.parametrize(
    ("model", "typed", "wallet"),
    [
        pytest.param("1", "", "", id="empty"),
        pytest.param("1", "\u00fc", "u\u0308", id="normalised (BIP-39)"),
        pytest.param("T", "x", "x", id="a newer model"),
        pytest.param("1", "ü" * 16, "u\u0308" * 16, id="50 bytes at most"),
    ],
)
async def test_a_passphrase_from_the_host_opens_its_wallet(model, typed, wallet):
    async with trezor(model=model, passphrase_protection=True) as (_device, endpoint):
        unlocked = await drive(endpoint, "unlock", person=Person({Question.PASSPHRASE: [typed]}))
        assert unlocked.fingerprint == hidden(wallet)
        assert unlocked.session is not None


@pytest.mark.parametrize(
    ("question", "typed", "failure"),
    [
        *((Question.PIN, typed, ("locked", "places")) for typed in ("", "12a4", "0", "1" * 51)),
        *((Question.PASSPHRASE, typed, ("needs-passphrase", "50 bytes")) for typed in ("ü" * 17, "x" * 51)),
    ],
)
async def test_what_no_device_takes_is_not_sent(question, typed, failure):
    async with trezor(pin=PIN if question is Question.PIN else None, passphrase_protection=True) as (
        _device,
        endpoint,
    ):
        code, detail = await fails(endpoint, "unlock", person=Person({question: [typed]}))
    assert (code, failure[1] in detail) == (failure[0], True)


async def test_a_forgotten_session_is_never_silently_another_wallet():
    async with trezor(passphrase_protection=True) as (device, endpoint):
        unlocked = await drive(endpoint, "unlock", person=Person({Question.PASSPHRASE: ["x"]}))
        await device.stop()
        await device.start(port=int(endpoint.place.rpartition(":")[2]))
        for op in ("fingerprint", "probe"):
            if op == "probe":
                answer = await drive(endpoint, op, session=unlocked.session)
                code, detail = answer.obstacle, answer.detail
                assert answer.fingerprint is None
            else:
                code, detail = await fails(endpoint, op, session=unlocked.session)
            assert (code, detail) == ("needs-passphrase", "the device has forgotten the passphrase")


async def test_after_the_lock_only_the_pin_is_asked_again():
    async with trezor(pin=PIN, passphrase_protection=True) as (device, endpoint):
        person = knows_pin(device, passphrase="x")
        first = await drive(endpoint, "unlock", person=person)
        assert person.asked == [Question.PIN, Question.PASSPHRASE]
        device.lock()
        assert (await fails(endpoint, "fingerprint", session=first.session))[0] == "locked"
        again = knows_pin(device, passphrase="never asked")
        assert await drive(endpoint, "unlock", person=again, session=first.session) == first
        assert again.asked == [Question.PIN]


# Newer models


async def test_a_locked_newer_model_is_probed_without_a_prompt():
    async with trezor(ask_person, model="T", pin=PIN) as (device, endpoint):
        record = Record(device.panel)
        answer = await drive(endpoint, "probe")
        assert (answer.model, answer.obstacle) == ("Trezor Model T", "locked")
        assert (await fails(endpoint, "fingerprint"))[0] == "locked"
        assert (await fails(endpoint, "identify"))[0] == "locked"
        assert device.panel.pending is None
        assert set(record.kinds) <= {"enter-pin"}


async def test_without_an_answer_the_passphrase_is_entered_on_the_device():
    async with trezor(model="T", passphrase_protection=True) as (device, endpoint):
        device.enter_passphrase("on the device")
        person = Person()
        unlocked = await drive(endpoint, "unlock", person=person)
        assert unlocked.fingerprint == hidden("on the device")
        assert (person.asked, person.steps) == ([Question.PASSPHRASE], ["enter-passphrase"])


async def test_always_on_device_is_respected():
    options = {"model": "T", "passphrase_protection": True, "always_on_device": True}
    async with trezor(**options) as (device, endpoint):
        device.enter_passphrase("y")
        person = Person({Question.PASSPHRASE: ["never asked"]})
        unlocked = await drive(endpoint, "unlock", person=person)
        assert (unlocked.fingerprint, person.asked) == (hidden("y"), [])

        def new_session() -> str:
            with opened(endpoint, Person()) as client:
                return client._connection.initialize(None).hex()

        fresh = await asyncio.to_thread(new_session)
        # Another operation does not let the device ask, either.
        assert (await fails(endpoint, "fingerprint", session=fresh))[0] == "needs-passphrase"
        assert device.panel.pending is None


@pytest.mark.parametrize(
    ("options", "model", "code", "detail"),
    [
        (
            {"model": "Safe 9"},
            "Trezor Safe 9",
            "unsupported",
            "This program does not know this Trezor model.",
        ),
        ({"initialized": False}, "Trezor One", "uninitialised", None),
        (
            {"bootloader": True},
            "Trezor One",
            "unsupported",
            "The device is in its bootloader: connect it again without pressing a button.",
        ),
    ],
)
async def test_what_cannot_be_worked_with_says_why(options, model, code, detail):
    async with trezor(**options) as (_device, endpoint):
        answer = await drive(endpoint, "probe")
        assert (answer.model, answer.obstacle, answer.detail) == (model, code, detail)
        for op in ("fingerprint", "unlock", "identify"):
            assert await fails(endpoint, op) == (code, detail)


# Progress


def _three_payments() -> Psbt:
    from multisig import CHANGE, ChangeTo, build_psbt

    coins = [wallets.fund(VAULT, 100_000, index=index) for index in range(12)]
    outputs = [wallets.pay(50_000), wallets.pay(60_000), wallets.pay(70_000)]
    return build_psbt(VAULT, coins, [*outputs, ChangeTo(wallets.sats(1_015_000), CHANGE, 7)], 0)


async def test_payments_are_counted_and_inputs_too():
    async with trezor() as (_device, endpoint):
        person = Person()
        await drive(endpoint, "sign", sign_args(_three_payments(), VAULT, payments=3), person=person)
    outputs = [(text, done, total) for step, text, done, total in person.told if step == "confirm-output"]
    assert outputs == [(f"Confirm output {n} of 3 on the device", n, 3) for n in (1, 2, 3)]
    signing = [(done, total) for step, _text, done, total in person.told if step == "signing"]
    assert signing[-1] == (12, 12)
    assert signing == sorted(signing)
    assert len(signing) <= 10
    assert person.steps.index("confirm-transaction") < person.steps.index("signing")


# A killed bridge


async def test_a_question_of_a_bridge_that_was_killed_leaves_the_screen_and_the_device_answers():
    async with trezor(ask_person) as (device, endpoint), asyncio.timeout(rigs.PATIENCE):
        seen: asyncio.Queue[Happening] = asyncio.Queue()
        device.panel.watch(lambda event: seen.put_nowait(event.happening))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            await asyncio.to_thread(spawn, theirs, str(endpoint), NETWORK.value)
            ours.sendall(encode(WorkerCall(1, "sign", sign_args(wallets.make_spend(VAULT), VAULT))))
            assert await seen.get() is Happening.SHOWN
        assert await seen.get() is Happening.WITHDRAWN
        assert (await drive(endpoint, "probe")).obstacle is None


# Limits that are known before


@pytest.mark.parametrize(("length", "signs"), [(1_024, True), (1_025, False)])
async def test_a_message_that_is_too_long_is_refused_before_the_device_is_asked(length, signs):
    async with trezor() as (device, endpoint):
        record = Record(device.panel)
        args = {"text": "x" * length, "path": f"{ACCOUNT}/0/0"}
        if signs:
            assert await drive(endpoint, "sign_message", args)
            return
        code, detail = await fails(endpoint, "sign_message", args)
        assert code == "unsupported"
        assert "1,024 bytes" in detail
        assert record.prompts == []
