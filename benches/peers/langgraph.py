"""What LangGraph's savers cost, on the same work as the cases of `benches` that store.

A step is a node that adds one to a number; after it the whole checkpoint is in the store (durability "sync", which is the
engine's default). Every figure is the median of a few repetitions, in milliseconds of the clock on the wall unless it says
otherwise; run it on a machine that does nothing else.
"""

import argparse
import operator
import os
import random
import shutil
import sqlite3
import statistics
import string
import tempfile
import threading
import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

REPEATS = 5
# A megabyte that does not get smaller where a store compresses, as Postgres does with large values.
TEXT = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=1_000_000))


class Counter(TypedDict):
    """What a small agent keeps: a number, a short text, a list."""

    count: int
    until: int
    text: str
    items: Annotated[list[int], operator.add]


class Log(TypedDict):
    """A log, and something that does not change."""

    count: int
    until: int
    fixed: str
    lines: Annotated[list[str], operator.add]


def goes_on(state):
    return "work" if state["count"] < state["until"] else END


def looped(schema, work, saver):
    graph = StateGraph(schema)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", goes_on, ["work", END])
    return graph.compile(checkpointer=saver)


def add_one(state):
    return {"count": state["count"] + 1}


def config(thread, steps=0):
    return {"configurable": {"thread_id": thread}, "recursion_limit": steps + 10}


def run(graph, thread, until, **state):
    given = {"count": 0, "until": until, **state}
    end = graph.invoke(given, config(thread, until), durability="sync")
    assert end["count"] == until


def counter(steps):
    return {"text": "thirty-two bytes of a small text", "items": []}


class Sqlite:
    name = "SqliteSaver"

    @contextmanager
    def open(self):
        folder = tempfile.mkdtemp(prefix="langgraph-bench-")
        path = os.path.join(folder, "threads.db")
        connection = sqlite3.connect(path, check_same_thread=False)
        try:
            saver = SqliteSaver(connection)
            saver.setup()
            yield saver, lambda: self.bytes(connection, folder)
        finally:
            connection.close()
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def bytes(connection, folder):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return sum(entry.stat().st_size for entry in os.scandir(folder))


class Postgres:
    name = "PostgresSaver"

    def __init__(self, url):
        self.url = url

    @contextmanager
    def open(self):
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        with ConnectionPool(self.url, max_size=10, kwargs=settings) as pool:
            saver = PostgresSaver(pool)
            saver.setup()
            self.empty(pool)
            yield saver, lambda: self.bytes(pool)
            self.empty(pool)

    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

    def empty(self, pool):
        with pool.connection() as connection:
            connection.execute(f"TRUNCATE {', '.join(self.tables)}")

    def bytes(self, pool):
        with pool.connection() as connection:
            sizes = [
                connection.execute(f"SELECT pg_total_relation_size('{table}') AS size").fetchone()["size"]
                for table in self.tables
            ]
        return sum(sizes)


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median_ms(work, repeats=REPEATS):
    return 1000 * statistics.median(timed(work) for _ in range(repeats))


def steps_per_second(store, writers, steps=1000):
    with store.open() as (saver, _):
        graph = looped(Counter, add_one, saver)
        threads = [
            threading.Thread(target=run, args=(graph, f"t-{writer}", steps), kwargs=counter(steps))
            for writer in range(writers)
        ]

        def work():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return writers * steps / timed(work)


def growing(bytes_a_step):
    def work(state):
        begin = state["count"] * bytes_a_step
        return {"count": state["count"] + 1, "lines": [TEXT[begin : begin + bytes_a_step]]}

    return work


def megabytes(store, work, steps=1000, fixed=""):
    with store.open() as (saver, size):
        before = size()
        run(looped(Log, work, saver), "t", steps, fixed=fixed, lines=[])
        return (size() - before) / 1e6


def reading(store, steps):
    with store.open() as (saver, _):
        graph = looped(Counter, add_one, saver)
        run(graph, "t", steps, **counter(steps))
        state = median_ms(lambda: graph.get_state(config("t")), 50)
        history = median_ms(lambda: list(graph.get_state_history(config("t")))) if steps <= 1000 else None
        return state, history


def ask(state):
    interrupt("go on?")
    return {"until": state["until"] + 1}


def resuming(store, steps):
    """A thread of so many steps that waits for an answer, and then for the next one."""
    with store.open() as (saver, _):
        graph = StateGraph(Counter)
        graph.add_node("work", add_one)
        graph.add_node("ask", ask)
        graph.add_edge(START, "work")
        graph.add_conditional_edges(
            "work", lambda state: "work" if state["count"] < state["until"] else "ask", ["work", "ask"]
        )
        graph.add_edge("ask", "work")
        graph = graph.compile(checkpointer=saver)
        given = {"count": 0, "until": steps, **counter(steps)}
        graph.invoke(given, config("t", steps), durability="sync")

        def work():
            graph.invoke(Command(resume=True), config("t", steps), durability="sync")

        return median_ms(work, 50)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=100_000, help="of the longest thread")
    arguments.add_argument("--postgres", help="the URL of a database that may be filled")
    given = arguments.parse_args()
    stores = [Sqlite()] + ([Postgres(given.postgres)] if given.postgres else [])
    names = ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
    print(", ".join(f"{name} {version(name)}" for name in names) + "\n")
    rows = {}

    def note(what, value, unit):
        rows.setdefault(what, []).append(f"{value:,.2f} {unit}" if value < 100 else f"{value:,.0f} {unit}")

    for store in stores:
        for writers in (1, 10):
            note(f"steps a second, {writers} at once", steps_per_second(store, writers), "")
        note("1000 steps to a list of 100 KB, on disk", megabytes(store, growing(100)), "MB")
        note("1000 steps to a list of 1 MB, on disk", megabytes(store, growing(1000)), "MB")
        note("1000 steps beside 1 MB that stays, on disk", megabytes(store, add_one, fixed=TEXT), "MB")
        for steps in (10, 1000, given.steps):
            state, history = reading(store, steps)
            note(f"reading the state after {steps:,} steps", state, "ms")
            if steps == 1000:
                note("listing the history of 1,000 steps", history, "ms")
        note("an answer to a thread of 1,000 steps, to its next question", resuming(store, 1000), "ms")
    print("| what | " + " | ".join(store.name for store in stores) + " |")
    print("|---|" + "---|" * len(stores))
    for what, values in rows.items():
        print(f"| {what} | " + " | ".join(values) + " |")


if __name__ == "__main__":
    main()
