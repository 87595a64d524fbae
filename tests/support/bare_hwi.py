"""HWI's own client classes, unmodified, on a virtual device of each make. They block:
each runs in a thread.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hwilib.common import AddressType, Chain
from hwilib.descriptor import parse_descriptor
from hwilib.devices.trezor import TrezorClient
from hwilib.hwwclient import HardwareWalletClient
from hwilib.psbt import PSBT

from firmware_bridge import Family
from multisig import DerivationPath, Psbt, Vault
from tests.conformance.rigs import Rig
from tests.conformance.second_program import open_coldcard, open_ledger, open_trezor

T = TypeVar("T")
_CHAIN = Chain.TESTNET4


def close(client: TrezorClient) -> None:
    """Closes the sockets, as often as HWI has opened them."""
    client.close()
    while client.client.session_counter:
        client.close()


@contextmanager
def client_of(rig: Rig) -> Iterator[HardwareWalletClient]:
    """HWI's client at the device's own address; nothing else of HWI is changed."""
    match rig.family:
        case Family.TREZOR:
            client = open_trezor(rig.endpoint, _CHAIN)
            try:
                yield client
            finally:
                close(client)
        case Family.COLDCARD:
            with open_coldcard(rig.endpoint.place, _CHAIN) as client:
                yield client
        case Family.LEDGER:
            client = open_ledger(rig.endpoint, _CHAIN)
            try:
                yield client
            finally:
                client.close()


async def with_client(rig: Rig, work: Callable[[HardwareWalletClient], T]) -> T:
    def run() -> T:
        with client_of(rig) as client:
            return work(client)

    return await asyncio.to_thread(run)


async def xpubs(rig: Rig, paths: list[DerivationPath]) -> list[str]:
    return await with_client(
        rig, lambda client: [client.get_pubkey_at_path(str(path)).to_string() for path in paths]
    )


async def fingerprint(rig: Rig) -> bytes:
    return await with_client(rig, lambda client: client.get_master_fingerprint())


async def vault_address(rig: Rig, vault: Vault, chain: int, index: int) -> str:
    keys = ",".join(f"{key}/{chain}/{index}" for key in vault.cosigners)
    descriptor = parse_descriptor(f"wsh(sortedmulti({vault.threshold},{keys}))").subdescriptors[0]
    return await with_client(rig, lambda client: client.display_multisig_address(AddressType.WIT, descriptor))


async def profile_address(rig: Rig, path: DerivationPath) -> str:
    return await with_client(rig, lambda client: client.display_singlesig_address(str(path), AddressType.WIT))


async def message(rig: Rig, text: str, path: DerivationPath) -> str:
    """Base64."""
    return await with_client(rig, lambda client: client.sign_message(text, str(path)))


async def sign(rig: Rig, psbt: Psbt) -> Psbt:
    return await with_client(rig, lambda client: _signed(client, psbt))


def _signed(client: HardwareWalletClient, psbt: Psbt) -> Psbt:
    theirs = PSBT()
    theirs.deserialize(psbt.to_base64())
    return Psbt.parse(client.sign_tx(theirs).serialize())
