"""A second state machine of CPT-1, written from docs/understand/tokens.md alone: slow, and meant to be
seen to be right.

It shares nothing with `multisig.tokens`. Every transaction works on a whole copy of the state, and its
effects are whatever differs between the copies. What both machines do alike is what the page says.

A block is (height, hash of the header as 32 bytes, transactions); a transaction is (txid as it is written,
script in hex that its first input spends, data that its one OP_RETURN pushes). The data is None where the
page gives the outputs no effect: a second OP_RETURN, or a value other than 0.
"""

import hashlib
import json

from tests.multisig.tokens import grammar

DONE, UNKNOWN = "done", "unknown"
START = bytes(32)


class Refused(Exception):
    """A rule fails: the transaction has no effect. Its text names the rule in the words of this file."""


class NotKnown(Exception):
    """The bytecode of the deployment is not there: what happened is not known."""


def replay(blocks, blobs):
    """What each block did from the very first on: a list of (answers, state after, state hash after)."""
    state, previous, rows = nothing(), START, []
    for block in blocks:
        answers, state, previous = judge_block(state, previous, block, blobs)
        rows.append((answers, state, previous))
    return rows


def nothing():
    return {"tokens": {}, "unknown": []}


def judge_block(state, previous, block, blobs):
    """One block: the answer of each transaction, the state and the state hash after it."""
    height, block_hash, transactions = block
    answers, hashed = [], b"cpt-state-1" + previous + block_hash
    for transaction in transactions:
        answer, after = judge(state, height, transaction, blobs)
        answers.append(answer)
        for effect in effects(state, after):
            hashed += effect
        state = after
    return answers, state, hashlib.sha256(hashed).digest()


def judge(state, height, transaction, blobs):
    """One transaction: its answer, and the state after it."""
    after = copied(state)
    try:
        apply(after, height, transaction, blobs)
    except NotKnown:
        return UNKNOWN, after
    except Refused as refused:
        return str(refused), state
    return DONE, after


def copied(state):
    tokens = {
        contract: {**token, "listed": list(token["listed"]), "balances": dict(token["balances"])}
        for contract, token in state["tokens"].items()
    }
    return {"tokens": tokens, "unknown": list(state["unknown"])}


def apply(state, height, transaction, blobs):
    txid, caller, data = transaction
    said = None if data is None else grammar.decode(data)
    if said is None:
        raise Refused("no valid payload")
    if said["kind"] == "deploy":
        deploy(state, height, txid, caller, said, blobs)
    elif said["contract_id"] in state["unknown"]:
        raise NotKnown
    elif said["contract_id"] not in state["tokens"]:
        raise Refused("no such contract")
    else:
        call(state["tokens"][said["contract_id"]], height, caller, said)


def deploy(state, height, txid, caller, said, blobs):
    blob = blobs.get(said["bytecode_hash"])
    if blob is None:
        state["unknown"].append(txid)
        raise NotKnown
    code = json.loads(blob)
    for member in ("ticker", "decimals", "total_supply", "max_supply", "whitelist_enabled"):
        if code[member] != said[member]:
            raise Refused("not of its bytecode")
    if caller != code["owner_script"]:
        raise Refused("deployed by another")
    state["tokens"][txid] = {
        "height": height,
        "code": said["bytecode_hash"],
        "owner": code["owner_script"],
        "started": False,
        "supply": 0,
        "paused": False,
        "whitelist on": code["whitelist_enabled"],
        "listed": list(code["whitelist"]),
        "balances": {},
        "total": int(code["total_supply"]),
        "maximum": int(code["max_supply"]),
    }


def call(token, height, caller, said):  # noqa: C901, PLR0912 - one branch a row of the page's table
    function, address = said["function"], said["script"]
    amount = None if said["amount"] is None else int(said["amount"])
    balances = token["balances"]
    if function != "transfer" and caller != token["owner"]:
        raise Refused("caller is not the owner")
    if function != "init" and not token["started"]:
        raise Refused("not started")

    if function == "init":
        if token["started"]:
            raise Refused("started already")
        if not height > token["height"]:
            raise Refused("deployment has no confirmation")
        token["started"] = True
        token["supply"] = token["total"]
        balances[token["owner"]] = token["total"]

    elif function == "transfer":
        if token["paused"]:
            raise Refused("paused")
        if not may_receive(token, address):
            raise Refused("may not receive")
        if balances.get(caller, 0) < amount:
            raise Refused("balance too small")
        balances[caller] = balances.get(caller, 0) - amount
        balances[address] = balances.get(address, 0) + amount

    elif function == "mint":
        if token["supply"] + amount > token["maximum"]:
            raise Refused("above the maximum")
        if not may_receive(token, address):
            raise Refused("may not receive")
        token["supply"] += amount
        balances[address] = balances.get(address, 0) + amount

    elif function == "burn":
        if address != token["owner"]:
            raise Refused("not the owner's address")
        if balances.get(address, 0) < amount:
            raise Refused("balance too small")
        token["supply"] -= amount
        balances[address] -= amount

    elif function == "pause":
        if token["paused"]:
            raise Refused("paused already")
        token["paused"] = True

    elif function == "unpause":
        if not token["paused"]:
            raise Refused("not paused")
        token["paused"] = False

    elif function == "transfer_ownership":
        if address == token["owner"]:
            raise Refused("owner already")
        token["owner"] = address

    elif function == "enable_whitelist":
        if token["whitelist on"]:
            raise Refused("whitelist on already")
        token["whitelist on"] = True

    elif function == "disable_whitelist":
        if not token["whitelist on"]:
            raise Refused("whitelist off already")
        token["whitelist on"] = False

    elif function == "add_to_whitelist":
        if address == token["owner"]:
            raise Refused("is the owner")
        if address in token["listed"]:
            raise Refused("listed already")
        token["listed"].append(address)

    elif function == "remove_from_whitelist":
        if address == token["owner"]:
            raise Refused("is the owner")
        if address not in token["listed"]:
            raise Refused("not listed")
        token["listed"].remove(address)

    else:
        raise AssertionError(function)


def may_receive(token, address):
    return not token["whitelist on"] or address in token["listed"] or address == token["owner"]


def cells(state):
    """Every cell that is there: (contract, kind, holder) to its bytes. A number 0 is no cell."""
    found = {}
    for contract, token in state["tokens"].items():
        found[contract, 0, ""] = number(token["height"])
        found[contract, 1, ""] = bytes.fromhex(token["code"])
        found[contract, 2, ""] = bytes.fromhex(token["owner"])
        found[contract, 3, ""] = number(token["started"])
        found[contract, 4, ""] = number(token["supply"])
        found[contract, 5, ""] = number(token["paused"])
        found[contract, 6, ""] = number(token["whitelist on"])
        for holder in token["listed"]:
            found[contract, 7, holder] = number(1)
        for holder, balance in token["balances"].items():
            found[contract, 8, holder] = number(balance)
    return {key: value for key, value in found.items() if value != b""}


def number(value):
    return b"" if value == 0 else int(value).to_bytes(8, "big")


def effects(before, after):
    """The bytes of each cell that ends otherwise than it began, in order."""
    old, new = cells(before), cells(after)
    rows = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key, b""), new.get(key, b"")
        if was != now:
            contract, kind, holder = key
            row = bytes.fromhex(contract) + bytes([kind])
            for part in (bytes.fromhex(holder), was, now):
                row += bytes([len(part)]) + part
            rows.append(row)
    return rows
