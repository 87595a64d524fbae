"""The client's methods are those of the declared calls."""

import ast
from itertools import chain

import pytest

from custody.client import Client
from custody.schemas.calls import NOUNS, client_calls
from tools.client_calls import FILE, written


def test_they_are_as_written_from_the_declarations() -> None:
    """Else: ``python -m tools.client_calls``."""
    assert ast.dump(ast.parse(FILE.read_text())) == ast.dump(ast.parse(written()))


def test_help_says_what_the_document_says() -> None:
    said = {getattr(Client, name).__doc__ for name in dir(Client)}
    for _, call in chain.from_iterable(map(client_calls, NOUNS)):
        assert f"``{call.method} {call.path}``: {call.text}" in said


def test_the_arguments_of_a_query_have_the_names_of_its_shape() -> None:
    """In a process that has built no shape yet, as a client's is."""
    client = Client("https://custody.example", transport=lambda _request: None)
    for wrong in (lambda: client.contract(1, 2), lambda: client.contract(contract_id=2)):
        with pytest.raises(TypeError, match="workspace_id, contract_uid"):
            wrong()
