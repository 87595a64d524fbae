"""What stands against each attack, taken away: that a test would notice is shown by letting the attack
through.

Each entry removes one thing and leaves the rest as it is. Names are the corpus's ("off").
"""

from collections.abc import Callable, Mapping
from typing import get_args

import pytest
from pydantic import create_model
from pydantic.fields import FieldInfo

from custody.common import exchange
from firmware_bridge import conversation, sanitised_psbt
from multisig import Psbt, descriptor, vault
from multisig.inspection import inputs_and_outputs, model, transaction
from multisig.proofs import Place, Prover, Unproven
from multisig.psbt import codec, fields
from multisig.psbt.fields import PsbtLimits
from multisig.script import ScriptKind
from multisig.wire import Reader
from signerd.account import platform, vaults, wire
from signerd.account.wire import read_each
from signerd.core import engine
from signerd.core.checks import table
from signerd.core.events import ImportedAgain, Step

Off = Callable[[pytest.MonkeyPatch], None]

BOUNDLESS = PsbtLimits(max_bytes=1 << 40, max_inputs=1 << 40, max_outputs=1 << 40, max_fields_per_map=1 << 40)


def switch_off(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Take one guard away: of the table, one of signerd's checks by its name, or one finding's severity."""
    kind, _, what = name.partition(":")
    match kind:
        case "check":
            _without_check(monkeypatch, what)
        case "severity":
            lowered = model._WARNINGS | {model.FindingCode(what)}
            monkeypatch.setattr(model, "_WARNINGS", lowered)
        case _:
            GUARDS[name](monkeypatch)


def _without_check(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kept = {other: check for other, check in table.CHECKS.items() if other != name}
    assert len(kept) == len(table.CHECKS) - 1, name
    monkeypatch.setattr(table, "CHECKS", kept)


def _nothing(*_arguments: object) -> tuple[()]:
    return ()


def _claims_of_payments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Prover, "is_named_in", lambda *_: False)


def _claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "_claims", _nothing)


def _known_amounts(patch: pytest.MonkeyPatch) -> None:
    """The figures are made of the amounts that are known."""

    def total(self: inputs_and_outputs.InputsSeen) -> int:
        return sum(item.amount or 0 for item in self.inputs)

    patch.setattr(inputs_and_outputs.InputsSeen, "total", property(total))


def _signatures_that_came(patch: pytest.MonkeyPatch) -> None:
    """Another copy is taken for the first, whatever it carries."""
    patch.setattr(engine, "HANDLERS", {**engine.HANDLERS, ImportedAgain: lambda record, *_: Step(record)})


def _places_in_bounds(patch: pytest.MonkeyPatch) -> None:
    """Both bounds: the one that looks, and the one of the derivation itself."""
    patch.setattr(Place, "is_absurd", False)
    patch.setattr(vault, "_require_in_bounds", lambda *_: None)


def _ownership(patch: pytest.MonkeyPatch) -> None:
    shown = inputs_and_outputs._not_ours

    def told(*arguments: object) -> model.Finding:
        finding = shown(*arguments)
        return model.Finding("off", model.Severity.WARN, finding.sentence, finding.subject)

    patch.setattr(inputs_and_outputs, "_not_ours", told)


def _coins_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction, "_duplicates", _nothing)


def _how_it_is_signed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "_how_it_is_signed", _nothing)


def _stated_coin(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "_claimed_coin", _nothing)


def _previous_transactions(patch: pytest.MonkeyPatch) -> None:
    """The coin is believed as it is stated."""
    patch.setattr(inputs_and_outputs, "proven_output", lambda item: item.witness_utxo or Unproven.MISSING)


def _signatures_of_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "_signatures", lambda *_: ((), []))


def _fee_of_the_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction, "_fee", _nothing)


def _strict_data(patch: pytest.MonkeyPatch) -> None:
    """The first push, whatever its form, and nothing of what follows: so data is hidden."""

    def lenient(script: bytes) -> bytes:
        start = 3 if script[1:2] == b"\x4c" else 2
        length = script[start - 1] if len(script) >= start else 0
        return script[start : start + length]

    patch.setattr(inputs_and_outputs, "parse_op_return", lenient)


def _token_payloads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "_token", lambda *_: None)


def _known_scripts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(inputs_and_outputs, "classify", lambda _script: ScriptKind.P2WSH)


def _one_network(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction, "_network", _nothing)


def _account_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transaction, "_xpubs", _nothing)


# --- vaults (S15 to S17) ------------------------------------------------------------------------------------


def _our_key(patch: pytest.MonkeyPatch) -> None:
    """Accepts any of our keys, like a program that trusts a fingerprint."""
    patch.setattr(vaults, "_fault", lambda *_: None)
    patch.setattr(vaults, "_own_key", lambda journal, _vault: journal.own_keys()[0])


def _different_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vault, "_require_distinct", lambda *_: None)


def _accounts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vault, "_require_account", lambda *_: None)


def _checksum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(descriptor, "strip_checksum", lambda text, **_strict: text.partition("#")[0])


# --- the parser (S23) ---------------------------------------------------------------------------------------


def _bytes_enough(patch: pytest.MonkeyPatch) -> None:
    """What is missing is read as zeros."""
    take = Reader.take

    def padded(self: Reader, length: int) -> bytes:
        there = take(self, min(length, self.remaining))
        return there + bytes(length - len(there))

    patch.setattr(Reader, "take", padded)


def _nothing_behind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reader, "finish", lambda _self: None)


def _size_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Psbt.parse.__func__, "__defaults__", (BOUNDLESS,))


def _keys_once(patch: pytest.MonkeyPatch) -> None:
    """The last one counts, as in a reader that fills a dictionary."""

    def lenient(reader: Reader, _max_fields: int) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        while key := reader.sized():
            found[key] = reader.sized()
        return found

    patch.setattr(codec, "read_map", lenient)


def _shortest_lengths(patch: pytest.MonkeyPatch) -> None:
    def any_form(self: Reader) -> int:
        first = self.take(1)[0]
        return first if first < 0xFD else self.uint(1 << (first - 0xFC))

    patch.setattr(Reader, "compact_size", any_form)


def _versions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fields, "GLOBAL_VERSION", 0xEE)


def _field_shapes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fields, "check_fields", lambda *_: None)


# --- the devices (S18, S19) ---------------------------------------------------------------------------------


def _second_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversation, "_fresh_answer", conversation._ask_person)


def _what_is_taken(patch: pytest.MonkeyPatch) -> None:
    """The device's PSBT as it came, without a look at whether it is complete, which would verify it too."""
    patch.setattr(sanitised_psbt, "take_back", lambda _psbt, answer, _policy, _signer: Psbt.parse(answer))
    patch.setattr(conversation, "_tell_missing", lambda *_: None)


# --- the platform's answers (F) -----------------------------------------------------------------------------


def _numbers_in_bounds(patch: pytest.MonkeyPatch) -> None:
    """A number is whatever JSON can say."""

    def any_number(found, id_of, shape, make, **rest):
        told = {name: _unbounded(told) for name, told in shape.model_fields.items() if _is_number(told)}
        return read_each(found, id_of, create_model(shape.__name__, __base__=shape, **told), make, **rest)

    for module in (platform, wire):
        patch.setattr(module, "read_each", any_number)


def _is_number(told: FieldInfo) -> bool:
    """Alone, or where there may be none; no list of them."""
    parts = get_args(told.annotation)
    return told.annotation is int or (type(None) in parts and any(int in get_args(part) for part in parts))


def _unbounded(told: FieldInfo) -> tuple[object, object]:
    return (int, ...) if told.annotation is int else (int | None, told.default)


def _packed_answers(patch: pytest.MonkeyPatch) -> None:
    def taken(self: exchange.Body, path: str, _headers: object) -> None:
        self._path, self._bytes = path, bytearray()

    patch.setattr(exchange.Body, "__init__", taken)


def _answer_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exchange, "MAX_ANSWER_BYTES", 1 << 40)


