"""A provider whose answers are a function of the request's body alone, and that remembers who asked what and when.

It speaks OpenAI's chat completions as streams, in a thread of the test's own, so that it outlives every kill. Requests
that ask for ideas get ideas (their parents taken from the prompt), all others a kernel; some answers hold no code, some
do not parse, and about half are one of five texts, as models repeat themselves. Latencies are drawn anew each time:
nothing may depend on them."""
import asyncio
import hashlib
import json
import random
import re
import threading
import time

WORDS = ("panel stripe ladder harbor velvet copper meadow signal gravel timber window cellar marble pepper lantern "
         "saddle ribbon anchor bridge candle desert engine forest garden hammer island jacket kettle magnet needle "
         "orange pillow quartz rocket silver tunnel valley walnut yellow zephyr").split()
CATEGORIES = ("memory", "compute", "parallelism", "algorithm", "fusion", "asynchrony", "precision", "tuning")
CODE = """/*---
tune: {KB: [%(a)d, %(b)d, %(c)d], UNROLL: [1, 2, 4]}
---*/
/* %(name)s */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
    for (int64_t k0 = 0; k0 < K; k0 += KB * UNROLL)
        for (int64_t i = 0; i < M; i++)
            for (int64_t k = k0; k < (k0 + KB * UNROLL < K ? k0 + KB * UNROLL : K); k++)
                for (int64_t j = 0; j < N; j++)
                    C[i * N + j] += A[i * K + k] * B[k * N + j];
}
"""


def digest(body):
    """Of what the provider is told, apart from the order of the members."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def request_digest(request):
    """The same of a stored completion's request: its texts. Requests with the same texts are told apart by `sample`,
    which no provider sees."""
    return hashlib.sha256((request["system"] + "\0" + request["prompt"]).encode()).hexdigest()


def texts_digest(body):
    texts = {message["role"]: message["content"] for message in body["messages"]}
    return hashlib.sha256((texts.get("system", "") + "\0" + texts["user"]).encode()).hexdigest()


def ideas(draw, prompt):
    found = re.search(r"Propose (\d+)", prompt)
    count = int(found[1]) if found else 2
    parents = sorted(set(re.findall(r"r\d+-c\d+", prompt.split("# What was tried")[0])))
    one = lambda: {"title": " ".join(draw.sample(WORDS, 5)), "category": draw.choice(CATEGORIES),
                   "why": " ".join(draw.sample(WORDS, 9)), "expected": round(draw.uniform(1.05, 2), 2),
                   "parent": draw.choice(parents) if parents else ""}
    return json.dumps({"ideas": [one() for _ in range(count)]})


def code(draw):
    kind = draw.random()
    if kind < 0.08:
        return "I am sorry, there is no code in this answer."
    if kind > 0.55:  # what somebody else has written, too: in this round, in another, as a repair
        draw = random.Random(draw.randrange(5))
    text = CODE % {"name": " ".join(draw.sample(WORDS, 3)), "a": draw.choice((16, 32, 64)), "b": draw.choice((8, 24, 48)),
                   "c": draw.choice((96, 128, 192))}
    if kind < 0.14:
        text = text.replace("tune:", "tuna:")
    return "Here it is.\n```c\n%s```\nIt blocks over k.\n" % text


class Provider(threading.Thread):
    def __init__(self, low_ms=5, high_ms=40):
        super().__init__(daemon=True)
        self.low_ms, self.high_ms = low_ms, high_ms
        self.asked = []     # (monotonic time, digest of the texts), each request that was read
        self.finished = {}  # digest -> answers whose last byte was handed to the socket
        self.port, self.ready = None, threading.Event()
        self.start()
        self.ready.wait()
        self.url = "http://127.0.0.1:%d/v1" % self.port

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0, limit=1 << 24)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        async with server:
            await server.serve_forever()

    async def connection(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: *(\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                if head.startswith("GET"):
                    self.write_json(writer, {"object": "list", "id": "test", "data": [{"id": "test", "object": "model"}]})
                else:
                    await self.answer(writer, json.loads(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @staticmethod
    def write_json(writer, document):
        text = json.dumps(document).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                     (len(text), text))

    async def answer(self, writer, body):
        name = texts_digest(body)
        self.asked.append((time.monotonic(), name))
        draw = random.Random(digest(body))
        prompt = body["messages"][-1]["content"]
        await asyncio.sleep(random.uniform(self.low_ms, self.high_ms) / 1000)
        text = ideas(draw, prompt) if '"ideas"' in prompt else code(draw)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4,
                 "total_tokens": len(prompt) // 4 + len(text) // 4}
        if not body.get("stream"):
            self.write_json(writer, {"model": "test", "usage": usage, "choices": [
                {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            half = len(text) // 2
            for piece in (text[:half], text[half:]):
                self.event(writer, {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                await writer.drain()
                await asyncio.sleep(0.002)
            self.event(writer, {"model": "test", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.event(writer, {"choices": [], "usage": usage})
            writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()
        self.finished[name] = self.finished.get(name, 0) + 1

    @staticmethod
    def event(writer, document):
        data = b"data: %s\n\n" % json.dumps(document).encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
