"""Random calls on threads of one graph in LangGraph: prints what each call leaves, a line of JSON for each thread.

    calls.py SEED COUNT

The graph is `wide` of `calls_end_as_on_langgraph.rs`. Calls that LangGraph refuses are left out. Left out too is what is known to
differ: docs/guide/server.md lists it.
"""

import json
import random
import sys
import uuid
from operator import add
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt


class Wide(TypedDict, total=False):
    text: str
    seen: Annotated[list, add]
    word: str


def says(name):
    return lambda state: {"seen": [f"{name} {state.get('text', '')}"]}


def ask(state):
    answer = json.dumps(interrupt("which?"), separators=(",", ":"))
    return {"seen": [f"ask {answer}"]}


graph = StateGraph(Wide)
for name in "acd":
    graph.add_node(name, says(name))
graph.add_node("ask", ask)
graph.add_node("work", lambda job: {"seen": [f"work {job['word']}"]})
for edge in [(START, "a"), (START, "d"), ("a", "ask"), ("ask", "c"), ("d", "c"), ("work", "c")]:
    graph.add_edge(*edge)
graph = graph.compile(checkpointer=InMemorySaver())


def seen(state):
    values = {"text": state.values.get("text", ""), "seen": state.values.get("seen", [])}
    asked = [one.value for one in state.interrupts]
    return {"values": values, "next": sorted(state.next), "interrupts": asked}


def inputs(rng):
    return rng.choice([{"text": rng.choice("xyz")}, {"seen": [rng.choice("pq")]}, {"text": "w", "seen": ["r"]}])


def gotos(rng):
    send = {"node": "work", "input": {"word": rng.choice("uv")}}
    # Not to the node that asks: its question is not in the state there.
    one = lambda: rng.choice(["a", "c", "d", send, {**send, "input": {"word": "t"}}])
    return one() if rng.random() < 0.5 else [one() for _ in range(rng.randint(1, 3))]


def call(rng, state, history=()):
    """A random call that means something on this thread."""
    is_open, asks = bool(state.next), bool(state.interrupts)
    kinds = ["run"] + ["resume", "resume"] * asks + ["proceed"] * is_open
    # An update keeps what siblings of a waiting node have done here.
    kinds += ["update"] * all(task.interrupts for task in state.tasks if asks)
    # A goto is refused here while something is open, and begins with the edges of START there on a new thread.
    kinds += ["goto", "goto"] if state.values and not is_open else []
    kind = rng.choice(kinds)
    if history:
        at = rng.randrange(len(history))
        kinds = [{"run": None}, {"run": inputs(rng)}]
        # The place before an input cannot be changed here.
        if not history[at].interrupts and history[at].metadata["source"] != "input":
            kinds.append({"update": inputs(rng), "as_node": rng.choice("acd")})
        return rng.choice(kinds) | {"at": at}
    match kind:
        case "run":
            return {"run": inputs(rng)}
        case "proceed":
            return {"run": None}
        case "update":
            return {"update": inputs(rng), "as_node": rng.choice(["a", "c", "d", "ask", "work", "__start__", "__end__"])}
        case "resume":
            return {"command": {"resume": rng.choice(["yes", 1, {"k": [None]}])}}
        case "goto":
            return {"command": {"goto": gotos(rng)} | ({"update": inputs(rng)} if rng.random() < 0.4 else {})}


def target(goto):
    return Send(goto["node"], goto["input"]) if isinstance(goto, dict) else goto


def make(call, config):
    if "update" in call:
        # The server's names for the ends of a graph.
        return graph.update_state(config, call["update"], as_node=call["as_node"])
    given = call.get("run")
    if "command" in call:
        command = call["command"]
        goto = command.get("goto", ())
        goto = [target(one) for one in goto] if isinstance(goto, list) else target(goto)
        given = Command(update=command.get("update"), resume=command.get("resume"), goto=goto)
    return graph.invoke(given, config)


def thread(rng):
    config = {"configurable": {"thread_id": str(uuid.UUID(int=rng.getrandbits(128)))}}
    calls = []
    for _ in range(rng.randint(1, 6)):
        one = call(rng, graph.get_state(config))
        try:
            make(one, config)
        except Exception:
            # It may have left something.
            return calls and {"calls": calls[:], "history": None}
        calls.append(one | {"left": seen(graph.get_state(config))})
    history = list(graph.get_state_history(config))
    # A question of an older checkpoint is not listed here, and open work is listed as open. A goto is a checkpoint of its own.
    listed = [{"source": state.metadata["source"]} | ({} if state.interrupts else seen(state)) for state in history]
    if any("goto" in call.get("command", {}) for call in calls):
        return {"calls": calls, "history": None}
    if rng.random() < 0.5:
        one = call(rng, history[0], history)
        try:
            make(one, history[one["at"]].config)
        except Exception:
            return {"calls": calls, "history": listed}
        return {"calls": calls, "history": listed, "fork": one | {"left": seen(graph.get_state(config))}}
    return {"calls": calls, "history": listed}


seed, count = int(sys.argv[1]), int(sys.argv[2])
for at in range(count):
    if made := thread(random.Random(seed * 1_000_003 + at)):
        print(json.dumps(made))
