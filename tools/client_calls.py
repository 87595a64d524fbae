"""Writes ``custody/client/calls.py``, the client's methods of the declared calls:
``python -m tools.client_calls``. A test compares (``tests/custody/client/test_calls.py``).
"""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

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
    flow, modules = set[str](), set[str]()
    methods = [
        line
        for module in NOUNS
        for constant, call in client_calls(module)
        for line in _method(f"{_module(module.__name__, modules)}.{constant}", call, flow, modules)
    ]
    times = ", ".join(kind for kind in ("date", "datetime") if any(f": {kind} " in each for each in methods))
    lines = [
        f"from datetime import {times}",
        "",
        f"from custody.client.flow import {', '.join(sorted(flow, key=lambda name: (name.islower(), name)))}",
        *(f"from custody.schemas import {module} as _{module}" for module in sorted(modules)),
    ]
    return "\n".join([HEAD, *lines, "", "\nclass Calls:", *methods, ""])


def _module(name: str, modules: set[str]) -> str:
    """What the module is called there: methods have the nouns' own names."""
    modules.add(name.rpartition(".")[2])
    return "_" + name.rpartition(".")[2]


def _method(constant: str, call: Call[Any, Any], flow: set[str], modules: set[str]) -> Iterator[str]:
    name = constant.rpartition(".")[2].lower()
    if call.shape is not None and call.method == "POST" and not call.path_ids:
        flow |= {"keyed", "sends"} if call.creates else {"posts"}
        made = f"sends({constant})(keyed({constant}))" if call.creates else f"posts({constant})"
        yield f"    {name} = {made}"
        return
    flow.add("sends")
    fields = call.shape.model_fields if call.shape is not None else {}
    if (usual := USUAL.get(tuple(fields))) is not None and not call.path_ids:
        flow.add(usual)
        yield f"    {name} = sends({constant})({usual})"
        return
    takes, named = [f"{each}: int" for each in call.path_ids], []
    if call.shape is not None and call.method == "POST":
        takes.append(f"body: {_typed(call.shape, modules)}")
    else:
        needed = {
            each: _typed(found.annotation, modules) for each, found in fields.items() if found.is_required()
        }
        # A bare True says nothing of what it is: it is given by its name.
        takes += [f"{each}: {kind}" for each, kind in needed.items() if kind != "bool"]
        named += [f"{each}: {kind}" for each, kind in needed.items() if kind == "bool"]
        named += [
            f"{each}: {_typed(found.annotation, modules)} | None = None"
            for each, found in fields.items()
            if not found.is_required()
        ]
    if call.creates:
        named.append("idempotency_key: str | None = None")
    takes += ["*", *named] if named else []
    returned, body = "None", "..."
    if call.path_ids:
        flow.add("Sent")
        path = ", ".join(f'"{each}": {each}' for each in call.path_ids)
        key = ", key=idempotency_key" if call.creates else ""
        returned, body = "Sent", f"return Sent(body, path={{{path}}}{key})"
    yield f"\n    @sends({constant})"
    yield "    @staticmethod"
    yield f"    def {name}({', '.join(takes)}) -> {returned}:"
    yield f"        {body}\n"


def _typed(kind: Any, modules: set[str]) -> str:
    """The plain type of a query's field, without None: what bounds it is the shape's."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        return " | ".join(_typed(each, modules) for each in inner if each is not NoneType)
    if origin is Annotated:
        return _typed(inner[0], modules)
    if origin is list:
        return f"list[{_typed(inner[0], modules)}]"
    if origin is Literal:
        return "str"
    is_ours = kind.__module__.startswith("custody.")
    return f"{_module(kind.__module__, modules)}.{kind.__name__}" if is_ours else kind.__name__


if __name__ == "__main__":
    FILE.write_text(written())
