"""Errors of the platform, the connection or a request's validation, as a command's last words."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING

from custody.cli.common import Stop
from custody.terminal import Exit

if TYPE_CHECKING:
    from pydantic import ValidationError

    from custody.client import ApiError, ClientError

# Fields that a person fills in, in words. An error in any other field is a bug of ours.
_WRITTEN = MappingProxyType(
    {
        "amounts_sats": "an amount of satoshis",
        "cycle_day": "the day",
        "description": "the description",
        "email": "the e-mail address",
        "fee_rate": "the fee rate",
        "invited_email": "the e-mail address",
        "m": "the number of signatures",
        "name": "the name",
        "op_return": "the data",
        "otp": "the one-time code",
        "recipients": "the recipient",
        "signers": "the signers",
    }
)


@contextmanager
def refusals() -> Iterator[None]:
    """Turns the errors of the client and of validation into Stop."""
    from pydantic import ValidationError

    from custody.client import ApiError, ClientError

    try:
        yield
    except ApiError as error:
        raise _of_platform(error) from None
    except ClientError as error:
        raise _of_client(error) from None
    except ValidationError as error:
        raise _of_shape(error) from None


def _of_platform(error: "ApiError") -> Stop:
    problem = error.problem
    if problem.status == HTTPStatus.UNAUTHORIZED:
        return Stop(problem.detail, "", Exit.SIGNED_OUT, code=problem.code)
    trace = f"The operator finds it by its trace, {problem.trace_id}." if problem.trace_id else ""
    hint = trace if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
    if error.retry_after_seconds:
        hint = f"Try again in {error.retry_after_seconds:.0f} seconds."
    hint = hint or f"custody explain {problem.code} says what to do, and who can."
    return Stop(problem.detail, hint, Exit.PLATFORM, code=problem.code)


def _of_client(error: "ClientError") -> Stop:
    from custody.client import SignedOut, Unreachable

    if isinstance(error, SignedOut):
        return Stop(str(error), "Run custody login.", Exit.SIGNED_OUT, code=error.code)
    if isinstance(error, Unreachable):
        sentence = f"the platform gave no answer ({error})"
        return Stop(sentence, "Check the network and the address.", Exit.PLATFORM, code=error.code)
    return Stop(str(error), error.hint, Exit.PLATFORM, code=error.code)


def _of_shape(error: "ValidationError") -> Stop:
    from custody.schemas.faults import fault_words

    first = error.errors(include_url=False, include_input=False)[0]
    place = str(first["loc"][0]) if first["loc"] else ""
    words = fault_words(first).replace(" in quotes", "")
    if first["type"] == "value_error":
        # The sentence of one of our validators; a model's begins with the field's name.
        sentence = words.partition(": ")[2] or words
    else:
        sentence = f"{_WRITTEN.get(place, place)} {words}"
    return Stop(sentence, "", Exit.USAGE, code="invalid-request")
