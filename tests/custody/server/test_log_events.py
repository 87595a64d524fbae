"""docs/operate/logs.md names every event that the source writes,
with its levels and its fields, and no other.
"""

from tests.support.log_events import documented, written


def test_every_event_is_documented_as_it_is_written() -> None:
    found, told = written(), documented()
    assert sorted(found) == sorted(told)
    for name in sorted(found):
        assert (sorted(told[name].levels), sorted(told[name].fields)) == (
            sorted(found[name].levels),
            sorted(found[name].fields),
        ), name
