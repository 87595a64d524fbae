"""Where a virtual device may listen."""

import ipaddress

from device_simulators.errors import InvalidListenAddress


def require_loopback(host: str) -> None:
    """:raises InvalidListenAddress: others than this machine could reach a device that keeps a seed."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise InvalidListenAddress(f"{host!r} is not a loopback address such as 127.0.0.1")
