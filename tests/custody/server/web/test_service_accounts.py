"""Accounts of programs: what they may (P67), from where and with which secret (P68), guesses (P69)."""

from contextlib import contextmanager

import pytest

from custody.schemas.call import PermissionName
from custody.server.people import service_accounts
from custody.server.people.service_accounts import SECRETS
from custody.server.rules.credentials import NEVER_GIVEN
from custody.server.rules.roles import EVERY_PERMISSION
from custody.server.sign_in.access_tokens import STRANGE_USES, WRONG_SECRETS
from custody.server.store.models import ServiceAccountRow
from tests.support.asgi import asgi_client
from tests.support.custody import SHOP, ok, refused
from tests.support.platform import As
from tests.support.service_accounts import create, holding, issue, made, program, revoke
from tests.support.staff import add_someone, remove, remove_permission
from tests.support.two_people import DORA, ask, decide, ruled

GIVABLE = sorted(EVERY_PERMISSION - NEVER_GIVEN)


def wallets(caller: As):
    return caller.get("/api/v1/list-wallets", workspace_id=1)


def log(caller: As) -> list[dict]:
    return ok(caller.get("/api/v1/get-logs", org_uid=1, workspace_uid=1))["logs"]


@contextmanager
def before_next_write(world, act):
    """``act`` takes place when the next change has been let in and waits for its turn."""
    store = world.platform.services.store
    write = type(store).write

    def late():
        del store.write
        act()
        return write(store)

    store.write = late
    yield


def listed(caller: As) -> list[dict]:
    return ok(caller.get("/api/v1/service-accounts", workspace_id=1))


class TestRights:
    def test_a_live_one_is_shown_however_many_were_revoked_since(self, world, alice, monkeypatch):
        monkeypatch.setattr(service_accounts, "MAX_SHOWN", 3)
        live = ok(create(world, alice, name="live"))["service_account_id"]
        for number in range(4):
            over = ok(create(world, alice, name=f"n{number}"))["service_account_id"]
            ok(alice.post("/api/v1/revoke-service-account", {"workspace_id": 1, "service_account_id": over}))
        assert [each["status"] for each in listed(alice)] == ["REVOKED", "REVOKED", "WAITING"]
        assert listed(alice)[-1]["service_account_id"] == live

    def test_from_its_making_to_its_end(self, world, alice):
        answer = ok(create(world, alice, networks=["::ffff:192.0.2.0/120"]))
        assert (answer["status"], answer["networks"]) == ("WAITING", ["192.0.2.0/24"])
        bot = program(alice, answer["service_account_id"])
        assert ok(wallets(bot)) == []
        (shown,) = listed(alice)
        assert (shown["status"], shown["last_used_from"]) == ("ACTIVE", "192.0.2.1")
        assert ok(bot.get("/api/v1/own-service-account")) == shown
        refused(alice.get("/api/v1/own-service-account"), 404, "NOT_FOUND")
        ok(revoke(alice, shown["service_account_id"]))
        assert ok(revoke(alice, shown["service_account_id"]))["status"] == "REVOKED"
        refused(wallets(bot), 401, "UNAUTHENTICATED")
        refused(issue(alice, shown["service_account_id"]), 409, "STATE_CONFLICT")
        world.deliver_mail()
        subjects = [mail.subject for mail in world.mail.sent]
        assert "A secret of your service account Payroll was made" in subjects

    def test_two_live_ones_of_a_workspace_have_two_names(self, world, alice):
        first = ok(create(world, alice))["service_account_id"]
        refused(create(world, alice, name="PAYROLL"), 422, "VALIDATION")
        other = ok(create(world, alice, name="Books"))["service_account_id"]
        renamed = {"workspace_id": 1, "service_account_id": other, "name": "Payroll"}
        refused(alice.post("/api/v1/update-service-account", renamed), 422, "VALIDATION")
        ok(revoke(alice, first))
        ok(alice.post("/api/v1/update-service-account", renamed))

    def test_p67_what_no_program_is_given(self, world, alice):
        for right in NEVER_GIVEN:
            problem = refused(create(world, alice, rights=[right, "VIEW_LOGS"]), 422, "VALIDATION")
            assert problem["errors"][0]["pointer"] == "/rights"
        some = add_someone(world, "Some", {PermissionName.MANAGE_WORKSPACE})
        refused(create(world, some.calls, rights=["VIEW_LOGS"]), 403, "PERMISSION_DENIED")

    def test_p67_it_never_has_more_than_its_maker_has_now(self, world, alice):
        everything = {PermissionName.MANAGE_WORKSPACE, PermissionName.VIEW_LOGS, PermissionName.VIEW_BALANCES}
        clerk = add_someone(world, "Clerk", everything)
        account_id, bot = made(world, clerk.calls, rights=["VIEW_LOGS", "VIEW_BALANCES"])
        assert log(bot)
        ok(remove_permission(alice, clerk.role_id, "VIEW_LOGS"))
        answer = refused(bot.get("/api/v1/get-logs", org_uid=1, workspace_uid=1), 403, "PERMISSION_DENIED")
        assert answer["detail"].startswith(
            "What this service account may do in this workspace does not carry"
        )
        ok(wallets(bot))
        ok(remove(alice, clerk.user_id))
        refused(wallets(bot), 401, "UNAUTHENTICATED")
        world.member(1, "clerk@example.org", "Administrator")
        refused(wallets(bot), 401, "UNAUTHENTICATED")
        assert listed(alice)[0]["status"] == "REVOKED", "it does not come back with its maker"
        said = [entry["description"] for entry in log(alice) if entry["action"] == "MEMBER_REMOVED"]
        assert said[0].endswith(f"; their programs were revoked: {account_id}")

    def test_only_its_maker_changes_it_and_a_workspace_manager_ends_it(self, world, alice):
        account_id, _ = made(world, alice)
        keeper = add_someone(world, "Keeper", {PermissionName.MANAGE_WORKSPACE}).calls
        body = {"workspace_id": 1, "service_account_id": account_id, "networks": ["0.0.0.0/0"]}
        refused(keeper.post("/api/v1/update-service-account", body), 403, "PERMISSION_DENIED")
        refused(issue(keeper, account_id), 403, "PERMISSION_DENIED")
        assert ok(revoke(keeper, account_id))["status"] == "REVOKED"

    def test_the_log_names_the_program_after_its_maker(self, world, alice):
        account_id, bot = made(world, alice, name="bob@example.org", rights=GIVABLE)
        refused(bot.post("/api/v1/leave-workspace", {"workspace_id": 1}), 403, "PERMISSION_DENIED")
        entry = log(alice)[-1]
        assert (entry["action"], entry["user_uuid"]) == ("PERMISSION_DENIED", 1)
        assert entry["user_name"] == f"alice@example.org, service account {account_id} (bob@example.org)"

    def test_its_repeated_requests_are_apart_and_what_it_proposes_is_its_makers(self, desk):
        desk.deposit(100_000, 100_000)
        _, bot = made(desk.world, desk.admin, rights=["MANAGE_WORKSPACE"])
        body = {"wallet_id": desk.vault["id"], "tx_type": "send", "recipients": [SHOP], "description": ""}
        body |= {"workspace_id": 1, "amounts_sats": [20_000]}
        key = {"Idempotency-Key": "same"}
        first, other = (ok(each.post("/api/v1/create-psbt", body, **key)) for each in (desk.admin, bot))
        assert first["psbt_id"] != other["psbt_id"]
        assert ok(bot.post("/api/v1/create-psbt", body, **key)) == other
        proposals = [desk.proposal(each["psbt_id"]) for each in (first, other)]
        assert [each["created_by"] for each in proposals] == ["1", "1"]
        names = [each["created_by_name"] for each in proposals]
        assert names == ["admin@example.org", "the program Payroll, of admin@example.org"]


