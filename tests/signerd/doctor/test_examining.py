"""The checks beside each other, and what each says of a machine that is made for it, and of its kernel."""

import threading

import httpx
import pytest

from custody.common.exchange import HttpReply, NoAnswer, Why
from firmware_bridge import confinement
from firmware_bridge.advisories import packaged
from firmware_bridge.confinement import Confinement
from signerd.client import DaemonClient
from signerd.doctor import machine, platform
from signerd.doctor.examining import examine
from signerd.doctor.finding import DoctorFinding, DoctorOutcome, Installation, well
from signerd.doctor.machine import notes, sandbox
from signerd.errors import SecretsLocked
from signerd.journal.storage import held
from signerd.udev import rules
from tests.signerd.loopback.test_routes import STATUS
from tests.support.dripping import dripping
from tests.support.served import make_outer, served_daemon

CONFIG = """network = "regtest"
[platform]
url = "http://127.0.0.1:9"
[secrets]
store = "file"
"""
NOW = 1_800_000_000.0


@pytest.fixture
def installation(tmp_path):
    folder, root = tmp_path / "s", tmp_path / "root"
    folder.mkdir(mode=0o700)
    root.mkdir()
    (folder / "config.toml").write_text(CONFIG)
    return Installation(folder, root, {}, lambda: NOW)


def usb(installation, vendor, product, *, mode):
    place = installation.root / "sys/bus/usb/devices/1-1"
    place.mkdir(parents=True)
    for name, text in (("idVendor", vendor), ("idProduct", product), ("busnum", "1"), ("devnum", "7")):
        (place / name).write_text(text + "\n")
    node = installation.root / "dev/bus/usb/001/007"
    node.parent.mkdir(parents=True)
    node.touch(mode=mode)


def rule(installation, text):
    folder = installation.root / "etc/udev/rules.d"
    folder.mkdir(parents=True)
    (folder / "20-x.rules").write_text(text)


def test_a_check_that_hangs_keeps_no_other_waiting_and_is_told_of(installation):
    never, told = threading.Event(), []

    def fails(error):
        raise error

    checks = {
        "slow": lambda _p: never.wait() and well(""),
        "quick": lambda _p: well("fine"),
        "fails": lambda _p: fails(RuntimeError("x")),
        "locked": lambda _p: fails(SecretsLocked("shut")),
    }
    found = examine(installation, checks, seconds=1.2, waiting=told.append)
    never.set()
    assert [(name, one.outcome) for name, one in found.items()] == [
        ("slow", DoctorOutcome.UNKNOWN),
        ("quick", DoctorOutcome.WELL),
        ("fails", DoctorOutcome.UNKNOWN),
        # An error of ours is its finding.
        ("locked", DoctorOutcome.TROUBLE),
    ]
    assert (found["locked"].found, bool(found["locked"].do)) == ("shut", True)
    assert told[0] == ["slow"]


def test_l12_a_folder_that_others_can_enter_or_another_daemon_holds(installation):
    assert platform.folder(installation).outcome is DoctorOutcome.WELL
    with held(installation.state):
        assert platform.daemon(installation).outcome is DoctorOutcome.TROUBLE
    assert platform.daemon(installation).outcome is DoctorOutcome.NOTE
    assert platform.journal(installation).outcome is DoctorOutcome.NOTE
    assert platform.backup(installation).outcome is DoctorOutcome.WELL
    installation.state.chmod(0o755)
    found = platform.folder(installation)
    assert found.outcome is DoctorOutcome.TROUBLE
    assert "755" in found.found
    assert "0700" in found.do


def test_a_device_that_is_not_openable_is_named_with_its_rule(installation, monkeypatch):
    usb(installation, "1209", "53c1", mode=0o600)
    monkeypatch.setattr(rules.os, "access", lambda *_: False)
    found = machine.permissions(installation)
    assert found.outcome is DoctorOutcome.TROUBLE
    assert "20-trezor.rules" in found.do


def test_something_else_on_usb_is_no_device(installation, monkeypatch):
    """A Jade's chip alone."""
    usb(installation, "303a", "4001", mode=0o600)
    rule(installation, 'ATTR{idVendor}=="2c97"')
    monkeypatch.setattr(rules.os, "access", lambda *_: False)
    assert machine.permissions(installation).outcome is DoctorOutcome.WELL


