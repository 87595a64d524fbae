"""The client's methods are those of the declared calls."""

import ast
from itertools import chain

import pytest

from custody.client.clients import Client
from custody.schemas.calls import NOUNS, SIGNING, named_calls
from custody.schemas.purchases import PURCHASES_WEBHOOK
from tools.client_calls import FILES, FOLDER, written


@pytest.mark.parametrize("name", FILES)
def test_they_are_as_written_from_the_declarations(name: str) -> None:
    """Else: ``python -m tools.client_calls``."""
    assert ast.dump(ast.parse((FOLDER / name).read_text())) == ast.dump(ast.parse(written(FILES[name])))


def test_help_says_what_the_document_says() -> None:
    said = {getattr(Client, name).__doc__ for name in dir(Client)}
    for _, call in chain.from_iterable(map(named_calls, (*NOUNS.values(), *SIGNING.values()))):
        assert call is PURCHASES_WEBHOOK or f"``{call.method} {call.path}``: {call.text}" in said
