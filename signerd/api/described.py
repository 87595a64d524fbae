"""A call of the loopback: a method's signature and docstring, and one decorator.

::

    @call("POST /devices/{device_id}/accounts", Right.XPUB, body="AccountRequest", seconds=PERSON_SECONDS)
    def device_accounts(self, device_id: shapes.Id, account: shapes.AccountNumber = 0) -> shapes.AccountKeys:
        '''Read the keys of a standard account from a device

        Some devices ask the person first.
        '''

There is no code: a client sends the call, and ``loopback.answers`` says which part of the daemon answers it.
The docstring's first paragraph is the summary in OpenAPI; those that begin with an argument's name describe
the body. Annotations are text: a client that does not check answers never imports the shapes.
"""

import json
from collections.abc import Callable
from functools import cached_property, partial
from inspect import cleandoc, signature
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints
from urllib.parse import urlencode

from custody.common.exchange import HttpReply, HttpRequest, Plan, method
from signerd.asking import DaemonAddress, ask, parse, segment
from signerd.callers import Right
from signerd.endpoint import PREFIX, QUICK_SECONDS
from signerd.errors import DaemonFailed

P = ParamSpec("P")
R = TypeVar("R")


class described(method[DaemonAddress, P, R]):  # noqa: N801 - what its decorator makes of a function
    """A call, as a method of both clients.

    ``place``: the HTTP method, and the path below ``/v1``. ``needs``: the right that its caller needs. An
    argument that the path names is part of it; one of ``headers`` is a header; with a ``body``, which is its
    name in OpenAPI, the others are the fields of that JSON object, else the query. ``seconds``: how long the
    answer may take. ``max_body``: the body's limit in bytes where it is above the common one; the path has no
    parameters then. ``media_type``: of an answer that is no JSON. ``operation``: its id in OpenAPI, where that
    is not its name.
    """

    def __init__(
        self,
        function: Callable[Concatenate[Any, P], R],
        place: str,
        needs: Right,
        *,
        body: str | None = None,
        headers: tuple[str, ...] = (),
        seconds: float = QUICK_SECONDS,
        max_body: int | None = None,
        media_type: str | None = None,
        operation: str | None = None,
    ) -> None:
        self.takes = partial(function, None)
        super().__init__(self.plan, self.takes)
        self.function, self.needs, self.body, self.headers = function, needs, body, headers
        self.method, _, self.path = place.partition(" ")
        self.seconds, self.max_body, self.media_type = seconds, max_body, media_type
        self.name = function.__name__
        self.operation = operation or self.name
        self.__doc__ = function.__doc__

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The annotations. Imports the shapes that they name."""
        return get_type_hints(self.function, include_extras=True)

    def paragraphs(self) -> list[str]:
        return cleandoc(self.__doc__ or "").split("\n\n")

    def place(self, name: str) -> str:
        """Where an argument goes, in OpenAPI's words."""
        if f"{{{name}}}" in self.path:
            return "path"
        if name in self.headers:
            return "header"
        return "query" if self.body is None else "body"

    def plan(self, address: DaemonAddress, /, *args: P.args, **named: P.kwargs) -> Plan[R]:
        """Send it and read the answer. Raises as ``request``, ``asking.ask`` and ``read``."""
        return self.read(address, (yield from ask(address, self.request(address, *args, **named))))

    def request(self, address: DaemonAddress, /, *args: P.args, **named: P.kwargs) -> HttpRequest:
        """What is not given is not sent: the default stands in the description alone.

        Raises InvalidRequest for an id that could change the path, TypeError for other arguments.
        """
        sent: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "body": {}}
        for name, value in signature(self.takes).bind(*args, **named).arguments.items():
            sent[self.place(name)][name] = value
        path = self.path.format_map({name: segment(text) for name, text in sent["path"].items()})
        query = urlencode({name: _as_text(v) for name, v in sent["query"].items() if v is not None})
        url = f"{address.url}{PREFIX}{path}{'?' if query else ''}{query}"
        own = {header(name): _as_text(v) for name, v in sent["header"].items() if v is not None}
        headers, content = {"Accept-Encoding": "identity", **address.headers, **own}, None
        if self.body is not None:
            fields = {name: _as_json(value) for name, value in sent["body"].items()}
            content = json.dumps(fields, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        return HttpRequest(self.method, url, self.seconds, self.seconds, headers, content)

    def read(self, address: DaemonAddress, reply: HttpReply) -> R:
        """Parse the answer. Raises DaemonFailed where it is malformed."""
        if self.function.__annotations__["return"] == "None":
            return None  # type: ignore[return-value]  # R is None
        try:
            if address.is_plain:
                return parse(reply.content)  # type: ignore[no-any-return]  # its fields are the shape's
            from pydantic import TypeAdapter

            # pydantic's errors are ValueErrors.
            return TypeAdapter(self.hints["return"]).validate_json(reply.content)  # type: ignore[no-any-return]
        except ValueError:
            raise DaemonFailed(f"the daemon's answer to {self.path} makes no sense") from None


def call(
    place: str, needs: Right, **given: Any
) -> Callable[[Callable[Concatenate[Any, P], R]], described[P, R]]:
    """Describe a call. The arguments are those of ``described``."""
    return lambda function: described(function, place, needs, **given)


def header(name: str) -> str:
    return name.replace("_", "-")


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_json(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
