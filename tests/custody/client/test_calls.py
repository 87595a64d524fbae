"""The client's methods are those of the declared calls."""

import ast

import pytest

from custody.client import Client
from tools.client_calls import FILE, written


def test_they_are_as_written_from_the_declarations() -> None:
    """Else: ``python -m tools.client_calls``."""
    assert ast.dump(ast.parse(FILE.read_text())) == ast.dump(ast.parse(written()))


def test_the_arguments_of_a_query_have_the_names_of_its_shape() -> None:
    """In a process that has built no shape yet, as a client's is."""
    client = Client("https://custody.example", transport=lambda _request: None)
    for wrong in (lambda: client.contract(1, 2), lambda: client.contract(contract_id=2)):
        with pytest.raises(TypeError, match="workspace_id, contract_uid"):
            wrong()
