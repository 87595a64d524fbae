"""S18 to S22: devices that answer wrongly, are others, cannot be trusted for their nonces, or have a known
flaw.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from multisig import Psbt, sats
from tests.attacks.people import ALICE, BOB, MALLORY
from tests.attacks.recipes.scene import Named, Scene
from tests.support.wallets import ORDER, with_input, with_output

BAD, FOREIGN, OTHER, UNSIGNED = "bad-signature", "foreign-signature", "psbt-mismatch", "not-finalisable"


@dataclass(frozen=True)
class Answer(Named):
    """What a device gives back for the scene's honest spend. ``outcome``: the error's code, None where it is
    taken.
    """

    answer: Callable[[Scene], Psbt]
    outcome: str | None = None

    @cached_property
    def scene(self) -> Scene:
        return Scene(f"S19 {self.name}")


def _claims_more(scene: Scene) -> Psbt:
    """The right signatures, and beside them claims that would change what we show and store."""
    signed = ALICE.sign(scene.honest)
    lied = with_input(signed, 0, witness_utxo=scene.stated_coin(amount=sats(1)), sighash_type=2)
    return replace(lied, xpubs=())


def _by(key_of: Callable[[Scene], bytes], signature_of: Callable[[bytes], bytes]) -> Callable[[Scene], Psbt]:
    """Alice's answer with one signature, on the first input, changed."""

    def answer(scene: Scene) -> Psbt:
        signed = ALICE.sign(scene.honest)
        ((_, good),) = signed.inputs[0].partial_signatures.items()
        return with_input(signed, 0, partial_signatures={key_of(scene): signature_of(good)})

    return answer


def _own(scene: Scene) -> bytes:
    return next(iter(ALICE.sign(scene.honest).inputs[0].partial_signatures))


def _mallorys(_scene: Scene) -> bytes:
    return MALLORY.vault_key().xpub.derive_public_key(0, 0)


def _high_s(signature: bytes) -> bytes:
    """The other of the two signatures that consensus takes: who relays it can change the bytes."""
    length = signature[3]
    r, s = signature[4 : 4 + length], int.from_bytes(signature[6 + length : -1])
    high = (ORDER - s).to_bytes(33)
    body = b"\x02" + bytes((length,)) + r + b"\x02\x21" + high
    return b"\x30" + bytes((len(body),)) + body + signature[-1:]


ANSWERS = (
    Answer("our signatures, and nothing else", lambda s: ALICE.sign(s.honest)),
    Answer("our signatures, and claims that are not taken", _claims_more),
    Answer("a transaction that pays Mallory, signed", lambda s: ALICE.sign(with_output(s.honest, 0, script_pubkey=MALLORY.profile().script_pubkey(0, 0))), OTHER),
    Answer("a transaction with a larger fee, signed", lambda s: ALICE.sign(s.spend(fee=5_000)), OTHER),
    Answer("a transaction with another locktime, signed", lambda s: ALICE.sign(s.spend(locktime=9)), OTHER),
    Answer("a signature that leaves the outputs open", lambda s: ALICE.sign(s.honest, 0x02), BAD),
    Answer("a signature that leaves the inputs open", lambda s: ALICE.sign(s.honest, 0x81), BAD),
    Answer("our signature under Mallory's key", _by(_mallorys, lambda signature: signature), FOREIGN),
    Answer("another cosigner's signatures", lambda s: BOB.sign(s.honest), FOREIGN),
    Answer("a signature with a high S", _by(_own, _high_s), BAD),
    Answer("a signature with a byte changed", _by(_own, lambda s: s[:9] + bytes((s[9] ^ 1,)) + s[10:]), BAD),
    Answer("bytes that are no signature", _by(_own, lambda _s: b"\x30\x06\x02\x01\x01\x02\x01\x01\x01"), BAD),
    Answer("nothing signed", lambda s: s.honest, UNSIGNED),
    Answer("one of two inputs signed", lambda s: with_input(ALICE.sign(s.honest), 1, partial_signatures={}), UNSIGNED),
)  # fmt: skip


@dataclass(frozen=True)
class Copy(Named):
    """A copy of the scene's honest spend that Alice is given after she imported and signed it. ``outcome``: the error's
    code, None where she gives back the signatures of both.
    """

    copy: Callable[[Scene], Psbt]
    outcome: str | None = None

    @cached_property
    def scene(self) -> Scene:
        return Scene(f"S33 {self.name}")


