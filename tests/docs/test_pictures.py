"""The pictures of devices' screens are what the virtual devices show, and the guides say them in words."""

from tests.support.device_pictures import FOLDER, pictures
from tests.support.pages import DOCS


def test_each_picture_is_current_and_stands_in_a_guide_with_its_words():
    """Where they differ: ``python -m tests.support.device_pictures``."""
    guides = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "sign").glob("*.md"))
    drawn = list(pictures())
    assert sorted(FOLDER.iterdir()) == sorted(path for path, _, _ in drawn)
    for path, svg, link in drawn:
        assert path.read_text(encoding="utf-8") == svg, path.name
        assert link in guides, link
