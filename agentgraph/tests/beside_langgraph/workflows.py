"""Random workflows, and what LangGraph's functional API makes of each: one JSON document, the fixture of
`workflows_agree_with_langgraph.rs`.

    workflows.py --seed 1 --count 100 >agentgraph/tests/fixtures/langgraph_workflows.json

A workflow is a list of acts. Each of its runs on one thread is continued with answers until it is finished; recorded are what each run
returned, how many calls it took, and the effects of its tasks in their order (those of parallel tasks sorted).
"""

import argparse
import json
import random

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, RetryPolicy, interrupt

RUNS = 2


def acts(rng):
    made = []
    for _ in range(rng.randrange(7)):
        kind = rng.choice(["task", "task", "parallel", "retried", "interrupt", "interrupt", "fails"])
        made.append({"act": kind, "n": rng.randrange(1, 4)})
    # A failure that a later call mends, at most once. Not between two questions: after the failure, LangGraph gives the answer to the
    # first of them to the second one too, without asking it.
    fails = [at for at, act in enumerate(made) if act["act"] == "fails"]
    asks = [at for at, act in enumerate(made) if act["act"] == "interrupt"]
    keeps = fails[:1] if not (fails and asks and asks[0] < fails[0] < asks[-1]) else []
    return [act for at, act in enumerate(made) if act["act"] != "fails" or at in keeps]


def play(script):
    effects = []
    # Calls of tasks that fail, by run and act, so that they succeed at last.
    failed = {}
    run = 0

    def note(mark):
        effects.append(mark)
        return mark

    @task
    def work(mark):
        return note(mark)

    @task(retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=9, retry_on=ValueError))
    def retried(mark, failures):
        key = (run, mark)
        failed[key] = failed.get(key, 0) + 1
        if failed[key] <= failures:
            raise ValueError("not yet")
        return note(mark)

    @entrypoint(checkpointer=InMemorySaver())
    def workflow(_, *, previous=None):
        returned = [] if previous is None else [f"after {len(previous)}"]
        for at, act in enumerate(script):
            n = act["n"]
            match act["act"]:
                case "task":
                    returned.append(work(f"{at}").result())
                case "parallel":
                    returned.extend([one.result() for one in [work(f"{at}.{i}") for i in range(n)]])
                case "retried":
                    returned.append(retried(f"{at}", n).result())
                case "interrupt":
                    returned.append(interrupt(f"question {at}"))
                case "fails":
                    key = (run, at)
                    failed[key] = failed.get(key, 0) + 1
                    if failed[key] == 1:
                        raise RuntimeError("broken")
        return returned

    config = {"configurable": {"thread_id": "t"}}
    runs = []
    for run in range(RUNS):
        effects.clear()
        begins, calls, asked = "go", 0, []
        while True:
            calls += 1
            try:
                outcome = workflow.invoke(begins, config)
            except RuntimeError:
                # The run continues with no input.
                begins = None
                continue
            open_ones = outcome.get("__interrupt__") if isinstance(outcome, dict) else None
            if not open_ones:
                break
            asked.append(open_ones[0].value)
            begins = Command(resume=f"answer to {open_ones[0].value}")
        runs.append({"returned": outcome, "calls": calls, "asked": asked, "effects": in_order(effects)})
    return runs


def in_order(effects):
    """The marks of one parallel act stand together; their order is not promised."""
    groups, result = [], []
    for mark in effects:
        if groups and "." in mark and groups[-1][-1].split(".")[0] == mark.split(".")[0]:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    for group in groups:
        result.extend(sorted(group))
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    cases = []
    for at in range(options.count):
        script = acts(random.Random(f"{options.seed} {at}"))
        cases.append({"script": script, "runs": play(script)})
    print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")


if __name__ == "__main__":
    main()
