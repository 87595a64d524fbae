"""Programs may have compared the titles of problems: no Python changes them."""

from http import HTTPStatus

from custody.common.exchange import phrase_of


def test_a_status_has_one_name_on_every_python():
    assert phrase_of(HTTPStatus(413)) == "Request Entity Too Large"
    assert phrase_of(HTTPStatus(422)) == "Unprocessable Entity"
    assert phrase_of(HTTPStatus.CONFLICT) == "Conflict"