class TestSecondPerson:
    def test_p67_two_people_make_and_widen_one_and_its_maker_alone_gets_a_secret(self, world, alice):
        dora = ruled(world, alice, hours=24)
        terms = {
            "name": "Payroll", "rights": ["VIEW_BALANCES"], "networks": ["192.0.2.0/24"],
            "expires_at": "2026-03-20T00:00:00Z",
        }  # fmt: skip
        refused(create(world, alice), 409, "SECOND_PERSON_NEEDED")
        change = ok(ask(alice, "create-service-account", **terms))
        refused(decide(dora, change), 409, "STATE_CONFLICT")
        world.clock.advance(hours=24)
        alice, dora = world.as_user("alice@example.org"), world.as_user(DORA)
        answer = ok(decide(dora, change))["answer"]
        account_id = answer["service_account_id"]
        assert (answer["made_by"], "secret" in str(answer).replace("former_secret_until", "")) == ("1", False)
        refused(issue(dora, account_id), 403, "PERMISSION_DENIED")
        ok(wallets(program(alice, account_id)))
        narrower = {"service_account_id": account_id, "networks": ["192.0.2.1"]}
        ok(decide(dora, ok(ask(alice, "update-service-account", **narrower))))
        for wider in (
            {"rights": ["VIEW_LOGS"]},
            {"networks": ["192.0.2.0/24"]},
            {"expires_at": "2026-03-21T00:00:00Z"},
        ):
            change = ok(ask(alice, "update-service-account", service_account_id=account_id, **wider))
            refused(decide(dora, change), 409, "STATE_CONFLICT")
        assert ok(revoke(dora, account_id))["status"] == "REVOKED", "what stops it needs nobody else"


