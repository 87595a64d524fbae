"""The attacks by their numbers, each beside its honest neighbours. What is expected is written here by hand.

Coins and payees follow from a recipe's name, so that a new one changes nothing else.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tests.attacks.recipes import change, claims, coins, later, outputs, quorum, tokens
from tests.attacks.recipes.absurd import S23
from tests.attacks.recipes.scene import Recipe

# The other numbers are no single transaction. Behind each, where it was seen; else on this project.
PROPOSALS: Mapping[str, Sequence[Recipe]] = MappingProxyType(
    {
        "S1": change.S1,  # Coldcard test_change_fraud_*, Trezor test_attack_change_outputs
        "S2": change.S2,  # Trezor test_multisig_mismatch_multisig_change
        "S3": coins.S3,  # Trezor test_attack_mixed_inputs
        "S4": coins.S4,  # CVE-2020-14199
        "S5": coins.S5,  # BIP-174; Trezor test_invalid_prev_hash_attack
        "S6": (*claims.S6, *tokens.TWICE),  # Bitcoin Optech #101
        "S7": outputs.S7,  # Trezor test_fee_high_hardfail
        "S8": coins.S8,  # Coldcard change log
        "S9": change.S9,  # BitBox security notes
        "S10": outputs.S10,  # Trezor test_op_return_trailing_data_not_hidden
        "S11": claims.S11,  # Trezor approvers.py
        "S12": (*claims.S12, outputs.NO_TOKENS_DATA, *claims.FORWARDS, *tokens.TOKENS),  # BitGo TxIntentMismatchError
        "S13": (*claims.S13, *tokens.PAGE),  # Bybit and Safe, 2025
        "S14": claims.S14,  # Ledger LSB-014
        "S15": quorum.S15,  # Coldcard before 3.2.1
        "S16": quorum.S16,  # BIP-129
        "S17": quorum.S17,  # BIP-388 invalid vectors
        "S19": coins.S19,  # BIP-174
        "S23": S23,
        "S24": claims.S24,
        "S25": claims.S25,
        "S26": claims.S26,
        "S27": (*claims.S27, *tokens.BY_OTHERS),
        "S28": tokens.S28,  # Trezor One 1.14.1, Trezor Model T 2.3.6
        "S29": later.S29,
        "S30": later.S30,
        "S32": coins.S32,  # Electrum 10065
        "S37": claims.S37,  # Unstoppable 5712, Taho 3769
    }
)  # fmt: skip
