"""Who holds a token: an output script of one of five kinds, as one byte and its 20 or 32 bytes of hash or key."""

from collections.abc import Callable
from dataclasses import dataclass

from multisig.errors import InvalidToken
from multisig.script import ScriptKind, classify, p2pkh, p2sh, p2tr, witness_output
from multisig.wire import Reader, WireError


@dataclass(frozen=True, slots=True)
class _Form:
    """`start` is how many bytes of the script stand before its hash or key."""

    kind: ScriptKind
    start: int
    length: int
    script: Callable[[bytes], bytes]

    def program(self, script: bytes) -> bytes:
        return script[self.start : self.start + self.length]


def _witness_v0(program: bytes) -> bytes:
    return witness_output(0, program)


# The index is the byte on chain; it never changes. The kinds that a vault or a profile has come first (ADR 11).
_FORMS = (
    _Form(ScriptKind.P2WPKH, 2, 20, _witness_v0),
    _Form(ScriptKind.P2WSH, 2, 32, _witness_v0),
    _Form(ScriptKind.P2TR, 2, 32, p2tr),
    _Form(ScriptKind.P2PKH, 3, 20, p2pkh),
    _Form(ScriptKind.P2SH, 2, 20, p2sh),
)
_CODES = {form.kind: code for code, form in enumerate(_FORMS)}


def check_holder(script: bytes) -> None:
    """Only scripts that have an address can hold a token. Raises InvalidToken."""
    if not isinstance(script, bytes) or classify(script) not in _CODES:
        raise InvalidToken("The address is not of a kind that can hold a token.")


def encode_holder(script: bytes) -> bytes:
    """The type code and the program. Raises InvalidToken."""
    check_holder(script)
    code = _CODES[classify(script)]
    return bytes((code,)) + _FORMS[code].program(script)


def read_holder(reader: Reader) -> bytes:
    """The output script of the next address. Raises WireError."""
    code = reader.take(1)[0]
    if code >= len(_FORMS):
        raise WireError(f"there is no address type {code}")
    form = _FORMS[code]
    return form.script(reader.take(form.length))
