"""Random graphs, and what LangGraph makes of each: a line of JSON per graph, for `play.rs`.

    graphs.py --seed 1 --count 1000 [--only 17] [--short]

The same seed gives the same graphs. What nodes and routes do is a function of what they see, written once here and once in
`behaviour.rs`. What LangGraph means to do otherwise is not generated, or switched off; `docs/evidence/langgraph.md` lists it.
"""

import argparse
import json
import operator
import random
import sys
from typing import Annotated, TypedDict

from langgraph.channels import EphemeralValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import TASKS
from langgraph.errors import GraphInterrupt, GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt

MASK = (1 << 64) - 1
# Supersteps of a call, calls of a graph, and tasks of both: graphs whose dispatches multiply are left out.
LIMIT, ACTS, TASKS_OF_A_GRAPH = 12, 10, 150
# Characters of a short line.
SHORT = 900


class State(TypedDict):
    log: Annotated[list, operator.add]
    bag: Annotated[list, operator.add]
    table: Annotated[dict, operator.or_]
    last: Annotated[int, lambda _, new: new]
    once: int
    flash: Annotated[int, EphemeralValue]


# ---------------------------------------------------------------- what nodes and routes do


def canonical(state):
    full = {"log": [], "bag": [], "table": {}, "last": 0, "once": None, "flash": None}
    full.update({key: value for key, value in state.items() if key in full})
    return json.dumps(full, sort_keys=True, separators=(",", ":"))


def fnv(text):
    seen = 0xCBF29CE484222325
    for byte in text.encode():
        seen = ((seen ^ byte) * 0x100000001B3) & MASK
    return seen


def choose(options, seen):
    if not options:
        return []
    option = options[(seen >> 40) % len(options)]
    base = (seen >> 20) % 1000 * 10
    return [to(target, base + place) for place, target in enumerate(option)]


def to(target, arg):
    if target == "end":
        return END
    return Send(target[1:], {"arg": arg}) if target.startswith("@") else target


def update(writes, seen, word):
    made = {"log": [word]}
    for place, write in enumerate(writes):
        value = (seen >> (5 * place)) & 511
        channel, overwrites = write.rstrip("="), write.endswith("=")
        one = {"bag": [value], "table": {f"k{value % 3}": value}}.get(channel, value)
        made[channel] = Overwrite(one) if overwrites else one
    return made


def node(name, shape, count):
    def run(state):
        arg = state.get("arg")
        word = name if arg is None else f"{name}({arg})"
        text = (canonical(state) if arg is None else f"arg:{arg}") + "|" + name
        if shape.get("asks"):
            text += f"|{interrupt(word)}"
        seen = fnv(text)
        made = update(shape["writes"], seen, word)
        goto = count.choose(shape.get("command"), seen)
        return Command(update=made, goto=goto) if "command" in shape else made

    return run


def router(slot, options, count):
    def decide(state):
        return count.choose(options, fnv(f"{canonical(state)}|r{slot}"))

    decide.__name__ = f"r{slot}"
    return decide


# ---------------------------------------------------------------- random graphs


def some(dice, chance):
    return dice.random() < chance


def random_graph(dice):
    names = [f"n{at}" for at in range(dice.randint(3, 7))]
    dispatches, defers, asks = some(dice, 0.65), some(dice, 0.35), some(dice, 0.3)
    crowd = [dice.choice(names) for _ in range(2)]

    def target(at):
        kind = dice.random()
        if kind < 0.1:
            return ["end"]
        if dispatches and kind < 0.5:
            # Mostly the same few, so that they are also sources of joins; often several at once.
            return ["@" + dice.choice(crowd if some(dice, 0.8) else names)] * dice.choice([1, 1, 2, 3])
        return [onward(at)]

    def onward(at, chance=0.75):
        # More ahead than back: with as many loops every graph ends at the limit.
        ahead = names[at + 1 :]
        return dice.choice(ahead if ahead and some(dice, chance) else names)

    def options(at, most):
        return [sum((target(at) for _ in range(dice.randint(0, most))), []) for _ in range(dice.randint(1, 3))]

    def shape(at):
        kinds = ["bag", "bag", "table", "table", "last", "last", "once", "flash", "bag=", "table="]
        weights = [9, 0, 9, 0, 9, 0, 2, 3, 1, 1]
        made = {"writes": []}
        for write in dice.choices(kinds, weights, k=dice.randint(0, 3)):
            if all(write.rstrip("=") != other.rstrip("=") for other in made["writes"]):
                made["writes"].append(write)
        if some(dice, 0.3):
            made["command"] = options(at, 2)
        if asks and some(dice, 0.2):
            made["asks"] = True
        if defers and some(dice, 0.3):
            made["defers"] = True
        return made

    nodes = [shape(at) for at in range(len(names))]
    edges = [[START, name] for name in dice.sample(names[:3], dice.randint(1, 2))]
    for at in range(len(names)):
        edges += [[names[at], onward(at, 0.9)] for _ in range(dice.choice([0, 1, 1, 2]) if at + 1 < len(names) else 0)]
    edges = [list(edge) for edge in dict.fromkeys(map(tuple, edges))]
    joins = []
    for _ in range(dice.choice([0, 1, 1, 2, 3])):
        sources = set(dice.sample(names, dice.randint(2, min(3, len(names)))))
        if dispatches and some(dice, 0.6):
            sources.add(dice.choice(crowd))
        last = max(names.index(source) for source in sources)
        join = [sorted(sources), onward(last)]
        if join not in joins:
            joins.append(join)
    routers = []
    for _ in range(dice.choice([0, 1, 1, 2, 3])):
        at = dice.randint(-1, len(names) - 1)
        routers.append([START if at < 0 else names[at], options(max(at, 0), 3)])
    return {"nodes": nodes, "edges": edges, "joins": joins, "routers": routers}


