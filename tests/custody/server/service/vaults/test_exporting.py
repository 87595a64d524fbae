"""A vault's export is read back as that very vault: by the project's own reader, and by bdk."""

import bdkpython
import pytest

from multisig import Network, vault_of_file
from tests.support.custody import Desk, ok, refused

PATH = "/api/v1/vault-export"


def export(desk: Desk, user=None, **query: object):
    known = {"workspace_id": desk.workspace_id, "vault_id": desk.vault["id"]}
    return (user or desk.admin).get(PATH, **known, **query)


@pytest.mark.parametrize("form", ["descriptor", "bsms"])
def test_what_is_exported_is_read_back_as_the_same_vault(desk: Desk, form: str) -> None:
    shown = ok(export(desk, format=form))
    assert (shown["format"], shown["name"]) == (form, "Treasury")
    vault = vault_of_file(shown["text"], Network.REGTEST)
    assert vault == desk.policy
    assert shown["verification_code"] == vault.verification_code


def test_the_descriptor_comes_without_being_asked_for_by_name(desk: Desk) -> None:
    assert ok(export(desk))["text"] == desk.vault["descriptor"]


def test_bdk_takes_the_descriptor_for_the_same_first_address(desk: Desk) -> None:
    descriptor = bdkpython.Descriptor(ok(export(desk))["text"], bdkpython.NetworkKind.TEST)
    receive, _change = descriptor.to_single_descriptors()
    address = receive.derive_address(0, bdkpython.Network.REGTEST)
    assert str(address) == desk.vault["address"]


def test_the_record_of_bip_129_names_the_first_address(desk: Desk) -> None:
    version, template, paths, address = ok(export(desk, format="bsms"))["text"].split("\n")
    assert (version, paths, address) == ("BSMS 1.0", "/0/*,/1/*", desk.vault["address"])
    assert template.startswith("wsh(sortedmulti(2,[")
    assert template.count("/**") == 3


def test_only_the_forms_that_there_are(desk: Desk) -> None:
    refused(export(desk, format="paper"), 422, "VALIDATION")


def test_another_workspaces_vault_is_not_there(desk: Desk) -> None:
    """P24."""
    desk.world.organisation("Umbrella", "eve@example.com")
    eve = desk.world.as_user("eve@example.com")
    refused(export(desk, eve), 404, "NOT_FOUND")
    refused(eve.get(PATH, workspace_id=2, vault_id=desk.vault["id"]), 404, "NOT_FOUND")
