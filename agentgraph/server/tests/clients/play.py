"""The calls of the Python SDK, sync and async, against a server at argv[1]."""

import asyncio
import sys

from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.errors import ConflictError, NotFoundError

URL = sys.argv[1]


def sync():
    client = get_sync_client(url=URL)
    assistant = client.assistants.search(graph_id="steps")[0]
    assert client.assistants.get(assistant["assistant_id"])["graph_id"] == "steps"
    assert client.assistants.get_graph(assistant["assistant_id"])["edges"]
    assert client.assistants.get_schemas(assistant["assistant_id"])["input_schema"]
    thread = client.threads.create(metadata={"of": "sync"})["thread_id"]
    assert client.runs.wait(thread, "steps", input={"text": "a"})["seen"] == ["first a", "second"]
    assert len(client.threads.get_history(thread)) == 4
    assert client.threads.search(metadata={"of": "sync"})[0]["thread_id"] == thread
    parts = list(client.runs.stream(thread, "steps", input={"text": "b"}, stream_mode=["values", "updates"]))
    assert [part.event for part in parts if part.event == "updates"] == ["updates"] * 2, parts
    try:
        client.runs.wait(thread, "steps", input={"fails": "ValueError"})
        raise AssertionError("the error was not raised")
    except Exception as error:
        assert "boom!" in str(error), error


async def calls():
    client = get_client(url=URL)
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "ask", input={})
    await client.runs.join(thread, run["run_id"])
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"
    state = await client.threads.get_state(thread, subgraphs=True)
    assert state["tasks"][0]["interrupts"][0]["value"] == {"question": "go on?"}
    done = await client.runs.wait(thread, "ask", command={"resume": "yes"})
    assert done["answers"] == ["yes"] and done["done"], done
    await client.threads.update_state(thread, {"done": False}, as_node="finish")
    assert not (await client.threads.get_state(thread))["values"]["done"]

    busy = (await client.threads.create())["thread_id"]
    slow = await client.runs.create(busy, "steps", input={"wait_ms": 3_600_000})
    try:
        await client.runs.create(busy, "steps", input={}, multitask_strategy="reject")
        raise AssertionError("the run was not refused")
    except ConflictError:
        pass
    await client.runs.cancel(busy, slow["run_id"], wait=True)
    assert (await client.runs.get(busy, slow["run_id"]))["status"] == "interrupted"

    chat = (await client.threads.create())["thread_id"]
    text = ""
    said = {"messages": [{"role": "user", "content": "hello"}]}
    run_id = None
    async for part in client.runs.stream(
        chat, "chat", input=said, stream_mode="messages-tuple", stream_resumable=True,
        on_run_created=lambda created: globals().update(created=created),
    ):
        if part.event == "messages":
            text += part.data[0]["content"]
        if part.event == "metadata":
            run_id = part.data["run_id"]
    assert text == "you said hello", text
    assert globals()["created"]["run_id"] == run_id
    again = [part async for part in client.runs.join_stream(chat, run_id, last_event_id="-1")]
    assert again[0].event == "metadata" and again[-1].event == "end", again

    copy = await client.threads.copy(chat)
    assert copy["thread_id"] != chat
    await client.threads.delete(chat)
    try:
        await client.threads.get(chat)
        raise AssertionError("the thread is still there")
    except NotFoundError:
        pass
    async for part in client.runs.stream(None, "steps", input={"text": "a"}):
        last = part
    assert last.event in ("end", "values"), last


def memory():
    store = get_sync_client(url=URL).store
    store.put_item(["users", "ada"], key="city", value={"name": "Rome"}, ttl=60)
    item = store.get_item(["users", "ada"], key="city")
    assert item["value"] == {"name": "Rome"} and item["namespace"] == ["users", "ada"], item
    assert store.search_items(["users"], filter={"name": "Rome"})["items"][0]["key"] == "city"
    assert store.list_namespaces(prefix=["users"])["namespaces"] == [["users", "ada"]]
    store.delete_item(["users", "ada"], key="city")
    assert store.get_item(["users", "ada"], key="city") is None


sync()
memory()
asyncio.run(calls())
print("served")
