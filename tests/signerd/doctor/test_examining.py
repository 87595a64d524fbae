"""The checks beside each other, and what each says of a machine that is made for it."""

import os
import socket
import threading

import httpx
import pytest

from custody.exchange import NoAnswer, Reply, Why
from signerd.client import DaemonClient
from signerd.doctor import machine, platform
from signerd.doctor.examining import CHECKS, examine
from signerd.doctor.finding import Check, Finding, Outcome, Patient, well
from signerd.errors import SecretsLocked
from signerd.journal.storage import StateFolder
from signerd.udev import rules
from tests.support.served import make_outer, served_daemon

CONFIG = """network = "regtest"
[platform]
url = "http://127.0.0.1:9"
[secrets]
store = "file"
"""
NOW = 1_800_000_000.0


@pytest.fixture
def patient(tmp_path):
    folder, root = tmp_path / "s", tmp_path / "root"
    folder.mkdir(mode=0o700)
    root.mkdir()
    (folder / "config.toml").write_text(CONFIG)
    return Patient(folder, root, {}, lambda: NOW)


def usb(patient, vendor, product, *, mode):
    place = patient.root / "sys/bus/usb/devices/1-1"
    place.mkdir(parents=True)
    for name, text in (("idVendor", vendor), ("idProduct", product), ("busnum", "1"), ("devnum", "7")):
        (place / name).write_text(text + "\n")
    node = patient.root / "dev/bus/usb/001/007"
    node.parent.mkdir(parents=True)
    node.touch(mode=mode)


def rule(patient, text):
    folder = patient.root / "etc/udev/rules.d"
    folder.mkdir(parents=True)
    (folder / "20-x.rules").write_text(text)


def test_a_check_that_hangs_keeps_no_other_waiting_and_is_told_of(patient):
    never, told = threading.Event(), []
    checks = (Check("slow", lambda _p: never.wait() and well("")), Check("quick", lambda _p: well("fine")))
    found = examine(patient, checks, seconds=1.2, waiting=told.append)
    never.set()
    assert list(found) == ["slow", "quick"]
    assert (found["slow"].outcome, found["quick"].outcome) == (Outcome.UNKNOWN, Outcome.WELL)
    assert told[0] == ["slow"]


def test_a_check_that_fails_is_unknown_and_an_error_of_ours_is_its_finding(patient):
    def fails(_patient):
        raise RuntimeError("x")

    def locked(_patient):
        raise SecretsLocked("shut")

    found = examine(patient, (Check("fails", fails), Check("locked", locked)))
    assert found["fails"].outcome is Outcome.UNKNOWN
    assert (found["locked"].outcome, found["locked"].found) == (Outcome.TROUBLE, "shut")
    assert found["locked"].do


def test_nothing_is_changed(patient):
    before = {path: path.stat().st_mtime_ns for path in patient.state.rglob("*")}
    examine(patient)
    assert {path: path.stat().st_mtime_ns for path in patient.state.rglob("*")} == before


def test_each_check_has_a_name_of_its_own():
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_a_broken_configuration_is_told_once(patient):
    (patient.state / "config.toml").write_text("network = 1")
    found = examine(patient)
    assert [name for name, one in found.items() if one.outcome is Outcome.TROUBLE] == ["configuration"]


def test_l12_a_folder_that_others_can_enter(patient):
    assert platform.folder(patient).outcome is Outcome.WELL
    patient.state.chmod(0o755)
    found = platform.folder(patient)
    assert found.outcome is Outcome.TROUBLE
    assert "0755" in found.found
    assert "chmod 700" in found.do


def test_a_full_disk(patient, monkeypatch):
    assert platform.disk(patient).outcome is Outcome.WELL
    monkeypatch.setattr(platform, "LEAST_FREE_BYTES", 2**62)
    assert platform.disk(patient).outcome is Outcome.TROUBLE


def test_two_daemons(patient):
    assert platform.daemon(patient).outcome is Outcome.NOTE
    with StateFolder.hold(patient.state):
        assert platform.daemon(patient).outcome is Outcome.TROUBLE
    assert platform.daemon(patient).outcome is Outcome.NOTE


