"""Other programs: which one has a device open, and taking turns with them."""

import os
import subprocess
import sys
import threading

import pytest

from firmware_bridge.errors import Busy
from firmware_bridge.model import Endpoint, Family
from firmware_bridge.presence import holders
from firmware_bridge.presence.holders import turns_in

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show what a process has open"),
]
JADE = Endpoint(Family.JADE, "serial:/dev/ttyACM7")


def process(proc, number, *, opens=(), names=("thing",), parent=1, comm="thing"):
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    for index, target in enumerate(opens):
        (folder / "fd" / str(index)).symlink_to(target)
    (folder / "cmdline").write_bytes(b"".join(name.encode() + b"\0" for name in names))
    (folder / "comm").write_text(comm + "\n")
    (folder / "stat").write_text(f"{number} (a) thing) S {parent} 1 1 0\n")


def find(proc):
    return holders.find(JADE, proc=proc)


@pytest.mark.parametrize(
    ("names", "comm", "called"),
    [
        (("/opt/Ledger/ledger-live-desktop", "--type=utility"), "ledger-live-des", "Ledger Live"),
        (("/tmp/.mount_X/trezor-suite",), "trezor-suite", "Trezor Suite"),
        (("/usr/bin/python3", "/usr/bin/hwi", "enumerate"), "hwi", "HWI"),
        (("/usr/bin/python3.11", "/home/a/electrum"), "electrum", "Electrum"),
        (("/opt/sparrow/bin/Sparrow",), "Sparrow", "Sparrow"),
        (("bitcoin-qt",), "bitcoin-qt", "Bitcoin Core"),
        (("/usr/bin/picocom",), "picocom", "picocom"),
        ((), "", "another program"),
    ],
)
def test_a_program_is_named_as_people_know_it(tmp_path, names, comm, called):
    process(tmp_path, 4_000_010, opens=["/dev/null"], names=("unrelated",))
    process(tmp_path, 4_000_011, opens=["/dev/null", "/dev/ttyACM7"], names=names, comm=comm)
    assert find(tmp_path) == called


def test_a_name_that_would_play_with_the_screen_is_cleaned_and_cut(tmp_path):
    process(tmp_path, 4_000_011, opens=["/dev/ttyACM7"], names=("x",), comm="evil\x1b[2J\u202e" + "y" * 500)
    name = find(tmp_path)
    assert name.isprintable()
    assert len(name) <= 40


def test_no_program_has_it_or_none_is_visible(tmp_path):
    assert find(tmp_path) is None
    process(tmp_path, 4_000_011, opens=["/dev/ttyACM8"])
    (tmp_path / "4000012").mkdir()
    (tmp_path / "self").mkdir()
    assert find(tmp_path) is None
    assert find(tmp_path / "none") is None


def test_our_own_workers_are_not_another_program(tmp_path):
    ours = os.getpid()
    process(tmp_path, ours, opens=["/dev/ttyACM7"])
    process(tmp_path, 4_000_001, parent=ours)
    process(tmp_path, 4_000_002, opens=["/dev/ttyACM7"], parent=4_000_001)
    assert find(tmp_path) is None
    process(tmp_path, 4_000_003, opens=["/dev/ttyACM7"], names=("sparrow",))
    assert find(tmp_path) == "Sparrow"


def test_another_daemons_worker_is_the_daemon(tmp_path):
    process(
        tmp_path, 4_000_020, names=("/usr/bin/python3.11", "/home/a/.venv/bin/signerd", "run"), comm="signerd"
    )
    process(tmp_path, 4_000_021, names=("/usr/bin/python3.11", "-c"), comm="python3.11", parent=4_000_020)
    process(
        tmp_path,
        4_000_022,
        opens=["/dev/ttyACM7"],
        names=("/usr/bin/python3.11", "-c"),
        comm="python3.11",
        parent=4_000_021,
    )
    assert find(tmp_path) == "another signerd"


@pytest.mark.parametrize("status", ["", "4000011", "4000011 (a) S", "4000011 (a) S x"])
def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(tmp_path, status):
    process(tmp_path, 4_000_011, opens=["/dev/ttyACM7"])
    (tmp_path / "4000011" / "stat").write_text(status)
    assert find(tmp_path) is None


async def test_a_process_that_hangs_in_the_kernel_is_not_waited_for(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(holders, "_SECONDS", 0.01)
    monkeypatch.setattr(holders, "find", lambda _endpoint: released.wait() and "Sparrow")
    try:
        assert await holders.holder_of(JADE) is None
    finally:
        released.set()


TREZOR = Endpoint.parse("trezor:udp:127.0.0.1:21324")
OTHER = Endpoint.parse("trezor:udp:127.0.0.1:21325")


def test_one_has_it_and_the_other_is_told_who(tmp_path):
    ours, theirs = turns_in(tmp_path, "the first one"), turns_in(tmp_path, "the second one")
    with ours(TREZOR):
        with pytest.raises(Busy, match=r"^In use by the first one\.$"), theirs(TREZOR):
            pytest.fail("two have it")
        with theirs(OTHER):
            pass
    with theirs(TREZOR), pytest.raises(Busy, match="the second one"), ours(TREZOR):
        pytest.fail("two have it")


def test_a_killed_program_holds_nothing(tmp_path):
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom firmware_bridge import Endpoint\n"
        "from firmware_bridge.presence.holders import turns_in\n"
        f"with turns_in(Path(sys.argv[1]), 'other')(Endpoint.parse('{TREZOR}')):\n"
        "    print('has it', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout.readline() == b"has it\n"
            with pytest.raises(Busy, match="other"), turns_in(tmp_path, "one")(TREZOR):
                pytest.fail("two have it")
        finally:
            program.kill()
    with turns_in(tmp_path, "one")(TREZOR):
        pass


def test_the_name_of_the_program_whose_turn_it_is_is_cleaned_and_cut(tmp_path):
    evil = turns_in(tmp_path, "evil\x1b[2J\u202e" + "y" * 5_000)
    with evil(TREZOR), pytest.raises(Busy) as told, turns_in(tmp_path, "one")(TREZOR):
        pytest.fail("two have it")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 160
