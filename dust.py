"""usage: dust.py N [pg]"""
import sys, time, tempfile, random, cProfile, pstats
from pathlib import Path
from contextlib import ExitStack
from sqlalchemy import text
from tests.support.custody import open_desk, ok
from tests.support.flood import flood
from tests.support.postgresql import find_programs, running_server
from custody.server.store.models import Vault
from custody.server.service.proposals import coins
N=int(sys.argv[1]); kind=sys.argv[2] if len(sys.argv)>2 else "sqlite"
with ExitStack() as st:
    url=None
    if kind=="pg":
        srv=st.enter_context(running_server(find_programs())); url=st.enter_context(srv.database())
    d=st.enter_context(tempfile.TemporaryDirectory())
    desk=st.enter_context(open_desk(Path(d)/"s", database_url=url, ))
    desk.deposit(100_000_000, 100_000_000, 100_000_000)
    store=desk.world.platform.services.store
    with store.write() as db:
        v=db.get_one(Vault, desk.vault["id"])
        flood(db, v, [600+ (i%1000) for i in range(N)], height=1)
    if url:
        with store.write() as db: db.execute(text("ANALYZE"))
    desk.world.platform.services.rates.take_write=lambda *_:None
    desk.world.platform.services.rates.take=lambda *_,**__:None
    # hold time
    held=[]
    from contextlib import contextmanager
    orig=store.write
    @contextmanager
    def write():
        with orig() as db:
            t=time.perf_counter(); yield db
        held.append(time.perf_counter()-t)
    store.write=write
    def run(what, f):
        held.clear(); ts=[]
        for _ in range(5):
            t=time.perf_counter(); r=f(); ts.append((time.perf_counter()-t)*1e3)
        print(what, r.status_code, r.json().get("code"), "ms", [round(x,1) for x in ts], "lock", [round(x*1e3,1) for x in held[:5]])
        return r
    print(N, kind)
    r=run("1000 sat at 1", lambda: desk.propose(1000, fee_rate="1"))
    r=run("too much", lambda: desk.propose(999_000_000, fee_rate="1")); print(r.json()["detail"])
    r=run("locked", lambda: desk.propose(290_000_000, fee_rate="1")); print(r.json().get("detail"))
    r=run("dust only", lambda: desk.propose(20_000_000, fee_rate="1"))
    if "prof" in sys.argv:
        from custody.server.web.routes import Runner
        for name in ("draft","create"):
            p=cProfile.Profile()
            P=desk.world.platform.services.proposals
            o=getattr(type(P),name)
            def w(self,*a,**k):
                p.enable()
                try: return o(self,*a,**k)
                finally: p.disable()
            setattr(type(P),name,w)
            for _ in range(10): desk.propose(1000, fee_rate="1")
            setattr(type(P),name,o)
            pstats.Stats(p).sort_stats("cumtime").print_stats(38)
