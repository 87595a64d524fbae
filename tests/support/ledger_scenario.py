"""HWI's listing of a virtual Ledger where HWI looks for emulators. Runs in its own namespace."""

import json
import subprocess
import sys

from tests.support.hwi_command import hwi
from tests.support.namespace import raise_loopback

LISTEN = "127.0.0.1:9999"


def listed(*options: str) -> dict:
    device = subprocess.Popen(
        [sys.executable, "-m", "device_simulators", "ledger", "--listen", LISTEN, "--json", *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert json.loads(device.stdout.readline())["event"] == "ready"
    (entry,) = [device for device in hwi("enumerate") if device["type"] == "ledger"]
    device.communicate(timeout=60)
    return entry


if __name__ == "__main__":
    raise_loopback()
    sys.stdout.write(json.dumps(listed(*sys.argv[1:])) + "\n")
