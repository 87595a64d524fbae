"""CPT-1 as a grammar: a second implementation of the decoder and of the bytecode, written from
docs/understand/tokens.md before its author had read the project's. Nothing here comes from multisig."""

import hashlib
import re
from itertools import pairwise

from tests.support.vectors import ROOT

PAGE = (ROOT / "docs/understand/tokens.md").read_text("utf-8")
FUNCTIONS = {  # op: the function, and whether it takes an amount and an address
    1: ("init", False, False),
    2: ("transfer", True, True),
    3: ("mint", True, True),
    4: ("burn", True, True),
    5: ("pause", False, False),
    6: ("unpause", False, False),
    7: ("transfer_ownership", False, True),
    8: ("enable_whitelist", False, False),
    9: ("disable_whitelist", False, False),
    10: ("add_to_whitelist", False, True),
    11: ("remove_from_whitelist", False, True),
}
SCRIPTS = (("0014", 20, ""), ("0020", 32, ""), ("5120", 32, ""), ("76a914", 20, "88ac"), ("a914", 20, "87"))

POSITIVE = rb"[\x80-\xff]{0,8}[\x01-\x7f]"
NUMBER = rb"\x00|" + POSITIVE
ADDRESS = b"|".join(b"%c.{%d}" % (kind, size) for kind, (_, size, _) in enumerate(SCRIPTS))
TICKER = b"|".join(b"%c[A-Z][A-Z0-9]{%d}" % (size, size - 1) for size in range(1, 13))


def _sequence(*parts):
    named = (b"(?P<%b>%b)" % (name.encode(), part) for name, part in parts)
    return re.compile(b"".join(named), re.DOTALL)


def _call(op):
    _, amount, address = FUNCTIONS[op]
    parts = [("head", rb"CPT\x%02x" % (0x10 | op)), ("contract", b".{32}")]
    parts += [("amount", POSITIVE)] if amount else []
    parts += [("address", ADDRESS)] if address else []
    return _sequence(*parts)


DEPLOY = _sequence(
    ("head", rb"CPT\x10"),
    ("hash", b".{32}"),
    ("flags", rb"[\x00-\x12\x80-\x92]"),
    ("total", NUMBER),
    ("maximum", POSITIVE),
    ("ticker", TICKER),
)
CALLS = {op: _call(op) for op in FUNCTIONS}


def payload_of(script):
    """The data of an output script that is OP_RETURN and one push in its shortest form, at most 78 bytes."""
    for length in range(79):
        push = bytes([length]) if length <= 75 else bytes([0x4C, length])
        if script[: 1 + len(push)] == b"\x6a" + push and len(script) == 1 + len(push) + length:
            return script[1 + len(push) :]
    return None


def decode(data):
    """The fields as payloads_valid.json writes them; None where the data is no valid payload."""
    if found := DEPLOY.fullmatch(data):
        total, maximum = _number(found["total"]), _number(found["maximum"])
        if total > maximum:
            return None
        return {
            "kind": "deploy",
            "bytecode_hash": found["hash"].hex(),
            "whitelist_enabled": bool(found["flags"][0] & 0x80),
            "decimals": found["flags"][0] & 0x1F,
            "total_supply": str(total),
            "max_supply": str(maximum),
            "ticker": found["ticker"][1:].decode(),
        }
    for op, pattern in CALLS.items():
        if found := pattern.fullmatch(data):
            name, amount, address = FUNCTIONS[op]
            return {
                "kind": "call",
                "function": name,
                "contract_id": found["contract"].hex(),
                "amount": str(_number(found["amount"])) if amount else None,
                "script": _script(found["address"]) if address else None,
            }
    return None


def _number(data):
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data))


def _script(address):
    before, _, behind = SCRIPTS[address[0]]
    return before + address[1:].hex() + behind


