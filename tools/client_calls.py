"""Writes ``custody/client/calls.py``, the client's methods of the declared calls:
``python -m tools.client_calls``. A test compares (``tests/custody/client/test_calls.py``).
"""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from custody.schemas.call import Call
from custody.schemas.calls import NOUNS, client_calls

FILE = Path(__file__).parents[1] / "custody" / "client" / "calls.py"
# Functions of the client's ``flow``: by the arguments that many calls have, and no others.
USUAL = MappingProxyType(
    {(): "nothing", ("workspace_id",): "of_workspace", ("workspace_id", "vault_id"): "of_vault"}
)
HEAD = (
    '"""The client\'s methods of the declared calls. Written by ``tools/client_calls.py``: do not edit."""\n'
)


def written() -> str:
    imports: dict[str, set[str]] = {"custody.client.flow": set()}
    methods = [
        line
        for module in NOUNS.values()
        for constant, call in client_calls(module)
        for line in _method(constant, call, module.__name__, imports)
    ]
    lines = [
        f"from {module} import {', '.join(sorted(names, key=_order))}"
        for module, names in sorted(imports.items())
    ]
    lines = [
        *(line for line in lines if "custody" not in line),
        "",
        *(line for line in lines if "custody" in line),
    ]
    return "\n".join([HEAD, *lines, "", "\nclass Calls:", *methods, ""])


def _order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions: as the formatter orders them."""
    return not name.isupper(), name[0].islower(), name.lower()


def _method(constant: str, call: Call[Any, Any], home: str, imports: dict[str, set[str]]) -> Iterator[str]:
    imports.setdefault(home, set()).add(constant)
    flow = imports["custody.client.flow"]
    if call.shape is not None and call.method == "POST" and not call.path_ids:
        flow |= {"keyed", "sends"} if call.creates else {"posts"}
        made = f"sends({constant})(keyed({constant}))" if call.creates else f"posts({constant})"
        yield f"    {constant.lower()} = {made}"
        return
    flow.add("sends")
    fields = call.shape.model_fields if call.shape is not None else {}
    if (usual := USUAL.get(tuple(fields))) is not None and not call.path_ids:
        flow.add(usual)
        yield f"    {constant.lower()} = sends({constant})({usual})"
        return
    takes, named = [f"{name}: int" for name in call.path_ids], []
    if call.shape is not None and call.method == "POST":
        takes.append(f"body: {_named(call.shape, imports)}")
    elif call.shape is not None:
        needed = {
            name: _typed(found.annotation, imports) for name, found in fields.items() if found.is_required()
        }
        # A bare True says nothing of what it is: it is given by its name.
        takes += [f"{name}: {kind}" for name, kind in needed.items() if kind != "bool"]
        named += [f"{name}: {kind}" for name, kind in needed.items() if kind == "bool"]
        named += [
            f"{name}: {_typed(found.annotation, imports)} | None = None"
            for name, found in fields.items()
            if not found.is_required()
        ]
    if call.creates:
        named.append("idempotency_key: str | None = None")
    takes += ["*", *named] if named else []
    returned, body = "None", "..."
    if call.path_ids or call.method == "POST":
        flow.add("Sent")
        sent = ["body"] if call.shape is not None else []
        if call.path_ids:
            sent.append("path={" + ", ".join(f'"{name}": {name}' for name in call.path_ids) + "}")
        sent += ["key=idempotency_key"] if call.creates else []
        returned, body = "Sent", f"return Sent({', '.join(sent)})"
    yield f"\n    @sends({constant})"
    yield "    @staticmethod"
    yield f"    def {constant.lower()}({', '.join(takes)}) -> {returned}:"
    yield f"        {body}\n"


def _named(shape: type[BaseModel], imports: dict[str, set[str]]) -> str:
    imports.setdefault(shape.__module__, set()).add(shape.__name__)
    return shape.__name__


def _typed(kind: Any, imports: dict[str, set[str]]) -> str:
    """The plain type of a query's field, without None: what bounds it is the shape's."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return " | ".join(_typed(each, imports) for each in inner if each is not NoneType)
    if origin is Annotated:
        return _typed(inner[0], imports)
    if origin is list:
        return f"list[{_typed(inner[0], imports)}]"
    if origin is Literal:
        return "str"
    return kind.__name__ if kind.__module__ == "builtins" else _named(kind, imports)


if __name__ == "__main__":
    FILE.write_text(written())
