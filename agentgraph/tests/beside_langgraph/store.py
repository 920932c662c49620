"""Records what LangGraph's InMemoryStore answers, as the fixture of `items_are_found_as_in_langgraph.rs`.

    python3 -m venv target/langgraph && target/langgraph/bin/pip install langgraph==1.2.22
    target/langgraph/bin/python agentgraph/tests/beside_langgraph/store.py > agentgraph/tests/fixtures/langgraph_store.json
"""

import json
import random

from langgraph.store.memory import InMemoryStore

WORDS = ["a", "b", "ab", "aab", "ccd", "xyz", "dd a", "bc"]
BIG = 9007199254740993
# Values on which both agree. The others are named in docs/langgraph.md: true is 1 there, a missing field is null, and
# texts are read as numbers by `$gt` and its sisters, which also round integers.
SCALARS = [0, 1, 1.0, 1.5, 2, BIG, BIG - 1, None, "a", "b", ""]
OPERANDS = [0, 1, 1.0, 1.5, 2, BIG, BIG - 1, "a", "b", ""]
NUMBERS = [0, 1, 1.0, 1.5, 2]
FIELDS = ["p", "q"]
SEGMENTS = ["a", "ab", "b", "facts", "users"]


class Letters:
    """The embedder of the conformance kit: counts the letters from a to d."""

    def embed(self, texts):
        return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


def value(choose, depth=0):
    kind = choose.random()
    if kind < 0.6 or depth > 1:
        return choose.choice(SCALARS)
    if kind < 0.8:
        return [value(choose, depth + 1) for _ in range(choose.randrange(3))]
    return {choose.choice(FIELDS): value(choose, depth + 1) for _ in range(choose.randrange(1, 3))}


def namespace(choose, longest=3):
    return [choose.choice(SEGMENTS) for _ in range(choose.randrange(1, longest + 1))]


def condition(choose):
    kind = choose.random()
    if kind < 0.4:
        return choose.choice(OPERANDS)
    if kind < 0.5:
        return [choose.choice(OPERANDS) for _ in range(choose.randrange(3))]
    if kind < 0.6:
        return {choose.choice(FIELDS): choose.choice(OPERANDS)}
    names = choose.sample(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"], choose.randrange(1, 3))
    return {name: choose.choice(OPERANDS if name in ("$eq", "$ne") else NUMBERS) for name in names}


def play(seed):
    choose = random.Random(seed)
    store = InMemoryStore(index={"dims": 4, "embed": Letters().embed, "fields": ["text"]})
    puts = []
    for number in range(12):
        item = {choose.choice(FIELDS): value(choose) for _ in range(3)}
        item["text"] = choose.choice(WORDS)
        put = {
            "namespace": namespace(choose),
            "key": f"k{number}",
            "value": item,
            "index": choose.choice([None, None, None, False, ["p"]]),
        }
        # Only texts, which both compare; an empty one has a vector there, and none here.
        if put["index"] == ["p"] and not (isinstance(item.get("p"), str) and item["p"]):
            put["index"] = None
        store.put(tuple(put["namespace"]), put["key"], item, index=put["index"])
        puts.append(put)
    searches = []
    for _ in range(20):
        prefix = choose.choice([[], namespace(choose, 2), choose.choice(puts)["namespace"][:1]])
        wanted = {choose.choice(FIELDS): condition(choose) for _ in range(choose.randrange(1, 3))}
        search = {"prefix": prefix, "filter": wanted}
        try:
            found = store.search(tuple(prefix), filter=wanted, limit=100)
            search["found"] = sorted([list(item.namespace), item.key] for item in found)
        except (TypeError, ValueError) as error:
            search["fails"] = type(error).__name__
        searches.append(search)
    texts = []
    for _ in range(4):
        prefix = choose.choice([[], namespace(choose, 1)])
        text = choose.choice(WORDS)
        found = store.search(tuple(prefix), query=text, limit=100)
        scores = [[list(item.namespace), item.key, item.score] for item in found if item.score is not None]
        texts.append({"prefix": prefix, "text": text, "scores": scores})
    lists = []
    for _ in range(10):
        query = {"limit": choose.choice([2, 100]), "offset": choose.choice([0, 0, 1])}
        for end in ["prefix", "suffix"]:
            if choose.random() < 0.5:
                query[end] = [choose.choice([*SEGMENTS, "*"]) for _ in range(choose.randrange(1, 3))]
        if choose.random() < 0.4:
            query["max_depth"] = choose.randrange(1, 4)
        options = {name: tuple(part) if isinstance(part, list) else part for name, part in query.items()}
        query["found"] = [list(one) for one in store.list_namespaces(**options)]
        lists.append(query)
    return {"puts": puts, "searches": searches, "texts": texts, "lists": lists}


print(json.dumps([play(seed) for seed in range(40)], ensure_ascii=False, separators=(",", ":")))
