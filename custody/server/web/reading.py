"""What a request carries. The bytes of its body are taken on the event loop, all else is read in the thread that answers it.

FastAPI describes the parameters and says what is wrong with them, but does not lead the call: it would take a thread for the token and
another for the handler, and read the body's shape on the event loop, where everybody waits.
"""

import json
from email.message import Message
from functools import lru_cache
from typing import Any, Final

from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security.utils import get_authorization_scheme_param
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from custody.server.domain.errors import Unauthenticated

# A longer token is none of ours; do not even hash it.
MAX_TOKEN_CHARACTERS = 200
BAD_REQUEST = 400
# There was no body. ``None`` is what JSON calls ``null``.
NOTHING: Final = object()


def token_of(request: Request) -> str:
    """The access token (RFC 6750, section 2.1). Raises Unauthenticated."""
    scheme, token = get_authorization_scheme_param(request.headers.get("Authorization"))
    if scheme.lower() != "bearer" or not 0 < len(token) <= MAX_TOKEN_CHARACTERS:
        raise Unauthenticated("The request carries no access token.")
    return token


async def body_of(request: Request) -> Any:
    """The value of a JSON body, the bytes of any other, or NOTHING.

    Raises RequestValidationError where it is no JSON, and HTTPException where it cannot be read: too large, no text, nested too deep.
    """
    try:
        sent = await request.body()
    except ClientDisconnect:
        raise HTTPException(BAD_REQUEST) from None
    if not sent:
        return NOTHING
    if not _is_json(request.headers.get("content-type", "")):
        return sent
    try:
        return json.loads(sent)
    except json.JSONDecodeError as error:
        fault = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([fault]) from None
    except (ValueError, RecursionError):
        raise HTTPException(BAD_REQUEST) from None


# Callers send one or two; whoever sends others does not fill the memory.
@lru_cache(maxsize=16)
def _is_json(content_type: str) -> bool:
    # Nothing said is not JSON: a foreign page could send that without asking.
    if not content_type:
        return False
    message = Message()
    message["content-type"] = content_type
    kind = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (kind == "json" or kind.endswith("+json"))


class Parameters:
    """Those of a documented route, by the names of its signature."""

    def __init__(self, route: APIRoute) -> None:
        described = route.dependant
        self._path, self._query = described.path_params, described.query_params
        self._headers, self._body = described.header_params, route.body_field
        assert not any(field.field_info.is_required() for field in self._headers), "none has to be there"
        self._header_names = [field.alias for field in self._headers]

    @property
    def has_body(self) -> bool:
        return self._body is not None

    def read(self, request: Request, body: Any) -> dict[str, Any]:
        """Raises RequestValidationError, with every fault there is."""
        values: dict[str, Any] = {}
        faults: list[Any] = []
        if self._path:
            _merge(values, faults, request_params_to_args(self._path, request.path_params))
        if self._query:
            _merge(values, faults, request_params_to_args(self._query, request.query_params))
        # Nearly no call has one.
        if any(map(request.headers.__contains__, self._header_names)):
            _merge(values, faults, request_params_to_args(self._headers, request.headers))
        if self._body is not None:
            _merge(values, faults, self._validated(self._body, body))
        if faults:
            raise RequestValidationError(faults)
        return values

    @staticmethod
    def _validated(field: Any, body: Any) -> tuple[dict[str, Any], list[Any]]:
        if body is NOTHING:
            return {}, [{"type": "missing", "loc": ("body",), "msg": "Field required"}]
        value, faults = field.validate(body, {}, loc=("body",))
        return {field.name: value}, faults


def _merge(values: dict[str, Any], faults: list[Any], more: tuple[dict[str, Any], list[Any]]) -> None:
    values.update(more[0])
    faults.extend(more[1])
