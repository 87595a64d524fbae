"""Every exchange of a client with a platform, kept to be held against what was promised."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import httpx


@dataclass(frozen=True)
class Exchange:
    method: str
    path: str
    sent: Mapping[str, Any]
    status: int
    answer: Any


class Recorder:
    """Records every answer that a client gets, by path without the query."""

    def __init__(self, http: httpx.Client) -> None:
        self._kept: list[Exchange] = []
        http.event_hooks["response"].append(self._hear)

    def answers(self, path: str) -> Iterator[Exchange]:
        """Those with success."""
        return (each for each in self._kept if each.path == path and each.status == 200)

    def _hear(self, response: httpx.Response) -> None:
        response.read()
        asked = response.request
        query = dict(parse_qsl(asked.url.query.decode()))
        sent = query if asked.method == "GET" else json.loads(asked.content or b"{}")
        body = response.json() if response.content else None
        self._kept.append(Exchange(asked.method, asked.url.path, sent or {}, response.status_code, body))
