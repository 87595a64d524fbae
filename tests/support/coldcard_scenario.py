"""Run inside a namespace: a virtual Coldcard at HWI's fixed socket, and HWI's own command line."""

import asyncio
import json
from pathlib import Path

from device_simulators.coldcard import VirtualColdcard
from device_simulators.panel import Panel, approve_all, ask_person
from tests.support.coldcard import NETWORK, SEED, VAULT, enrol, host, on_thread, text_file
from tests.support.hwi_command import hwi
from tests.support.namespace import raise_loopback
from tests.support.wallets import make_spend

FIXED = Path("/tmp/ckcc-simulator.sock")
PATH = "m/48h/1h/0h/2h"
SINGLE = "m/84h/1h/0h/0/5"
# HWI shows concrete addresses only.
FIRST = "wsh(sortedmulti({},{}))".format(VAULT.threshold, ",".join(f"{key}/0/0" for key in VAULT.cosigners))


def _enrol():
    with host(str(FIXED)) as client:
        enrol(client, text_file(VAULT))


async def scenario():
    raise_loopback()
    device = VirtualColdcard(SEED, Panel(approve_all), NETWORK, allow_keypress=True)
    await device.start(FIXED)
    try:
        await on_thread(_enrol)
        device.panel.script = ask_person  # from here on HWI presses the button
        by_path = ("--device-type", "coldcard", "--device-path", str(FIXED))
        by_fingerprint = ("--fingerprint", SEED.fingerprint.hex)
        return {
            "enumerate": await on_thread(hwi, "enumerate"),
            "getxpub": await on_thread(hwi, *by_path, "getxpub", PATH),
            "found": await on_thread(hwi, *by_fingerprint, "getxpub", PATH),
            "signmessage": await on_thread(hwi, *by_path, "signmessage", "hello there", "m/0"),
            "address": await on_thread(
                hwi, *by_path, "displayaddress", "--path", SINGLE, "--addr-type", "wit"
            ),
            "vault_address": await on_thread(hwi, *by_path, "displayaddress", "--desc", FIRST),
            "signtx": await on_thread(hwi, *by_path, "signtx", make_spend(VAULT).to_base64()),
        }
    finally:
        await device.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(scenario())))  # noqa: T201 - the answer to the parent process
