"""The two areas of memory that files pass through: what the host sent, and what it may fetch."""

from hashlib import sha256

from device_simulators.coldcard.errors import CommandRefused
from device_simulators.coldcard.limits import BLOCK_ALIGNMENT, MAX_BLOCK, MAX_PSBT, MAX_UPLOAD


class Staging:
    """`upld`, `sha2` and `dwld`. A result stays until the next one replaces it, whoever collects it.

    `leases`: nothing but a result is given out, and that only on the link on which it was made, until the next upload.
    """

    def __init__(self, *, leases: bool = False) -> None:
        self._leases = leases
        self._leased = False
        self._uploaded = bytearray()
        self._total = 0
        self._running = sha256()
        self._result = b""

    @property
    def checksum(self) -> bytes:
        """SHA-256 of what has been uploaded so far, 32 bytes."""
        return self._running.digest()

    def end_lease(self) -> None:
        """Another link, or another transaction: the last result is nobody's any more."""
        self._leased = False

    def still_holds(self, content: bytes) -> bool:
        """Whether no upload has written anything else over this one."""
        return content.startswith(self._uploaded)

    def receive(self, offset: int, total: int, data: bytes) -> int:
        """Store one block and return its offset. Blocks come in order from 0, aligned to 256 bytes."""
        if offset % BLOCK_ALIGNMENT:
            raise CommandRefused("alignment")
        if total > MAX_UPLOAD or offset + len(data) > total:
            raise CommandRefused("long")
        if offset == 0:
            self._uploaded, self._running, self._total = bytearray(), sha256(), total
        if offset != len(self._uploaded) or total != self._total:
            raise CommandRefused("offset")
        self.end_lease()
        self._uploaded += data
        self._running.update(data)
        return offset

    def take(self, length: int, digest: bytes) -> bytes:
        """The uploaded file, if it is whole and the one the host means. Raises CommandRefused("Checksum")."""
        if length != len(self._uploaded) or digest != self.checksum:
            raise CommandRefused("Checksum")
        return bytes(self._uploaded)

    def offer(self, result: bytes) -> tuple[int, bytes]:
        """Put a result where the host can fetch it; returns its length and its SHA-256."""
        self._result = result
        self._leased = True
        return len(result), sha256(result).digest()

    def send(self, offset: int, length: int, file_number: int) -> bytes:
        """One block of a file: number 0 is the upload, 1 the result."""
        if file_number not in {0, 1}:
            raise CommandRefused("bad fnum")
        if offset > MAX_PSBT:
            raise CommandRefused("bad offset")
        if length < 1:
            raise CommandRefused("len")
        end = offset + min(length, MAX_BLOCK)
        if self._leases and not (self._leased and file_number == 1 and end <= len(self._result)):
            raise CommandRefused("not allowed")
        source = self._result if file_number else self._uploaded
        return bytes(source[offset:end])
