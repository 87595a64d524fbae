"""What the small device peers share: the keys of a seed, a quorum they were told of, and signatures over what HWI sends."""

from dataclasses import dataclass, field
from typing import Any

from firmware_bridge.port import Question
from firmware_bridge.virtual.seed import Seed
from multisig import Psbt


def sign_psbt(seed: Seed, psbt: Psbt) -> Psbt:
    """Sign every input that has a key of the seed; the peer believes the PSBT."""
    return psbt.with_signatures({index: _signatures(seed, psbt, index) for index in range(len(psbt.inputs))})


def _signatures(seed: Seed, psbt: Psbt, index: int) -> dict[bytes, bytes]:
    from multisig import SIGHASH_ALL, SighashCache, hash160, p2pkh

    item = psbt.inputs[index]
    spent = item.non_witness_utxo.outputs[psbt.tx.inputs[index].outpoint.vout]
    signatures = {}
    for key, origin in item.derivations.items():
        if origin.fingerprint == seed.fingerprint:
            code = item.witness_script if item.witness_script is not None else p2pkh(hash160(key))
            digest = SighashCache(psbt.tx).segwit_v0(index, code, spent.amount, SIGHASH_ALL)
            signatures[key] = seed.sign(origin.path, digest) + bytes((SIGHASH_ALL,))
    return signatures


@dataclass
class Person:
    """Who called a driver: what they were told, and their answers to questions."""

    answers: dict[Question, str | None] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    asked: list[Question] = field(default_factory=list)

    def tell(self, step: str, text: str, done: int | None = None, total: int | None = None) -> None:
        self.told.append(step)
        self.texts.append(text)

    def ask(self, question: Question) -> str | None:
        self.asked.append(question)
        return self.answers.get(question)


def policy_args(policy: Any, name: str = "") -> dict[str, Any]:
    """A policy as the bridge writes it for a worker."""
    from firmware_bridge import arguments

    return arguments.policy(policy, None, name)
