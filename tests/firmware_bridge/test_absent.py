"""Real HWI clients at addresses without a device: no program listens, or another one."""

import socket
from contextlib import contextmanager

import pytest

from firmware_bridge import Bridge, Deadlines, DeviceState, Disconnected, Endpoint, TimedOut
from firmware_bridge.model import Sighting
from multisig import Network, multisig_account_path
from tests.conformance.rigs import short_folder

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
