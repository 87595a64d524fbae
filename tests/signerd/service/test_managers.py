"""What is written for each system's manager of services, and what its answers mean."""

import plistlib
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from signerd.service import launchd, systemd
from signerd.service.manager import ServicePaths

PLACE = ServicePaths(
    command=("/opt/s p/bin/signerd",),
    state=Path("/home/ada/.local/state/signerd"),
    own_state=False,
    home=Path("/home/ada"),
    config=Path("/home/ada/.config"),
    uid=1000,
)
OWN = replace(PLACE, state=Path("/home/ada/100%"), own_state=True)


def text(service, name) -> str:
    (content,) = (content for path, content in service.files.items() if path.name == name)
    return content.decode()


@pytest.mark.parametrize(("word", "written"), [("$HOME", "$$HOME"), ('a"b\\', '"a\\"b\\\\"')])
def test_a_word_of_a_command_means_itself_to_systemd(word, written):
    assert systemd.quoted(word) == written


def test_systemd_starts_this_program_and_listens_where_the_command_line_calls():
    made = systemd.service(PLACE, Path("/nowhere"))
    assert 'ExecStart="/opt/s p/bin/signerd" run\n' in text(made, "signerd.service")
    assert "ListenStream=%h/.local/state/signerd/signerd.sock\n" in text(made, "signerd.socket")
    assert {path.parent for path in made.files} == {Path("/home/ada/.config/systemd/user")}
    assert not any(re.search("@[A-Z]+@", content.decode()) for content in made.files.values())
    other = systemd.service(OWN, Path("/nowhere"))
    assert 'ExecStart="/opt/s p/bin/signerd" --state /home/ada/100%% run\n' in text(other, "signerd.service")
    assert "ListenStream=/home/ada/100%%/signerd.sock\n" in text(other, "signerd.socket")


def test_the_units_of_a_package_are_used_for_its_own_program_alone(tmp_path):
    program = tmp_path / "signerd"
    program.touch()
    (tmp_path / "link").symlink_to(program)
    (tmp_path / "signerd.service").write_text(
        systemd.unit("signerd.service", (str(tmp_path / "link"),), "%h")
    )
    ours = replace(PLACE, command=(str(program),))
    assert systemd.service(ours, tmp_path).files == {}
    assert systemd.service(PLACE, tmp_path).files
    assert systemd.service(replace(ours, own_state=True), tmp_path).files


ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("place", [PLACE, OWN], ids=["own", "other"])
def test_systemd_finds_no_fault_in_the_units(place, tmp_path):
    program = tmp_path / "a b" / "signerd"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = systemd.service(replace(place, command=(str(program),)), Path("/nowhere"))
    files = [tmp_path / path.name for path in made.files]
    for file, content in zip(files, made.files.values(), strict=True):
        file.write_bytes(content)
    ended = subprocess.run(
        [ANALYZE, "--user", "verify", "--man=no", *files],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": "/home/ada", "SYSTEMD_LOG_LEVEL": "warning"},
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_launchd_starts_it_with_the_session_and_after_a_failure_alone():
    made = launchd.service(OWN)
    (path,) = made.files
    assert path == made.marker == Path("/home/ada/Library/LaunchAgents/signerd.plist")
    found = plistlib.loads(made.files[path])
    assert found["ProgramArguments"] == ["/opt/s p/bin/signerd", "--state", "/home/ada/100%", "run"]
    assert (found["RunAtLoad"], found["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert ("launchctl", "bootstrap", "gui/1000", str(path)) in made.install


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (CompletedProcess((), 0, "signerd = {\n\tactive count = 1\n\tstate = running\n\n\tpid = 7\n}"), True),
        (CompletedProcess((), 0, "signerd = {\n\tstate = not running\n}"), False),
        (CompletedProcess((), 113, "Could not find service"), False),
    ],
)
def test_launchds_answer(answer, runs):
    assert launchd.service(PLACE).running(answer) is runs
