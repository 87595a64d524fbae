"""From a plug to the page: a virtual Coldcard appears beside a running daemon, and an open page shows it.

A bridge looks once a second. All of it is real: the look, the device's first answers in a worker, the stream,
the page.
"""

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.devices.desk import Device
from firmware_bridge.model import Endpoint, Family

PLUGS = 10


def place(folder: Path) -> Path:
    """Where the device appears."""
    return folder / "coldcard.sock"


def second_endpoint(folder: Path) -> Endpoint:
    return Endpoint.parse(f"coldcard:unix:{place(folder)}")


def measure(folder: Path, told: dict[str, Any]) -> None:
    cookie = {"Cookie": f"signerd-{told['port']}={told['cookie']}"}
    page, stream = (http.client.HTTPConnection("127.0.0.1", told["port"], timeout=30) for _ in range(2))
    stream.request("GET", "/v1/events", headers=cookie)
    lines = _device_lines(stream.getresponse())
    noticed, ready, drawn = [], [], []
    for _ in range(PLUGS):
        # A folder of its own each time: the next one must not find what the last one left behind.
        with tempfile.TemporaryDirectory(dir=folder) as own:
            device = Device.start(Family.COLDCARD, Path(own), listen=str(place(folder)))
            try:
                started = time.perf_counter()
                next(lines)
                noticed.append(time.perf_counter() - started)
                while not next(lines).endswith("ready."):
                    pass
                ready.append(time.perf_counter() - started)
                page.request("GET", "/devices", headers=cookie)
                if b"Coldcard" not in page.getresponse().read():
                    raise RuntimeError("the page does not show the device")
                drawn.append(time.perf_counter() - started)
            finally:
                device.stop()
        while not next(lines).endswith("absent."):
            pass
    page.close()
    stream.close()
    print(f"\nfrom a plug, {PLUGS} times: {'median ms':>12} {'slowest ms':>11}")
    for name, spent in (
        ("the page is told", noticed),
        ("that it is ready", ready),
        ("and drawn again", drawn),
    ):
        print(f"{name:>24} {statistics.median(spent) * 1000:15.1f} {max(spent) * 1000:11.1f}")


def _device_lines(answer: http.client.HTTPResponse) -> Iterator[str]:
    while text := answer.readline():
        if text.startswith(b"data: ") and (line := json.loads(text[6:]))["kind"] == "device":
            yield line["text"]
    raise RuntimeError("the stream of events ended")
