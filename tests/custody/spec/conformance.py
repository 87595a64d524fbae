"""The specification's 42 endpoints against the OpenAPI document and what a running platform answered, field
by field, for the page that says so: docs/understand/conformance.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.custody.spec.day import Day
from tests.custody.spec.reading import Call, Specification
from tests.custody.spec.shapes import EACH, Document, Step, find, value_is
from tests.custody.spec.told import MAY_BE_ABSENT, METHODS, PLACES, TOLD, Told


@dataclass(frozen=True)
class Line:
    """One thing that the specification tells, and whether it is so. ``seen``: what is there instead."""

    part: str
    name: str
    is_exact: bool
    seen: object = None


@dataclass(frozen=True)
class Row:
    """An endpoint."""

    method: str
    path: str
    lines: tuple[Line, ...]

    @property
    def wrong(self) -> list[Line]:
        return [line for line in self.lines if not line.is_exact]


@dataclass(frozen=True)
class Comparison:
    specification: Specification
    document: Document
    day: Day

    @cached_property
    def rows(self) -> list[Row]:
        return [self._row(call) for _, call in sorted(self.specification.calls.items())]

    def _row(self, call: Call) -> Row:
        told = TOLD.get(call.path, Told())
        method, operation = self.document.operation(call.path)
        served = {name.upper() for name in self.document.paths[call.path]}
        live = {each.method for each in self.day.heard.answers(call.path)}
        is_right = (call.method or METHODS.get(call.path)) in served and bool(live)
        permissions = frozenset(operation["x-permissions"])
        lines = (
            Line("method", "", is_right, (served, live)),
            Line("permission", "", not call.permissions or permissions == call.permissions, permissions),
            *self._asked(call, told),
            *self._answered(call, told),
            *self._records(call.path),
        )
        return Row(call.method or method, call.path, lines)

    def _asked(self, call: Call, told: Told) -> Iterator[Line]:
        """Each was sent with success, and a call succeeded that sent nothing else."""
        asked = told.asked | call.asked
        fields, required = self.document.asked(call.path)
        sent = [each.sent for each in self.day.heard.answers(call.path) if each.sent.keys() <= asked.keys()]
        for name, one in asked.items():
            schema = fields.get(name)
            fits = schema is not None and self.document.is_a(schema, one.type, may_be_null=not one.required)
            is_taken = any(name in each for each in sent)
            yield Line("asked", name, fits and (name in required) is one.required and is_taken, schema)
        for name in sorted(required - asked.keys()) if asked else ():
            yield Line("asked", name, is_exact=False, seen=fields[name])

    def _answered(self, call: Call, told: Told) -> Iterator[Line]:
        for name, words in (call.answered | told.answered).items():
            steps = (part for step in name.split(".") for part in step.replace(EACH, f"/{EACH}").split("/"))
            if words != "User":  # among the records
                yield self._field("answer", name, words, call.path, tuple(filter(None, steps)))

    def _records(self, path: str) -> Iterator[Line]:
        for record, places in PLACES.items():
            for trail in (trail for shown, trail in places if shown == path):
                fields = self.specification.records[record].items()
                found = [
                    self._field(record, name, words, path, (*trail, name), (record, name) in MAY_BE_ABSENT)
                    for name, words in fields
                ]
                wrong = [line for line in found if not line.is_exact]
                yield Line(record, ".".join(trail), not wrong)
                yield from wrong

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
        return Line(part, name, right, (words, schemas, seen[:3]))
