"""Random graphs with subgraphs as LangGraph draws them: prints a line of JSON for each.

    drawings.py SEED COUNT

`subgraphs_are_drawn_as_langgraph_does.rs` builds the same graphs from `drawings.jsonl`, which is `drawings.py 1 30`.
"""

import json
import random
import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class Text(TypedDict, total=False):
    text: str


def described(rng, depth):
    """A graph in which each node is reached and leads to the end: LangGraph draws others by what they do."""
    names = [f"n{at}" for at in range(rng.randint(1, 4))]
    nodes = [[name, described(rng, depth - 1) if depth and rng.random() < 0.4 else None] for name in names]
    edges, branches = [], []
    for at, name in enumerate(names):
        sources = [START, *names[:at]]
        edges += [(source, name) for source in rng.sample(sources, rng.randint(1, min(2, len(sources))))]
    for at, name in enumerate(names):
        ahead = [*names[at + 1 :], "__end__"]
        if rng.random() < 0.3:
            targets = {rng.choice(ahead), *rng.sample([*names, "__end__"], rng.randint(0, 2))}
            branches.append((name, sorted(targets - {target for source, target in edges if source == name})))
        elif name not in [source for source, _ in edges] and rng.random() < 0.5:
            edges.append((name, "__end__"))
    return {"nodes": nodes, "edges": edges, "branches": [branch for branch in branches if branch[1]]}


def compiled(graph):
    made = StateGraph(Text)
    for name, inner in graph["nodes"]:
        made.add_node(name, compiled(inner) if inner else lambda state: {})
    for source, target in graph["edges"]:
        made.add_edge(source, target)
    for source, targets in graph["branches"]:
        made.add_conditional_edges(source, lambda state: END, targets)
    return made.compile()


def drawn(graph, xray):
    drawing = graph.get_graph(xray=xray).to_json()
    edges = {(one["source"], one["target"], bool(one.get("conditional"))) for one in drawing["edges"]}
    return {"nodes": sorted(node["id"] for node in drawing["nodes"]), "edges": sorted(edges)}


rng = random.Random(int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    graph = described(rng, 2)
    made = compiled(graph)
    print(json.dumps({"graph": graph, "drawn": {str(xray).lower(): drawn(made, xray) for xray in [False, 1, True]}}))
