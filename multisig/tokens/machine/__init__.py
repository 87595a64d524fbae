"""The token state machine: the state of every token as a pure function of ordered, confirmed transactions
(CPT-1).
"""

from multisig.tokens.machine.blocks import BlockOutcome as BlockOutcome
from multisig.tokens.machine.blocks import BytecodeOf as BytecodeOf
from multisig.tokens.machine.blocks import TokenBlock as TokenBlock
from multisig.tokens.machine.blocks import TokenOutcome as TokenOutcome
from multisig.tokens.machine.blocks import TokenTransaction as TokenTransaction
from multisig.tokens.machine.blocks import judge as judge
from multisig.tokens.machine.blocks import judge_block as judge_block
from multisig.tokens.machine.blocks import simulate as simulate
from multisig.tokens.machine.rules import TokenFailure as TokenFailure
from multisig.tokens.machine.state import GENESIS_STATE as GENESIS_STATE
from multisig.tokens.machine.state import Cell as Cell
from multisig.tokens.machine.state import Effect as Effect
from multisig.tokens.machine.state import StateView as StateView
from multisig.tokens.machine.state import TokenCells as TokenCells
from multisig.tokens.machine.state import Value as Value
from multisig.tokens.machine.state import state_hash as state_hash
