"""How the app describes an OP_RETURN output: every push in hexadecimal, and nothing that could be read in two ways."""

from multisig.wire import Reader, WireError

MAX_PUSHES = 5
"""The app's limit (common/script.c)."""

_OP_PUSHDATA1, _OP_1NEGATE, _OP_1, _OP_16 = 0x4C, 0x4F, 0x51, 0x60
_OP_RETURN = 0x6A


def describe_op_return(script: bytes) -> str | None:
    """Such as `OP_RETURN 0xab12 5`; None for a script of another kind, or one that the app does not sign."""
    if script[:1] != bytes((_OP_RETURN,)):
        return None
    reader = Reader(script)
    reader.take(1)
    words = ["OP_RETURN"]
    try:
        while reader.remaining:
            words.append(_push(reader))
    except WireError:
        return None
    return " ".join(words) if len(words) <= 1 + MAX_PUSHES else None


def _push(reader: Reader) -> str:
    opcode = reader.uint(1)
    if opcode == 0:
        return "0"
    if opcode < _OP_PUSHDATA1:
        return _data(reader, opcode)
    if opcode == _OP_PUSHDATA1:
        length = reader.uint(1)
        if length < _OP_PUSHDATA1:
            raise WireError("a push is not in its shortest form")
        return _data(reader, length)
    if opcode == _OP_1NEGATE:
        return "-1"
    if _OP_1 <= opcode <= _OP_16:
        return str(opcode - _OP_1 + 1)
    raise WireError("no push")


def _data(reader: Reader, length: int) -> str:
    data = reader.take(length)
    if length == 1 and (data[0] == 0x81 or 1 <= data[0] <= 16):
        raise WireError("a push is not in its shortest form")
    return "0x" + data.hex()
