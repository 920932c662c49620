"""LangGraph in the cases of `harness`: measures the case that the first argument names, and prints one line of JSON.

With a second argument, `quick`, the case runs once.
"""

import json
import operator
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

TEXT = "thirty-two bytes of a small text"
ANSWER, INNER, SHORT, LINE = 40, 3, 10, 100
# As in `harness`.
REPETITION, ENOUGH, REPETITIONS = 0.03, 2, 5


class Counter(TypedDict):
    count: int
    until: int
    text: str
    items: Annotated[list[int], operator.add]
    lines: Annotated[list[str], operator.add]


def begun(until=0):
    return {"count": 0, "until": until, "text": TEXT, "items": [], "lines": []}


def add_one(state):
    return {"count": state["count"] + 1}


def add_line(state):
    return {"count": state["count"] + 1, "lines": ["x" * LINE]}


def config(thread=None):
    return {"configurable": {"thread_id": thread}, "recursion_limit": 20_000}


def chain(size):
    graph = StateGraph(Counter)
    for at in range(size):
        graph.add_node(f"node_{at}", add_one)
        graph.add_edge(f"node_{at - 1}" if at else START, f"node_{at}")
    return graph.compile()


def looped(work, saver=None):
    graph = StateGraph(Counter).add_node("work", work).add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["count"] < state["until"] else END, ["work", END])
    return graph.compile(checkpointer=saver)


def fan_out(size):
    graph = StateGraph(Counter).add_node("join", lambda state: {"count": state["count"] + len(state["items"])})
    names = [f"branch_{at}" for at in range(size)]
    for at, name in enumerate(names):
        graph.add_node(name, lambda state, at=at: {"items": [at]}).add_edge(START, name)
    return graph.add_edge(names, "join").compile()


def dispatching(size):
    graph = StateGraph(Counter).add_node("count", lambda given: {"items": [given["input"]]})
    graph.add_node("add_up", lambda state: {"count": state["count"] + sum(state["items"])})
    graph.add_conditional_edges(START, lambda state: [Send("count", {"input": at}) for at in range(size)], ["count"])
    return graph.add_edge("count", "add_up").compile()


def asking(saver):
    graph = StateGraph(Counter).add_node("before", add_one).add_node("after", add_one)
    graph.add_node("ask", lambda state: {"count": state["count"] + interrupt("how many more?")})
    graph.add_edge(START, "before").add_edge("before", "ask").add_edge("ask", "after")
    return graph.compile(checkpointer=saver)


def wait(graph, thread):
    return len(graph.invoke(begun(), config(thread), durability="sync")["__interrupt__"])


threads = iter(range(sys.maxsize))


def asked_and_answered(graph):
    thread = f"thread-{next(threads)}"
    assert wait(graph, thread) == 1
    return graph.invoke(Command(resume=ANSWER), config(thread), durability="sync")["count"]


def stored(graph, steps, saver):
    thread = f"thread-{next(threads)}"
    state = graph.invoke(begun(steps), config(thread), durability="sync")
    # Steps are counted from -1, the checkpoint of the input; the last one is that of the last step.
    assert saver.get_tuple(config(thread)).metadata["step"] == steps
    return state


def in_memory(steps):
    saver = InMemorySaver()
    return stored(looped(add_one, saver), steps, saver)["count"]


def prepare(case, size, folder):
    """The run of a case with its units, its result and a note."""

    def sqlite():
        saver = SqliteSaver(sqlite3.connect(os.path.join(folder, "threads.db"), check_same_thread=False))
        saver.setup()
        return saver

    def invoked(graph, until=0):
        return lambda: graph.invoke(begun(until), config())["count"]

    match case:
        case "chain":
            return invoked(chain(size)), size, size, ""
        case "loop":
            return invoked(looped(add_one), 10_000), 10_000, 10_000, ""
        case "fan-out":
            return invoked(fan_out(size)), size, size, ""
        case "runs":
            run = invoked(chain(SHORT))
            return lambda: sum(run() for _ in range(1000)), 1000 * SHORT, 1000 * SHORT, "one run after the other"
        case "memory":
            return lambda: in_memory(1000), 1000, 1000, ""
        case "sqlite":
            saver = sqlite()
            graph = looped(add_one, saver)
            return lambda: stored(graph, 100, saver)["count"], 100, 100, ""
        case "growing":
            saver = sqlite()
            graph = looped(add_line, saver)
            return lambda: len(stored(graph, 1000, saver)["lines"]), 1000, 1000, ""
        case "interrupt":
            graph = asking(InMemorySaver())
            return lambda: asked_and_answered(graph), 1, ANSWER + 2, ""
        case "stream":
            graph = chain(100)
            return lambda: sum(1 for _ in graph.stream(begun(), config(), stream_mode="updates")), 100, 100, ""
        case "subgraph":
            return invoked(looped(chain(INNER)), 100 * INNER), 100, 100 * INNER, ""
        case "dispatch":
            return invoked(dispatching(1000)), 1000, 1000 * 999 // 2, ""
        case "waiting":
            graph = asking(InMemorySaver())
            return lambda: sum(wait(graph, f"thread-{next(threads)}") for _ in range(10_000)), 10_000, 10_000, ""


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def measure(case, is_quick, folder):
    name, _, size = case.partition("/")
    work, units, expected, note = prepare(name, int(size or 0), folder)
    runs = 0

    def run(times):
        nonlocal runs
        cpu, wall = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(times):
            result = work()
            assert result == expected, (case, result, expected)
        runs += times
        return (time.process_time_ns() - cpu) / times / units, (time.perf_counter_ns() - wall) / times / units

    begun = time.monotonic()
    before = resident()
    taken = [run(1)]
    size = (resident() - before) / units if name == "waiting" else None
    if not is_quick and name != "waiting" and time.monotonic() - begun < ENOUGH:
        times = max(1, int(REPETITION * 1e9 / (taken[0][1] * units)))
        taken = [run(times)]
        while len(taken) < REPETITIONS and time.monotonic() - begun < ENOUGH:
            taken.append(run(times))
    cpu, wall = (sorted(times)[len(taken) // 2] for times in zip(*taken))
    if name == "growing":
        size = sum(entry.stat().st_size for entry in os.scandir(folder)) / runs
    return {"cpu": cpu, "wall": wall, "bytes": size, "note": note}


folder = tempfile.mkdtemp(prefix="agentgraph-peers-")
try:
    print(json.dumps(measure(sys.argv[1], len(sys.argv) > 2, folder)))
finally:
    shutil.rmtree(folder, ignore_errors=True)
