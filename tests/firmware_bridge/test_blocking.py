"""The blocking bridge on a virtual device with an event loop of its own."""

import contextlib
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from device_simulators.panel import ask_person
from firmware_bridge import Bridge, Busy, Cancelled, DeviceState, Disconnected, Family
from firmware_bridge.blocking import BlockingBridge
from multisig import recover_message_key, signer_progress
from tests.conformance import rigs
from tests.conformance.rigs import ACCOUNT, NETWORK, QUICK, make_rig
from tests.support import wallets
from tests.support.threaded_rig import ThreadedRig

VAULT = rigs.make_vault()
MESSAGE_PATH = ACCOUNT / "0/0"


@pytest.fixture
def there():
    with rigs.short_folder() as folder, ThreadedRig(make_rig(Family.TREZOR, Path(folder))) as there:
        yield there


@pytest.fixture
def bridge(there):
    with BlockingBridge(network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK) as bridge:
        yield bridge


def test_every_method_of_the_bridge_is_there():
    public = {name for name in vars(Bridge) if not name.startswith("_")} - {"watch"}
    assert all(getattr(BlockingBridge, name).__doc__ for name in public)
    assert {name for name in vars(BlockingBridge) if not name.startswith("_")} == public
    for name in public - {"events", "unlock"}:
        theirs, ours = (inspect.signature(getattr(kind, name)) for kind in (Bridge, BlockingBridge))
        assert ours == theirs, name


def test_a_device_is_found_and_does_everything(there, bridge):
    (device,) = bridge.refresh()
    assert (device.state, device.fingerprint) == (DeviceState.READY, there.rig.seed.fingerprint)
    assert bridge.list() == (device,)
    assert bridge.fingerprint(device.id) == there.rig.seed.fingerprint
    (account,) = bridge.accounts(device.id)
    assert account.vault_key == bridge.xpub(device.id, ACCOUNT)
    signature = bridge.sign_message(device.id, "I am here", MESSAGE_PATH)
    assert recover_message_key("I am here", signature) == there.rig.seed.public_key(MESSAGE_PATH)
    bridge.enrol(device.id, VAULT, "Savings")
    signed = bridge.sign(device.id, wallets.make_spend(VAULT), VAULT)
    assert signer_progress(signed, VAULT, there.rig.seed.fingerprint).is_complete


def test_outcomes_are_raised_as_they_are(bridge):
    with pytest.raises(Disconnected):
        bridge.fingerprint("trezor-000000000000")


def test_another_thread_cancels(there, bridge):
    (device,) = bridge.refresh()
    there.rig.panel.script = ask_person
    with ThreadPoolExecutor(1) as pool:
        signing = pool.submit(bridge.sign, device.id, wallets.make_spend(VAULT), VAULT)
        there.run(there.rig.shown())
        with pytest.raises(Busy):
            bridge.fingerprint(device.id)
        bridge.cancel(device.id)
        with pytest.raises(Cancelled):
            signing.result(10)
    assert bridge.fingerprint(device.id) == there.rig.seed.fingerprint


def test_leaving_ends_what_another_thread_waits_for(there):
    there.rig.panel.script = ask_person
    with ThreadPoolExecutor(1) as pool:
        with BlockingBridge(
            network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK
        ) as bridge:
            (device,) = bridge.refresh()
            signing = pool.submit(bridge.sign, device.id, wallets.make_spend(VAULT), VAULT)
            there.run(there.rig.shown())
        with pytest.raises(Cancelled):
            signing.result(10)


def test_events_come_while_a_caller_iterates(there, bridge):
    with contextlib.closing(bridge.events()) as events:
        seen = [(event.old, event.new) for event in islice(events, 3)]
    s = DeviceState
    assert seen == [(s.ABSENT, s.PRESENT), (s.PRESENT, s.PROBING), (s.PROBING, s.READY)]


def test_events_end_with_the_bridge(there):
    with BlockingBridge(network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK) as bridge:
        events = bridge.events()
        next(events)
    assert all(event.device_id == there.endpoint.device_id for event in events)


def test_outside_of_its_block_a_call_raises_at_once(there):
    bridge = BlockingBridge(network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK)
    with pytest.raises(RuntimeError, match="with block"):
        bridge.list()
    with bridge:
        assert len(bridge.refresh()) == 1
    with pytest.raises(RuntimeError, match="with block"):
        bridge.list()


def test_a_callback_that_calls_back_is_told_so_and_stops_nothing(there, bridge):
    (device,) = bridge.refresh()
    errors = []

    def on_progress(progress):
        try:
            bridge.cancel(progress.device_id)
        except RuntimeError as error:
            errors.append(str(error))

    signed = bridge.sign(device.id, wallets.make_spend(VAULT), VAULT, on_progress=on_progress)
    assert signer_progress(signed, VAULT, there.rig.seed.fingerprint).is_complete
    assert errors
    assert all("another thread" in error for error in errors)


def test_leaving_does_not_wait_for_a_person_who_is_asked():
    asked, answered = threading.Event(), threading.Event()

    def ask(_question):
        asked.set()
        answered.wait()
        return "1"

    with rigs.short_folder() as folder, ThreadPoolExecutor(1) as pool:
        rig = make_rig(Family.TREZOR, Path(folder), pin="12")
        with ThreadedRig(rig) as there:
            with BlockingBridge(
                network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK
            ) as bridge:
                (device,) = bridge.refresh()
                unlocking = pool.submit(bridge.unlock, device.id, ask)
                assert asked.wait(10)
            with pytest.raises(Cancelled):
                unlocking.result(10)
            answered.set()


def test_many_threads_and_a_bridge_that_closes_under_them(there):
    """Each call ends: with an answer, or told that there is no bridge any more."""
    for _ in range(20):
        with ThreadPoolExecutor(4) as pool:
            with BlockingBridge(
                network=NETWORK, endpoints=[there.endpoint], usb=False, deadlines=QUICK
            ) as bridge:
                calls = [pool.submit(bridge.list) for _ in range(20)]
            calls += [pool.submit(bridge.list) for _ in range(4)]
            for call in calls:
                with contextlib.suppress(RuntimeError, Cancelled):
                    assert call.result(10) == ()
