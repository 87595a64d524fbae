"""The token state machine: the state of every token as a pure function of ordered, confirmed transactions
(CPT-1).
"""

from multisig.tokens.machine.blocks import (
    BlockOutcome,
    BytecodeOf,
    TokenBlock,
    TokenOutcome,
    TokenTransaction,
    judge,
    judge_block,
    simulate,
)
from multisig.tokens.machine.rules import TokenFailure
from multisig.tokens.machine.state import (
    GENESIS_STATE,
    Cell,
    Effect,
    StateView,
    TokenCells,
    Value,
    state_hash,
)

__all__ = [
    "GENESIS_STATE",
    "BlockOutcome",
    "BytecodeOf",
    "Cell",
    "Effect",
    "StateView",
    "TokenBlock",
    "TokenCells",
    "TokenFailure",
    "TokenOutcome",
    "TokenTransaction",
    "Value",
    "judge",
    "judge_block",
    "simulate",
    "state_hash",
]
