"""``custody vault labels``: the names of the address book, the descriptions of payments, the coins that are
set aside and the signers' names as a file for other wallets; and what of another program's file can be
taken (BIP-329).

Nothing that has a name here gets another one from a file.
"""

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from custody.cli.access import Access, asking_in_workspace, declared_of
from custody.cli.common import fail, give, wants_json, write_file
from custody.cli.histories import COINS, MOVEMENTS, entries_of
from custody.cli.vaults import given_vault, vault, vault_of
from custody.common.private_files import read_bounded
from custody.common.terminal import Exit, aside
from custody.common.text import count, foreign

if TYPE_CHECKING:
    from custody.common.labels import Label
    from custody.schemas.vaults import Vault

file_type = click.Path(path_type=Path, dir_okay=False)
# An entry that the platform refuses for what it is: the others are tried.
_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
_WHY_NOT: Final = {
    "tx": "a payment is described where it is proposed",
    "xpub": "signers choose their own names",
}
# Of a coin that is not spendable in another wallet, which gives no reason.
_NO_REASON: Final = "Not spendable in another wallet"
# Each is a call, and a person looks at each.
MOST_TAKEN: Final = 1_000
# Of an entry that comes too fast.
_TRIES: Final = 3


@vault.command("labels")
@given_vault
@click.option("--export", "target", type=file_type, help="Write them to this new file.")
@click.option("--import", "source", type=file_type, help="Take what can be taken from this file.")
@asking_in_workspace
def labels_command(access: Access, given: str, target: Path | None, source: Path | None) -> None:
    """Exchange names and descriptions with other wallets (BIP-329).

    Addresses get into the workspace's address book, as if each were entered; coins that are not spendable are
    set aside.
    """
    from custody.common.labels import MAX_BYTES, read_labels, report, write_labels, written_words

    if (target is None) == (source is None):
        fail("either --export or --import is needed", "Name one of the two.", Exit.USAGE)
    one = vault_of(access, given)
    known = list(_labels(access, one))
    if target is not None:
        write_file(target, write_labels(known))
        give({"file": str(target), "labels": len(known)}, written_words(known, target))
        return
    assert source is not None
    try:
        found = read_labels(read_bounded(source, MAX_BYTES))
    except OSError as error:
        fail(f"{source} cannot be read: {error.strerror}", f"Name a file of at most {MAX_BYTES:,} bytes.")
    except ValueError as error:
        fail(f"{source} {error}", "", Exit.NOT_DECIDED)
    report(found, _imported(access, one, known, found.records), as_json=wants_json())


def _labels(access: Access, one: "Vault") -> "Iterator[Label]":
    """What the platform has a name for."""
    from custody.client import ApiError
    from custody.common.labels import Label, origin_of
    from multisig import Network
    from multisig import Vault as Policy

    try:
        for entry in access.client.whitelist_addresses(workspace_id=access.workspace_id):
            yield Label("addr", entry.address, entry.name)
    except ApiError as error:
        if error.code != "PERMISSION_DENIED":
            raise
        aside("Without the address book: your role may not see it.")
    policy = Policy.from_descriptor(one.descriptor, Network(one.chain))
    origin = origin_of(policy)
    read = MOVEMENTS.read(access.client)
    for movement in entries_of(access, read, one.id, MOVEMENTS.entries, MOVEMENTS.oldest):
        if movement.title:
            yield Label("tx", movement.txid, movement.title, origin)
    read = COINS.read(access.client)
    for coin in entries_of(access, read, one.id, COINS.entries, {"state": "set-aside"}):
        if coin.set_aside is not None:
            yield Label("output", f"{coin.txid}:{coin.vout}", coin.set_aside.reason, origin, spendable=False)
    for signer in one.signers:
        if signer.name:
            yield Label("xpub", str(policy.cosigners[signer.key_index].xpub), signer.name, origin)


def _imported(
    access: Access, one: "Vault", known: "list[Label]", records: "dict[int, Label]"
) -> dict[int, str]:
    """What became of each line."""
    from custody.common.labels import sorted_out
    from custody.common.recipients import alike_words
    from multisig import Network, resembled
    from multisig import Vault as Policy

    network = Network(one.chain)
    said, others = sorted_out(known, records, network, Policy.from_descriptor(one.descriptor, network))
    names = {number: each for number, each in others.items() if each.type == "addr"}
    coins = {number: each for number, each in others.items() if each.spendable is False}
    for number in others.keys() - names.keys() - coins.keys():
        said[number] = f"not taken: {_WHY_NOT.get(others[number].type, 'no such names are kept here')}"
    if len(names) + len(coins) > MOST_TAKEN:
        sentence = f"{len(names) + len(coins):,} of its lines are to be taken: {MOST_TAKEN:,} at once at most"
        fail(sentence, "Split the file.", Exit.NOT_DECIDED)
    # What the platform would refuse is no part of the question; it knows more that an address may resemble.
    book = {each.ref: each.label or "" for each in known if each.type == "addr"}
    alike = resembled([each.ref for each in names.values()], (), book)
    whole = entries_of(access, COINS.read(access.client), one.id, COINS.entries, {}) if coins else ()
    held = {f"{coin.txid}:{coin.vout}" for coin in whole}
    for number in [*names, *coins]:
        ref = others[number].ref
        if number in names and ref in alike:
            said[number] = f"not taken: {alike_words(ref, alike[names.pop(number).ref], book)}"
        elif number in coins and ref not in held:
            said[number] = f"not taken: {coins.pop(number).ref} is no coin that this vault holds."
    adding, setting = access.client.add_whitelist_address, access.client.set_coin_aside
    if names:
        aside(f"{count(len(names), 'address is', 'addresses are')} to get a name, and be paid by it:")
        _confirm(access, names, "Put them into the address book?")
    if coins:
        aside(f"{count(len(coins), 'coin is', 'coins are')} to be set aside: no new proposal spends them.")
        _confirm(access, coins, "Set them aside?")
    for number, each in names.items():
        said[number] = _entered(access, adding, name=each.label, address=each.ref)
    for number, each in coins.items():
        reason = each.label or _NO_REASON
        said[number] = _entered(access, setting, vault_id=one.id, coin=each.ref, reason=reason)
    return said


def _confirm(access: Access, records: "dict[int, Label]", question: str) -> None:
    for each in records.values():
        aside(f"  {each.ref}  {foreign(each.label or '')}")
    access.confirm(question)


def _entered(access: Access, call: Any, tries: int = _TRIES, **fields: Any) -> str:
    """As if a person made this call. Raises ApiError for what is not of this entry alone."""
    from pydantic import ValidationError

    from custody.client import ApiError
    from custody.schemas.changes import RequestChangeRequest
    from custody.schemas.errors import ErrorCode, fault_words

    try:
        request = access.request(call, **fields)
        try:
            access.make(call, request)
        except ApiError as error:
            if error.code != "SECOND_PERSON_NEEDED":
                raise
            change = access.client.request_change(RequestChangeRequest.of(declared_of(call), request))
            return f"waits for a second person: change {change.change_id}"
    except ValidationError as error:
        return f"not taken: the name {fault_words(error.errors()[0])}"
    except ApiError as error:
        if error.retry_after_seconds and tries:
            access.desk.outside.sleep(error.retry_after_seconds)
            return _entered(access, call, tries - 1, **fields)
        if error.problem.status not in _REFUSED:
            raise
        # Without what to do about a request: this is a line of a file.
        advice = next((each.advice for each in ErrorCode if each == error.code), "")
        return f"not taken: {error.problem.detail.removesuffix(advice).rstrip()}"
    return "taken"
