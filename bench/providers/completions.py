"""completions.py URL [COUNT [CA_FILE]]: the requests of bench_completions with asyncio and httpx, as one would write it: one
client, one coroutine a completion, the stream read line by line. Prints what this process needed for them."""
import asyncio
import json
import resource
import ssl
import sys
import time

import httpx

PROMPT = "".join("\n" if i % 64 == 63 else chr(ord("a") + i % 26) for i in range(4096))


async def complete(client, url):
    body = {"model": "fake-model", "stream": True, "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": "You make kernels fast."}, {"role": "user", "content": PROMPT}]}
    parts, usage, ended = [], None, False
    async with client.stream("POST", url + "/chat/completions", json=body,
                             headers={"Authorization": "Bearer sk-bench"}) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data:"):
                continue
            data = line[5:].strip()
            if data == "[DONE]":
                ended = True
                break
            event = json.loads(data)
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                parts.append(choice["delta"].get("content") or "")
    if not ended or usage is None:
        raise RuntimeError("the stream ended early")
    return "".join(parts)


async def main():
    url = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    verify = ssl.create_default_context(cafile=sys.argv[3]) if len(sys.argv) > 3 else True
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    began, began_cpu = time.monotonic(), time.process_time()
    async with httpx.AsyncClient(limits=limits, timeout=None, verify=verify) as client:
        texts = await asyncio.gather(*(complete(client, url) for _ in range(count)), return_exceptions=True)
    cpu, wall = time.process_time() - began_cpu, time.monotonic() - began
    good = [text for text in texts if isinstance(text, str)]
    for bad in [text for text in texts if not isinstance(text, str)][:1]:
        print(repr(bad), file=sys.stderr)
    print("completions", len(good))
    print("failed", count - len(good))
    print("content_bytes", sum(len(text.encode()) for text in good))
    print("seconds %.2f" % wall)
    print("cpu_seconds %.3f" % cpu)
    print("cpu_ms_per_completion %.3f" % (cpu * 1e3 / count))
    with open("/proc/self/status") as status:
        most_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    print("resident_mb_most %.1f" % (most_kb / 1024))
    return 1 if len(good) < count else 0


limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
sys.exit(asyncio.run(main()))
