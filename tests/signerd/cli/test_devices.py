"""devices, register. device virtual (docs/build/devices.md), demo."""

import json
import subprocess
import sys

import pytest

from custody.common.terminal import Exit
from firmware_bridge import DeviceState
from signerd.cli import devices
from tests.conformance.rigs import short_folder
from tests.support.command import signerd
from tests.support.wallets import ALICE, MALLORY


def test_s22_a_device_is_listed_with_its_state_its_fingerprint_and_advice(new_desk, outer):
    """What is reached at an address is an emulator, a maker's or ours: nothing that a program says of itself
    proves which.
    """
    ended = signerd("devices", state=new_desk.state)
    for part in (str(ALICE.fingerprint), "ready", "emulator"):
        assert part in ended.out
    assert "virtual" not in ended.out
    [device] = signerd("devices", "--json", state=new_desk.state).json
    assert (device["state"], device["fingerprint"]) == ("ready", str(ALICE.fingerprint))
    assert device["emulator"] is True
    assert "virtual" not in device
    new_desk.on_loop(outer.bridge.becomes, DeviceState.LOCKED)
    assert "Unlock it with its PIN." in signerd("devices", state=new_desk.state).out
    outer.bridge.emulator, outer.bridge.firmware = False, "2.5.0"
    assert "STOP USING IT: TREZOR-2.5.1-REPLACEMENT," in signerd("devices", state=new_desk.state).out
    [device] = signerd("devices", "--json", state=new_desk.state).json
    assert device["firmware"] == "2.5.0"
    assert "TREZOR-2.5.1-REPLACEMENT" in [flaw["id"] for flaw in device["advisories"]]


def test_s20_s22_registering_says_what_is_known_of_the_firmware_before_it_asks(new_desk, outer):
    outer.bridge.emulator, outer.bridge.firmware = False, "2.5.0"
    ended = signerd("register", state=new_desk.state, typed="n\n", ends=Exit.DECLINED)
    told = ended.out.partition("Is this your device's fingerprint")[0]
    assert "STOP USING IT  TREZOR-2.5.1-REPLACEMENT  (2022-05-18)" in told
    assert "Update to at least 2.5.1." in told
    assert "no anti-exfil protocol" in told
    assert outer.platform.keys == outer.bridge.messages == []


def test_register_shows_fingerprint_and_paths_asks_and_registers(new_desk, outer):
    ended = signerd("register", state=new_desk.state, typed="y\n")
    assert f"Master fingerprint  {ALICE.fingerprint}" in ended.out
    for account in range(8):
        assert f"m/48h/1h/{account}h/2h" in ended.out
    assert "m/84h/1h/0h" in ended.out
    assert str(ALICE.vault_key().xpub) in ended.out
    assert "Look at your device" in ended.out
    assert len(outer.platform.keys) == 1
    assert len(outer.bridge.messages) == 1


def test_the_same_key_again_is_no_mistake_and_another_active_one_is(new_desk, outer):
    signerd("register", "--yes", state=new_desk.state)
    signerd("register", "--yes", state=new_desk.state)
    outer.platform.keys[0]["MasterFingerprint"] = {"String": "00000000", "Valid": True}
    refused = signerd("register", "--yes", "--json", state=new_desk.state, ends=Exit.PLATFORM)
    assert refused.error["code"] == "platform-refused"
    assert "--replace" in refused.error["hint"]
    replaced = signerd("register", "--yes", "--replace", state=new_desk.state)
    assert "It replaces" not in replaced.out
    outer.bridge.signer = outer.platform.signer = MALLORY
    replaced = signerd("register", "--yes", "--replace", state=new_desk.state)
    assert f"It replaces {ALICE.fingerprint} for good." in replaced.out


@pytest.mark.parametrize(
    ("family", "listen"), [("trezor", "127.0.0.1:0"), ("coldcard", "c.sock"), ("ledger", "127.0.0.1:0")]
)
def test_a_virtual_device_runs_as_a_program_and_keeps_its_seed(family, listen):
    with short_folder() as folder:
        address = listen if ":" in listen else f"{folder}/{listen}"
        command = [sys.executable, "-m", "signerd", "device", "virtual", family, "--listen", address]
        command += ["--seed-file", f"{folder}/seed", "--auto", "approve", "--json"]
        seen = []
        for _ in range(2):
            done = subprocess.run(
                command, input="quit\n", capture_output=True, text=True, timeout=300, check=False
            )
            assert done.returncode == 0, done.stderr
            seen.append([json.loads(line) for line in done.stdout.splitlines()])
        ready = seen[0][0]
        assert ready["event"] == "ready"
        assert ready["endpoint"].startswith(f"{family}:")
        assert ready["network"] == "regtest"
        assert seen[1][0]["fingerprint"] == ready["fingerprint"]
        assert seen[0][-1] == {"event": "stopped"}


def test_demo_says_before_it_starts_anything_how_to_get_the_platform(monkeypatch):
    """The Debian package has none."""
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    done = signerd("demo", "--auto", ends=1)
    assert done.out == ""
    assert "Run: pipx install 'signerd[desktop,server]' && ~/.local/bin/signerd demo" in done.err
