"""Proofs of control: asked for on a page, followed as a proposal, and given out as the API gives them out."""

from tests.support.custody import ok


def test_a_proof_is_asked_for_signed_and_downloaded(desk, browse):
    desk.deposit(40_000, 70_000)
    here = f"/console/w/{desk.workspace_id}"
    desk.world.clock.advance(seconds=1)
    more = ok(desk.create_vault("Savings"))["id"]
    person = browse("admin").open(f"{here}/vaults/{more}")
    person.open(person.link("Ask for a proof"))
    assert ("vault_id", more) in person.form(f"{here}/proofs/new").fields
    person.open(f"{here}/proofs").open(person.link("Ask for a proof"))
    person.send(f"{here}/proofs/new", message="Audit\u00a02026", with_coins="yes")
    person.confirm(f"{here}/proofs/new", 422)
    assert ("message", "Audit\u00a02026") in person.form(f"{here}/proofs/new").fields
    person.send(f"{here}/proofs/new", message="Audit of <2026>", with_coins="yes")
    assert person.facts["Message"] == "Audit of <2026>"
    person.confirm(f"{here}/proofs/new")
    psbt_id = person.url.rpartition("/")[2]
    assert person.facts["Message"].startswith("Audit of <2026> (block ")
    assert person.facts["Coins signed for"].startswith("2, 0.00110000 BTC")
    assert "Where the money goes" not in person.words
    desk.sign_off(psbt_id)
    ((message, vault, _, state),) = person.open(f"{here}/proofs").rows
    assert (message, vault) == ("Audit of <2026>", "Treasury")
    assert state == "proof complete, its file: Audit of <2026>"
    file = person.http.get(f"{here}/proofs/{psbt_id}/file")
    given = ok(desk.admin.get("/api/v1/proof", workspace_id=desk.workspace_id, psbt_id=psbt_id))
    assert (file.json(), "attachment" in file.headers["Content-Disposition"]) == (given, True)
