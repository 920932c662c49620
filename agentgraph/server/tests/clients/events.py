"""The second protocol by the Python SDK, sync and async, against a server at argv[1]."""

import asyncio
import sys

from langgraph_sdk import get_client, get_sync_client

URL = sys.argv[1]
HELLO = {"messages": [{"type": "human", "content": "hello"}]}


def sync():
    client = get_sync_client(url=URL)
    with client.threads.stream(assistant_id="steps") as thread:
        assert thread.run.start(input={"text": "a"})["run_id"]
        seen = [values.get("seen") for values in thread.values]
        assert seen[-1] == ["first a", "second"], seen
        assert thread.output["seen"] == ["first a", "second"]
        # A second run on the same stream.
        thread.run.start(input={"text": "b"})
        seen = [values.get("seen") for values in thread.values]
        assert seen[-1] == ["first a", "second", "first b", "second"], seen
    with client.threads.stream(assistant_id="chat") as thread:
        thread.run.start(input=HELLO)
        said = ["".join(message.text) for message in thread.messages]
        assert said == ["you said hello"], said


async def calls(transport):
    client = get_client(url=URL)
    async with client.threads.stream(assistant_id="chat", transport=transport) as thread:
        await thread.run.start(input=HELLO)
        # A message gets its parts while the iterator of messages goes on.
        said = [await message.text for message in [message async for message in thread.messages]]
        assert said == ["you said hello"], said
        values = await thread.output
        assert values["messages"][1]["content"] == "you said hello", values
    async with client.threads.stream(assistant_id="steps", transport=transport) as thread:
        await thread.run.start(input={"text": "a"})
        items = [item async for item in thread.interleave_projections(["values", "updates", "tasks", "checkpoints"])]
        assert [name for name, _ in items].count("updates") == 2, items
        assert [data["node"] for name, data in items if name == "updates"] == ["first", "second"]
        assert [data["source"] for name, data in items if name == "checkpoints"] == ["input", "loop", "loop"]
    async with client.threads.stream(assistant_id="steps", transport=transport) as thread:
        await thread.run.start(input={"text": "a", "fails": "ValueError"})
        try:
            await thread.output
            raise AssertionError("the failure was not raised")
        except RuntimeError as error:
            assert "boom!" in str(error), error
    async with client.threads.stream(assistant_id="ask", transport=transport) as thread:
        await thread.run.start(input={})
        async for _ in thread.values:
            pass
        while not thread.interrupted:
            await asyncio.sleep(0.01)
        assert thread.interrupts[0]["value"] == {"question": "go on?"}, thread.interrupts
        await thread.run.respond("yes")
        assert (await thread.output)["answers"] == ["yes"]
        again = thread.thread_id
    # Another reader of the same thread gets all of it.
    async with client.threads.stream(again, assistant_id="ask", transport=transport) as thread:
        assert (await thread.output)["done"]
        methods = []
        async for event in thread.events:
            methods.append(event.get("method"))
            if event.get("method") == "lifecycle" and event["params"]["data"]["event"] == "completed":
                break
        assert methods.count("input.requested") == 1 and methods.count("input.answered") == 1, methods
    async with client.threads.stream(assistant_id="inside", transport=transport) as thread:
        await thread.run.start(input={"text": "a"})
        children = [(child.graph_name, child.status) async for child in thread.subgraphs]
        assert children == [("child", "started")], children
    async with client.threads.stream(assistant_id="agent", transport=transport) as thread:
        await thread.run.start(input={"messages": [{"type": "human", "content": "add"}]})
        calls = [call async for call in thread.tool_calls]
        assert [call.name for call in calls] == ["add", "add"], calls
        assert (await calls[0].output)["content"] == "3"
    async with client.threads.stream(assistant_id="nested", transport=transport) as thread:
        await thread.run.start(input={})
        while not thread.interrupted:
            await asyncio.sleep(0.01)
        assert thread.interrupts[0]["namespace"][0].startswith("child:"), thread.interrupts
        await thread.run.respond("yes")
        assert (await thread.output)["answers"] == ["yes"]


sync()
for transport in ("sse", "websocket"):
    asyncio.run(asyncio.wait_for(calls(transport), 60))
print("served")
