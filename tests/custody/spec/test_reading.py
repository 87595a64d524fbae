"""The specification is really read: an empty table would let everything pass."""

from custody.schemas.permissions import PermissionName
from tests.custody.spec.places import PLACES
from tests.custody.spec.reading import Specification


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
