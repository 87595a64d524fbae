"""Requests for an organisation by the console: sent by a person, decided by an operator."""

from tests.support.onboarding import REQUEST

HERE = "/console/onboarding"


def test_a_request_is_shown_back_sent_and_approved_by_an_operator(desk, browse):
    desk.world.platform.setup.make_operator("admin@example.org", is_operator=True)
    asks, decides = browse("alice"), browse("admin")
    asks.open(HERE).send(HERE, **REQUEST)
    assert asks.facts["It moves in a month"] == "10,000 to 100,000 US dollars"
    asks.confirm(HERE)
    assert "waits for the operator" in asks.words
    actions = [form.attributes["action"] for form in decides.open(HERE).page.all("form")]
    (one,) = [action for action in actions if action.startswith(f"{HERE}/")]
    decides.send(one, button="decision", review_note="Welcome")
    assert decides.facts["Organisation"] == "Prado & Filhas"
    decides.confirm(one)
    assert ("approved" in asks.open(HERE).words, "Welcome" in asks.words) == (True, True)
    assert "Prado & Filhas" in asks.open("/console/").words


def test_a_person_sees_only_their_own_requests(browse):
    browse("alice").open(HERE).send(HERE, **REQUEST).confirm(HERE)
    assert "Prado & Filhas" not in browse("bob").open(HERE).words


def test_a_person_who_is_no_operator_is_refused(browse):
    browse("alice").open(HERE).send(HERE, **REQUEST).confirm(HERE)
    bob = browse("bob").open(HERE)
    bob.post_one(f"{HERE}/1", decision="approve", status=404)


def test_a_wrong_address_is_told_and_the_rest_is_kept(browse):
    person = browse("alice").open(HERE).send(HERE, **{**REQUEST, "work_email": "none"})
    person.confirm(HERE, status=422)
    assert ("org_name", "Prado & Filhas") in person.form(HERE).fields
    assert person.page.by_id("work_email-problem").words
