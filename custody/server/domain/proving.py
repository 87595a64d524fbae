"""What a proof file proves by itself, and what only the chain can tell (BIP-322)."""

from collections.abc import Mapping
from dataclasses import dataclass

from custody.schemas.proofs import CoinOfProof, ProofFile
from multisig import MultisigError, Network, TxOut, decode_address, sats
from multisig.bip322 import Consensus, NamedCoin, State, Verdict, verify_message


@dataclass(frozen=True)
class Judged:
    """``verdicts``: by address, in the file's order. ``signed``: the outpoints that a signature itself names.

    ``problems``: why it proves nothing, or less than it says. Whether the coins exist is not known here.
    """

    verdicts: Mapping[str, Verdict]
    signed: frozenset[str]
    problems: tuple[str, ...]

    @property
    def state(self) -> State:
        states = {verdict.state for verdict in self.verdicts.values()}
        if self.problems or State.INVALID in states:
            return State.INVALID
        return State.INCONCLUSIVE if State.INCONCLUSIVE in states else State.VALID


def judge(file: ProofFile, consensus: Consensus) -> Judged:
    """Raises nothing: what is wrong is said."""
    network = Network(file.network)
    verdicts = {
        one.address: _verdict(file.message, one.address, one.signature, network, consensus)
        for one in file.signatures
    }
    named = {str(coin.outpoint): coin for verdict in verdicts.values() for coin in verdict.coins}
    return Judged(verdicts, frozenset(named), (*_coins(file, verdicts, named, network),))


def _verdict(message: str, address: str, signature: str, network: Network, consensus: Consensus) -> Verdict:
    try:
        challenge = decode_address(address, network)
    except MultisigError as error:
        return Verdict(state=State.INVALID, reason=str(error))
    return verify_message(message, challenge, signature, consensus)


def _coins(
    file: ProofFile, verdicts: Mapping[str, Verdict], named: Mapping[str, NamedCoin], network: Network
) -> list[str]:
    """A coin belongs to a file whose signature spends it, or whose signing address holds it."""
    problems = []
    for coin in file.coins:
        signed = named.get(coin.outpoint)
        if signed is None and coin.address not in verdicts:
            problems.append(f"No signature speaks for the coin {coin.outpoint}.")
        elif signed is not None and signed.output != _claimed(coin, network):
            problems.append(f"The coin {coin.outpoint} was signed with another amount or address.")
    told = {coin.outpoint for coin in file.coins}
    problems += [f"The coin {one} was signed for and is not listed." for one in named if one not in told]
    return problems


def _claimed(coin: CoinOfProof, network: Network) -> TxOut | None:
    try:
        return TxOut(sats(coin.amount_sats), decode_address(coin.address, network))
    except MultisigError:
        return None
