"""Accounts and addresses of this signer."""

from typing import Annotated

from pydantic import Field

from signerd.shapes.common import Answer, Request
from signerd.shapes.devices import KeyView

# As ``multisig`` has them; taken from there, they would bring the whole core to every command that starts.
RECEIVE, CHANGE = 0, 1
MAX_INDEX = 1_000_000
# Each costs some 0.25 ms for each cosigner: fifty of a vault of fifteen are a fifth of a second of the daemon's time.
MAX_ADDRESSES = 50
# Trezor expects BIP-48 and BIP-84 accounts up to 100, and warns of the others (core/src/apps/common/paths.py).
MAX_ACCOUNT = 100

Chain = Annotated[int, Field(ge=RECEIVE, le=CHANGE)]
Index = Annotated[int, Field(ge=0, le=MAX_INDEX)]
Count = Annotated[int, Field(ge=1, le=MAX_ADDRESSES)]
AccountNumber = Annotated[int, Field(ge=0, le=MAX_ACCOUNT)]


class AccountKeys(Answer):
    """Keys of standard accounts: BIP-48 P2WSH for vaults, BIP-84 for the profile. ``fingerprint``: None where there are none."""

    network: str
    fingerprint: str | None
    keys: tuple[KeyView, ...]


class AccountRequest(Request):
    account: AccountNumber = 0


class AddressView(Answer):
    """``chain``: 0 for receiving, 1 for change."""

    chain: int
    index: int
    address: str


class AddressPage(Answer):
    """``vault_id``: None for the profile. ``fault``: why nothing should be sent there before the person has looked."""

    network: str
    vault_id: str | None
    name: str
    addresses: tuple[AddressView, ...]
    fault: str | None = None


class ShowAddressRequest(Request):
    chain: Chain = RECEIVE
    index: Index = 0


class AddressShown(Answer):
    """The device has shown this address, which is the one that this machine derives.

    ``on_screen``: as a device writes it; no device knows regtest's own form.
    """

    network: str
    device_id: str
    chain: int
    index: int
    address: str
    on_screen: str
