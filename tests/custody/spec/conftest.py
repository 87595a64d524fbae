"""The specification beside the project, and a platform whose every record can be read."""

from collections.abc import Iterator

import pytest

from tests.custody.spec.reading import PATH, Specification, read
from tests.custody.spec.shapes import Document
from tests.custody.spec.staging import Stage, open_stage
from tests.support.custody import Desk, open_desk


@pytest.fixture(scope="session")
def specification() -> Specification:
    if not PATH.exists():
        pytest.skip("the specification is not beside this clone: it stands in ../shared/spec")
    return read(PATH.read_text())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("state")) as opened:
        yield opened


@pytest.fixture(scope="module")
def document(desk: Desk) -> Document:
    return Document(desk.world.platform.asgi.openapi())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("state")) as opened:
        yield opened
