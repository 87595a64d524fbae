"""The specification's 42 endpoints against the OpenAPI document and what a running platform answered, field
by field, and the page that says so: docs/understand/conformance.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from custody.schemas.calls import CALLS
from tests.custody.spec.day import Day
from tests.custody.spec.places import MAY_BE_ABSENT, PLACES
from tests.custody.spec.reading import Asked, Call, Specification
from tests.custody.spec.shapes import EACH, Document, Step, find, in_words, value_is
from tests.custody.spec.told import REASONS, TOLD, Told

ABSENT, UNTYPED = "no", "not shown"
EXACT, PLAIN, DIFFERS = "exact", "exact; no field is told", "**differs**"
_MEMBERS = {row.path for row in CALLS if row.needs == frozenset()}


@dataclass(frozen=True)
class Line:
    """One thing that the specification tells, and how it is served."""

    part: str
    name: str
    told: str
    served: str
    live: str
    is_exact: bool


@dataclass(frozen=True)
class Row:
    """An endpoint. ``beyond``: what the server takes and the specification does not tell of."""

    method: str
    path: str
    lines: tuple[Line, ...]
    beyond: tuple[str, ...]

    @property
    def wrong(self) -> list[Line]:
        return [line for line in self.lines if not line.is_exact]

    @property
    def verdict(self) -> str:
        if self.wrong:
            return REASONS.get(self.path, DIFFERS)
        return EXACT if {line.part for line in self.lines} - {"method", "permission"} else PLAIN


@dataclass(frozen=True)
class Comparison:
    specification: Specification
    document: Document
    day: Day

    @cached_property
    def rows(self) -> list[Row]:
        return [self._row(call) for _, call in sorted(self.specification.calls.items())]

    def _row(self, call: Call) -> Row:
        told = TOLD.get(call.path, ())
        method, operation = self.document.operation(call.path)
        if call.method:
            method = call.method
        asked = {name: each for one in told for name, each in one.asked.items()} | call.asked
        fields, _ = self.document.asked(call.path)
        lines = (
            self._method(call, told),
            self._permission(call, operation),
            *self._asked(call.path, asked),
            *self._answered(call, told),
            *self._records(call.path),
        )
        return Row(method, call.path, lines, tuple(name for name in fields if name not in asked))

    def _method(self, call: Call, told: Sequence[Told]) -> Line:
        served = " and ".join(sorted(name.upper() for name in self.document.paths.get(call.path, ())))
        decided = next((each.method for each in told if each.method), None)
        live = sorted({each.method for each in self.day.heard.answers(call.path)})
        right = (call.method or decided) in served.split(" and ") and bool(live)
        return Line("method", "", call.method or UNTYPED, served, " and ".join(live) or ABSENT, right)

    def _permission(self, call: Call, operation: Any) -> Line:
        served = frozenset(operation["x-permissions"])
        told = ", ".join(sorted(call.permissions)) or UNTYPED
        nobody = "a sign-in" if "security" in operation else "none"
        shown = ", ".join(sorted(served)) or ("any member" if call.path in _MEMBERS else nobody)
        return Line("permission", "", told, shown, "", not call.permissions or served == call.permissions)

    def _asked(self, path: str, asked: dict[str, Asked]) -> Iterator[Line]:
        """Each was sent with success, and a call succeeded that sent nothing else."""
        fields, required = self.document.asked(path)
        calls = list(self.day.heard.answers(path))
        sent = [each for each in calls if each.sent.keys() <= asked.keys()]
        for name, one in asked.items():
            schema = fields.get(name)
            served = (
                ABSENT if schema is None else f"{in_words(self.document, schema)}{_need(name in required)}"
            )
            fits = schema is not None and self.document.is_a(schema, one.type, may_be_null=not one.required)
            live = "taken" if any(name in each.sent for each in sent) else ABSENT
            exact = fits and (name in required) is one.required and live != ABSENT
            yield Line("asked", name, f"{one.type}{_need(one.required)}", served, live, exact)
        for name in sorted(required - asked.keys()) if asked else ():
            served = f"required {in_words(self.document, fields[name])}"
            yield Line("asked", name, ABSENT, served, "", is_exact=False)

    def _answered(self, call: Call, told: Sequence[Told]) -> Iterator[Line]:
        named = call.answered | {name: words for each in told for name, words in each.answered.items()}
        for name, words in named.items():
            trail: tuple[Step, ...] = tuple(
                part for step in name.split(".") for part in step.replace(EACH, f"/{EACH}").split("/") if part
            )
            if words == "User":
                continue  # among the records
            yield self._field("answer", name, words, call.path, trail)

    def _records(self, path: str) -> Iterator[Line]:
        for record, places in PLACES.items():
            for trail in (trail for shown, trail in places if shown == path):
                fields = self.specification.records[record].items()
                found = [
                    self._field(record, name, words, path, (*trail, name), (record, name) in MAY_BE_ABSENT)
                    for name, words in fields
                ]
                right = sum(line.is_exact for line in found)
                seen = sum(line.live != ABSENT for line in found)
                where, count = ".".join(trail) or "the answer", f"{len(found)} fields"
                yield Line(record, where, count, f"{right} as told", f"{seen} seen", right == len(found))
                yield from (line for line in found if not line.is_exact)

    def _field(
        self,
        part: str,
        name: str,
        words: str,
        path: str,
        trail: tuple[Step, ...],
        may_be_absent: bool = False,
    ) -> Line:
        schemas = self.document.answered(path, *trail)
        seen = [value for each in self.day.heard.answers(path) for value in find(each.answer, trail)]
        right = bool(schemas) and bool(seen)
        if words:
            right &= self.document.is_any(schemas, words, may_be_null=may_be_absent)
            right &= all(value_is(value, words) for value in seen)
        served = " or ".join(dict.fromkeys(in_words(self.document, each) for each in schemas)) or ABSENT
        return Line(part, name, words or UNTYPED, served, _kinds(seen), right)


def _need(is_required: bool) -> str:
    return "" if is_required else ", optional"


_KINDS = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", dict: "object",
          list: "array"}  # fmt: skip


def _kinds(seen: Sequence[object]) -> str:
    return " or ".join(sorted({_KINDS[type(value)] for value in seen})) or ABSENT
