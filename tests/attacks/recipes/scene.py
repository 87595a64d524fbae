"""What every recipe begins with: an honest spend of its own coins,
and what the platform says about a PSBT.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from multisig import (
    CHANGE,
    ChangeTo,
    CoinToSpend,
    DerivationPath,
    KeyOrigin,
    Policy,
    Psbt,
    PsbtOutput,
    Transaction,
    TxOut,
    Vault,
    build_psbt,
    encode_address,
    parse_op_return,
    sats,
)
from tests.attacks.people import VAULT
from tests.conformance.rigs import NETWORK
from tests.support.wallets import Holder, fund, pay, with_inputs, with_output, with_outputs

Origins = Mapping[bytes, KeyOrigin]
PAYMENT, BACK = 0, 1
COIN, PAID, FEE = 100_000, 50_000, 1_000
CHANGE_INDEX = 7


class Scene:
    """Two coins of the vault, one payment (output 0), change (output 1). Each name has coins and a payee of
    its own.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def coin(self, index: int, policy: Policy = VAULT, amount: int = COIN) -> CoinToSpend:
        salt = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4])
        return fund(policy, amount, index=index, salt=salt)

    @cached_property
    def payment(self) -> TxOut:
        return pay(PAID, self.name)

    def spend(self, *, fee: int = FEE, paid: int = PAID, locktime: int = 0, version: int = 2) -> Psbt:
        outputs = [replace(self.payment, amount=sats(paid)), _back(2 * COIN - paid - fee)]
        return build_psbt(VAULT, [self.coin(0), self.coin(1)], outputs, locktime, version=version)

    @cached_property
    def honest(self) -> Psbt:
        return self.spend()

    def out(self, **fields: Any) -> Psbt:
        """Something else in the place of the change."""
        return with_output(self.honest, BACK, **fields)

    def paying(self, script: bytes) -> Psbt:
        return with_output(self.honest, PAYMENT, script_pubkey=script)

    def with_data(self, *scripts: bytes, amount: int = 0) -> Psbt:
        extra = [PsbtOutput(amount=sats(amount), script_pubkey=script) for script in scripts]
        return with_outputs(self.honest, *self.honest.outputs, *extra)

    def with_input_of(self, policy: Policy) -> Psbt:
        """The second input as another policy's own wallet would have prepared it."""
        stranger = build_psbt(policy, [self.coin(3, policy)], [pay(90_000, self.name)], 0)
        return with_inputs(self.honest, self.honest.inputs[0], stranger.inputs[0])

    @property
    def previous(self) -> Transaction:
        """What made the first coin."""
        found = self.honest.inputs[0].non_witness_utxo
        assert found is not None
        return found

    def stated_coin(self, **fields: Any) -> TxOut:
        """The first coin, with fields changed as an attacker would."""
        return replace(self.previous.outputs[1], **fields)

    @property
    def origins_of_change(self) -> dict[bytes, KeyOrigin]:
        return dict(self.honest.outputs[BACK].derivations)


def _back(amount: int) -> ChangeTo:
    return ChangeTo(sats(amount), CHANGE, CHANGE_INDEX)


def moved(origins: Origins, *last: int) -> dict[bytes, KeyOrigin]:
    """The origins with the last levels of each path replaced."""
    return {
        key: KeyOrigin(origin.fingerprint, DerivationPath((*origin.path.indexes[: -len(last)], *last)))
        for key, origin in origins.items()
    }


def change_to(policy: Policy, chain: int = CHANGE, index: int = CHANGE_INDEX) -> dict[str, Any]:
    """All that a PSBT says about an output to this policy."""
    return {
        "script_pubkey": policy.script_pubkey(chain, index),
        "witness_script": policy.witness_script(chain, index) if isinstance(policy, Vault) else None,
        "derivations": policy.derivations(chain, index),
    }


@dataclass(frozen=True)
class Named:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Neighbour:
    """Another proposal that is known already; ``signed`` here, or not. Its id is "other-0" and so on, in
    order.

    ``tells``: in what the platform's story of it differs from that of a plain payment.
    """

    psbt: Psbt
    signed: bool
    state: str
    tells: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One proposal of the corpus. What is expected is written down by hand, never computed.

    ``findings``: what the inspection refuses, with the place. ``checks``: what else signerd refuses.
    ``held``, ``warned``: what must be acknowledged, and what is only shown. ``handover``: what stands between
    it and a device were signerd not there: "refused", or "clean" where what is handed over says nothing but
    the truth. ``named``: the outputs that the platform names as payments; a hostile platform names
    whatever makes its story whole, and so does this one. ``says``: in what its story differs from the
    transaction; ``tells``: the same where it follows from the scene, as all that is said of a token;
    ``around``: in what this machine's knowledge differs. ``forward``: the coins are those of this person's
    own profile. ``later``: what the platform shows under the same id after the person has looked.
    """

    name: str
    psbt: Callable[[Scene], Psbt] = lambda scene: scene.honest
    honest: bool = False
    findings: Sequence[tuple[str, str]] = ()
    checks: Sequence[str] = ()
    held: Sequence[str] = ()
    warned: Sequence[str] = ()
    handover: str = "clean"
    named: Sequence[int] | None = None
    says: Mapping[str, Any] = field(default_factory=dict)
    tells: Callable[[Scene], Mapping[str, Any]] = lambda _scene: {}
    around: Mapping[str, Any] = field(default_factory=dict)
    neighbours: Callable[[Scene], Sequence[Neighbour]] | None = None
    later: Callable[[Scene], Psbt] | None = None
    forward: Holder | None = None


def story(psbt: Psbt, named: Sequence[int] | None = None) -> dict[str, Any]:
    """What the platform records of a proposal, as the author of the PSBT would want it."""
    back = VAULT.script_pubkey(CHANGE, CHANGE_INDEX)
    scripts = [output.script_pubkey for output in psbt.outputs]
    data = [found for found in map(parse_op_return, scripts) if found is not None]
    if named is None:
        named = [i for i, s in enumerate(scripts) if s != back and parse_op_return(s) is None]
    return {
        "recipients": [encode_address(scripts[index], NETWORK) or "" for index in named],
        "amounts": [int(psbt.outputs[index].amount) for index in named],
        "op_return": "0x" + data[0].hex() if data else None,
        "fee": _held(psbt) - sum(output.amount for output in psbt.outputs),
        "txid_expected": psbt.tx.txid,
    }


def _held(psbt: Psbt) -> int:
    """What the coins hold, as far as anything in the PSBT says so."""
    total = 0
    for item in psbt.inputs:
        previous, vout = item.non_witness_utxo, item.outpoint.vout
        proven = previous is not None and previous.txid == item.outpoint.txid and vout < len(previous.outputs)
        coin = previous.outputs[vout] if proven and previous is not None else item.witness_utxo
        total += 0 if coin is None else coin.amount
    return total
