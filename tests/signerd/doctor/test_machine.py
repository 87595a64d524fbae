"""What `signerd doctor` says of the processes of devices."""

from pathlib import Path

import pytest

from firmware_bridge import confinement
from firmware_bridge.confinement import Confinement
from signerd.doctor.finding import DoctorOutcome, Installation
from signerd.doctor.machine import sandbox

CONFIG = 'network = "regtest"\n[platform]\nurl = "http://127.0.0.1:9"\n'


@pytest.fixture
def installation(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    return Installation(tmp_path, Path("/"), {}, lambda: 0.0)


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
    again = Installation(installation.state, Path("/"), {}, lambda: 0.0)
    assert "[devices] sandbox is off" in sandbox(again).found
