"""Whatever a person may do over HTTP has a method in the SDK, whose first words say which call it is."""

import re

import pytest

from custody.client.clients import Api
from custody.server.web.table import ENDPOINTS

# Another program's, with a signature of its own in the place of a sign-in; and what a client does by itself.
NOT_A_PERSONS = {"/webhooks/purchases", "/auth/refresh"}


def described() -> dict[str, str]:
    """By the name of the method: the call that its docstring begins with."""
    found = {}
    for name in dir(Api):
        told = re.match(r"``(GET|POST) (/[^`?]+)", _plan(name).__doc__ or "")
        if told:
            found[name] = f"{told.group(1)} {told.group(2)}"
    return found


def _plan(name: str) -> object:
    """As it is described: through the class it would be bound to a client."""
    return next(vars(base)[name] for base in Api.__mro__ if name in vars(base))


@pytest.mark.parametrize(
    "call",
    sorted(f"{row.method} {row.path}" for row in ENDPOINTS if row.path not in NOT_A_PERSONS),
)
def test_every_endpoint_has_a_method(call: str) -> None:
    assert call in described().values()


def test_no_method_calls_what_is_not_served() -> None:
    served = {f"{row.method} {row.path}" for row in ENDPOINTS}
    assert set(described().values()) <= served
