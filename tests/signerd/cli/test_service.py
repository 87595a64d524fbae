"""service, udev: programs of the system's own that note what they were told, in place of the real ones
(docs/sign/install.md).
"""

import os
import sys
from pathlib import Path

import pytest

from custody.common.terminal import Exit
from signerd.cli import service, udev
from signerd.udev.rules import CONTROL, ours
from tests.signerd.cli.test_daemon import CONFIG
from tests.signerd.loopback.test_routes import STATUS
from tests.support.command import signerd
from tests.support.served import served_script

TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >>{folder}/told
test ! -e {folder}/fail || {{ echo no bus; exit 4; }}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home, signed in, and a PATH with a systemctl and a udevadm that write down their arguments."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("systemctl", "udevadm"):
        (tools / name).write_text(TOOL.format(folder=tmp_path))
        (tools / name).chmod(0o755)
    home = tmp_path / "h"
    state = home / ".local" / "state" / "signerd"
    state.mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    (state / "config.toml").write_text(CONFIG)
    monkeypatch.setattr(service.sys, "platform", "linux")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "SIGNERD_STATE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(udev, "ROOT", tmp_path / "root")
    return home


def told(home) -> list[str]:
    path = home.parent / "told"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def enabled(home) -> Path:
    """As `systemctl enable` would."""
    link = home / ".config/systemd/user/default.target.wants/signerd.service"
    link.parent.mkdir(parents=True)
    link.touch()
    return link


def test_install_writes_the_units_and_starts_them(home):
    ended = signerd("service", "install")
    folder = home / ".config/systemd/user"
    assert (
        f"ExecStart={Path(sys.executable).parent / 'signerd'} run" in (folder / "signerd.service").read_text()
    )
    assert (folder / "signerd.socket").exists()
    assert told(home) == [
        "systemctl --user daemon-reload",
        "systemctl --user enable signerd.socket signerd.service",
        "systemctl --user start signerd.socket signerd.service",
    ]
    # CONFIG keeps its secrets in a file with a passphrase.
    assert "passphrase" in ended.err
    assert "signerd service install" in signerd("service", "stop", ends=Exit.USAGE).err
    enabled(home)
    for command in ("start", "stop"):
        signerd("service", command)
        assert told(home) == [f"systemctl --user {command} signerd.socket signerd.service"]


def test_nothing_is_installed_before_the_first_login(home):
    (home / ".local/state/signerd/config.toml").unlink()
    ended = signerd("service", "install", "--json", ends=Exit.STATE)
    assert ended.error["code"] == "config-missing"
    assert "signerd setup" in ended.error["hint"]
    assert told(home) == []


@pytest.mark.parametrize("command", ["install", "start"])
def test_started_by_hand(home, command, tmp_path, monkeypatch):
    """The socket is not taken away from it."""
    enabled(home)
    state = tmp_path / "signerd"
    (home / ".local/state/signerd").rename(state)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # systemctl says that it is not the service which runs.
    (home.parent / "fail").touch()
    with served_script(state, status=STATUS):
        ended = signerd("service", command, "--json", ends=Exit.STATE)
    assert ended.error["code"] == "already-running"
    assert told(home) == ["systemctl --user is-active signerd.service"]


def test_the_status_says_whether_it_runs(home):
    enabled(home)
    ended = signerd("service", "status", "--json")
    assert (ended.json["manager"], ended.json["installed"], ended.json["running"]) == ("systemd", True, True)
    (home.parent / "fail").touch()
    signerd("service", "status", ends=Exit.NOT_RUNNING)
    refused = signerd("service", "install", "--json", ends=Exit.FAILED)
    assert refused.error["code"] == "system-tool-failed"
    assert "no bus" in refused.error["sentence"]


def test_uninstall_leaves_no_unit_and_every_key(home):
    signerd("service", "install")
    enabled(home)
    told(home)
    signerd("service", "uninstall")
    assert told(home) == [
        "systemctl --user disable --now signerd.socket signerd.service",
        "systemctl --user daemon-reload",
    ]
    assert not list((home / ".config/systemd/user").glob("signerd.*"))
    assert (home / ".local/state/signerd/config.toml").exists()


@pytest.mark.parametrize("command", [["service", "status"], ["udev", "check"]])
def test_another_system_is_told_so(home, monkeypatch, command):
    monkeypatch.setattr(service.sys, "platform", "plan9")
    assert signerd(*command, "--json", ends=Exit.USAGE).error["code"] == "not-on-this-system"


def test_udev_install_without_root_says_what_it_would_do_and_does_nothing(home, monkeypatch):
    monkeypatch.setattr(udev.os, "geteuid", lambda: 1000)
    checked = signerd("udev", "check", ends=Exit.FAILED)
    assert all(name in checked.out for name in ours())
    ended = signerd("udev", "install", ends=Exit.USAGE)
    assert "/etc/udev/rules.d/20-ledger.rules" in ended.out
    assert "udevadm control --reload" in ended.out
    assert f"sudo {Path(sys.executable).parent / 'signerd'} udev install" in ended.err
    assert not udev.ROOT.exists()
    assert told(home) == []


@pytest.mark.parametrize("runs", [True, False])
def test_udev_install_writes_the_rules_and_tells_a_udev_that_runs(home, monkeypatch, runs):
    monkeypatch.setattr(udev.os, "geteuid", lambda: 0)
    if runs:
        (udev.ROOT / CONTROL).parent.mkdir(parents=True)
        (udev.ROOT / CONTROL).touch()
    ended = signerd("udev", "install", "--json")
    assert {Path(path).name for path in ended.json["written"]} == set(ours())
    assert ended.json["reloaded"] is runs
    assert [line.split()[1] for line in told(home)] == (["control", "trigger"] if runs else [])
    signerd("udev", "check")
    assert signerd("udev", "install").out == "Every rule is installed.\n"
