"""S33: whatever signatures a PSBT comes with, at whichever door, it is given back with all of them and one's
own; and who gives up waiting takes back what no other imported.

Embit reads what is given and what comes back, in both versions.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import count, islice
from pathlib import Path

import pytest
from embit.psbt import PSBT as EmbitPsbt  # noqa: N811 - a class named like a constant
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from custody.common.terminal import Exit
from custody.schemas.proposals import ProposalStatus
from firmware_bridge import DeviceState
from multisig import Psbt, ReceivedPsbt, to_version_2
from signerd.core.states import State
from signerd.core.values import Record
from signerd.daemon import imported
from signerd.errors import HwiCode, IllegalEvent, StaleApproval
from tests.signerd.hwi.test_commands import NAMED, approves
from tests.support.command import signerd, signerd_hwi
from tests.support.daemons import state_of
from tests.support.desk import snapshot_of
from tests.support.examples import examples
from tests.support.payments import spend_of
from tests.support.served import Outer, Served, make_outer, served_daemon
from tests.support.wallets import ALICE, THREE

Signatures = frozenset[tuple[int, bytes, bytes]]
# Of the two inputs those that each of ``THREE`` has signed in this copy.
Came = tuple[frozenset[int], ...]
SOME = st.frozensets(st.integers(0, 1))
NUMBERS = count()
LATE = ("late", "late_and_held")
HEARD = {ProposalStatus.PENDING: State.WAITING_PERSON, ProposalStatus.BROADCASTING: State.BROADCAST}


def signatures(psbt: bytes) -> Signatures:
    return frozenset(
        (index, key.sec(), bytes(signature))
        for index, item in enumerate(EmbitPsbt.parse(psbt).inputs)
        for key, signature in item.partial_sigs.items()
    )


def written(psbt: Psbt, version: str) -> bytes:
    return psbt.to_bytes() if version == "0" else to_version_2(psbt)


@dataclass
class Payment:
    """One payment of the vault. ``kept``: all that came with any copy; ``last``: what was given back."""

    outer: Outer
    desk: Served
    file: Path
    coins: tuple[int, int]
    psbt: Psbt
    kept: Signatures = frozenset()
    last: Psbt | None = None
    is_by_cable: bool = False

    @property
    def is_signed(self) -> bool:
        return self.last is not None

    def imported(self) -> Record | None:
        """As the journal has it, while it waits or is signed."""
        return self.desk.on_loop(self.desk.service.journal.imported.same, self.psbt.tx.txid, None)

    def is_up_to_the_person(self) -> bool:
        known = self.desk.service.journal.imported.same(self.psbt.tx.txid, None)
        return known is not None and (known.signature is not None or known.state is State.WAITING_PERSON)

    @contextmanager
    def person(self) -> Iterator[None]:
        """Says yes until it is signed: a copy that comes after a yes is asked about anew."""

        def decide() -> None:
            self.desk.until(self.is_up_to_the_person)
            while (known := self.imported()).signature is None:
                with suppress(StaleApproval, IllegalEvent), self.desk.client() as daemon:
                    approves(daemon, known.psbt_id)
                self.desk.until(self.is_up_to_the_person)

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(decide)
            yield
            done.result(20)

    def signtx(self, copy: Psbt, version: str, wait: int = 20) -> bytes:
        came = written(copy, version)
        asked = ("--wait", str(wait), *NAMED, "--stdin")
        with nullcontext() if self.is_signed or not wait else self.person():
            typed = f"signtx {b64encode(came).decode()}\n"
            answer = signerd_hwi(*asked, state=self.desk.state, typed=typed).value
        if not (self.is_signed or wait):
            assert answer["code"] == HwiCode.ACTION_CANCELED
            return b""
        assert "psbt" in answer, answer
        back = b64decode(answer["psbt"])
        # As HWI has it: whether the answer has what was not given.
        assert answer["signed"] is (signatures(back) != signatures(came))
        return back

    def give_up(self, copy: Psbt, version: str) -> bytes:
        was_there = self.imported() is not None
        back = self.signtx(copy, version, wait=0)
        assert (self.imported() is not None) is was_there
        if not was_there:
            self.kept = frozenset()
        return back

    def wait(self, copy: Psbt, version: str) -> bytes:
        """Imported, and not decided about."""
        if self.is_signed:
            return self.api(copy, version)
        with self.desk.client() as daemon:
            daemon.import_psbt(b64encode(written(copy, version)).decode())
        return b""

    def sign(self, copy: Psbt, version: str) -> bytes:
        self.file.write_bytes(written(copy, version))
        asked = ("sign", str(self.file), "--yes", "--psbt-version", version)
        return b64decode(signerd(*asked, state=self.desk.state).out)

    def api(self, copy: Psbt, version: str) -> bytes:
        with self.desk.client() as daemon:
            psbt_id = daemon.import_psbt(b64encode(written(copy, version)).decode()).psbt_id
            if not self.is_signed:
                approves(daemon, psbt_id)
                self.desk.until(lambda: self.desk.service.journal.record(psbt_id).signature is not None)
            return b64decode(daemon.imported_psbt(psbt_id, version).signed_psbt)

    def card(self, copy: Psbt, version: str, rival: ProposalStatus | None = None) -> bytes:
        """The card of who signed this copy goes to one's own device, which has no cable, and comes back; late
        where a ``rival`` spends its coin by then, after which the person is asked again.
        """
        if self.is_signed:
            return self.api(copy, version)
        with self.desk.client() as daemon, self.unplugged():
            psbt_id = daemon.import_psbt(b64encode(written(self.psbt, version)).decode()).psbt_id
            signerd("export", psbt_id, "--yes", state=self.desk.state)
            self.file.write_bytes(written(ALICE.sign(copy), version))
            answer, typed = ("import", str(self.file)), ""
            if rival is not None:
                self.rival_comes(rival)
                typed = "conflict\n" if rival is ProposalStatus.BROADCASTING else ""
                no = signerd(*answer, state=self.desk.state, typed=f"{typed}n\n", ends=Exit.DECLINED)
                assert "changed since you approved it" in no.out
                assert daemon.imported_psbt(psbt_id, version).signed_psbt is None
                typed += "y\n"
            signerd(*answer, state=self.desk.state, typed=typed)
            signerd(*answer, state=self.desk.state)
            return b64decode(daemon.imported_psbt(psbt_id, version).signed_psbt)

    def late(self, copy: Psbt, version: str) -> bytes:
        return self.card(copy, version, ProposalStatus.PENDING)

    def late_and_held(self, copy: Psbt, version: str) -> bytes:
        return self.card(copy, version, ProposalStatus.BROADCASTING)

    def rival_comes(self, status: ProposalStatus) -> None:
        rival, proposals = self.psbt.tx.txid, self.outer.platform.proposals
        psbt = spend_of(self.coins, (("another", 20_000),))
        for said in dict.fromkeys((ProposalStatus.PENDING, status)):
            proposals[rival] = snapshot_of(psbt, rival, status=said)
            self.desk.until(lambda: state_of(self.desk.service, rival) is HEARD[said])  # noqa: B023
        del proposals[rival]

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        self.desk.on_loop(self.outer.bridge.becomes, DeviceState.ABSENT)
        try:
            yield
        finally:
            self.desk.on_loop(self.outer.bridge.becomes, DeviceState.READY)

    def visit(self, door: str, version: str, came: Came, *, goes_round: bool) -> None:
        """``goes_round``: the others sign what was given back, and not the PSBT as it was made."""
        base = self.last if goes_round and self.last is not None else self.psbt
        signing = zip(THREE, came, strict=True)
        copy = reduce(lambda psbt, one: one[0].sign(psbt, inputs=sorted(one[1])), signing, base)
        self.kept |= signatures(copy.to_bytes())
        back = getattr(self, door)(copy, version)
        if not back:
            return
        if self.last is None:
            self.is_by_cable = door not in {"card", *LATE}
        assert signatures(back) == self.kept | signatures(ALICE.sign(self.psbt).to_bytes()), door
        assert str(EmbitPsbt.parse(back).version or 0) == version
        self.last = ReceivedPsbt.parse(back).psbt


class Stand:
    """What all payments share; no dataclass, of which Hypothesis would show every field."""

    def __init__(self, outer: Outer, desk: Served, folder: Path) -> None:
        self.outer, self.desk, self.folder = outer, desk, folder


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stand")
    outer = make_outer(folder)
    with pytest.MonkeyPatch.context() as patched, served_daemon(folder / "s", outer) as desk:
        # What is looked for is never among the newest.
        patched.setattr(imported, "MOST_LISTED", 0)
        yield Stand(outer, desk, folder)


def visits(doors: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, object]]:
    came, version = st.tuples(SOME, SOME, SOME), st.sampled_from("20")
    return st.fixed_dictionaries(
        {"door": doors, "version": version, "came": came, "goes_round": st.booleans()}
    )


PAYMENTS = 4
DOORS = st.sampled_from(["signtx", "sign", "api", "card", *LATE, *["wait", "give_up"] * 2])


@settings(
    max_examples=examples(40),
    # Each step asks a whole daemon: what is drawn is short as it is.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    visited=st.lists(st.tuples(st.integers(1, PAYMENTS), visits(DOORS)), min_size=8, max_size=16),
    late=visits(st.sampled_from(LATE)),
)
def test_s33_what_came_is_given_back_with_ones_own(stand, visited, late) -> None:
    """One payment of each life is first signed by an answer that comes late."""
    payments = []
    for number in islice(NUMBERS, 1 + PAYMENTS):
        coins = (100 + 2 * number, 101 + 2 * number)
        psbt = spend_of(coins, (("bill", 10_000 + number),))
        payments.append(Payment(stand.outer, stand.desk, stand.folder / str(number), coins, psbt))
    stand.outer.bridge.asked = 0
    for which, visit in [*visited[:4], (0, late), *visited[4:]]:
        payments[which].visit(**visit)
    assert stand.outer.bridge.asked == sum(payment.is_by_cable for payment in payments)
    for payment in payments:
        if not payment.is_signed and (left := payment.imported()) is not None:
            with stand.desk.client() as daemon:
                daemon.withdraw_psbt(left.psbt_id)
