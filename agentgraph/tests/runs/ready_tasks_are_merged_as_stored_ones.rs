//! A run that nothing watches or stores merges tasks that are ready in a way of its own. Random graphs whose
//! nodes return updates, commands and dispatches end in the same state as in a stored run, which the
//! reference model checks.

use agentgraph::prelude::*;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(State, Serialize, Deserialize, Clone, Debug, Default)]
struct Lines {
    #[reduce(append)]
    lines: Vec<String>,
}

/// What a node does, beside writing a line. All that it leads to comes after it.
#[derive(Clone, Debug)]
struct Deed {
    edges: Vec<usize>,
    /// A join that waits for this node and the one before.
    join: Option<usize>,
    /// One of them follows, by the number of lines.
    route: Option<(usize, usize)>,
    goto: Vec<usize>,
    keeps_edges: bool,
    dispatches: Vec<usize>,
    is_pending: bool,
}

const NODES: usize = 6;

#[derive(Route, Clone, Copy)]
enum To {
    N1,
    N2,
    N3,
    N4,
    N5,
}

impl To {
    const LATER: [To; NODES - 1] = [To::N1, To::N2, To::N3, To::N4, To::N5];
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    (0..NODES).map(deed).collect::<Vec<_>>()
}

fn deed(node: usize) -> impl Strategy<Value = Deed> {
    let later = move || prop::sample::subsequence((node + 1..NODES).collect::<Vec<_>>(), 0..NODES - node);
    let few = move || prop_oneof![2 => Just(Vec::new()), 1 => later()];
    let last = NODES - 1;
    let one = move || (node + 1..=NODES).prop_map(move |to| to.min(last));
    let join = prop::option::weighted(0.3, one());
    let (route, rare) = (prop::option::weighted(0.4, (one(), one())), prop::bool::weighted(0.1));
    (few(), join, route, few(), any::<bool>(), few(), rare).prop_map(
        move |(edges, join, route, goto, keeps_edges, dispatches, is_pending)| Deed {
            edges,
            join: join.filter(|to| node > 0 && *to > node),
            route: route.filter(|(one, other)| *one.min(other) > node),
            goto,
            keeps_edges,
            dispatches,
            is_pending,
        },
    )
}

fn name(node: usize) -> String {
    format!("n{node}")
}

fn build(deeds: &[Deed]) -> CompiledGraph<Lines> {
    let mut graph = StateGraph::new();
    for (at, deed) in deeds.iter().enumerate() {
        let shared = deed.clone();
        let node = move |seen: Snapshot<Lines>, input: Option<Input<u32>>| {
            let deed = shared.clone();
            async move {
                if deed.is_pending {
                    tokio::task::yield_now().await;
                }
                let line =
                    format!("{at} saw {} with {:?}", seen.lines.len(), input.map(|Input(input)| input));
                let update = Lines::update().lines([line]);
                drop(seen);
                let names: Vec<_> = deed.goto.iter().map(|to| name(*to)).collect();
                let sent = deed.dispatches.iter().map(|to| Dispatch::new(name(*to), at as u32));
                let command = Command::update(update);
                let command = match (names.is_empty(), deed.keeps_edges) {
                    (true, _) => command,
                    (false, true) => command.also_goto(names),
                    (false, false) => command.goto(names),
                };
                command.also_goto(sent.collect::<Vec<_>>())
            }
        };
        graph = graph.node(name(at), node);
        let is_led_to = deeds[..at].iter().any(|before| before.edges.contains(&at));
        if !is_led_to {
            graph = graph.edge(START, name(at));
        }
        for to in &deed.edges {
            graph = graph.edge(name(at), name(*to));
        }
        if let Some(to) = deed.join {
            graph = graph.edge([name(at - 1), name(at)], name(to));
        }
        if let Some((one, other)) = deed.route {
            let choose = move |seen: &Lines| {
                To::LATER[if seen.lines.len().is_multiple_of(2) { one } else { other } - 1]
            };
            graph = graph.route(name(at), choose);
        }
        if deed.edges.is_empty() && deed.join.is_none() && deed.route.is_none() {
            graph = graph.edge(name(at), END);
        }
    }
    graph.compile().unwrap()
}

fn told(ended: Result<Outcome<Lines>, agentgraph::Error>) -> String {
    match ended {
        Ok(outcome) => format!("{:?} {:?}", outcome.output().lines, outcome.stuck()),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #[test]
    fn both_ways_end_in_the_same_state(deeds in deeds()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let graph = build(&deeds);
            let ready = told(graph.invoke(Lines::update()).max_supersteps(30).await);
            let graph = graph.checkpointer(MemorySaver::new());
            let stored = told(graph.invoke(Lines::update()).thread("t").max_supersteps(30).await);
            assert_eq!(ready, stored);
        });
    }
}
