"""HWI's command line against a virtual Trezor at HWI's emulator address. Runs in its own namespace."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.hwi_command import each_of, hwi
from tests.support.namespace import raise_loopback
from tests.support.virtual import SEED_WORDS, spend, vault

LISTEN = "127.0.0.1:21324"
ACCOUNT = "m/48h/1h/0h/2h"


def play(*options: str) -> dict:
    """The answers of HWI's commands, and what the device showed."""
    seed_file = Path("/tmp/seed")
    seed_file.touch(mode=0o600)
    seed_file.write_text(SEED_WORDS, encoding="ascii")
    device = subprocess.Popen(
        [sys.executable, "-m", "device_simulators", "trezor", "--listen", LISTEN, "--json",
         "--seed-file", str(seed_file), *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert json.loads(device.stdout.readline())["event"] == "ready"
    answers = _answers()
    device.stdin.close()
    shown = [json.loads(line) for line in device.stdout]
    device.wait(10)
    return {**answers, "shown": [event["kind"] for event in shown if event["event"] == "prompt"]}


def _answers() -> dict:
    (entry,) = [device for device in hwi("enumerate") if device["type"] == "trezor"]
    named = ("-t", "trezor", "-d", entry["path"])
    asked = {
        "getxpub": (*named, "getxpub", ACCOUNT),
        "signtx": (*named, "signtx", spend(vault()).to_base64()),
        "address": (*named, "displayaddress", "--path", "m/84h/1h/0h/0/5", "--addr-type", "wit"),
        "signmessage": (*named, "signmessage", "hello there", "m/84h/1h/0h/0/0"),
    }
    if "fingerprint" in entry:
        asked["found"] = ("-f", entry["fingerprint"], "getxpub", ACCOUNT)
    answers = zip(asked, each_of(list(asked.values())), strict=True)
    return {"enumerate": entry, "found": None, **dict(answers)}


if __name__ == "__main__":
    raise_loopback()
    sys.stdout.write(json.dumps(play(*sys.argv[1:])) + "\n")
