"""The Python of docs/operate/platform.md as it stands there:
from nothing to a vault of three signers, through the SDK.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from custody.client import ApiError, Client
from custody.schemas.keys import KeyChallengeRequest, KeyProof, RegisterKeyRequest
from custody.server.service.people.setup import NewPerson
from multisig import Network, Sats
from tests.support.asgi import asgi_transport
from tests.support.platform import PASSWORD, World, key_offer, open_world, seed, sign_challenge
from tests.support.sdk import through

GUIDE = Path(__file__).parents[2] / "docs" / "operate" / "platform.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
ADMINISTRATOR = "admin@example.org"
SIGNERS = [f"signer{number}@example.org" for number in (1, 2, 3)]


def example(name: str):
    """The function of this name, from the one example that has it."""
    (source,) = [text for text in EXAMPLES if f"def {name}(" in text]
    names: dict = {}
    exec(compile(source, f"{GUIDE.name}:{name}", "exec"), names)
    return names[name]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path / "state") as opened:
        opened.platform.setup.bootstrap(
            organisation="Example Ltd",
            workspace="Treasury",
            chain=Network.REGTEST,
            person=NewPerson(ADMINISTRATOR, PASSWORD, "Ada"),
        )
        yield opened


@pytest.fixture
def connect(world: World):
    """A client of the SDK for each person."""
    with ExitStack() as stack:
        transport = through(stack.enter_context(asgi_transport(world.platform.asgi)))

        def new_client() -> Client:
            return stack.enter_context(
                Client("http://127.0.0.1", transport=transport, now=lambda: world.clock().timestamp())
            )

        yield new_client


def register_device(client: Client, number: int) -> None:
    """What `signerd register` does, with a device in software."""
    device = seed(number)
    offer = key_offer(device)
    challenge = client.key_challenge(KeyChallengeRequest(**offer))
    proof = sign_challenge(device, challenge.model_dump(mode="json"))
    client.register_key(RegisterKeyRequest(**offer, proof=KeyProof(**proof)))


def confirm_deposit(world: World, address: str) -> None:
    """What `custody fund` and `custody mine 6` do with a running server."""
    background = world.platform.background
    chain = background.open_chain()
    assert chain is not None
    try:
        chain.fund(address, Sats(1_000_000))
        chain.mine(6)
        (watcher,) = background.watchers()
        watcher.look()
    finally:
        chain.close()


def test_every_example_is_run() -> None:
    named = {found for text in EXAMPLES for found in re.findall(r"^def (\w+)", text, re.MULTILINE)}
    assert named == {
        "sign_in", "invite_signers", "register_account", "accept_invitations", "create_vault",
        "bound_administrators", "propose_payment",
    }  # fmt: skip


def test_from_nothing_to_a_vault_that_three_can_sign_for(world: World, connect) -> None:
    admin = connect()
    example("sign_in")(admin, ADMINISTRATOR, PASSWORD, world.mail.newest_code)
    (organisation,) = admin.user_info().organisations_info.organisations
    (place,) = organisation.workspaces.workspaces
    workspace_id = place.workspace_info.uid

    invited = example("invite_signers")(admin, organisation.org_id, workspace_id, SIGNERS)
    assert len(invited) == 3
    for number, email in enumerate(SIGNERS, start=1):
        signer = connect()
        example("register_account")(signer, email, PASSWORD)
        example("sign_in")(signer, email, PASSWORD, world.mail.newest_code)
        assert example("accept_invitations")(signer) == ["Treasury"]
        register_device(signer, number)

    vault = example("create_vault")(admin, workspace_id, "Cold", 2, "1.5")
    assert (vault.m, vault.n) == (2, 3)
    assert vault.detailed_vault_limits is not None
    assert vault.detailed_vault_limits.limit == "1.50000000"

    limits = example("bound_administrators")(admin, workspace_id, "3")
    assert (limits.limit, limits.used) == ("3.00000000", "0.00000000")
    confirm_deposit(world, vault.address)
    proposed = example("propose_payment")(admin, workspace_id, vault.id, vault.address, 100_000)
    assert admin.proposal(proposed).required_signatures == 2
    with pytest.raises(ApiError) as refused:
        admin.accept_invite(invited[0])
    assert refused.value.problem.status in {403, 404}