def build(graph, count):
    builder = StateGraph(State)
    for at, shape in enumerate(graph["nodes"]):
        builder.add_node(f"n{at}", node(f"n{at}", shape, count), defer=shape.get("defers", False))
    for source, to in graph["edges"]:
        builder.add_edge(source, to)
    for sources, to in graph["joins"]:
        builder.add_edge(sources, to)
    for slot, (source, options) in enumerate(graph["routers"]):
        builder.add_conditional_edges(source, router(slot, options, count))
    app = builder.compile(checkpointer=InMemorySaver())
    # Switched off: that deferred nodes do not wait for dispatches.
    app.trigger_to_nodes = {**app.trigger_to_nodes, TASKS: ()}
    return app


# ---------------------------------------------------------------- what comes of them


class Count:
    """How many tasks and routes there were. When there are too many the graph is left out, so they lead nowhere."""

    def __init__(self):
        self.calls = 0

    def choose(self, options, seen):
        self.calls += 1
        return [] if self.is_too_high() else choose(options, seen)

    def is_too_high(self):
        return self.calls > TASKS_OF_A_GRAPH


def half_full(app, config, graph):
    """The joins that wait for a source, as their place and the sources that arrived."""
    values = app.checkpointer.get_tuple(config).checkpoint["channel_values"]
    found = []
    for at, (sources, to) in enumerate(graph["joins"]):
        seen = values.get(f"join:{'+'.join(sources)}:{to}") or set()
        # Into a deferred node: the sources, and whether it is released.
        seen = seen[0] if isinstance(seen, (tuple, list)) else seen
        if seen:
            found.append([at, sorted(seen)])
    return found


def act(app, config, given, graph):
    """How a call ends, and the ids of what is asked, by its words."""
    asked = []
    try:
        asked = app.invoke(given, config, durability="sync").get("__interrupt__", [])
    except InvalidUpdateError as error:
        # Clashes of siblings that finished are raised there in the place of the question that the superstep waits for.
        return {"is": "unasked" if isinstance(error.__context__, GraphInterrupt) else "conflict"}, {}
    except GraphRecursionError:
        # It says so too if the last superstep that is allowed was the last one there is.
        if app.get_state(config).next:
            return {"is": "limit"}, {}
    if asked:
        return {"is": "asks", "asks": sorted(one.value for one in asked)}, {one.value: one.id for one in asked}
    return {"is": "finished", "stuck": half_full(app, config, graph)}, {}


def answer(word):
    return fnv(word) % 97


def play(graph, dice):
    """What comes of a graph; nothing if its dispatches multiply, or a clash hides a question."""
    count = Count()
    app, config = build(graph, count), {"configurable": {"thread_id": "t"}, "recursion_limit": LIMIT}
    # A call that goes on may take two supersteps more there.
    going_on = {**config, "recursion_limit": LIMIT - 2}
    given = {"bag": [dice.randint(0, 99)]}
    runs, acts, first_only = dice.choice([1, 2, 3]), [], some(dice, 0.3)
    while len(acts) < ACTS:
        if isinstance(given, dict):
            runs -= 1
            end, ids = act(app, config, given, graph)
            acts.append({"input": given["bag"][0], "end": end})
        else:
            answers = {ids[word]: answer(word) for word in given}
            end, ids = act(app, going_on, Command(resume=answers), graph)
            acts.append({"answers": given, "end": end})
        if end["is"] == "asks":
            # Equal questions cannot be told apart by their words.
            if len(ids) < len(end["asks"]):
                break
            given = end["asks"][:1] if first_only else end["asks"]
        # Joins that a run left half full are so in the next one there, and empty here.
        elif end == {"is": "finished", "stuck": []} and runs > 0:
            given = {"bag": [dice.randint(0, 99)]}
        else:
            break
    if count.is_too_high() or acts[-1]["end"]["is"] == "unasked":
        return None
    steps = [one for one in app.get_state_history(config) if one.metadata["source"] == "loop"]
    steps = [[" ".join(sorted(one.next)), f"{fnv(canonical(one.values)):016x}"] for one in reversed(steps)]
    return {**graph, "acts": acts, "steps": steps}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--only", type=int, help="only the graph of this number")
    parser.add_argument("--short", action="store_true", help="only graphs whose line is short, to be kept in a file")
    asked = parser.parse_args()
    left_out = 0
    for number in range(asked.count) if asked.only is None else [asked.only]:
        dice = random.Random(asked.seed * 1_000_003 + number)
        graph = random_graph(dice)
        played = play(graph, dice)
        if played is None:
            left_out += 1
            continue
        line = json.dumps({"seed": asked.seed, "number": number, **played}, separators=(",", ":"))
        if not asked.short or len(line) <= SHORT:
            print(line)
    print(f"{left_out} of {asked.count} graphs left out", file=sys.stderr)


main()
