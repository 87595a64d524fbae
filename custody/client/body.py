"""The body of one answer, bounded while it comes: by its bytes, and by the values that its JSON would
make.
"""

import httpx

from custody.client.errors import BadAnswer
from custody.schemas.measure import has_more_values

# A page of 500 proposals with PSBTs of a hundred kilobytes each is fifty million bytes.
MAX_ANSWER_BYTES = 64 * 1024 * 1024
# A page of 500 proposals with 100 recipients each is 170,000 values. Half a million empty objects take 50 MB;
# as many as 64 MiB of JSON can say would take 2 GB.
MAX_ANSWER_VALUES = 500_000


class Body:
    """Collects the body piece by piece, within its bounds.

    A compressed answer is refused: its size is known only after unpacking, and the client asked for none.

    Raises:
        BadAnswer: it is compressed, or larger than an answer may be.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._bytes = bytearray()
        coding = response.headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise BadAnswer(f"{self._path}: a compressed answer, which was not asked for")

    @property
    def _path(self) -> str:
        return self._response.request.url.path

    def add(self, piece: bytes) -> None:
        self._bytes += piece
        if len(self._bytes) > MAX_ANSWER_BYTES:
            raise BadAnswer(f"{self._path}: an answer of more than {MAX_ANSWER_BYTES:,} bytes")

    def whole(self) -> httpx.Response:
        """The response with its body, which has been read."""
        if has_more_values(self._bytes, MAX_ANSWER_VALUES):
            raise BadAnswer(f"{self._path}: an answer of more than {MAX_ANSWER_VALUES:,} values")
        came = self._response
        return httpx.Response(
            came.status_code, headers=came.headers, content=bytes(self._bytes), request=came.request
        )
