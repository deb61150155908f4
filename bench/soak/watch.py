"""What a soak looks at: a process from /proc, slopes through its samples, and the wire to the provider, which fails."""
import asyncio
import os
import threading
import time


def sample(pid):
    """Resident bytes, descriptors, threads and CPU seconds of one process; None once it is gone."""
    try:
        with open("/proc/%d/status" % pid) as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
        with open("/proc/%d/stat" % pid) as stat:
            rest = stat.read().rsplit(")", 1)[1].split()
        return {"resident_mb": int(fields["VmRSS"].split()[0]) / 1024, "own_mb": int(fields["RssAnon"].split()[0]) / 1024,
                "descriptors": len(os.listdir("/proc/%d/fd" % pid)), "threads": int(fields["Threads"]),
                "cpu_s": (int(rest[11]) + int(rest[12])) / os.sysconf("SC_CLK_TCK")}
    except (OSError, KeyError, IndexError, ValueError):
        return None


def folder_mb(folder):
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_blocks * 512
            except OSError:
                pass
    return total / 1e6


def slope(points):
    """Least squares through (seconds, value), per hour, with its standard error; None of fewer than three points."""
    count = len(points)
    if count < 3:
        return None
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    across = sum((x - mean_x) ** 2 for x, _ in points)
    if across == 0:
        return None
    rate = sum((x - mean_x) * (y - mean_y) for x, y in points) / across
    rest = sum((y - mean_y - rate * (x - mean_x)) ** 2 for x, y in points)
    return rate * 3600, (rest / (count - 2) / across) ** 0.5 * 3600


class Relay(threading.Thread):
    """Passes connections on to the provider, until it is told that there is an outage: then it cuts all of them and
    refuses new ones, as a provider does that has gone away."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.port, self.ready, self.refused_since = target, None, threading.Event(), None
        self.writers, self.server = set(), None
        self.start()
        self.ready.wait()

    def run(self):
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.listen())
        self.loop.run_forever()

    async def listen(self):
        self.server = await asyncio.start_server(self.connection, "127.0.0.1", self.port or 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.ready.set()

    async def connection(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self.writers |= {writer, far_writer}
        await asyncio.gather(self.pass_on(reader, far_writer), self.pass_on(far_reader, writer))
        self.writers -= {writer, far_writer}

    @staticmethod
    async def pass_on(reader, writer):
        """Ends as it was ended: a reset on one side is a reset on the other."""
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()

    async def cut(self):
        self.server.close()
        for writer in list(self.writers):
            writer.transport.abort()

    def outage(self, begins):
        asyncio.run_coroutine_threadsafe(self.cut() if begins else self.listen(), self.loop).result(10)
        self.refused_since = time.monotonic() if begins else None
