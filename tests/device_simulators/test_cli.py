"""A virtual device as a program of its own: what it says, what it obeys, how it ends; and what an operator
may say.
"""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from device_simulators.cli import PanelCommand, Verb, main, parse_command
from device_simulators.errors import InvalidSeed
from device_simulators.faults import Faults, Phase
from device_simulators.fleet import load_seed
from firmware_bridge.model import Endpoint

SECONDS = 90


class Running:
    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process

    def hear(self) -> dict:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def running(family: str, *arguments: str) -> Iterator[Running]:
    process = subprocess.Popen(
        [sys.executable, "-m", "device_simulators", family, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield Running(process)
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def test_a_device_tells_where_it_is_obeys_and_ends_with_its_input():
    with running("trezor", "--json", "--allow-keypress", "--label", "Mine", "--pin", "1379") as it:
        ready = it.hear()
        assert ready["event"] == "ready"
        assert ready["endpoint"].startswith("trezor:")
        assert len(ready["fingerprint"]) == 8
        it.say("")
        it.say("yes 1")
        assert (it.hear() | {"message": ""})["code"] == "no-such-prompt"
        it.say('{"faults": {"stall_at": "lunch"}}')
        assert it.hear()["code"] == "invalid-faults"
        it.say('{"faults": {"stall_at": "sign"}}')
        assert it.hear() == {"event": "faults-set"}
        it.say("unplug")
        assert it.hear() == {"event": "unplugged"}
        it.say("plug")
        assert it.hear() == {"event": "plugged", "endpoint": ready["endpoint"]}
        it.process.stdin.close()
        assert it.hear() == {"event": "stopped"}
        assert it.process.wait(SECONDS) == 0
        it.process.stdin = None  # closed already


def test_a_prompt_is_told_and_the_answer_reaches_the_host(tmp_path):
    with running("trezor", "--json", "--seed-file", str(tmp_path / "seed")) as it:
        endpoint = Endpoint.parse(it.hear()["endpoint"])
        signer = subprocess.Popen(
            [sys.executable, "-c", _SIGN_MESSAGE, endpoint.address, endpoint.place],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, kind in enumerate(("unknown-path", "sign-message-address", "sign-message"), 1):
            prompt = it.hear()
            assert (prompt["event"], prompt["id"], prompt["kind"]) == ("prompt", number, kind)
            assert prompt["yes"] != ""
            it.say(f"yes {number}")
            assert it.hear() == {"event": "approved", "id": number, "kind": kind}
        assert "hello" in prompt["lines"]
        signature, _ = signer.communicate(timeout=SECONDS)
        assert signer.returncode == 0
        assert len(signature.strip()) == 88


_SIGN_MESSAGE = """
import sys
from tests.support import bare_hwi
from hwilib.common import Chain
from hwilib.devices.trezor import TrezorClient
client = TrezorClient(sys.argv[1], chain=Chain.TEST, sim_path=sys.argv[2])
print(client.sign_message("hello", "m/84h/1h/0h/0/0"))
bare_hwi.close(client)
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trezor", "--listen", "0.0.0.0:0"], "not a loopback address"),
        (["trezor", "--listen", "nowhere"], "not host:port"),
        (["trezor", "--pin", "0"], "digits 1 to 9"),
        (["coldcard", "--listen", "/nonexistent/folder/x-y.sock"], "no such folder"),
    ],
)
def test_options_that_cannot_be(arguments, words, capsys):
    assert main(arguments) == 1
    assert words in capsys.readouterr().out


def test_no_virtual_device_for_real_money(capsys):
    with pytest.raises(SystemExit):
        main(["trezor", "--network", "mainnet"])
    assert "invalid choice" in capsys.readouterr().err


def test_a_seed_file_is_made_once_and_private(tmp_path):
    path = tmp_path / "seed"
    made = load_seed(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_seed(path).fingerprint == made.fingerprint
    assert load_seed(None).fingerprint != made.fingerprint


def test_a_seed_file_that_others_may_read_or_that_holds_no_words(tmp_path):
    path = tmp_path / "seed"
    load_seed(path)
    path.chmod(0o644)
    with pytest.raises(InvalidSeed, match="chmod 600"):
        load_seed(path)
    path.chmod(0o600)
    for content in (b"", b"abandon", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(InvalidSeed):
            load_seed(path)
    with pytest.raises(InvalidSeed, match="cannot be used"):
        load_seed(tmp_path / "nowhere" / "seed")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("yes 1\n", PanelCommand(Verb.YES, 1)),
        ("no", PanelCommand(Verb.NO)),
        ("Y", PanelCommand(Verb.YES)),
        ("n 12", PanelCommand(Verb.NO, 12)),
        ("lock", PanelCommand(Verb.LOCK)),
        ("q", PanelCommand(Verb.QUIT)),
        ('{"yes": 3}', PanelCommand(Verb.YES, 3)),
        ('{"no": true}', PanelCommand(Verb.NO)),
        ('{"lock": true}', PanelCommand(Verb.LOCK)),
        ('{"unplug":true}', PanelCommand(Verb.UNPLUG)),
        ('{"faults": {"stall_at": "sign"}}', PanelCommand(Verb.FAULTS, faults=Faults(stall_at=Phase.SIGN))),
        ('{"faults": {}}', PanelCommand(Verb.FAULTS, faults=Faults())),
    ],
)
def test_commands(line, command):
    assert parse_command(line) == command
