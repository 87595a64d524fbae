"""What the signatures of a proof file prove, and which coins only the chain can confirm (BIP-322)."""

from collections.abc import Mapping
from dataclasses import dataclass

from custody.schemas.proofs import CoinOfProof, ProofFile, block_named
from multisig import MultisigError, Network, TxOut, decode_address, sats
from multisig.bip322 import Consensus, NamedCoin, ProofState, ProofVerdict, verify_message


@dataclass(frozen=True)
class CheckedProof:
    """``verdicts``: by address, in the file's order. ``signed``: the coins that a signature commits to;
    ``unsigned``: those that the file places at an address that signed, which only the chain can confirm.
    ``problems``: why the file proves nothing, or less than it claims. Whether the coins exist is not checked
    here.
    """

    verdicts: Mapping[str, ProofVerdict]
    signed: tuple[CoinOfProof, ...]
    unsigned: tuple[CoinOfProof, ...]
    problems: tuple[str, ...]

    def state(self, *, asked_chain: bool) -> ProofState:
        """``asked_chain``: whether the chain is asked for the ``unsigned`` coins."""
        states = {verdict.state for verdict in self.verdicts.values()}
        if self.problems or ProofState.INVALID in states:
            return ProofState.INVALID
        unknown = ProofState.INCONCLUSIVE in states or (self.unsigned and not asked_chain)
        return ProofState.INCONCLUSIVE if unknown else ProofState.VALID


def judge(file: ProofFile, consensus: Consensus) -> CheckedProof:
    """Raises nothing: faults become ``problems`` and verdicts."""
    network = Network(file.network)
    verdicts = {
        one.address: _verdict(file.message, one.address, one.signature, network, consensus)
        for one in file.signatures
    }
    named = {str(coin.outpoint): coin for verdict in verdicts.values() for coin in verdict.coins}
    signed = tuple(coin for coin in file.coins if coin.outpoint in named)
    unsigned = tuple(coin for coin in file.coins if coin.outpoint not in named)
    problems = (*_block(file), *_coins(file, verdicts, named, network))
    return CheckedProof(verdicts, signed, unsigned, problems)


def _block(file: ProofFile) -> list[str]:
    """The file's block must be the one in the message, so that an old proof cannot pass for a new one."""
    if (block_named(file.message) or (None, None)) == (file.height, file.block_hash):
        return []
    return ["The file states another block than the message that was signed."]


def _verdict(
    message: str, address: str, signature: str, network: Network, consensus: Consensus
) -> ProofVerdict:
    try:
        challenge = decode_address(address, network)
    except MultisigError as error:
        return ProofVerdict(state=ProofState.INVALID, reason=str(error))
    return verify_message(message, challenge, signature, consensus)


def _coins(
    file: ProofFile, verdicts: Mapping[str, ProofVerdict], named: Mapping[str, NamedCoin], network: Network
) -> list[str]:
    """A coin must be spent by a signature, with its amount and address, or be at an address that signed."""
    problems = []
    for coin in file.coins:
        signed = named.get(coin.outpoint)
        if signed is None and coin.address not in verdicts:
            problems.append(f"No signature speaks for the coin {coin.outpoint}.")
        elif signed is not None and signed.output != _claimed(coin, network):
            problems.append(f"The coin {coin.outpoint} was signed with another amount or address.")
    listed = {coin.outpoint for coin in file.coins}
    problems += [f"The coin {one} was signed for and is not listed." for one in named if one not in listed]
    return problems


def _claimed(coin: CoinOfProof, network: Network) -> TxOut | None:
    try:
        return TxOut(sats(coin.amount_sats), decode_address(coin.address, network))
    except MultisigError:
        return None
