"""What a confined worker may still do, by kind of endpoint; each test uses a process of its own."""

import json
import socket
import sys

import pytest

from firmware_bridge import Endpoint, confinement
from firmware_bridge.confinement import Socket, sockets, tcp_ports
from tests.support.processes import said

needs_kernel = pytest.mark.skipif(
    not (confinement.available().landlock and confinement.available().seccomp),
    reason="this kernel has no Landlock, or takes no filters",
)
_PATIENCE = 60
_START = """
import json, os, resource, socket, sys
from firmware_bridge import hwi_client, confinement, Endpoint
from firmware_bridge.confinement import landlock

def outcome(attempt):
    try:
        attempt()
    except Exception as error:
        return type(error).__name__
    return "done"
"""


def alone(script, *args):
    """Runs the script in a process of its own; returns its `told`."""
    program = f"{_START}\n{script}\nprint(json.dumps(told))"
    return json.loads(said([sys.executable, "-c", program, *map(str, args)], seconds=_PATIENCE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trezor:webusb:001:1", [Socket(16, protocol=15)]),
        ("ledger:hid:1-1:1.0", [Socket(16, protocol=15)]),
        ("jade:serial:/dev/ttyACM0", []),
        ("coldcard:unix:/tmp/coldcard.sock", [Socket(1, 2)]),
        ("trezor:udp:127.0.0.1:21324", [Socket(2, 2), Socket(10, 2)]),
        ("ledger:tcp:127.0.0.1:9999", [Socket(2, 1), Socket(10, 1)]),
        ("ledger:tcp:localhost:9999", [Socket(2, 1), Socket(10, 1)]),
        ("ledger:tcp:speculos:9999", [Socket(2, 1), Socket(2, 2), Socket(10, 1), Socket(10, 2)]),
    ],
)
def test_a_real_device_has_no_network_and_an_emulator_its_own_way(text, expected):
    endpoint = Endpoint.parse(text)
    assert list(sockets(endpoint)) == expected
    assert tcp_ports(endpoint) == ((9999,) if endpoint.kind == "tcp" else ())


@needs_kernel
def test_an_emulator_is_reached_at_its_port_only():
    with socket.socket() as device, socket.socket() as other:
        for listener in (device, other):
            listener.bind(("127.0.0.1", 0))
            listener.listen()
        ports = [listener.getsockname()[1] for listener in (device, other)]
        told = alone(
            """
confinement.confine(Endpoint.parse(f"ledger:tcp:localhost:{sys.argv[1]}"), 1)
told = [outcome(lambda: socket.create_connection(("localhost", int(port)))) for port in sys.argv[1:]]
""",
            *ports,
        )
    assert told == ["done", "PermissionError"]


@needs_kernel
def test_libusb_starts_for_a_usb_device_and_for_no_other():
    """It does not start without the kernel's messages about the bus."""
    script = """
import usb1
webusb, hid = lambda: usb1.USBContext().open().close(), hwi_client.libusb.hid.enumerate
told = [outcome(webusb)]
confinement.confine(Endpoint.parse(sys.argv[1]), 1)
told += [outcome(webusb), outcome(hid)]
"""
    free, *confined = alone(script, "trezor:webusb:001:1")
    assert confined == [free, "done"]
    if free == "done":
        assert alone(script, "jade:serial:/dev/ttyACM0")[1] != "done"


@pytest.mark.skipif(not confinement.available().landlock, reason="this kernel has no Landlock")
@pytest.mark.parametrize("abi", range(1, 8))
def test_each_abi_of_landlock_is_asked_for_what_it_has(abi, tmp_path):
    if abi > confinement.available().landlock:
        pytest.skip("this kernel's Landlock is older")
    for name in ("shut", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    told = alone(
        """
from pathlib import Path
landlock.abi = lambda: int(sys.argv[1])
folder = Path(sys.argv[2])
landlock.libc().prctl(38, 1, 0, 0, 0)
missing = landlock.PathRule(folder / "missing", landlock.READ)
held = landlock.restrict([missing, landlock.PathRule(folder / "open", landlock.READ)], [1])
told = [held, *(outcome((folder / name / "file").read_text) for name in ("shut", "open"))]
""",
        abi,
        tmp_path,
    )
    assert told == [abi, "PermissionError", "done"]


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
def test_without_either_layer_it_goes_on_with_what_is_always_there():
    told = alone(
        """
confinement.landlock.abi = lambda: 0
confinement.seccomp.available = lambda: False
held = confinement.confine(Endpoint.parse("jade:serial:/dev/ttyACM0"), 1)
limits = [resource.getrlimit(limit) for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)]
status = open("/proc/self/status").read()
told = [held.landlock, held.seccomp, limits, "NoNewPrivs:\\t1" in status]
"""
    )
    assert told == [0, False, [[0, 0], [0, 0]], True]