def encode(fields):
    """The payload that the fields describe: what decode gives, for fields that a valid payload has."""
    if fields["kind"] == "deploy":
        ticker = fields["ticker"].encode()
        return (
            b"CPT\x10"
            + bytes.fromhex(fields["bytecode_hash"])
            + bytes([fields["decimals"] | (0x80 if fields["whitelist_enabled"] else 0)])
            + _leb128(int(fields["total_supply"]))
            + _leb128(int(fields["max_supply"]))
            + bytes([len(ticker)])
            + ticker
        )
    op = next(op for op, (name, _, _) in FUNCTIONS.items() if name == fields["function"])
    amount = b"" if fields["amount"] is None else _leb128(int(fields["amount"]))
    address = b"" if fields["script"] is None else _address(fields["script"])
    return b"CPT" + bytes([0x10 | op]) + bytes.fromhex(fields["contract_id"]) + amount + address


def _leb128(number):
    return bytes([number]) if number < 0x80 else bytes([0x80 | number & 0x7F]) + _leb128(number >> 7)


def _address(script):
    for kind, (before, size, behind) in enumerate(SCRIPTS):
        if re.fullmatch(f"{before}[0-9a-f]{{{2 * size}}}{behind}", script):
            return bytes([kind]) + bytes.fromhex(script[len(before) : len(before) + 2 * size])
    raise AssertionError(script)


def _hidden():
    """The code points of the page's list, as the inside of a character class."""
    section = PAGE.split("### Hidden code points\n")[1].split("\nNames that merely")[0]
    spans = re.findall(r"U\+([0-9A-F]+)(?:–([0-9A-F]+))?", section.split("and the last two")[0])
    spans += [(f"{plane:X}FFFE", f"{plane:X}FFFF") for plane in range(1, 17)]
    return "".join(f"\\U{int(low, 16):08x}-\\U{int(high or low, 16):08x}" for low, high in spans)


SCRIPT = "|".join(f"{before}[0-9a-f]{{{2 * size}}}{behind}" for before, size, behind in SCRIPTS)
BYTECODE = re.compile(
    r'\{"decimals":(?P<decimals>[0-9]|1[0-8]),'
    r'"icon":"(?P<icon>|(?:https|ipfs)://[!#$%&\'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+)",'
    r'"max_supply":"(?P<max_supply>[1-9][0-9]{0,18})",'
    rf'"name":"(?P<name>(?:[^"\\{_hidden()}]|\\["\\])+)",'
    rf'"owner_script":"(?P<owner_script>{SCRIPT})",'
    r'"template_version":1,'
    r'"ticker":"(?P<ticker>[A-Z][A-Z0-9]{0,11})",'
    r'"total_supply":"(?P<total_supply>0|[1-9][0-9]{0,18})",'
    rf'"whitelist":(?P<whitelist>\[(?:"(?:{SCRIPT})"(?:,"(?:{SCRIPT})")*)?\]),'
    r'"whitelist_enabled":(?P<whitelist_enabled>true|false)\}'
)


def read_bytecode(blob):
    """The terms that a blob states, its SHA-256 and that of its list; None where it is no valid bytecode."""
    try:
        found = BYTECODE.fullmatch(blob.decode("utf-8")) if len(blob) <= 80_000 else None
    except UnicodeDecodeError:
        return None
    if not found:
        return None
    name = re.sub(r'\\(["\\])', r"\1", found["name"])
    total, maximum = int(found["total_supply"]), int(found["max_supply"])
    listed = re.findall(r'"([0-9a-f]+)"', found["whitelist"])
    fits = (
        total <= maximum < 2**63
        and len(found["icon"]) <= 512
        and len(name) <= 64
        and name == name.strip(" ")
        and "  " not in name
        and len(listed) <= 1_000
        and all(low < high for low, high in pairwise(listed))
    )
    if not fits:
        return None
    return {
        "sha256": hashlib.sha256(blob).hexdigest(),
        "decimals": int(found["decimals"]),
        "icon": found["icon"],
        "max_supply": maximum,
        "name": name,
        "owner_script": found["owner_script"],
        "ticker": found["ticker"],
        "total_supply": total,
        "whitelist": listed,
        "whitelist_hash": hashlib.sha256(found["whitelist"].encode()).hexdigest(),
        "whitelist_enabled": found["whitelist_enabled"] == "true",
    }
