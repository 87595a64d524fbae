"""P24: what a tenant's list reads of the database is that tenant's, also what its answer would leave out."""

from custody.server.store.models import KeyRow, UserRow
from tests.custody.server.console.test_altered_rows import lists
from tests.support.custody import Desk, ok
from tests.support.databases import statements_of
from tests.support.platform import key_offer, register_key, seed

MARK = 900_001


def stranger(desk: Desk) -> None:
    """Of another tenant, with a key on the same network; their number is in no other row."""
    world = desk.world
    world.organisation("Umbrella", "eve@umbrella.example")
    ok(register_key(world.as_user("eve@umbrella.example"), seed(9)))
    with world.platform.services.store.write() as db:
        key = db.query(KeyRow).filter(KeyRow.xpub == key_offer(seed(9))["xpub"]).one()
        db.add(UserRow(id=MARK, email="mark@umbrella.example", created_at=world.clock()))
        db.flush()
        key.user_id = MARK


def test_no_list_reads_the_rows_of_another_tenant(desk):
    stranger(desk)
    store, asked = desk.store, []
    for path in lists(desk).values():
        with statements_of(store) as seen:
            answer = desk.admin.http.get(path, headers=desk.admin.headers)
        asked += [(path, *each) for each in seen if each[0].startswith("SELECT")]
        # A token's index that has read no block refuses, and so does a month whose end no block has:
        # after they have asked what they ask.
        assert answer.status_code in {200, 409, 503}, answer.text
    with store._database.reading.connect() as db:
        strange = [
            (path, statement)
            for path, statement, parameters in asked
            for row in db.exec_driver_sql(statement, parameters)
            if any(cell == MARK or "umbrella" in str(cell) for cell in row)
        ]
    assert strange == []
    assert len(asked) > 50
