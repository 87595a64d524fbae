"""Pictures of QR codes."""

import struct

import pytest

from firmware_bridge.airgap import Content, Picture, bbqr, draw, version_of
from firmware_bridge.airgap.transfer import MAX_TEXT

SERIES = bbqr.split(bytes(range(256)) * 5, Content.PSBT, encoding=bbqr.Encoding.HEX, max_characters=900)


def png_width(content):
    assert content.startswith(b"\x89PNG")
    return struct.unpack(">I", content[16:20])[0]


def test_svg():
    content = draw("B$HP0100AB")
    assert content.startswith(b"<?xml")
    assert b"<svg" in content


def test_png_has_the_size_of_its_version():
    # 21 squares in version 1, 29 in 3, and four of margin on each side.
    assert png_width(draw("B$HP0100AB", Picture.PNG, scale=3)) == (21 + 8) * 3
    assert png_width(draw("B$HP0100AB", Picture.PNG, scale=1, version=3)) == 29 + 8


def test_a_terminal():
    lines = draw("B$HP0100AB", Picture.TERMINAL).decode().splitlines()
    assert {len(line) for line in lines} == {21 + 8}
    assert set("".join(lines)) <= set("█▀▄ ")


def test_a_series_keeps_its_size():
    version = version_of(SERIES)
    assert len({png_width(draw(text, Picture.PNG, version=version)) for text in SERIES}) == 1
    assert version_of([SERIES[0]]) == version


def test_the_dense_mode_is_used_and_the_lowest_level():
    # BBQr.md, "Size Estimates": what versions 27 and 40 hold.
    assert version_of(["A" * bbqr.DEFAULT_CHARACTERS]) == 27
    assert version_of(["A" * (bbqr.DEFAULT_CHARACTERS + 1)]) == 28
    assert version_of(["A" * MAX_TEXT]) == 40


def test_what_does_not_fit():
    with pytest.raises(ValueError):
        draw("A" * (MAX_TEXT + 1))
    with pytest.raises(ValueError):
        draw("A" * 100, version=1)
    with pytest.raises(ValueError):
        version_of([])
