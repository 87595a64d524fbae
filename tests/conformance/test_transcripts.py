"""What each virtual device shows and does is what its transcript says, in every situation."""

import pytest

from tests.conformance.situations import SITUATIONS, play
from tests.conformance.stage import Played, seen
from tests.conformance.transcripts import Entry, load_all
from tests.support.examples import drawn

CELLS = [
    pytest.param(transcript, name, id=f"{transcript.name}-{name}")
    for name in SITUATIONS
    for transcript in drawn(load_all(), len(load_all()), of=name)
]


@pytest.mark.anyio
@pytest.mark.parametrize(("transcript", "name"), CELLS)
async def test_a_device_does_what_its_transcript_says(transcript, name, folder):
    entry = transcript.entries[name]
    played = await play(transcript, name, folder)
    assert entry.is_absent == (played is None)
    if played is not None:
        compare(entry, *played)


def compare(entry: Entry, ends: list[Played], values: dict[str, str]) -> None:
    for end in ends:
        assert end.outcome in entry.outcomes, end
        assert entry.detail in end.detail
        assert end.seconds >= entry.pause
    if entry.screens is not None:
        expected = [screen.filled(values) for screen in entry.screens]
        assert seen(ends[-1].screens) == seen(expected)