class TestSecret:
    def test_p68_two_are_good_for_a_while_and_then_the_newer_one(self, world, alice):
        account_id, first = made(world, alice)
        second = program(alice, account_id, overlap_hours=2)
        ok(wallets(first))
        ok(wallets(second))
        assert listed(alice)[0]["former_secret_until"] is not None
        third = program(alice, account_id, overlap_hours=2)
        refused(wallets(first), 401, "UNAUTHENTICATED")
        ok(wallets(second))
        world.clock.advance(hours=2)
        refused(wallets(second), 401, "UNAUTHENTICATED")
        ok(wallets(third))
        alice = world.as_user("alice@example.org")
        assert listed(alice)[0]["former_secret_until"] is None
        program(alice, account_id, overlap_hours=0)
        refused(wallets(third), 401, "UNAUTHENTICATED")

    def test_p68_it_ends_by_itself(self, world, alice):
        for ends in ("2026-03-01T12:00:00Z", "2027-03-03T12:00:00Z"):
            refused(create(world, alice, expires_at=ends), 422, "VALIDATION")
        _, bot = made(world, alice)
        world.clock.advance(days=30)
        refused(wallets(bot), 401, "TOKEN_EXPIRED")

    def test_p68_from_elsewhere_it_is_worth_nothing_and_its_owner_sees_that(self, world, alice):
        account_id, bot = made(world, alice)
        for address in ("198.51.100.7", "::ffff:198.51.100.7"):
            with asgi_client(world.platform.asgi, address=address) as elsewhere:
                for _ in range(STRANGE_USES):
                    refused(wallets(As(elsewhere, bot.headers)), 403, "PERMISSION_DENIED")
        with asgi_client(world.platform.asgi, address="::ffff:192.0.2.9") as mapped:
            ok(wallets(As(mapped, bot.headers)))
        strange = [entry for entry in log(alice) if entry["action"] == "SERVICE_ACCOUNT_REFUSED"]
        assert len(strange) == STRANGE_USES, "no flood of the log"
        said = f"The secret of a program was used from 198.51.100.7, and was refused; account {account_id}"
        assert strange[0]["description"] == said

    @pytest.mark.parametrize("act", ["revoke", "rotate", "end", "move"])
    def test_p68_a_change_that_waited_meanwhile_is_not_made(self, world, alice, act):
        """The program was let in; before its transaction began, it was not good any more."""
        account_id, bot = made(world, alice, rights=["MANAGE_WORKSPACE"])
        body = {"workspace_id": 1, "psbt_id": "none"}
        refused(bot.post("/api/v1/cancel-psbt", body), 404, "NOT_FOUND")

        def ended():
            match act:
                case "revoke":
                    ok(revoke(alice, account_id))
                case "rotate":
                    ok(issue(alice, account_id, overlap_hours=0))
                case "end":
                    world.clock.advance(days=30)
                case "move":
                    terms = {"service_account_id": account_id, "networks": ["198.51.100.0/24"]}
                    ok(alice.post("/api/v1/update-service-account", {"workspace_id": 1, **terms}))

        expected = {"end": (401, "TOKEN_EXPIRED"), "move": (403, "PERMISSION_DENIED")}
        with before_next_write(world, ended):
            refused(bot.post("/api/v1/cancel-psbt", body), *expected.get(act, (401, "UNAUTHENTICATED")))

    def test_p67_a_refusal_is_recorded_even_where_the_account_ends_meanwhile(self, world, alice):
        account_id, bot = made(world, alice)
        with before_next_write(world, lambda: ok(revoke(alice, account_id))):
            refused(bot.post("/api/v1/leave-workspace", {"workspace_id": 1}), 403, "PERMISSION_DENIED")
        assert log(alice)[-1]["action"] == "PERMISSION_DENIED"

    def test_a_maker_makes_so_many_secrets_and_gets_so_many_mails(self, world, alice):
        account_id, _ = made(world, alice)
        other = ok(create(world, alice, name="Books"))["service_account_id"]
        for _ in range(SECRETS - 1):
            ok(issue(alice, account_id))
        refused(issue(alice, other), 429, "RATE_LIMITED")
        world.clock.advance(hours=1)
        ok(issue(world.as_user("alice@example.org"), other))

    def test_p69_guesses_keep_no_program_out(self, world, alice):
        """Of its own neighbour, either: the bound is on what is answered to wrong ones."""
        account_id, bot = made(world, alice)
        before = world.audit_actions("workspace:1")
        wrong = holding(alice.http, f"custody_sa_{account_id}_{'A' * 43}")
        for _ in range(WRONG_SECRETS):
            refused(wallets(wrong), 401, "UNAUTHENTICATED")
        refused(wallets(wrong), 429, "RATE_LIMITED")
        ok(wallets(bot))
        with asgi_client(world.platform.asgi, address="2001:db8::1") as elsewhere:
            refused(wallets(As(elsewhere, wrong.headers)), 401, "UNAUTHENTICATED")
        assert world.audit_actions("workspace:1") == before, "a stranger writes nothing into the log"

    def test_p49_the_database_holds_no_secret(self, world, alice):
        _, bot = made(world, alice)
        secret = bot.headers["Authorization"].removeprefix("Bearer ")
        with world.platform.services.store.read() as db:
            stored = db.get_one(ServiceAccountRow, 1)
            assert secret not in str(vars(stored))
        assert secret not in str(log(alice)) + str(listed(alice))
