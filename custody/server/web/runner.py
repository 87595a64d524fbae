"""Runs one endpoint: its transaction, the permission check in it, and the stored answer of a repeated
request.
"""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from custody.schemas.permissions import Auth
from custody.server.calls import REFUSALS, Invocation, answer, canonical, record_refusal, scope_of
from custody.server.domain.credentials import WorkspaceAccess, anybody
from custody.server.domain.errors import CustodyError, StateConflict
from custody.server.service.requests.changes import Outdated
from custody.server.service.requests.idempotency import Scope
from custody.server.service.sign_in.sessions import require_session
from custody.server.web.callers import FOR_SIGNERS, let_in, require_for_bound, require_for_programs
from custody.server.web.endpoint import Call, Endpoint, Unit, address_of, page_headers, services_of
from custody.server.web.problems import trace_id_of


class Runner:
    """Runs one endpoint, for any request.

    The response is encoded inside the transaction: an error in it must roll back, and a repeated request gets
    the same bytes.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        assert not endpoint.creates or endpoint.unit is Unit.WRITE, (
            "a stored answer needs its effect's transaction"
        )
        self.endpoint = endpoint
        self._adapter: TypeAdapter[Any] = TypeAdapter(endpoint.answers)

    @property
    def awaits(self) -> bool:
        """Whether the handler waits, for ``run_awaited``; else it is for ``run``."""
        return inspect.iscoroutinefunction(self.endpoint.handler)

    def call(self, request: Request, given: Mapping[str, Any]) -> Call[Any]:
        """``given``: what FastAPI read of the request, by the names of the route's parameters."""
        return Call(
            endpoint=self.endpoint,
            services=services_of(request),
            request=request,
            body=given.get("body"),
            trace_id=trace_id_of(request),
            maybe_caller=let_in(given.get("caller"), self.endpoint.path, FOR_SIGNERS),
            ids={name: given[name] for name in self.endpoint.path_ids},
        )

    def run(self, call: Call[Any], idempotency_key: str | None) -> Response:
        declared = self.endpoint.declared
        if declared is not None:
            caller = call.maybe_caller or anybody(address_of(call.request), call.trace_id)
            answered = answer(
                call.services, Invocation(declared, call.body, caller, call.ids, idempotency_key)
            )
            page = answered.page
            headers = {} if page is None else page_headers(declared.path, call.body, page, declared.key)
            return Response(answered.content, media_type="application/json", headers=headers)
        try:
            require_for_programs(call)
            require_for_bound(call)
            if idempotency_key is None:
                return self._transact(call)
            scope = scope_of(call.caller, self.endpoint.method, call.path, idempotency_key)
            with call.services.idempotency.guard(scope):
                return self._transact(call, scope)
        except REFUSALS as error:
            self.record_refusal(call, error)
            raise
        except Outdated as error:
            raise StateConflict(str(error)) from error

    async def run_awaited(self, call: Call[Any]) -> Response:
        """`run` for an async handler."""
        try:
            require_for_programs(call)
            require_for_bound(call)
            return self.answer(await self.endpoint.handler(call))
        except REFUSALS as error:
            await run_in_threadpool(self.record_refusal, call, error)
            raise

    def answer(self, result: Any) -> Response:
        """A handler returns its shape, or a whole response where it sets headers or a status."""
        return result if isinstance(result, Response) else _json(self._encode(result))

    def _encode(self, result: Any) -> bytes:
        return self._adapter.dump_json(result, by_alias=True)

    def _transact(self, call: Call[Any], scope: Scope | None = None) -> Response:
        store = call.services.store
        match self.endpoint.unit:
            case Unit.OWN:
                return self.answer(self.endpoint.handler(call))
            case Unit.READ:
                with store.read() as db:
                    return self.answer(self.endpoint.handler(self._permitted(call, db)))
            case Unit.WRITE:
                return self._write(call, scope)

    def _write(self, call: Call[Any], scope: Scope | None) -> Response:
        with call.services.store.write() as db:
            # Checked first: a stored answer is no way around a permission that was taken away (P23).
            ready = self._permitted(call, db)
            if scope is None:
                return self.answer(self.endpoint.handler(ready))
            return _json(
                call.services.idempotency.once(
                    db, scope, canonical(call.body), lambda: self._encode(self.endpoint.handler(ready))
                )
            )

    def _permitted(self, call: Call[Any], db: Session) -> Call[Any]:
        if self.endpoint.unit is Unit.WRITE and call.maybe_caller is not None:
            # A change may have waited seconds for its turn: a session that was ended since then changes
            # nothing.
            require_session(db, call.caller)
        return replace(call, maybe_db=db, maybe_access=self._enter(call, db))

    def _enter(self, call: Call[Any], db: Session) -> WorkspaceAccess | None:
        if isinstance(self.endpoint.needs, Auth):
            return None
        return call.enter(db, getattr(call.body, self.endpoint.workspace_field))

    def record_refusal(self, call: Call[Any], error: CustodyError) -> None:
        """Raises RateLimited."""
        record_refusal(
            call.services,
            call.caller,
            f"{self.endpoint.method} {call.path}",
            getattr(call.body, self.endpoint.workspace_field, None),
            error,
            is_change=self.endpoint.is_write,
        )


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
