"""The specification beside the project, a whole day of a platform held against it, and a platform whose
every record can be read.
"""

from collections.abc import Iterator

import pytest

from tests.custody.spec.conformance import Comparison
from tests.custody.spec.day import live
from tests.custody.spec.reading import PATH, Specification, read
from tests.custody.spec.shapes import Document
from tests.custody.spec.staging import Stage, open_stage


@pytest.fixture(scope="session")
def specification() -> Specification:
    if not PATH.exists():
        pytest.skip("the specification is not beside this clone: it stands in ../shared/spec")
    return read(PATH.read_text())


@pytest.fixture(scope="module")
def comparison(
    specification: Specification, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Comparison]:
    with live(tmp_path_factory.mktemp("state")) as day:
        yield Comparison(specification, Document(day.desk.world.platform.asgi.openapi()), day)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("state")) as opened:
        yield opened
