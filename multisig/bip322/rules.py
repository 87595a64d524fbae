"""The rules that BIP-322 adds to consensus ("Verification Process").

A consensus engine has already accepted the input. What remains are encodings and a small interpreter of
scripts. A script with an operation that the interpreter does not support makes the proof inconclusive.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from multisig.ecdsa import signature_fault, verify_ecdsa
from multisig.hashes import hash160, sha256
from multisig.script import ScriptKind, classify, parse_witness_output
from multisig.transaction import SIGHASH_ALL, SighashCache, Transaction, TxOut


class BrokenRule(Exception):
    """A required rule is broken: the proof is invalid."""


class Inconclusive(Exception):
    """An upgradable rule is broken, or a script is not supported: the proof is inconclusive."""


class _Op(IntEnum):
    """The operations that are supported, beside pushes (Bitcoin Core, script/script.h)."""

    PUSHDATA1 = 0x4C
    PUSHDATA4 = 0x4E
    MINUS_1 = 0x4F
    ONE = 0x51
    SIXTEEN = 0x60
    NOP = 0x61
    IF = 0x63
    NOTIF = 0x64
    ELSE = 0x67
    ENDIF = 0x68
    VERIFY = 0x69
    DROP = 0x75
    DUP = 0x76
    SIZE = 0x82
    EQUAL = 0x87
    EQUALVERIFY = 0x88
    SHA256 = 0xA8
    HASH160 = 0xA9
    CODESEPARATOR = 0xAB
    CHECKSIG = 0xAC
    CHECKSIGVERIFY = 0xAD
    CHECKMULTISIG = 0xAE
    CHECKMULTISIGVERIFY = 0xAF
    CHECKLOCKTIMEVERIFY = 0xB1
    CHECKSEQUENCEVERIFY = 0xB2


_BRANCHING: Final = frozenset({_Op.IF, _Op.NOTIF, _Op.ELSE, _Op.ENDIF})
# How many bytes of length stand behind PUSHDATA1, 2 and 4.
_WIDTHS: Final = (1, 2, 4)
_LEAF_VERSION: Final = 0xC0
_ANNEX: Final = 0x50
_TRUE: Final = b"\x01"

Operation = tuple[int, bytes | None]


def check_input(tx: Transaction, index: int, spent: TxOut, cache: SighashCache) -> None:
    """Raises BrokenRule or Inconclusive. Consensus has already accepted the input."""
    kind, txin = classify(spent.script_pubkey), tx.inputs[index]
    if kind is ScriptKind.P2PKH:
        _key_spend(_pushes(txin.script_sig))
    elif kind is ScriptKind.P2SH:
        *stack, redeem = _pushes(txin.script_sig)
        if parse_witness_output(redeem) is not None:
            _witness(tx, index, TxOut(spent.amount, redeem), cache)
        else:
            _legacy_multisig(stack, redeem)
    elif parse_witness_output(spent.script_pubkey) is not None:
        _witness(tx, index, spent, cache)
    else:
        raise Inconclusive(f"The script of input {index} is of no known kind.")


def _witness(tx: Transaction, index: int, spent: TxOut, cache: SighashCache) -> None:
    stack, kind = tx.inputs[index].witness, classify(spent.script_pubkey)
    if kind is ScriptKind.P2WPKH:
        _key_spend(stack)
    elif kind is ScriptKind.P2WSH:
        script = stack[-1]
        digest = cache.segwit_v0(index, script, spent.amount)
        _Interpreter(lambda key, signature: verify_ecdsa(key, digest, signature[:-1])).run(script, stack[:-1])
    elif kind is ScriptKind.P2TR:
        _taproot(stack)
    else:
        raise Inconclusive(f"Input {index} has a witness version that has no rules yet.")


def _taproot(stack: Sequence[bytes]) -> None:
    if len(stack) > 1 and stack[-1][:1] == bytes((_ANNEX,)):
        raise Inconclusive("The witness has an annex, which has no rules yet.")
    if len(stack) == 1:
        _require_schnorr(stack[0])
        return
    *items, script, control = stack
    if control[0] & 0xFE != _LEAF_VERSION:
        raise Inconclusive("The script has a leaf version that has no rules yet.")
    # Consensus takes no signature there that is not empty and does not verify (BIP-342).
    _Interpreter(lambda _key, _signature: True, tapscript=True).run(script, items)


def _key_spend(stack: Sequence[bytes]) -> None:
    if len(stack) != 2:
        raise BrokenRule("Something is left on the stack.")
    _require_ecdsa(stack[0])


def _legacy_multisig(stack: Sequence[bytes], redeem: bytes) -> None:
    operations = list(operations_of(redeem))
    keys = operations[1:-2]
    plain = (
        len(operations) > 3
        and operations[-1][0] == _Op.CHECKMULTISIG
        and all(data is not None and len(data) in {33, 65} for _, data in keys)
        and len(stack) == 1 + _number(operations[0])
    )
    if not plain:
        raise Inconclusive("The redeem script is not supported.")
    for signature in stack[1:]:
        _require_ecdsa(signature)


def _require_ecdsa(signature: bytes) -> None:
    fault = signature_fault(signature[:-1])
    if fault is not None:
        raise BrokenRule(f"A signature is not in the only form allowed: {fault}.")
    if signature[-1] != SIGHASH_ALL:
        raise BrokenRule("A signature does not cover the whole transaction (sighash is not ALL).")


def _require_schnorr(signature: bytes) -> None:
    # 64 bytes are SIGHASH_DEFAULT, which covers as much (BIP-341).
    if len(signature) != 64 and signature[64:] != bytes((SIGHASH_ALL,)):
        raise BrokenRule("A signature does not cover the whole transaction (sighash is not ALL).")


def _pushes(script: bytes) -> list[bytes]:
    pushes = []
    for code, data in operations_of(script):
        if data is None:
            raise BrokenRule(f"A script that may only push has the operation 0x{code:02x}.")
        pushes.append(data)
    if not pushes:
        raise BrokenRule("A script pushes nothing.")
    return pushes


def operations_of(script: bytes) -> Iterator[Operation]:
    """Each operation and, where it pushes, what. Raises BrokenRule (MINIMALDATA, CODESEPARATOR)."""
    place = 0
    while place < len(script):
        code, place = script[place], place + 1
        if 0 < code <= _Op.PUSHDATA4:
            length = code
            if code >= _Op.PUSHDATA1:
                width = _WIDTHS[code - _Op.PUSHDATA1]
                length = int.from_bytes(script[place : place + width], "little")
                place += width
            data = script[place : place + length]
            place += length
            if place > len(script) or code != _shortest(data):
                raise BrokenRule("A push is not in its shortest form.")
            yield code, data
        elif code == 0:
            yield code, b""
        elif code == _Op.MINUS_1:
            yield code, b"\x81"
        elif _Op.ONE <= code <= _Op.SIXTEEN:
            yield code, bytes((code - _Op.ONE + 1,))
        elif code == _Op.CODESEPARATOR:
            raise BrokenRule("A script has OP_CODESEPARATOR.")
        else:
            yield code, None


def _shortest(data: bytes) -> int:
    """The code of the push that this data has to have (BIP-62, rule 3)."""
    if not data:
        return 0
    if len(data) == 1 and 1 <= data[0] <= 16:
        return _Op.ONE + data[0] - 1
    if data == b"\x81":
        return _Op.MINUS_1
    if len(data) < _Op.PUSHDATA1:
        return len(data)
    return _Op.PUSHDATA1 if len(data) < 0x100 else _Op.PUSHDATA1 + 1


def _number(operation: Operation) -> int:
    code, data = operation
    return code - _Op.ONE + 1 if data is not None and _Op.ONE <= code <= _Op.SIXTEEN else 0


@dataclass
class _Interpreter:
    """Runs a witness script. `verify` says whether a signature is the key's."""

    verify: Callable[[bytes, bytes], bool]
    tapscript: bool = False
    stack: list[bytes] = field(default_factory=list)
    branches: list[bool] = field(default_factory=list)

    def run(self, script: bytes, items: Sequence[bytes]) -> None:
        self.stack = list(items)
        try:
            self._run_operations(list(operations_of(script)))
        except IndexError as error:
            raise Inconclusive("A script takes more from the stack than is there.") from error
        if len(self.stack) != 1:
            raise BrokenRule("Something is left on the stack.")

    def _run_operations(self, operations: Sequence[Operation]) -> None:
        for code, data in operations:
            if code in _BRANCHING:
                self._run_branch(code)
            elif code == _Op.NOP or not all(self.branches):
                continue
            elif data is not None:
                self.stack.append(data)
            else:
                self._run_operation(code)

    def _run_branch(self, code: int) -> None:
        if code == _Op.ENDIF:
            self.branches.pop()
        elif code == _Op.ELSE:
            self.branches[-1] = not self.branches[-1]
        elif not all(self.branches):
            self.branches.append(False)
        else:
            chosen = self.stack.pop()
            if chosen not in {b"", _TRUE}:
                raise BrokenRule("A branch is chosen by something else than 1 and nothing.")
            self.branches.append((chosen == _TRUE) == (code == _Op.IF))

    def _run_operation(self, code: int) -> None:
        match code:
            case _Op.VERIFY | _Op.DROP:
                self.stack.pop()
            case _Op.DUP:
                self.stack.append(self.stack[-1])
            case _Op.SIZE:
                self.stack.append(_script_number(len(self.stack[-1])))
            case _Op.EQUAL | _Op.EQUALVERIFY:
                self._push_result(self.stack.pop() == self.stack.pop(), verify=code == _Op.EQUALVERIFY)
            case _Op.SHA256 | _Op.HASH160:
                hashed = sha256 if code == _Op.SHA256 else hash160
                self.stack.append(hashed(self.stack.pop()))
            case _Op.CHECKSIG | _Op.CHECKSIGVERIFY:
                key, signature = self.stack.pop(), self.stack.pop()
                self._push_result(self._checksig(key, signature), verify=code == _Op.CHECKSIGVERIFY)
            case _Op.CHECKMULTISIG | _Op.CHECKMULTISIGVERIFY if not self.tapscript:
                self._push_result(self._checkmultisig(), verify=code == _Op.CHECKMULTISIGVERIFY)
            case _Op.CHECKLOCKTIMEVERIFY | _Op.CHECKSEQUENCEVERIFY:
                _require_shortest_number(self.stack[-1])
            case _:
                raise Inconclusive(f"A script has the operation 0x{code:02x}, which is not supported here.")

    def _push_result(self, outcome: bool, *, verify: bool) -> None:
        if not verify:
            self.stack.append(_TRUE if outcome else b"")

    def _checksig(self, key: bytes, signature: bytes) -> bool:
        if len(key) != (32 if self.tapscript else 33):
            raise Inconclusive("A script has a key of a kind that is not supported here.")
        if not signature:
            return False
        if self.tapscript:
            _require_schnorr(signature)
            return True
        _require_ecdsa(signature)
        if not self.verify(key, signature):
            raise BrokenRule("A signature that does not verify is not empty.")
        return True

    def _checkmultisig(self) -> bool:
        keys = [self.stack.pop() for _ in range(_count(self.stack.pop()))]
        signatures = [self.stack.pop() for _ in range(_count(self.stack.pop()))]
        self.stack.pop()
        if any(len(key) != 33 for key in keys):
            raise Inconclusive("A script has a key of a kind that is not supported here.")
        given = [signature for signature in signatures if signature]
        for signature in given:
            _require_ecdsa(signature)
        left = iter(keys)
        matched = all(any(self.verify(key, signature) for key in left) for signature in signatures)
        if given and not matched:
            raise BrokenRule("A signature that does not verify is not empty.")
        return matched


def _count(item: bytes) -> int:
    _require_shortest_number(item)
    return int.from_bytes(item, "little")


def _script_number(number: int) -> bytes:
    return b"" if not number else number.to_bytes(number.bit_length() // 8 + 1, "little")


def _require_shortest_number(item: bytes) -> None:
    if item and not item[-1] & 0x7F and (len(item) == 1 or not item[-2] & 0x80):
        raise BrokenRule("A number is not in its shortest form.")
