"""Files on a card: names, writing them whole, and reading hostile ones."""

import errno
import os
import re
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_bridge.airgap import BadTransfer, CardFault, CardProtected, FileNameTaken, NoCard, card
from firmware_bridge.airgap.card import MAX_LABEL, request_name, safe_label
from firmware_bridge.errors import DeviceFault, Disconnected, NoPermission
from tests.support.wallets import make_spend, make_vault


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def failing(code):
    def fail(*_args, **_options):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    "make",
    [
        *(partial(Path.write_bytes, data=old) for old in (b"", b"other", b"whole and more", b"x" * 100_000)),
        Path.mkdir,
        lambda path: path.symlink_to("nowhere"),
        os.mkfifo,
    ],
)
def test_whatever_has_the_name_keeps_it(tmp_path, make):
    path = tmp_path / "rent.psbt"
    make(path)
    before, content = path.lstat(), path.read_bytes() if path.is_file() else None
    with pytest.raises(FileNameTaken, match=r"rent\.psbt"):
        card.write(tmp_path, "rent.psbt", b"whole")
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert content is None or path.read_bytes() == content
    assert names_in(tmp_path) == ["rent.psbt"]


def without_links(monkeypatch):
    monkeypatch.setattr(os, "link", failing(errno.EPERM))


def test_a_card_without_links_as_fat_is(tmp_path, monkeypatch):
    without_links(monkeypatch)
    assert card.write(tmp_path, "rent.psbt", b"whole").read_bytes() == b"whole"
    assert names_in(tmp_path) == ["rent.psbt"]


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_meanwhile(tmp_path, monkeypatch, links):
    """Another program writes after our check: between the temporary file and its name."""
    if not links:
        without_links(monkeypatch)
    target, fsync = tmp_path / "rent.psbt", os.fsync

    def intrude(descriptor):
        fsync(descriptor)
        target.write_bytes(b"theirs")

    monkeypatch.setattr(os, "fsync", intrude)
    with pytest.raises(FileNameTaken):
        card.write(tmp_path, "rent.psbt", b"ours")
    assert target.read_bytes() == b"theirs"
    assert names_in(tmp_path) == ["rent.psbt"]


def test_the_bytes_are_on_the_card_before_the_name_is(tmp_path, monkeypatch):
    order, fsync, link = [], os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda descriptor: (order.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(os, "link", lambda *args: (order.append("name"), link(*args)))
    card.write(tmp_path, "rent.psbt", b"whole")
    assert order == ["fsync", "name", "fsync"]


@pytest.mark.parametrize(
    ("code", "outcome", "leaf"),
    [
        (errno.ENOSPC, CardFault, DeviceFault),
        (errno.EIO, CardFault, DeviceFault),
        (errno.EROFS, CardProtected, NoPermission),
        (errno.EACCES, CardProtected, NoPermission),
        (errno.ENOENT, NoCard, Disconnected),
    ],
)
@pytest.mark.parametrize("where", ["create", "fsync", "read"])
def test_errors_of_a_card(tmp_path, monkeypatch, code, outcome, leaf, where):
    seam, name = {"create": (tempfile, "mkstemp"), "fsync": (os, "fsync"), "read": (os, "open")}[where]
    reading, writing = (card.read, tmp_path / "rent.psbt", 10), (card.write, tmp_path, "rent.psbt", b"whole")
    work, *args = reading if where == "read" else writing
    with monkeypatch.context() as patched:
        patched.setattr(seam, name, failing(code))
        with pytest.raises(outcome) as caught:
            work(*args)
    assert isinstance(caught.value, leaf)
    assert caught.value.code == leaf.code
    assert str(caught.value).endswith(".")
    assert caught.value.hint != leaf.hint
    assert list(tmp_path.iterdir()) == []


def test_read_back(tmp_path):
    path = tmp_path / "answer.psbt"
    path.write_bytes(b"1234567890")
    assert card.read(path, 10) == b"1234567890"
    with pytest.raises(BadTransfer, match="more than 9 bytes"):
        card.read(path, 9)
    with pytest.raises(NoCard):
        card.read(tmp_path / "other.psbt", 10)


def test_s23_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "huge.psbt"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadTransfer, match="more than"):
        card.read(path, 1_000)


@pytest.mark.parametrize("path", ["/dev/zero", "/proc/self/maps"])
def test_s23_files_that_lie_of_their_size(path):
    with pytest.raises(BadTransfer):
        card.read(Path(path), 100)


def test_s23_a_pipe_or_folder_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(BadTransfer, match="not a file"):
            card.read(path, 10)


PSBT = make_spend(make_vault())


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Rent", "Rent"),
        ("Miete März / Q1", "Miete-Marz-Q1"),
        ("", "vault"),
        ("***", "vault"),
        ("日本", "vault"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\0b\nc\x1b[2Jd", "a-b-c-2Jd"),
        ("C:\\Users", "C-Users"),
        ("con", "con-vault"),
        ("LPT1", "LPT1-vault"),
        ("-.-x-.-", "x"),
        ("ﬃ" * 100, "ffi" * 8),
    ],
)
def test_labels(label, name):
    assert safe_label(label) == name


@given(st.text(max_size=200))
def test_any_label_is_a_name_that_fat_and_every_system_take(label):
    name = safe_label(label)
    assert re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*", name)
    assert len(name) <= MAX_LABEL
    # What FAT holds in a long name at most is 255; with the id and the longest ending it stays far below.
    assert len(request_name(label, PSBT)) < 40
