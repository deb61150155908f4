"""mcp_sdk.py TWAGENT FOLDER: the official SDK's client against `twagent mcp`, in both of its ways to begin."""
import asyncio, os, sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client


async def session(mode):
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ), cwd=sys.argv[2])
    async with Client(stdio_client(server), mode=mode) as client:
        print(mode, client.protocol_version)
        assert len((await client.list_tools()).tools) >= 21
        assert len((await client.list_resources()).resources) > 30
        assert len((await client.list_resource_templates()).resource_templates) == 2
        assert (await client.list_prompts()).prompts
        assert (await client.get_prompt("make_faster", {"problem": "gemv"})).messages[0].content.text
        assert "__" not in (await client.read_resource("twagent://problems/gemv")).contents[0].uri
        listed = await client.call_tool("problems", {})
        assert not listed.is_error and listed.structured_content["items"]
        page = (await client.read_resource("twagent://formats/cpu/gemv")).contents[0].text
        assert "void kernel(const float *" in page and "{{" not in page, page
        seen = []

        async def progress(done, total, message):
            seen.append(done)

        wrong = await client.call_tool("evaluate", {"problem": "gemv", "source": "int x;\n", "effort": "search"},
                                       progress_callback=progress)
        assert wrong.structured_content["verdict"] == "failed" and seen == sorted(seen)
        assert (await client.call_tool("evaluate", {"problem": "gemv", "file": "/etc/passwd"})).is_error
        begun = await client.call_tool("evaluate", {"problem": "gemv", "sources": ["int x;\n", "int y;\n"],
                                                    "until": "compile", "detach": True})
        ended = await client.call_tool("wait", {"call": begun.structured_content["call"], "seconds": 600})
        assert ended.structured_content["2 kernel.c"]["verdict"] == "failed", ended
        try:  # the SDK tells the server that nobody waits any more
            await asyncio.wait_for(client.call_tool("run", {"problem": "gemv", "budget_time": "1h"}), 0.5)
            raise AssertionError("a run of an hour ended")
        except TimeoutError:
            pass
        device = (await client.call_tool("device", {})).structured_content
        for part in device.get("more", {}).get("parts", []):
            rest = await client.call_tool("more", {"result": device["more"]["result"], "part": part})
            assert "part" in rest.structured_content, rest
        while ((await client.call_tool("status", {})).structured_content or {}).get("live"):
            await asyncio.sleep(0.1)  # the run ends with its call
        for unknown in (client.call_tool("no_such", {}), client.read_resource("twagent://guides/no-such")):
            try:
                await unknown
            except MCPError as error:
                assert error.code == -32602, error
            else:
                raise AssertionError("an unknown name was answered")


for mode in ("auto", "legacy"):
    asyncio.run(session(mode))
