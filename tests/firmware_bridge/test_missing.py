"""HWI is left out by an installer that heeds its bound: which line brings it, and that it brings no less; no
device at an address.
"""

import asyncio
import socket
import sys
import tomllib
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from device_simulators.panel import Panel
from device_simulators.trezor import VirtualTrezor
from firmware_bridge import Bridge, Deadlines, DeviceState, Disconnected, Endpoint, TimedOut, missing
from firmware_bridge.model import Sighting
from multisig import Network, multisig_account_path
from tests.conformance.rigs import NETWORK, SEEDS, short_folder
from tests.support.processes import ended

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
DEVICES = [Requirement(text) for text in PROJECT["optional-dependencies"]["devices"]]
# HWI keeps these two below what runs on Python 3.14, and its master has lifted both bounds.
LIFTED = {"cbor2", "protobuf"}


def named(version):
    """What the extra asks for on this Python, without HWI."""
    wanted = {each.name: each for each in DEVICES if each.marker is None or each.marker.evaluate(version)}
    wanted.pop("hwi", None)
    return wanted


def of_hwi(version):
    needs = map(Requirement, requires("hwi") or ())
    return [each for each in needs if each.marker is None or each.marker.evaluate({**version, "extra": ""})]


def test_hwi_is_asked_for_where_its_own_bound_lets_it():
    (hwi,) = [each for each in DEVICES if each.name == "hwi"]
    assert f"{hwi.name}{hwi.specifier}" == missing.HWI
    heeded = {minor: hwi.marker.evaluate({"python_version": f"3.{minor}"}) for minor in range(11, 15)}
    assert heeded == {minor: (3, minor) < missing._REFUSED for minor in heeded}


def test_beyond_it_the_project_itself_asks_for_all_that_hwi_needs():
    version = {"python_version": "3.14", "sys_platform": "linux"}
    ours = {**{each.name: each for each in map(Requirement, PROJECT["dependencies"])}, **named(version)}
    for needed in of_hwi(version):
        if needed.name == "typing-extensions":
            continue  # pydantic's
        assert needed.name in ours
        if needed.name not in LIFTED:
            lowest = [each.version for each in ours[needed.name].specifier if each.operator in {">=", "=="}]
            assert lowest
            assert all(needed.specifier.contains(each) for each in lowest), needed


@pytest.mark.parametrize(
    ("version", "hidden", "line"),
    [
        ((3, 12), {"hwilib"}, "{python} -m pip install hwi==3.2.0"),
        ((3, 13), {"hwilib"}, "{python} -m pip install --ignore-requires-python --no-deps hwi==3.2.0"),
        ((3, 14), {"hwilib", "pip"}, "uv pip install --python {python} --no-deps hwi==3.2.0"),
    ],
)
def test_the_sentence_names_the_line_for_this_environment(monkeypatch, version, hidden, line):
    monkeypatch.setattr(missing, "find_spec", lambda name: None if name in hidden else object())
    monkeypatch.setattr(sys, "version_info", version)
    told = missing.missing_hwi()
    assert told.endswith(f"run {line.format(python=sys.executable)}")


def test_nothing_is_missing_here():
    assert missing.missing_hwi() is None


PROBES = """
import sys
sys.modules["hwilib"] = None
from firmware_bridge import Endpoint, Unsupported, hwi_client
from firmware_bridge.protocol import WorkerCall
from multisig import Network
for endpoint in map(Endpoint.parse, sys.argv[2:]):
    try:
        device = hwi_client.open_device(endpoint, Network(sys.argv[1]), None, WorkerCall(0, "probe"))
        print(device.call("probe", {}).fingerprint)
    except Unsupported as told:
        print(told.detail)
"""


@pytest.mark.anyio
async def test_without_hwi_a_trezor_is_driven_and_any_other_device_says_what_is_missing():
    trezor = VirtualTrezor(SEEDS[0], Panel(), NETWORK)
    endpoint = await trezor.start()
    try:
        arguments = [NETWORK.value, str(endpoint), "ledger:tcp:127.0.0.1:9"]
        done = await asyncio.to_thread(ended, [sys.executable, "-c", PROBES, *arguments], seconds=60)
    finally:
        await trezor.stop()
    fingerprint, told = done.stdout.splitlines()
    assert fingerprint == SEEDS[0].fingerprint.hex
    assert "HWI, which talks to all devices but a Trezor, is not installed here" in told


pytestmark = pytest.mark.anyio
PATH = multisig_account_path(Network.REGTEST)


def bridge_to(endpoint):
    """A bridge on a bus that always lists the device."""

    async def listing(_in_use):
        return [Sighting(endpoint, "Ghost")]

    deadlines = Deadlines(probe=1.0, read=1.0, grace=0.1)
    return Bridge(network=Network.REGTEST, listings=[listing], deadlines=deadlines)


@contextmanager
def closed_port(kind):
    with socket.socket(socket.AF_INET, kind) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    yield f"127.0.0.1:{port}"


async def outcome_at(endpoint):
    async with bridge_to(endpoint) as bridge:
        with pytest.raises(Exception) as caught:
            await bridge.xpub(endpoint.device_id, PATH)
    return type(caught.value)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("trezor:udp:{closed}", socket.SOCK_DGRAM),
        ("ledger:tcp:{closed}", socket.SOCK_STREAM),
        ("coldcard:unix:{folder}/none", None),
        ("trezor:webusb:001:2", None),
        ("trezor:hid:1-2:1.0", None),
        ("jade:serial:/dev/none", None),
    ],
)
async def test_nothing_where_a_device_was(address, kind):
    with short_folder() as folder, closed_port(kind or socket.SOCK_STREAM) as closed:
        endpoint = Endpoint.parse(address.format(folder=folder, closed=closed))
        assert await outcome_at(endpoint) is Disconnected


async def test_a_port_that_never_answers_times_out():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        endpoint = Endpoint.parse(f"trezor:udp:127.0.0.1:{silent.getsockname()[1]}")
        async with bridge_to(endpoint) as bridge:
            (device,) = await bridge.refresh()
            assert device.state == DeviceState.PRESENT
            with pytest.raises(TimedOut):
                await bridge.xpub(device.id, PATH)
