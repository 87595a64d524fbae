"""That the specification is read at all: an empty table would let everything pass."""

from custody.schemas.users import PermissionName
from tests.custody.spec.places import PLACES
from tests.custody.spec.reading import Asked, Specification, read


def test_every_endpoint_with_a_section_of_its_own_is_read(specification: Specification) -> None:
    told = {path for path, call in specification.calls.items() if call.asked}
    assert len(told) == 15
    assert len(specification.calls) == 42


def test_every_record_is_read(specification: Specification) -> None:
    assert set(specification.records) == set(PLACES)
    assert sum(map(len, specification.records.values())) > 120


def test_the_permissions_are_ours(specification: Specification) -> None:
    assert specification.permissions == set(PermissionName)
    named = {name for call in specification.calls.values() for name in call.permissions}
    assert named == specification.permissions


def test_a_table_of_fields_a_line_of_fields_and_an_answer() -> None:
    text = """## Resources
### Permission names
`MANAGE_USERS`
## Endpoints
### POST /api/v1/do
Permission: any one of `MANAGE_USERS`, `VIEW_LOGS`. More.

| Field | Type | Required | Notes |
|---|---|---|---|
| a | string | yes | |
| b | number | no | |

Response: carries `c` and `d` (integer), not `e`s. And `f`.

### Read something: `/api/v1/read`
Query: `g` (number, required), `h` (string).
"""
    calls = read(text).calls
    do, reading = calls["/api/v1/do"], calls["/api/v1/read"]
    assert (do.method, reading.method) == ("POST", None)
    assert do.permissions == {"MANAGE_USERS", "VIEW_LOGS"}
    assert do.asked == {"a": Asked("string", required=True), "b": Asked("number", required=False)}
    assert do.answered == {"c": "", "d": "integer", "e": ""}
    assert reading.asked == {"g": Asked("number", required=True), "h": Asked("string", required=False)}
