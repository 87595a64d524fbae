"""A virtual device in an event loop of its own, for code that has none."""

import asyncio
import threading


class ThreadedRig:
    """A rig in another thread's event loop."""

    def __init__(self, rig):
        self.rig = rig
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        self.endpoint = self.run(self.rig.plug_in())
        return self

    def __exit__(self, *_):
        self.run(self.rig.unplug())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)
