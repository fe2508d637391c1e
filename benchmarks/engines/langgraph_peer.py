"""LangGraph with its own checkpointers, which save every step before the next one starts (``durability="sync"``)."""

from __future__ import annotations

import operator
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from benchmarks.engines.contract import Runner
from benchmarks.samples import timed
from benchmarks.stores import Store


class Counting(TypedDict):
    done: int
    until: int
    output: int


class Collecting(TypedDict):
    items: list[int]
    outputs: Annotated[list[int], operator.add]


@contextmanager
def open_engine(store: Store) -> Iterator[LangGraph]:
    if store.vendor == "sqlite":
        from langgraph.checkpoint.sqlite import SqliteSaver

        connection = sqlite3.connect(store.path, check_same_thread=False)
        connection.execute("PRAGMA synchronous=FULL")
        saver = SqliteSaver(connection)
        saver.setup()
        try:
            yield LangGraph(saver)
        finally:
            connection.close()
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(store.url) as postgres:
            postgres.setup()
            yield LangGraph(postgres)


class LangGraph:
    note = 'durability="sync"'

    def __init__(self, saver: Any) -> None:
        self.loop = _loop().compile(checkpointer=saver)
        self.fan = _fan().compile(checkpointer=saver)

    def runner(self, subject: str) -> Runner:
        if subject == "fan-out":
            return lambda count: timed(lambda: self.collect(count)).rate(count)
        return lambda count: timed(lambda: self.count(count)).per(count)

    def count(self, count: int) -> None:
        settings = {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": count + 10}
        left = self.loop.invoke({"done": 0, "until": count, "output": 0}, settings, durability="sync")
        assert left["done"] == count

    def collect(self, count: int) -> None:
        settings = {"configurable": {"thread_id": uuid.uuid4().hex}, "max_concurrency": 8}
        left = self.fan.invoke({"items": list(range(count)), "outputs": []}, settings, durability="sync")
        assert len(left["outputs"]) == count


def _loop() -> Any:
    graph = StateGraph(Counting)
    graph.add_node("call", lambda state: {"done": state["done"] + 1, "output": 42})
    graph.add_edge(START, "call")
    graph.add_conditional_edges("call", lambda state: "call" if state["done"] < state["until"] else END)
    return graph


def _fan() -> Any:
    graph = StateGraph(Collecting)
    graph.add_node("call", lambda item: {"outputs": [42]})
    graph.add_conditional_edges(START, lambda state: [Send("call", {"item": item}) for item in state["items"]])
    graph.add_edge("call", END)
    return graph