@pytest.mark.skipif(os.getuid() == 0, reason="root may open every device")
def test_a_device_that_this_user_may_not_open(patient):
    usb(patient, "2c97", "1011", mode=0o000)
    found = machine.permissions(patient)
    assert found.outcome is Outcome.TROUBLE
    assert "20-ledger.rules" in found.do


def test_a_device_that_is_not_openable_is_named_with_its_rule(patient, monkeypatch):
    usb(patient, "1209", "53c1", mode=0o600)
    monkeypatch.setattr(rules.os, "access", lambda *_: False)
    found = machine.permissions(patient)
    assert found.outcome is Outcome.TROUBLE
    assert "20-trezor.rules" in found.do


@pytest.mark.parametrize("numbers", [("1209", "0001"), ("303a", "4001")], ids=["pid.codes", "a Jade's chip"])
def test_something_else_on_usb_is_no_device(patient, monkeypatch, numbers):
    usb(patient, *numbers, mode=0o600)
    rule(patient, 'ATTR{idVendor}=="2c97"')
    monkeypatch.setattr(rules.os, "access", lambda *_: False)
    assert machine.permissions(patient).outcome is Outcome.WELL


def test_rules_are_missed_before_a_device_is_connected(patient):
    assert machine.permissions(patient).outcome is Outcome.NOTE


@pytest.mark.parametrize(("family", "host"), machine.ADDRESSES)
def test_a_port_that_is_taken_at_either_address(patient, family, host):
    with socket.socket(family) as other:
        other.bind((host, 0))
        other.listen()
        taken = other.getsockname()[1]
        (patient.state / "config.toml").write_text(f"{CONFIG}[loopback]\nport = {taken}\n")
        found = machine.port(patient)
    assert found.outcome is Outcome.TROUBLE
    assert str(taken) in found.found


def answering(monkeypatch, outcome):
    monkeypatch.setattr(platform, "_ask", lambda _patient: outcome)


def failing(words):
    return NoAnswer(Why.NO_CONNECTION, httpx.ConnectError(words))


@pytest.mark.parametrize(
    ("date", "outcome"),
    [
        ("Fri, 15 Jan 2027 08:00:00 GMT", Outcome.WELL),
        ("Fri, 15 Jan 2027 08:00:30 GMT", Outcome.WELL),
        ("Fri, 15 Jan 2027 08:00:31 GMT", Outcome.TROUBLE),
        ("Fri, 15 Jan 2027 07:59:29 GMT", Outcome.TROUBLE),
        ("yesterday", Outcome.UNKNOWN),
    ],
)
def test_the_clock(patient, monkeypatch, date, outcome):
    answering(monkeypatch, Reply(404, {"date": date}, b""))
    assert platform.clock(patient).outcome is outcome


def test_a_platform_that_is_not_reached_or_not_itself(patient, monkeypatch):
    answering(monkeypatch, failing("All connection attempts failed"))
    assert "not lost" in platform.reach(patient).why
    assert "network" in platform.reach(patient).do
    patient.environment = {"HTTPS_PROXY": "http://proxy"}
    assert "proxy" in platform.reach(patient).do
    answering(monkeypatch, failing("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired"))
    assert "ca_file" in platform.reach(patient).do
    answering(monkeypatch, Reply(404, {}, b""))
    assert platform.reach(patient) == Finding(Outcome.WELL, "http://127.0.0.1:9 answers.")


def test_beside_a_running_daemon(tmp_path):
    outer = make_outer(tmp_path)
    with served_daemon(tmp_path / "s", outer) as desk:
        with DaemonClient(desk.state) as client:
            status = client.status()
        (desk.state / "config.toml").write_text(CONFIG)
        found = examine(Patient(desk.state, tmp_path, {}, lambda: NOW, status))
    assert {name: one.outcome for name, one in found.items() if name in {"daemon", "journal", "session"}} == {
        "daemon": Outcome.WELL,
        "journal": Outcome.WELL,
        "session": Outcome.WELL,
    }
    assert found["devices"].outcome in {Outcome.WELL, Outcome.NOTE}
