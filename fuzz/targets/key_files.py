"""Files from a card or another program: a cosigner's key, a vault, and a PSBT, in each form that is read."""

import base64
import json
from collections.abc import Iterator

from firmware_bridge import BridgeError
from firmware_bridge.airgap import handoff
from firmware_bridge.airgap.vault_files import keys_in
from fuzz.json_mutator import mutate
from fuzz.target import Target, require
from multisig import (
    MultisigError,
    Network,
    OriginKey,
    Vault,
    message_hash,
    multisig_account_path,
    profile_account_path,
    read_vault_file,
    secp256k1,
)
from multisig.vault import account_of
from tests.support.airgap import slip132
from tests.support.coordinators import WRITTEN
from tests.support.wallets import ALICE, BOB, CAROL, make_spend, make_vault

NETWORK = Network.REGTEST


def check(data: bytes) -> None:
    """Only the two packages' errors are raised, and an accepted key can be part of a vault."""
    _check_carried(data)
    text = data.decode("utf-8", "replace")
    for network in (NETWORK, Network.MAINNET):
        _check_vault(text, network)
        try:
            keys = keys_in(text, network)
        except (BridgeError, MultisigError) as error:
            require(bool(str(error)) and bool(error.hint), "an error says nothing")
        else:
            for key in keys:
                _require_usable(key, network)


def _check_vault(text: str, network: Network) -> None:
    try:
        read = read_vault_file(text, network)
    except MultisigError as error:
        require(bool(str(error)) and bool(error.hint), "an error says nothing")
        return
    require(
        read_vault_file(read.vault.descriptor, network).vault == read.vault, "another vault when read again"
    )


def _check_carried(data: bytes) -> None:
    try:
        found = handoff.decode_psbt(data)
    except BridgeError:
        return
    require(handoff.decode_psbt(base64.b64encode(found)) == found, "another PSBT in base64")


def _require_usable(key: OriginKey, network: Network) -> None:
    path = key.origin.path
    own = path == profile_account_path(network)
    require(own or path == multisig_account_path(network, account_of(path)), "a key elsewhere")
    require(OriginKey.parse(str(key), network) == key, "a key that is written as another one")
    others = [signer.vault_key(network) for signer in (ALICE, BOB, CAROL)]
    if not own and all(key.xpub.public_key != other.xpub.public_key for other in others):
        try:
            Vault(network, 2, (key, *others[:2]))
        except MultisigError as error:
            # Another device may claim Alice's fingerprint.
            require(bool(str(error)), "an error says nothing")


def seeds() -> Iterator[bytes]:
    key = ALICE.vault_key()
    path, xfp = str(key.origin.path).replace("h", "'"), key.fingerprint.hex.upper()
    exports: list[object] = [
        {"xfp": xfp, "p2wsh": slip132(key.xpub), "p2wsh_deriv": path, "account": "0"},
        {"xfp": xfp, "p2wsh": str(key.xpub), "p2wsh_deriv": path},
        {"xfp": xfp, "bip48_2": {"xpub": str(key.xpub), "deriv": path, "xfp": key.xpub.fingerprint.hex}},
        {"xfp": xfp},
        {},
    ]
    for export in exports:
        yield json.dumps(export).encode()
    yield from (write(make_vault()).encode() for write in WRITTEN.values())
    yield str(key).encode()
    yield str(ALICE.vault_key(Network.MAINNET, account=3)).encode()
    yield _key_record(key).encode()
    psbt = make_spend(make_vault(), n_inputs=1)
    yield from (psbt.to_bytes(), psbt.to_base64().encode(), psbt.to_bytes().hex().encode())
    yield psbt.inputs[0].non_witness_utxo.serialize()  # type: ignore[union-attr]
    yield message_hash("hello")


def _key_record(key: OriginKey) -> str:
    """As a signer sends it in the first round of BIP-129."""
    said = "\n".join(("BSMS 1.0", "00", str(key), "Alice's device"))
    private = ALICE.private_node(key.origin.path).key
    signature, recovery_id = secp256k1.sign_recoverable(private, message_hash(said))
    return f"{said}\n{base64.b64encode(bytes((27 + 4 + recovery_id,)) + signature).decode()}"


TARGET = Target("key_files", check, seeds, mutator=mutate)
