"""The same commands through HWI's own program and through signerd-hwi, at one virtual device.
Runs in its own namespace.

HWI runs first; then the daemon holds the device alone.
"""

import asyncio
import json
import os
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from device_simulators.panel import Panel, approve_all, ask_person
from firmware_bridge import Bridge, Endpoint, Family
from multisig import Network, profile_account_path
from signerd.core.audit import Note
from signerd.core.values import OwnKey
from signerd.journal import Journal
from signerd.loopback.serve import serving
from tests.conformance.rigs import VIRTUAL
from tests.support.daemons import daemon_at, make_config, unhurried_sleep
from tests.support.fake_platform import FakePlatform
from tests.support.hwi_command import each_of
from tests.support.namespace import raise_loopback
from tests.support.processes import ended
from tests.support.real_signer import ready
from tests.support.virtual import holder, seed
from tests.support.wallets import make_spend

NETWORK = Network.TESTNET4
OWNER = holder(0, NETWORK)
PROFILE = OWNER.profile()
VAULT_ACCOUNT, ACCOUNT = "m/48h/1h/0h/2h", str(profile_account_path(NETWORK))
# Where HWI expects emulators.
PLACES = {Family.TREZOR: 21324, Family.LEDGER: 9999, Family.COLDCARD: Path("/tmp/ckcc-simulator.sock")}
# HWI presses this simulator's buttons itself, and reports it as broken where it cannot.
PRESSES = {Family.COLDCARD}
FINGERPRINT = str(seed().fingerprint)
PUBLIC_KEY = PROFILE.key.xpub.derive_public_key(0, 5).hex()
COMMANDS = {
    "enumerate": ("enumerate",),
    "getxpub": ("getxpub", ACCOUNT),
    "getxpub of a vault": ("getxpub", VAULT_ACCOUNT),
    "getxpub below": ("getxpub", f"{ACCOUNT}/1/7"),
    "getxpub expert": ("--expert", "getxpub", ACCOUNT),
    "getxpub elsewhere": ("getxpub", "m/44h/1h/0h"),
    "getmasterxpub": ("getmasterxpub", "--addr-type", "wit"),
    "getdescriptors": ("getdescriptors", "--account", "0"),
    "getkeypool": ("getkeypool", "--account", "0", "0", "20"),
    "getkeypool path": ("getkeypool", "--path", f"{ACCOUNT}/0/*", "--internal", "--nokeypool", "5", "9"),
    "getkeypool bad path": ("getkeypool", "--path", f"{ACCOUNT}/0/", "0", "20"),
    "backup": ("backup",),
    "displayaddress path": ("displayaddress", "--path", f"{ACCOUNT}/0/5", "--addr-type", "wit"),
    "displayaddress desc": ("displayaddress", "--desc", f"wpkh([{FINGERPRINT}/84h/1h/0h/0/5]{PUBLIC_KEY})"),
    "signtx": ("signtx", make_spend(PROFILE).to_base64()),
    "promptpin": ("promptpin",),
    "bad descriptor": ("displayaddress", "--desc", f"wpkh([00000000/84h/1h/0h/0/5]{PUBLIC_KEY})"),
    "no device": ("-f", "00000000", "getxpub", ACCOUNT),
}

# Asked of one family only: the answer does not depend on the device.
OF_ONE = {
    "getxpub below", "getxpub expert", "getkeypool", "getkeypool path", "getkeypool bad path", "backup",
    "bad descriptor", "no device",
}  # fmt: skip
ONE = Family.TREZOR


def commands_of(family):
    return [name for name in COMMANDS if family is ONE or name not in OF_ONE]


def arguments_of(name):
    named = () if name in {"enumerate", "no device"} else ("--fingerprint", FINGERPRINT)
    return [*named, *COMMANDS[name]]


def ours(state):
    def program(*arguments):
        given = ("--emulators", "--chain", "test", "--wait", "60", *arguments)
        environment = {**os.environ, "SIGNERD_STATE": str(state)}
        done = ended([sys.executable, "-m", "signerd.hwi", *given], seconds=600, env=environment)
        if done.returncode or len(done.stdout.splitlines()) != 1:
            raise AssertionError((arguments, done.returncode, done.stdout, done.stderr))
        return json.loads(done.stdout)

    return program


async def approving(daemon, named=None):
    """Approves every imported PSBT, as a person at the page. ``named`` receives the acknowledged checks."""
    while True:
        for record in daemon.journal.imported.waiting():
            if record.state == "waiting-for-person":
                shown = await daemon.proposal(record.psbt_id)
                warned = frozenset(check.name for check in shown.checks if check.acknowledge)
                await daemon.approve(record.psbt_id, shown.digest, warned)
                if named is not None:
                    named |= warned
        await asyncio.sleep(0.05)


@asynccontextmanager
async def signerd_at(endpoint, state, owner, network, named=None):
    """The owner's, who says yes to all. ``named``: as `approving`."""
    state.mkdir(mode=0o700)
    with Journal(state, network=network) as journal:
        keys = (OwnKey(owner.profile().key, "profile", 0), OwnKey(owner.vault_key(), "vault", 0))
        journal.add_own_keys(keys, "key-1", Note("registered", "key-1"))
    config, platform = make_config(network=network.value), FakePlatform(state)
    async with (
        Bridge(network=network, endpoints=[endpoint], usb=False) as bridge,
        daemon_at(state, platform, bridge, config=config, sign_in=False, sleep=unhurried_sleep) as daemon,
        serving(daemon, state),
    ):
        await ready(daemon)
        person = asyncio.create_task(approving(daemon, named))
        try:
            yield daemon
        finally:
            person.cancel()


async def theirs(family):
    names = commands_of(family)
    answers = await asyncio.to_thread(each_of, [arguments_of(name) for name in names])
    return dict(zip(names, answers, strict=True))


async def scenario(family):
    raise_loopback()
    presses, place = family in PRESSES, PLACES[family]
    options = {"allow_keypress": True} if presses else {}
    device = VIRTUAL[family](seed(), Panel(ask_person if presses else approve_all), NETWORK, **options)
    endpoint = await (device.start(place) if isinstance(place, Path) else device.start(port=place))
    assert isinstance(endpoint, Endpoint)
    try:
        told = await theirs(family)
        device.panel.script = approve_all
        with tempfile.TemporaryDirectory(prefix="parity") as folder:
            state = Path(folder) / "s"
            async with signerd_at(endpoint, state, OWNER, NETWORK):
                program = ours(state)
                answers = {
                    name: await asyncio.to_thread(program, *arguments_of(name))
                    for name in commands_of(family)
                }
                return {"theirs": told, "ours": answers}
    finally:
        await device.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(scenario(Family(sys.argv[1])))))  # noqa: T201 - the answer to the parent process
