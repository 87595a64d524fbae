"""The SDK before a platform in the tests' own process."""

from custody.client import Client
from tests.support.platform import PASSWORD, World


def connect(world: World) -> Client:
    """Not signed in."""
    return Client("http://127.0.0.1", transport=world.http._transport, now=lambda: world.clock().timestamp())


def sdk(world: World, email: str) -> Client:
    """Of one who signs in with a password alone."""
    client = connect(world)
    assert client.login(email, PASSWORD).token
    world.http.cookies.clear()
    return client
