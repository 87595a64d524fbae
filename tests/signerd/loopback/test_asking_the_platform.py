"""L6: what an app asks here is not asked of the platform each time; what the person asks is."""

from signerd.callers import CallerKind, LoopbackCaller, Right
from tests.support.ported import Port
from tests.support.served import make_outer, served_daemon

LIST = ("GET", "/api/v1/list-wallets")


def test_l6_an_app_that_lists_the_vaults_over_and_over_asks_the_platform_once(tmp_path, monkeypatch):
    outer = make_outer(tmp_path)
    reader = LoopbackCaller(CallerKind.APP, "Reader", frozenset({Right.ANYONE, Right.READ}), "a-1")
    with served_daemon(tmp_path / "s", outer, port=0) as daemon:
        daemon.until(lambda: daemon.service.follower.state.reachable)
        monkeypatch.setattr(daemon.service.apps, "caller", lambda _token, _origin: reader)
        port, before = Port(daemon, None), outer.platform.requests.count(LIST)
        for _ in range(10):
            assert port.ask("GET", "/v1/vaults", {"Authorization": "Bearer x"}).status == 200
        assert outer.platform.requests.count(LIST) - before <= 1