def test_a_port_that_is_taken_by_a_program_whose_answer_has_no_end(installation, monkeypatch):
    monkeypatch.setattr("signerd.endpoint.ANSWER_SECONDS", 0.2)
    with dripping(b"", b"x") as url:
        taken = httpx.URL(url).port
        (installation.state / "config.toml").write_text(f"{CONFIG}[loopback]\nport = {taken}\n")
        found = machine.port(installation)
    assert found.outcome is DoctorOutcome.TROUBLE
    assert str(taken) in found.found


def answering(monkeypatch, outcome):
    monkeypatch.setattr(platform, "_ask", lambda _installation: outcome)


def failing(words):
    return NoAnswer(Why.NO_CONNECTION, httpx.ConnectError(words))


@pytest.mark.parametrize(
    ("date", "outcome"),
    [
        ("Fri, 15 Jan 2027 08:00:30 GMT", DoctorOutcome.WELL),
        ("Fri, 15 Jan 2027 08:00:31 GMT", DoctorOutcome.TROUBLE),
        ("Fri, 15 Jan 2027 07:59:29 GMT", DoctorOutcome.TROUBLE),
        ("yesterday", DoctorOutcome.UNKNOWN),
    ],
)
def test_the_clock(installation, monkeypatch, date, outcome):
    answering(monkeypatch, HttpReply(404, {"date": date}, b""))
    assert platform.clock(installation).outcome is outcome


def test_a_platform_that_is_not_reached_or_not_itself(installation, monkeypatch):
    answering(monkeypatch, failing("All connection attempts failed"))
    assert "not lost" in platform.reach(installation).why
    assert "network" in platform.reach(installation).do
    installation.environment = {"HTTPS_PROXY": "http://proxy"}
    assert "proxy" in platform.reach(installation).do
    answering(monkeypatch, failing("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired"))
    assert "ca_file" in platform.reach(installation).do
    answering(monkeypatch, HttpReply(404, {}, b""))
    assert platform.reach(installation) == DoctorFinding(DoctorOutcome.WELL, "http://127.0.0.1:9 answers.")


def test_beside_a_running_daemon(tmp_path):
    outer = make_outer(tmp_path)
    outer.bridge.emulator, outer.bridge.firmware = False, "2.5.0"
    with served_daemon(tmp_path / "s", outer) as desk:
        with DaemonClient(desk.state) as client:
            status = client.status()
        (desk.state / "config.toml").write_text(CONFIG)
        before = {path: path.stat().st_mtime_ns for path in desk.state.glob("*.toml")}
        found = examine(Installation(desk.state, tmp_path, {}, lambda: NOW, status))
    assert {path: path.stat().st_mtime_ns for path in before} == before, "nothing is changed"
    assert {found[name].outcome for name in ("daemon", "journal", "session")} == {DoctorOutcome.WELL}
    assert found["devices"].outcome in {DoctorOutcome.WELL, DoctorOutcome.NOTE}
    assert "TREZOR-2.5.1-REPLACEMENT (2022-05-18)" in found["firmware"].found
    assert f"The list is of {packaged().read_on}." in found["firmware"].why


@pytest.mark.parametrize(
    ("told", "outcome"),
    [
        ((), DoctorOutcome.WELL),
        (("Back up now.",), DoctorOutcome.NOTE),
        (("Back up now.", "Vault Cold: ALARM: its keys changed."), DoctorOutcome.TROUBLE),
    ],
)
def test_an_alarm_is_no_note(installation, told, outcome):
    installation.status = STATUS.model_copy(update={"notes": told})
    assert notes(installation).outcome is outcome


@pytest.mark.parametrize(
    ("available", "outcome", "words"),
    [
        (Confinement(7, seccomp=True), DoctorOutcome.WELL, "Landlock 7, seccomp"),
        (Confinement(0, seccomp=True), DoctorOutcome.NOTE, "no Landlock."),
        (Confinement(), DoctorOutcome.NOTE, "no Landlock and no seccomp."),
    ],
)
def test_what_the_kernel_lacks_is_named(installation, monkeypatch, available, outcome, words):
    monkeypatch.setattr(confinement, "available", lambda: available)
    found = sandbox(installation)
    assert found.outcome is outcome
    assert words in found.found
    assert bool(found.why and found.do) == (outcome is DoctorOutcome.NOTE)
    with (installation.state / "config.toml").open("a") as file:
        file.write("[devices]\nsandbox = false\n")
    again = Installation(installation.state, installation.root, {}, lambda: NOW)
    assert "[devices] sandbox is off" in sandbox(again).found
