"""How each file of the corpus is made: recipes by number. What is expected is written here by hand.

To add an attack: a `Recipe` beside its honest neighbour, then `python -m tests.attacks.make`; a guard that no
other attack has goes into `tests.attacks.guards`. Coins and payees follow from a recipe's name, so that
nothing else changes.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.attacks.recipes import change, claims, coins, later, outputs, quorum, tokens
from tests.attacks.recipes.absurd import S23
from tests.attacks.recipes.scene import Recipe

# Number, or the fault's name: what it is, and where it was seen.
ATTACKS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "S1": ("fake change: a wrong path, address or witness script", "Coldcard test_change_fraud_*, Trezor test_attack_change_outputs"),
        "S2": ("change to another quorum or policy", "Trezor test_multisig_mismatch_multisig_change"),
        "S3": ("inputs of another wallet mixed in", "Trezor test_attack_mixed_inputs"),
        "S4": ("an understated amount", "CVE-2020-14199"),
        "S5": ("a false or missing previous transaction", "BIP-174; Trezor test_invalid_prev_hash_attack"),
        "S6": ("a payment made twice", "Bitcoin Optech #101"),
        "S7": ("an absurd or negative fee", "Trezor test_fee_high_hardfail"),
        "S8": ("a signature that leaves part of the transaction open", "Coldcard change log"),
        "S9": ("ransom by a place where nobody looks", "BitBox security notes"),
        "S10": ("hidden data, unknown output scripts", "Trezor test_op_return_trailing_data_not_hidden"),
        "S11": ("a fee bump that raises anything but the fee", "Trezor approvers.py"),
        "S12": ("outputs other than the recorded intent", "BitGo TxIntentMismatchError"),
        "S13": ("the platform's page lies", "Bybit and Safe, 2025"),
        "S14": ("one network taken for another", "Ledger LSB-014"),
        "S15": ("a substituted key, a quorum without us", "Coldcard before 3.2.1"),
        "S16": ("a vault that changed after it was pinned", "BIP-129"),
        "S17": ("repeated keys and fingerprints, keys out of order", "BIP-388 invalid vectors"),
        "S18": ("a passphrase swapped by the host", "Trezor and KeepKey, 2020"),
        "S19": ("the device's PSBT is not ours", "BIP-174"),
        "S20": ("a key leaks through nonces", "Dark Skippy, 2024"),
        "S21": ("somebody on the cable", "Coldcard check_mitm, BitBox02 Noise pairing"),
        "S22": ("firmware with a known flaw", "the makers' advisories"),
        "S23": ("a PSBT of absurd size, depth or form", "fuzzing"),
        "S24": ("a proposal altered after the person looked", "this project"),
        "S25": ("two proposals that spend the same coins", "this project"),
        "S26": ("the same quorum under another id", "this project"),
        "S27": ("the same payment given to signers who share nobody", "this project"),
        "S28": ("data that the device's screen cuts off", "Trezor One 1.14.1, Trezor Model T 2.3.6"),
        "S29": ("change at an index where no wallet looks", "this project"),
        "S30": ("a relative lock of months", "this project"),
        "S32": ("figures that rest on an amount that is not proven", "this project; Electrum 10065"),
        "S33": ("signatures that came are dropped from the answer", "this project; HWI 222, BTCPay 6895"),
        "F-bomb": ("an answer that grows while it is read", "this project"),
        "F-number": ("a number of an answer that no column holds", "fuzzing"),
    }
)  # fmt: skip

PROPOSALS: Mapping[str, Sequence[Recipe]] = MappingProxyType(
    {
        "S1": change.S1,
        "S2": change.S2,
        "S3": coins.S3,
        "S4": coins.S4,
        "S5": coins.S5,
        "S6": (*claims.S6, *tokens.TWICE),
        "S7": outputs.S7,
        "S8": coins.S8,
        "S9": change.S9,
        "S10": outputs.S10,
        "S11": claims.S11,
        "S12": (*claims.S12, outputs.NO_TOKENS_DATA, *claims.FORWARDS, *tokens.TOKENS),
        "S13": (*claims.S13, *tokens.PAGE),
        "S14": claims.S14,
        "S15": quorum.S15,
        "S16": quorum.S16,
        "S17": quorum.S17,
        "S19": coins.S19,
        "S23": S23,
        "S24": claims.S24,
        "S25": claims.S25,
        "S26": claims.S26,
        "S27": (*claims.S27, *tokens.BY_OTHERS),
        "S28": tokens.S28,
        "S29": later.S29,
        "S30": later.S30,
        "S32": coins.S32,
    }
)
