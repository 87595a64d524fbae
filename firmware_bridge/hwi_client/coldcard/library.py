"""What the driver uses of Coldcard's library, ckcc: of the copy in HWI."""

from hwilib.devices.ckcc.client import ColdcardDevice as Ckcc
from hwilib.devices.ckcc.client import UnixSimulatorPipe
from hwilib.devices.ckcc.constants import (
    AF_CLASSIC,
    AF_P2WPKH,
    AF_P2WSH,
    MAX_BLK_LEN,
    MAX_TXN_LEN,
    MAX_TXN_LEN_MK4,
)
from hwilib.devices.ckcc.protocol import CCFramingError, CCProtoError, CCUserRefused
from hwilib.devices.ckcc.protocol import CCProtocolPacker as Packer
