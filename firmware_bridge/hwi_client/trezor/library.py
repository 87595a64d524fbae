"""What the driver uses of Trezor's library, trezorlib: messages, their framing, transports, and the order in
which a device asks for a transaction. The conversation with the person is the driver's own.
"""

from trezorlib import btc, messages, models
from trezorlib.exceptions import TrezorFailure
from trezorlib.mapping import DEFAULT_MAPPING
from trezorlib.protobuf import MessageType
from trezorlib.protocol_v1 import read, write
from trezorlib.tools import parse_path
from trezorlib.transport import TransportException
from trezorlib.transport.hid import HidTransport
from trezorlib.transport.udp import UdpTransport
from trezorlib.transport.webusb import WebUsbTransport
