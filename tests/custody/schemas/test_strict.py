"""Every request shape: a yes is ``true``, a number is digits, an address is a bare one (RFC 5322)."""

import types
import typing
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from custody.schemas.calls import CALLS
from custody.schemas.common import EmailAddress


def kinds(annotation: object) -> Iterator[object]:
    """What a field may hold, through optional, annotated and listed types."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from kinds(typing.get_args(annotation)[0])
    elif origin in {typing.Union, types.UnionType, list}:
        for each in typing.get_args(annotation):
            yield from kinds(each)
    else:
        yield annotation


def shapes(of: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield of
    for field in of.model_fields.values():
        for kind in kinds(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from shapes(kind)


def fields(method: str, wanted: type) -> list[tuple[type[BaseModel], str]]:
    found = {
        (shape, name)
        for row in CALLS
        if row.method == method and row.shape is not None
        for shape in shapes(row.shape)
        for name, field in shape.model_fields.items()
        if wanted in set(kinds(field.annotation)) and str not in set(kinds(field.annotation))
    }
    return sorted(found, key=str)


REQUESTS = sorted({of for row in CALLS if row.shape for of in shapes(row.shape)}, key=str)
TEXTS = [
    (of, name)
    for of in REQUESTS
    for name, field in of.model_fields.items()
    if str in set(kinds(field.annotation))
]


def faulty(shape: type[BaseModel], name: str, value: object) -> bool:
    """Whether the shape finds fault with this field, whatever else it lacks."""
    key = shape.model_fields[name].alias or name
    try:
        shape.model_validate({key: value})
    except ValidationError as error:
        return any(fault["loc"][:1] == (key,) for fault in error.errors())
    return False


def named(row: tuple[type[BaseModel], str]) -> str:
    return f"{row[0].__name__}.{row[1]}"


@pytest.mark.parametrize("row", [row for each in ("GET", "POST") for row in fields(each, bool)], ids=named)
def test_a_yes_is_true_and_nothing_that_looks_like_it(row):
    assert not faulty(*row, value=True)
    for value in (1, 0, 1.0, "1", "yes", "on", "True", "TRUE", " true", "", [], {}):
        assert faulty(*row, value), value


@pytest.mark.parametrize("row", fields("POST", bool), ids=named)
def test_in_json_a_yes_is_no_text(row):
    assert faulty(*row, value="true")
    assert faulty(*row, value="false")


LOOKALIKES = (
    " 1", "1 ", "+1", "-1", "1_0", "\uff11", "\u0661", "\u00b9", "1.0", "1e1", "0x1", "", "\u200b1", "1\n",
    "true",
)  # fmt: skip


@pytest.mark.parametrize("row", fields("GET", int), ids=named)
def test_a_querys_number_is_digits(row):
    assert not faulty(*row, value="2")
    for value in (*LOOKALIKES, str(2**63)):
        assert faulty(*row, value), value


@pytest.mark.parametrize(
    "text",
    [
        "<a@b.org>", "a@b.org>", "Ada <a@b.org>", "a@b.org,c@d.org", "a@b.org;c@d.org", '"a b"@b.org',
        "a@b@c.org", "a(x)@b.org", "a@[192.0.2.1]", "a\\b@c.org", "a:b@c.org", "a b@c.org", "a@", "@b.org",
        "a@b.org\r\nBcc: c@d.org",
    ],
)  # fmt: skip
def test_an_address_is_a_bare_one(text):
    with pytest.raises(ValidationError):
        TypeAdapter(EmailAddress).validate_python(text)


def test_what_an_address_may_be():
    for text in (
        "ada@example.org",
        "o'brien+x@example.co.uk",
        "ada@bücher.example",
        "!#$%&'*-/=?^_`{|}~@a.b",
    ):
        assert TypeAdapter(EmailAddress).validate_python(f" {text.upper()} ") == text.lower()


NO_AMOUNTS = ("1e3", "NaN", "1.", ".5", "01", "1,0", "Infinity", "0." + "1" * 30, "0.123456789")
AMOUNTS = [row for row in TEXTS if row[1].endswith("_limit") or row[1].startswith("amount_")]


@pytest.mark.parametrize("row", AMOUNTS, ids=named)
def test_p21_an_amount_of_bitcoin_is_a_plain_decimal_in_quotes(row):
    assert not faulty(*row, value="0.00000001")
    for value in (*NO_AMOUNTS, *set(LOOKALIKES) - {"1.0"}, 1, 0.5, None, True):
        assert faulty(*row, value), value


@pytest.mark.parametrize("shape", [of for of in REQUESTS if "cycle_day" in of.model_fields])
@pytest.mark.parametrize(
    ("period", "day"),
    [("W", 0), ("W", 8), ("M", 0), ("M", 32), ("M", -1), ("M", 1.5), ("M", "1"), ("D", 1), ("w", 1)],
)
def test_a_cycle_begins_on_a_day_that_it_has(shape, period, day):
    cycle = {"cycle_period": period, "cycle_day": day}
    with pytest.raises(ValidationError) as refused:
        shape.model_validate(cycle)
    assert any(fault["type"] != "missing" and fault["loc"][0] in cycle for fault in refused.value.errors())


# A person's sentence, what is looked for, and what the handler reads by a grammar of its own.
FREE = {
    "AddWhitelistAddressRequest.address", "AddressBookQuery.search", "CancelPsbtRequest.reason",
    "ContractWhitelistRequest.address", "CreateProofRequest.address", "CreateProofRequest.message",
    "CreatePsbtRequest.description", "CreatePsbtRequest.op_return", "CreateTokenRequest.icon",
    "CreateTokenRequest.ticker", "CreateWebhookRequest.url", "DeclineChangeRequest.reason",
    "ForwardToVaultRequest.wallet_address", "FreezeVaultRequest.reason", "KeyProof.challenge",
    "MaxSendQuery.op_return", "PsbtQuery.search", "ReviewOnboardingRequest.review_note",
    "SignPsbtRequest.reason", "SubmitOnboardingRequest.referral_source_detail", "TextArg.value",
    "VaultHistoryQuery.label",
}  # fmt: skip


@pytest.mark.parametrize("hostile", ["a\nb", "a\u202eb", "a\x1bb"])
def test_p43_p50_every_other_text_stays_on_its_line_and_is_seen_whole(hostile):
    assert {named(row) for row in TEXTS if not faulty(*row, hostile)} == FREE


def test_p50_every_text_has_an_end_and_no_call_takes_a_field_that_it_does_not_name():
    assert {named(row) for row in TEXTS if not faulty(*row, "x" * 30_000)} == {"SignPsbtRequest.psbt_base64"}
    assert {of.model_config["extra"] for of in REQUESTS} == {"forbid"}
