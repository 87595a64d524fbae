"""A second decoder of CPT-1, written from docs/understand/tokens.md in another way:
one regular expression a form, no reader.

It shares nothing with `multisig.tokens`: what both understand alike is what the page says.
"""

import re

MAXIMUM = 2**63 - 1

NUMBER = rb"[\x00-\x7f]|[\x80-\xff]{1,8}[\x01-\x7f]"
ADDRESS = rb"\x00.{20}|\x01.{32}|\x02.{32}|\x03.{20}|\x04.{20}"
TICKER = rb"|".join(b"\\x%02x[A-Z][A-Z0-9]{%d}" % (length, length - 1) for length in range(1, 13))
FLAGS = rb"[\x00-\x12\x80-\x92]"

NOTHING = rb""
ONLY_ADDRESS = rb"(?P<address>" + ADDRESS + rb")"
BOTH = rb"(?P<amount>" + NUMBER + rb")" + ONLY_ADDRESS

FUNCTIONS = {
    "init": (0x11, NOTHING),
    "transfer": (0x12, BOTH),
    "mint": (0x13, BOTH),
    "burn": (0x14, BOTH),
    "pause": (0x15, NOTHING),
    "unpause": (0x16, NOTHING),
    "transfer_ownership": (0x17, ONLY_ADDRESS),
    "enable_whitelist": (0x18, NOTHING),
    "disable_whitelist": (0x19, NOTHING),
    "add_to_whitelist": (0x1A, ONLY_ADDRESS),
    "remove_from_whitelist": (0x1B, ONLY_ADDRESS),
}
CALLS = {
    name: re.compile(b"CPT\\x%02x(?P<contract>.{32})%s" % (op, rest), re.DOTALL)
    for name, (op, rest) in FUNCTIONS.items()
}
DEPLOY = re.compile(
    rb"CPT\x10(?P<hash>.{32})(?P<flags>%s)(?P<total>%s)(?P<maximum>%s)(?P<ticker>%s)"
    % (FLAGS, NUMBER, NUMBER, TICKER),
    re.DOTALL,
)
SCRIPTS = {
    0: ("0014", ""),
    1: ("0020", ""),
    2: ("5120", ""),
    3: ("76a914", "88ac"),
    4: ("a914", "87"),
}


def decode(data):
    """The payload as plain figures and hex, in the form of the vectors; None where it is not valid."""
    deploy = DEPLOY.fullmatch(data)
    if deploy:
        return _deploy(deploy)
    for name, pattern in CALLS.items():
        match = pattern.fullmatch(data)
        if match:
            return _call(name, match)
    return None


def _deploy(match):
    total, maximum, flags = number(match["total"]), number(match["maximum"]), match["flags"][0]
    if not total <= maximum <= MAXIMUM or maximum == 0:
        return None
    return {
        "kind": "deploy",
        "bytecode_hash": match["hash"].hex(),
        "ticker": match["ticker"][1:].decode(),
        "decimals": flags % 128,
        "total_supply": str(total),
        "max_supply": str(maximum),
        "whitelist_enabled": flags >= 128,
    }


def _call(name, match):
    given = match.groupdict()
    amount = None if given.get("amount") is None else number(given["amount"])
    if amount == 0:
        return None
    return {
        "kind": "call",
        "function": name,
        "contract_id": given["contract"].hex(),
        "amount": None if amount is None else str(amount),
        "script": None if given.get("address") is None else script(given["address"]),
    }


def number(data):
    return sum((byte % 128) * 128**place for place, byte in enumerate(data))


def script(data):
    before, after = SCRIPTS[data[0]]
    return before + data[1:].hex() + after
