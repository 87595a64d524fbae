"""Pictures are small, stand in a guide, and say in words what they show. Those of devices' screens are what
the virtual devices show.
"""

import re

from tests.support.device_pictures import FOLDER, pictures
from tests.support.pages import DOCS, PAGES

MOST_BYTES = 60_000


def test_each_picture_is_current_and_stands_in_a_guide_with_its_words():
    """Where they differ: ``python -m tests.support.device_pictures``."""
    guides = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "sign").glob("*.md"))
    drawn = list(pictures())
    assert sorted(FOLDER.iterdir()) == sorted(path for path, _, _ in drawn)
    for path, svg, link in drawn:
        assert path.read_text(encoding="utf-8") == svg, path.name
        assert link in guides, link


def test_pictures_of_pages_are_small_and_stand_in_a_guide_with_their_words():
    guides = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for picture in (DOCS / "assets").glob("*.png"):
        assert picture.stat().st_size < MOST_BYTES, picture.name
        assert re.search(rf"!\[[^\]]{{20,}}\]\(\.\./assets/{picture.name}\)", guides), picture.name