def _answer_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(exchange, "MAX_ANSWER_VALUES", 1 << 40)


GUARDS: Mapping[str, Off] = {
    "account-keys": _account_keys,
    "accounts": _accounts,
    "answer-bytes": _answer_bytes,
    "answer-values": _answer_values,
    "bytes-enough": _bytes_enough,
    "checksum": _checksum,
    "claims": _claims,
    "claims-of-payments": _claims_of_payments,
    "coins-once": _coins_once,
    "different-keys": _different_keys,
    "fee-of-the-bytes": _fee_of_the_bytes,
    "field-shapes": _field_shapes,
    "how-it-is-signed": _how_it_is_signed,
    "keys-once": _keys_once,
    "known-amounts": _known_amounts,
    "known-scripts": _known_scripts,
    "nothing-behind": _nothing_behind,
    "numbers-in-bounds": _numbers_in_bounds,
    "one-network": _one_network,
    "our-key": _our_key,
    "ownership": _ownership,
    "packed-answers": _packed_answers,
    "places-in-bounds": _places_in_bounds,
    "previous-transactions": _previous_transactions,
    "second-look": _second_look,
    "shortest-lengths": _shortest_lengths,
    "signatures-of-others": _signatures_of_others,
    "signatures-that-came": _signatures_that_came,
    "size-limits": _size_limits,
    "stated-coin": _stated_coin,
    "strict-data": _strict_data,
    "token-payloads": _token_payloads,
    "versions": _versions,
    "what-is-taken": _what_is_taken,
}
