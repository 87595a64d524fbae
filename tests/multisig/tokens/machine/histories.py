"""Token histories generated from a tape of bytes: mostly calls that succeed, with hostile ones among them.

The generator follows the slow machine of `independent`, so that it knows owners and balances. Its payloads
are the grammar's, and it shares no code with `multisig.tokens`. Any tape is a valid history, also one that
hypothesis has shrunk.
"""

import hashlib
import json
from dataclasses import dataclass

from tests.multisig.tokens import grammar
from tests.multisig.tokens.machine import independent

MAXIMUM = 2**63 - 1
OPS = [name for name, _, _ in grammar.FUNCTIONS.values()]
# Calls that move balances are drawn more often than calls that set a flag.
DRAWN = [
    *OPS,
    "pause",
    "enable_whitelist",
    "transfer",
    "transfer",
    "transfer",
    "mint",
    "mint",
    "burn",
    "burn",
]

# One of each type of address, then two more. Two begin alike,
# so that the order of holders shows in a state hash.
HOLDERS = [
    "0014" + "11" * 20,
    "0020" + "22" * 32,
    "5120" + "33" * 32,
    "76a914" + "44" * 20 + "88ac",
    "a914" + "55" * 20 + "87",
    "0014" + "66" * 20,
    "0020" + "77" * 32,
]


def blob(name, owner, total, maximum, *, whitelist=None, listed=()):
    said = {
        "decimals": 2,
        "icon": "",
        "max_supply": str(maximum),
        "name": name,
        "owner_script": HOLDERS[owner],
        "template_version": 1,
        "ticker": name.upper(),
        "total_supply": str(total),
        "whitelist": sorted(HOLDERS[number] for number in listed),
        "whitelist_enabled": whitelist is not None,
    }
    return json.dumps(said, separators=(",", ":"), sort_keys=True).encode()


BLOBS = [
    blob("Gold", 0, 100, 150),
    blob("Listed", 1, 100, 10_000, whitelist=True, listed=(2, 3)),
    blob("Empty", 2, 0, MAXIMUM),
    blob("Full", 0, MAXIMUM, MAXIMUM, listed=(0, 4)),
    blob("Small", 3, 3, 5, whitelist=True, listed=(3,)),
]
KNOWN = {hashlib.sha256(one).hexdigest(): one for one in BLOBS}
# Its bytecode is published late, or never.
HIDDEN = blob("Hidden", 1, 100, 200)
EVERY = {**KNOWN, hashlib.sha256(HIDDEN).hexdigest(): HIDDEN}


@dataclass
class Tape:
    """Choices, one byte each. After its end every choice is the first one, which is plain."""

    data: bytes
    place: int = 0

    @property
    def ended(self):
        return self.place >= len(self.data)

    def below(self, count):
        self.place += 1
        return 0 if self.place > len(self.data) else self.data[self.place - 1] % count

    def of(self, choices):
        choices = list(choices)
        return choices[self.below(len(choices))]

    def one_in(self, count):
        return self.below(count) == count - 1


