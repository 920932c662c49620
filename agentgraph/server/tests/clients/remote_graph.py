"""LangGraph's RemoteGraph, as a graph and inside a graph, against a server at argv[1]."""

import sys
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command

URL = sys.argv[1]
graph = RemoteGraph("steps", url=URL)
assert graph.invoke({"text": "a"})["seen"] == ["first a", "second"]
updates = list(graph.stream({"text": "a"}, stream_mode="updates"))
assert [list(update)[0] for update in updates] == ["first", "second"], updates
assert {"first", "second"} <= set(graph.get_graph().nodes), graph.get_graph()

from langgraph_sdk import get_sync_client

thread = get_sync_client(url=URL).threads.create()["thread_id"]
config = {"configurable": {"thread_id": thread}}
asking = RemoteGraph("ask", url=URL)
asked = asking.invoke({}, config=config)
assert asked["__interrupt__"], asked
assert asking.get_state(config).next == ("ask",)
done = asking.invoke(Command(resume="yes"), config=config)
assert done["answers"] == ["yes"], done
assert len(list(asking.get_state_history(config))) > 2
asking.update_state(config, {"done": False}, as_node="finish")
assert asking.get_state(config).values["done"] is False


class State(TypedDict):
    text: str
    seen: list


outer = StateGraph(State).add_node("remote", graph).add_edge(START, "remote").compile()
assert outer.invoke({"text": "b"})["seen"] == ["first b", "second"]
print("served")
