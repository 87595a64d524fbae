"""What is wrong with a value, in words: pydantic's findings as a person reads them."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, get_args

from pydantic import StringConstraints

# By pydantic's type of error (https://docs.pydantic.dev/latest/errors/validation_errors/), with its context.
_WORDS = MappingProxyType(
    {
        "bool_parsing": "must be true or false",
        "bool_type": "must be true or false",
        "decimal_max_digits": "has too many digits: at most {max_digits}",
        "decimal_max_places": "has too many places after the point: at most {decimal_places}",
        "decimal_parsing": "must be a number",
        "decimal_type": "must be a number",
        "enum": "must be {expected}",
        "extra_forbidden": "is not known here; look for a mistyped name",
        "finite_number": "must be a number",
        "float_parsing": "must be a number",
        "float_type": "must be a number",
        "frozen_set_type": "must be a list",
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be {ge} or more",
        "int_from_float": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_parsing_size": "is too large a number",
        "int_type": "must be a whole number, without quotes or a point",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be {le} or less",
        "list_type": "must be a list",
        "literal_error": "must be {expected}",
        "missing": "is missing",
        "path_not_file": "names no existing file",
        "path_type": "must be a path in quotes",
        "string_sub_type": "must be text",
        "string_too_long": "is too long: at most {max_length} characters",
        "string_type": "must be text",
        "string_unicode": "must be text in UTF-8",
        "too_long": "has too many entries: at most {max_length}",
        "too_short": "has too few entries: at least {min_length}",
        "tuple_type": "must be a list",
        "union_tag_invalid": "must have as its {discriminator} one of {expected_tags}",
        "union_tag_not_found": "must have a {discriminator}",
    }
)
_KINDS = {
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "date_": "a date, such as 2026-05-31",
    "datetime_": "a moment, such as 2026-05-31T12:00:00Z",
}


_NO_OTHERS: Mapping[str, str] = MappingProxyType({})


@cache
def _patterns() -> Mapping[str, str]:
    """What a text of each pattern is. Loaded only after a mistake: most programs need few of the shapes."""
    from custody.schemas.auth import OneTimeCode, SixDigits
    from custody.schemas.common import DecimalText, EmailAddress, TextId
    from custody.schemas.keys import FingerprintText, PathText
    from custody.schemas.proposals import FeeRateText
    from custody.schemas.purchases import CurrencyCode
    from custody.schemas.users import PhoneNumberOrNothing

    named: Mapping[Any, str] = {
        CurrencyCode: "must be a currency's code, such as EUR",
        DecimalText: 'must be a number in quotes, such as "0.25", with at most eight places',
        EmailAddress: "must be an e-mail address, such as ada@example.org",
        FeeRateText: 'must be a rate in sat/vB in quotes, such as "2.5", with at most three places',
        FingerprintText: "must be a fingerprint: eight hexadecimal digits",
        OneTimeCode: "must be six digits, or a recovery code",
        PathText: "must be a derivation path, such as m/48h/0h/0h/2h",
        PhoneNumberOrNothing: "must be a telephone number, such as +44 20 7946 0000",
        SixDigits: "must be six digits",
        TextId: "takes only letters, digits, - and _",
    }
    limits = ((each, words) for of, words in named.items() for each in get_args(of))
    return {
        each.pattern: words
        for each, words in limits
        if isinstance(each, StringConstraints) and isinstance(each.pattern, str)
    }


def fault_words(fault: Mapping[str, Any], patterns: Mapping[str, str] = _NO_OTHERS) -> str:
    """One of pydantic's ``errors()`` as the rest of a sentence that begins with the value's name.
    ``patterns``: what a text of each of the caller's own patterns is.

    Of pydantic's own findings it does not repeat the value, which may have been a password. A sentence of our
    own validators is told as it is: two repeat a count or a check's name, and none a secret.
    """
    kind, context = str(fault["type"]), fault.get("ctx", {})
    if pattern := context.get("pattern"):
        return patterns.get(pattern) or _patterns().get(pattern, "is not written as it must be")
    # A secret's own kind of value: no list.
    if kind in {"too_short", "too_long"} and context.get("field_type") == "Value":
        kind = f"string_{kind}"
    if kind == "string_too_short":
        least = context["min_length"]
        return "must not be empty" if least == 1 else f"is too short: at least {least} characters"
    if kind in _WORDS:
        return _WORDS[kind].format(**context)
    for prefix, words in _KINDS.items():
        if kind.startswith(prefix):
            return f"must be {words}"
    # Our own validators' sentences, and what pydantic may come to say.
    return re.sub(r"^(Value|Assertion) error, ", "", str(fault["msg"]))


def fault_place(fault: Mapping[str, Any]) -> str:
    """The value's name, with those around it: ``recipients.0``; empty for the whole."""
    return ".".join(str(part) for part in fault["loc"])
