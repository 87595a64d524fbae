"""The drivers: the only package that imports HWI and the makers' libraries. It runs in workers.

A driver opens one endpoint. `hwilib.commands` is never called: it opens every device of all families.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final

from firmware_bridge.errors import BridgeError, Unsupported
from firmware_bridge.hwi_client.base import OpenDevice, failure
from firmware_bridge.missing import missing_hwi
from firmware_bridge.model import Endpoint, Family

# Before HWI: it loads the bundled libusb, where HWI would look for the system's.
from firmware_bridge.presence import libusb
from firmware_bridge.protocol import DriverHost, WorkerCall
from multisig import Network

with warnings.catch_warnings():
    # The protobuf that HWI requires emits a DeprecationWarning on Python 3.12. With warnings as errors, which
    # workers inherit, the import would fail.
    warnings.simplefilter("ignore", DeprecationWarning)
    # The module of each family's name opens its devices.
    OPENERS: Final[Mapping[Family, Callable[..., OpenDevice]]] = {
        family: import_module(f"{__name__}.{family}").open_device
        for family in Family
        if missing_hwi(family) is None
    }

__all__ = ["OPENERS", "libusb", "open_device"]


def open_device(endpoint: Endpoint, network: Network, caller: DriverHost, request: WorkerCall) -> OpenDevice:
    """Open the device at this endpoint.

    :raises BridgeError: it cannot be opened, and why.
    """
    if (missing := missing_hwi(endpoint.family)) is not None:
        raise Unsupported(detail=missing)
    try:
        return OPENERS[endpoint.family](endpoint, network, caller, request)
    except BridgeError:
        raise
    except Exception as error:
        raise failure(endpoint.family, error) from error
