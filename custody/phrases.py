"""What a status is called on the wire, alike on every Python: 3.13 took RFC 9110's words for two of them."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

_BEFORE: Final[Mapping[int, str]] = MappingProxyType(
    {413: "Request Entity Too Large", 422: "Unprocessable Entity"}
)


def phrase_of(status: HTTPStatus) -> str:
    return _BEFORE.get(status, status.phrase)
