"""The state folder is ours alone, and one daemon's at a time (L12, F: two daemons started at once)."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from signerd.errors import AlreadyRunning, UnsafeFolder
from signerd.journal.folder import StateFolder, write_private


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    with StateFolder.hold(tmp_path / "a" / "b") as folder:
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder.path / "lock").stat().st_mode) == 0o600


def test_two_daemons_on_one_folder_cannot_start(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with StateFolder.hold(path):
        with pytest.raises(AlreadyRunning):
            StateFolder.hold(path)
        other = f"from pathlib import Path; from signerd.journal import StateFolder; StateFolder.hold(Path({str(path)!r}))"
        second = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=False)
        assert "AlreadyRunning" in second.stderr
    StateFolder.hold(path).release()


def test_l12_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(mode=0o755)
    with pytest.raises(UnsafeFolder, match="755"):
        StateFolder.hold(path)


def test_l12_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(UnsafeFolder, match="link"):
        StateFolder.hold(tmp_path / "link")


def test_l12_a_linked_lock_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    (path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeFolder):
        StateFolder.hold(path)


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    write_private(target, b"one")
    write_private(target, b"two")
    assert target.read_bytes() == b"two"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]
