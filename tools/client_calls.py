"""Writes ``custody/client/calls.py``, the client's methods of the declared calls:
``python -m tools.client_calls``. A test compares (``tests/custody/client/test_bounded.py``).
"""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from custody.schemas.auth import REFRESH
from custody.schemas.call import Call, SignedBody
from custody.schemas.calls import NOUNS, named_calls

FILE = Path(__file__).parents[1] / "custody" / "client" / "calls.py"
# Functions of the client's ``flow``: by the arguments that many calls have, and no others. The shape names
# those of the rest.
USUAL = MappingProxyType(
    {(): "nothing", ("workspace_id",): "of_workspace", ("workspace_id", "vault_id"): "of_vault"}
)
HEAD = """\
\"""The client's methods of the declared calls. Written by ``tools/client_calls.py``: do not edit.\"""

from custody.client.flow import Sent, keyed, nothing, of_vault, of_workspace, posts, sends
"""


def written() -> str:
    modules = [each.__name__.rpartition(".")[2] for each in NOUNS]
    methods = [
        line
        for noun, module in zip(NOUNS, modules, strict=True)
        for constant, call in named_calls(noun)
        # Not a long poll, nor the renewal of a session, which the client makes by itself, nor what another
        # program signs.
        if not (call.long_poll or call.takes is SignedBody or call is REFRESH)
        for line in _method(f"_{module}.{constant}", call)
    ]
    # Methods have the nouns' own names.
    imports = [f"from custody.schemas import {module} as _{module}" for module in sorted(modules)]
    return "\n".join([HEAD + "\n".join(imports), "", "\nclass Calls:", *methods, ""])


def _method(constant: str, call: Call[Any, Any]) -> Iterator[str]:
    name = constant.rpartition(".")[2].lower()
    shape = f"_{call.takes.__module__.rpartition('.')[2]}.{call.takes.__name__}"
    if call.path_ids:
        takes = [*(f"{each}: int" for each in call.path_ids), f"body: {shape}"]
        path = ", ".join(f'"{each}": {each}' for each in call.path_ids)
        yield f"\n    @sends({constant})"
        yield "    @staticmethod"
        yield f"    def {name}({', '.join(takes)}, *, idempotency_key: str | None = None) -> Sent:"
        yield f"        return Sent(body, path={{{path}}}, key=idempotency_key)\n"
    elif call.shape is not None and call.method == "POST":
        made = f"sends({constant})(keyed({constant}))" if call.creates else f"posts({constant})"
        yield f"    {name} = {made}"
    else:
        usual = USUAL.get(tuple(call.shape.model_fields if call.shape is not None else ()))
        yield f"    {name} = sends({constant})({usual or shape})"


if __name__ == "__main__":
    FILE.write_text(written())
