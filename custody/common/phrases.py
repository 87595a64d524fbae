"""The reason phrases of HTTP statuses, the same on every Python: 3.13 changed two of them to RFC 9110's."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

_BEFORE: Final[Mapping[int, str]] = MappingProxyType(
    {413: "Request Entity Too Large", 422: "Unprocessable Entity"}
)


def phrase_of(status: HTTPStatus) -> str:
    return _BEFORE.get(status, status.phrase)
