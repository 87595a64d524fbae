"""What the driver uses of Ledger's library, ledger_bitcoin: of the copy in HWI, which differs in details."""

from hwilib.common import AddressType
from hwilib.devices.ledger_bitcoin.client import NewClient
from hwilib.devices.ledger_bitcoin.client_base import ApduException, Client, TransportClient
from hwilib.devices.ledger_bitcoin.client_command import ByteStreamParser, ClientCommandCode
from hwilib.devices.ledger_bitcoin.ledgercomm.interfaces.hid_device import HID
from hwilib.devices.ledger_bitcoin.wallet import MultisigWallet, WalletPolicy
from hwilib.psbt import PSBT