def _bobs(change: Callable[[bytes], bytes]) -> Callable[[Scene], Psbt]:
    def copy(scene: Scene) -> Psbt:
        signed = BOB.sign(scene.honest)
        ((key, good),) = signed.inputs[0].partial_signatures.items()
        return with_input(signed, 0, partial_signatures={key: change(good)})

    return copy


NOT_KEPT = "refused-by-checks"
COPIES = (
    Copy("a colleague's signatures came with it", lambda s: BOB.sign(s.honest)),
    Copy("a colleague's and our own came with it", lambda s: BOB.sign(ALICE.sign(s.honest))),
    Copy("a colleague's, and nothing else that proves a coin", lambda s: with_input(BOB.sign(s.honest), 0, non_witness_utxo=None, derivations={})),
    Copy("a colleague's that leave the outputs open", lambda s: BOB.sign(s.honest, 0x02), NOT_KEPT),
    Copy("a colleague's with a byte changed", _bobs(lambda s: s[:9] + bytes((s[9] ^ 1,)) + s[10:]), NOT_KEPT),
    Copy("a colleague's with a high S", _bobs(_high_s), NOT_KEPT),
    Copy("Mallory's", lambda s: with_input(s.honest, 0, partial_signatures={_mallorys(s): b"\x30\x06\x02\x01\x01\x02\x01\x01\x01"}), NOT_KEPT),
)  # fmt: skip


@dataclass(frozen=True)
class Misbehaviour(Named):
    """A device that is another, or works wrongly. ``faults`` as ``Faults.parse`` takes them.

    ``holds``: whose keys it has; ``swaps``: it changes to those at this prompt (a played device only). ``outcome``: the code
    of the outcome, None where it signs; ``asks``: whether its person was asked.
    """

    holds: str = "alice"
    swaps: str | None = None
    faults: dict[str, Any] = field(default_factory=dict)
    outcome: str | None = None
    asks: bool = True


MISBEHAVIOURS = (
    Misbehaviour("the right keys"),
    Misbehaviour("another cosigner's keys", holds="bob", outcome="wrong-device", asks=False),
    Misbehaviour("a stranger's keys", holds="mallory", outcome="wrong-device", asks=False),
    Misbehaviour("our seed under another passphrase", holds="alice with a passphrase", outcome="wrong-device", asks=False),
    Misbehaviour("the passphrase is swapped while the person looks", holds="alice", swaps="alice with a passphrase", outcome="wrong-device"),
    Misbehaviour("a wrong signature on the first input", faults={"wrong_signatures": [0]}, outcome="bad-device-signature"),
    Misbehaviour("a wrong signature on the second input", faults={"wrong_signatures": [1]}, outcome="bad-device-signature"),
    Misbehaviour("no signature at all", faults={"missing_signatures": [0, 1]}, outcome="device-fault"),
    Misbehaviour("bytes that are no answer", faults={"garbage_at": "return"}, outcome="device-fault"),
)  # fmt: skip


@dataclass(frozen=True)
class Firmware(Named):
    """``flaws``: the advisories that are told of it; ``proves``: whether its nonces have the host's part (S20)."""

    family: str
    version: str | None
    flaws: tuple[str, ...] = ()
    proves: bool = False


FIRMWARE = (
    Firmware("a BitBox02 that proves its nonces", "bitbox02", "9.26.5", proves=True),
    Firmware("a Trezor's nonces are its own", "trezor", "2.12.4"),
    Firmware("a Ledger's nonces are its own", "ledger", "2.4.6"),
    Firmware("a Ledger that could be shown less than it signs", "ledger", "2.1.1", ("CVE-2023-7346",)),
    Firmware("a BitBox02 that could be shown a wrong fee", "bitbox02", "9.14.1", ("BITBOX02-9.15.0-FEE",), proves=True),
    Firmware("a Coldcard that signs what came after the screen", "coldcard", "5.6.0", ("COLDCARD-2026-08-STAGED-PSBT", "COLDCARD-2026-07-OLD-SEED")),
    Firmware("a Trezor that takes a multisig for another", "trezor", "2.10.9", ("TREZOR-2.11.0-MULTISIG", "TREZOR-2.12.2-EXTERNAL-INPUTS")),
)  # fmt: skip

# The man in the middle (S21), as `tests.conformance.coldcard_middle` names him; None: there is none.
LINKS = {
    "nobody in between": (None, None),
    "the device's own proof is passed on": ("PASS_ON", "device-fault"),
    "proven by another key under the device's name": ("SIGN", "device-fault"),
    "proven by another key that the handshake named": ("IMPERSONATE", "device-fault"),
    "another device in the place of ours": ("REPLACE", "wrong-device"),
}
