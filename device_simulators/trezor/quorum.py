"""The multisig that a host describes beside an input, an output or an address.

The firmware has no registered wallets: whoever asks describes the quorum each time, and the device recognises change by
the quorum's *identity*. Keys hash into it in the order they are sent, unless the host says that their order is
lexicographic (firmware 1.13.0). So change of a sortedmulti whose keys are sent in script order is not recognised, and
neither is it where keys come without their chain code.
"""

from dataclasses import dataclass
from typing import Self

from device_simulators.trezor.messages import HDNode, HDNodePath, KeyOrder, MultisigRedeemScript
from device_simulators.trezor.work import data_error
from multisig import (
    DerivationPath,
    ExtendedPublicKey,
    Fingerprint,
    NetworkKind,
    multisig_script,
    p2wsh,
    sha256,
)


@dataclass(frozen=True)
class Quorum:
    """m of the given keys, derived and ordered: one script, and the identity that its siblings share.

    `at_one_place`: every key stands at the same chain and index. Where each has its own, nobody finds the coins again (S9).
    """

    threshold: int
    public_keys: tuple[bytes, ...]
    nodes: tuple[HDNode, ...]
    """The account keys, in the order in which the host named them."""
    own: int
    """Which of them is the device's own."""
    ordered: bool
    """Whether the host says that the script has its keys in lexicographic order."""
    identity: bytes
    at_one_place: bool

    @classmethod
    def from_message(cls, message: MultisigRedeemScript, own_key: bytes) -> Self:
        """:raises Refused: the device's own key for this path is not among them.

        :raises MultisigError: no possible quorum, a repeated key, or a key that is none.
        """
        keys = tuple(_derive(path) for path in message.pubkeys)
        if own_key not in keys:
            raise data_error("Pubkey not found in multisig script")
        nodes, own = tuple(path.node for path in message.pubkeys), keys.index(own_key)
        ordered = _order(message) is KeyOrder.LEXICOGRAPHIC
        if ordered:
            keys = tuple(sorted(keys))
        multisig_script(message.m, keys)
        places = {tuple(path.address_n) for path in message.pubkeys}
        return cls(
            threshold=message.m,
            public_keys=keys,
            nodes=nodes,
            own=own,
            ordered=ordered,
            identity=_identity(message),
            at_one_place=len(places) == 1,
        )

    @property
    def witness_script(self) -> bytes:
        return multisig_script(self.threshold, self.public_keys)

    @property
    def script_pubkey(self) -> bytes:
        return p2wsh(self.witness_script)


def _order(message: MultisigRedeemScript) -> KeyOrder:
    try:
        return KeyOrder(message.pubkeys_order or 0)
    except ValueError:
        raise data_error("Unknown order of keys") from None


def extended_key(node: HDNode, kind: NetworkKind) -> ExtendedPublicKey:
    return ExtendedPublicKey(
        kind=kind,
        depth=node.depth,
        parent_fingerprint=Fingerprint(node.fingerprint.to_bytes(4, "big")),
        child_number=node.child_num,
        chain_code=node.chain_code,
        public_key=node.public_key,
    )


def _derive(path: HDNodePath) -> bytes:
    # The kind is of no consequence: nothing is written out.
    key = extended_key(path.node, NetworkKind.MAINNET)
    if len(path.address_n) == 2:
        return key.derive_public_key(*path.address_n)
    return key.derive(DerivationPath(path.address_n)).public_key


def _identity(message: MultisigRedeemScript) -> bytes:
    nodes = [path.node for path in message.pubkeys]
    order = _order(message)
    if order is KeyOrder.LEXICOGRAPHIC:
        nodes.sort(key=lambda node: node.public_key)
    numbers = [message.m, len(nodes), order]
    for node in nodes:
        numbers += [node.depth, node.fingerprint, node.child_num]
    return sha256(
        b"".join(number.to_bytes(4, "big") for number in numbers)
        + b"".join(node.chain_code + node.public_key for node in nodes)
    )
