"""Every validation error has our own sentence: no pattern, no sentence of the library."""

import importlib
import pkgutil
import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import custody.schemas
import signerd.shapes
from custody.schemas.asset_tokens import CallContractRequest
from custody.schemas.auth import LoginRequest
from custody.schemas.errors import fault_place, fault_sentence, fault_sentences, fault_words
from custody.schemas.proposals import CreatePsbtRequest
from signerd.account.config import Config

# How the library's own sentences begin.
LIBRARYS = re.compile(
    "(Input|String|List|Tuple|Value|Field|Extra|Decimal|Data|Date|Datetime|Object|Dictionary|Frozenset|Set|"
    "Bytes|Unable|Path|Assertion|URL|JSON) "
)
WRONG: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, float("nan"), "", "?", "x" * 100_000, "two\nlines", "2026-13-45", "1e9",
    [], ["", ""] * 600, [None], [{}], [{"type": "x"}], {}, {"type": "str"}, b"\xff", object(),
)  # fmt: skip


def models() -> list[type[BaseModel]]:
    found: set[type[BaseModel]] = {Config}
    for package in (custody.schemas, signerd.shapes):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            found |= {
                each
                for each in vars(importlib.import_module(module.name)).values()
                if isinstance(each, type) and issubclass(each, BaseModel) and each is not BaseModel
            }
    return sorted(found, key=lambda model: f"{model.__module__}.{model.__qualname__}")


def faults(of: type[BaseModel], value: object) -> list[Any]:
    try:
        of.model_validate(value)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


@pytest.mark.parametrize("model", models(), ids=lambda model: f"{model.__module__}.{model.__name__}")
def test_every_error_has_a_sentence_of_ours(model):
    tried = [{}, 7, {"mistyped": 1}, *({name: wrong} for name in names(model) for wrong in WRONG)]
    found = [fault for value in tried for fault in faults(model, value)]
    for fault in found:
        words = fault_words(fault)
        assert not LIBRARYS.match(words), fault["type"]
        assert "^" not in words
        assert "{" not in words
        assert len(words) < 200
        if fault["type"] != "extra_forbidden":
            assert "_" not in fault_sentence(fault).removesuffix(words)
    assert found


WHOLE = "must be a whole number, without quotes or a point"
TYPES = "'str', 'int'"


def names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@pytest.mark.parametrize(
    ("model", "value", "place", "words"),
    [
        (LoginRequest, {"email": "ada"}, "email", "must be written like ada@example.org"),
        (LoginRequest, {"email": "ada@example.org"}, "password", "is missing"),
        (CreatePsbtRequest, {"wallet_id": "../x"}, "wallet_id", "takes only letters, digits, - and _"),
        (CreatePsbtRequest, {"workspace_id": "1"}, "workspace_id", WHOLE),
        (CreatePsbtRequest, {"recipients": [""]}, "recipients.0", "must not be empty"),
        (CreatePsbtRequest, {"tx_type": "sent"}, "tx_type", "must be 'send'"),
        (CreatePsbtRequest, {"amount": 1}, "amount", "is not known here; look for a mistyped name"),
        (CreatePsbtRequest, {"amounts_sats": [0]}, "amounts_sats.0", "must be 1 or more"),
        (CreatePsbtRequest, {"recipients": ["x"] * 101}, "recipients", "must be 100 at most"),
        (CallContractRequest, {"args": [{}]}, "args.0", "must have a 'type'"),
        (CallContractRequest, {"args": [{"type": "x"}]}, "args.0", "must have as its 'type' one of " + TYPES),
        (Config, {"network": "main"}, "network", "must be 'mainnet', 'testnet4', 'signet' or 'regtest'"),
    ],
)  # fmt: skip
def test_the_sentence_of_each_error(model, value, place, words):
    told = {fault_place(fault): fault_words(fault) for fault in faults(model, value)}
    assert told[place] == words


def test_a_person_reads_the_fields_in_words():
    given = {"tx_type": "send", "recipients": [""], "amounts_sats": [0], "wallet_id": "../x", "amount": 1}
    assert fault_sentences(faults(CreatePsbtRequest, given)) == (
        "The workspace's id is missing; the vault's id takes only letters, digits, - and _; "
        "number 1 of the recipients must not be empty."
    )
    assert fault_sentence(faults(CreatePsbtRequest, given)[-1]).startswith("'amount' is not known here")


def test_a_value_is_never_repeated():
    (fault,) = faults(LoginRequest, {"email": "hunter2", "password": "x"})
    assert "hunter2" not in fault_words(fault)
