"""Where fakes are plugged in: a listing that sees them, and workers that are threads of this process."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Collection, Sequence
from typing import Any

from device_simulators.fake.client import FakeClient
from device_simulators.fake.device import FakeDevice, Line
from firmware_bridge.bridge import Bridge
from firmware_bridge.model import Endpoint, Listing, Sighting
from firmware_bridge.protocol import Caller, Opening
from firmware_bridge.worker import Process, Server, Spawner
from multisig import Network


def bridge_to(*devices: FakeDevice, network: Network, **options: Any) -> Bridge:
    """A bridge with these devices and no others; `options` are those of `Bridge`. To be called where an event
    loop runs.
    """
    return Bridge(
        network=network, usb=False, listings=[listing_of(*devices)], spawner=spawner_of(*devices), **options
    )


def listing_of(*devices: FakeDevice) -> Listing:
    """Sees those that are plugged in."""

    async def look(_in_use: Collection[Endpoint]) -> Sequence[Sighting]:
        return [
            Sighting(device.endpoint, device.model, incarnation=str(device.incarnation))
            for device in devices
            if device.present
        ]

    return look


def spawner_of(*devices: FakeDevice) -> Spawner:
    """Starts a thread for each conversation. The loop that runs now has the devices' screens."""
    loop = asyncio.get_running_loop()
    by_endpoint = {str(device.endpoint): device for device in devices}

    def spawn(channel: socket.socket, endpoint: str, _network: str) -> Process:
        return _Thread(channel.dup(), by_endpoint[endpoint], Line(loop))

    return spawn


class _Thread:
    """Stands for a worker process: once killed, it sends nothing more."""

    pid = None

    def __init__(self, channel: socket.socket, device: FakeDevice, line: Line) -> None:
        self._channel = channel
        self._device = device
        self._line = line
        self._killed = False
        self._thread = threading.Thread(target=self._serve, name="fake-device", daemon=True)
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive() and not self._killed

    def kill(self) -> None:
        self._killed = True
        # A socket that its thread has closed meanwhile cannot be shut down, and need not be.
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._line.cut()

    def _serve(self) -> None:
        def open_device(caller: Caller, opening: Opening) -> FakeClient:
            return FakeClient(self._device, self._line, caller, opening)

        # The bridge may have gone in the middle of an answer.
        with contextlib.suppress(OSError):
            Server(self._channel, open_device, end_process=_keep_process).serve(preloaded=True)
        self._device.leave(self._line)
        self._channel.close()


def _keep_process(_status: int) -> None:
    """A thread ends with its conversation; there is no process to end."""
