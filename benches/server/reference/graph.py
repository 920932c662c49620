"""The graph of `src/serve.rs`, for LangGraph's server."""

from typing import TypedDict

from langgraph.graph import START, StateGraph


class Steps(TypedDict, total=False):
    text: str
    step: int


def first(state: Steps):
    return {"step": 1}


def second(state: Steps):
    return {"step": 2}


graph = (
    StateGraph(Steps)
    .add_node("first", first)
    .add_node("second", second)
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile()
)