@dataclass
class Story:
    """The chain so far as its writer sees it; `tip` is the height, and a branch has names of its own."""

    tape: Tape
    branch: str = ""
    state: dict = None
    tip: int = 0
    written: int = 0

    def __post_init__(self):
        self.state = independent.nothing() if self.state is None else self.state

    def block(self):
        """The next block, of 0 to 5 transactions, followed by the writer."""
        self.tip += 1
        transactions = []
        for _ in range(self.tape.of([1, 2, 0, 3, 1, 5])):
            transaction = self.transaction()
            _, self.state = independent.judge(self.state, self.tip, transaction, KNOWN)
            transactions.append(transaction)
        return self.tip, self.name("block", self.tip), transactions

    def blocks(self, most):
        found = []
        while len(found) < most and not self.tape.ended:
            found.append(self.block())
        return found

    def name(self, kind, number):
        return hashlib.sha256(f"{kind} {self.branch} {number}".encode()).digest()

    def transaction(self):
        self.written += 1
        txid = self.name("transaction", self.written).hex()
        tokens = self.state["tokens"]
        if not tokens or (len(tokens) < 4 and self.tape.one_in(10)):
            caller, data = self.deployment()
        else:
            caller, data = self.call()
        return txid, caller, self.spoilt(data) if self.tape.one_in(18) else data

    def deployment(self):
        code = json.loads(self.tape.of([*BLOBS, BLOBS[1], BLOBS[4], HIDDEN]))
        hashed = hashlib.sha256(json.dumps(code, separators=(",", ":"), sort_keys=True).encode()).hexdigest()
        caller = code["owner_script"]
        wrong = self.tape.below(16)
        if wrong == 11 or (wrong > 11 and self.tape.one_in(3)):
            caller = self.tape.of(HOLDERS)
        if wrong == 12:
            code["ticker"] = "FORGED"
        elif wrong == 13:
            code["decimals"] += 1
        elif wrong == 14:
            code["whitelist_enabled"] = not code["whitelist_enabled"]
        elif wrong == 15:
            code["max_supply"] = str(int(code["max_supply"]) ^ 1)
            code["total_supply"] = str(min(int(code["total_supply"]), int(code["max_supply"])))
        return caller, grammar.encode({**code, "kind": "deploy", "bytecode_hash": hashed})

    def call(self):
        contract = self.tape.of(self.state["tokens"])
        token = self.state["tokens"][contract]
        if self.tape.one_in(24):
            contract = self.tape.of([*self.state["unknown"], "00" * 32])
        # A wild call breaks several rules at once where it can: the order in which they are tried shows.
        wild = self.tape.one_in(3)
        function = self.tape.of(OPS) if wild else self.function(token)
        holders = [holder for holder, balance in token["balances"].items() if balance]
        caller = token["owner"]
        if function == "transfer" and holders:
            caller = self.tape.of(holders)
        if self.tape.one_in(16):
            caller = self.tape.of(HOLDERS)
        fitting = self.fitting(function, token)
        unfit = [one for one in HOLDERS if one not in fitting]
        address = self.tape.of([*unfit, *HOLDERS, *[token["owner"]] * 4] if wild else fitting)
        (takes,) = [takes for name, *takes in grammar.FUNCTIONS.values() if name == function]
        said = {"kind": "call", "function": function, "contract_id": contract}
        said["amount"] = self.amount(function, token, caller, wild) if takes[0] else None
        said["script"] = address if takes[1] else None
        return caller, grammar.encode(said)

    def function(self, token):
        if not token["started"]:
            return "init"
        if token["paused"] and self.tape.one_in(5):
            return "unpause"
        idle = {
            "init",
            "pause" if token["paused"] else "unpause",
            "enable_whitelist" if token["whitelist on"] else "disable_whitelist",
        }
        return self.able(self.tape.of([one for one in DRAWN if one not in idle]), token)

    @staticmethod
    def able(function, token):
        """The function itself, or one that a holder can call now where this one cannot be called."""
        if function == "burn" and not token["balances"].get(token["owner"]):
            function = "transfer"
        if function == "mint" and token["supply"] == token["maximum"]:
            function = "transfer"
        return "mint" if function == "transfer" and token["supply"] == 0 else function

    @staticmethod
    def fitting(function, token):
        """The addresses that the function takes now; any, where there is none."""
        owner, listed = token["owner"], token["listed"]
        if function == "burn":
            return [owner]
        if function == "add_to_whitelist":
            return [one for one in HOLDERS if one not in listed and one != owner] or HOLDERS
        if function == "remove_from_whitelist":
            return [one for one in listed if one != owner] or HOLDERS
        if function in {"transfer", "mint"} and token["whitelist on"]:
            return [*listed, owner]
        return HOLDERS

    def amount(self, function, token, caller, wild):
        """At the limit of its rule or beyond, or well within."""
        limit = token["balances"].get(caller, 0)
        if function == "mint":
            limit = token["maximum"] - token["supply"]
        inside = [limit // 3, 1, limit // 2, limit // 5, limit]
        amount = self.tape.of([limit + 1, MAXIMUM, limit] if wild else inside)
        return min(max(amount, 1), MAXIMUM)

    def spoilt(self, data):
        """Data that the page does not allow, or by chance still does."""
        place = self.tape.below(len(data))
        flipped = bytes([data[place] ^ (1 << self.tape.below(8))])
        ways = [
            None,
            data + b"\x00",
            data[:-1],
            data[:3] + bytes([0x10 + 12 + self.tape.below(4)]) + data[4:],
            data[:3] + bytes([data[3] + 0x10]) + data[4:],
            data[:place] + flipped + data[place + 1 :],
        ]
        if data[3] in {0x12, 0x13, 0x14}:
            ways += [data[:36] + longer(data[36:]), data[:36] + b"\x00" + data[36:]]
        return self.tape.of(ways)


def longer(rest):
    """The same number with one byte more than it needs."""
    end = next(place for place, byte in enumerate(rest) if byte < 128)
    return rest[:end] + bytes([rest[end] | 128, 0]) + rest[end + 1 :]
