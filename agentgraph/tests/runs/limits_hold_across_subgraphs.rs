//! `max_concurrency` holds for all graphs of a call, and a [`Limit`] for all nodes that share it: never are
//! more tasks in flight, and no run is stuck, whatever is nested, fails, times out or is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::graph::ProblemKind;
use agentgraph::host::{Host, TaskCall, TaskReply};
use agentgraph::node::Node;
use agentgraph::policy::Limit;
use agentgraph::prelude::*;
use agentgraph::testing::VirtualTime;
use agentgraph::{BoxError, Failure};
use futures_util::StreamExt;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Work {
    #[reduce(sum)]
    done: u32,
}

/// How many nodes are in flight, and the most there ever were.
#[derive(Clone, Default)]
struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

impl Gauge {
    fn enter(&self) -> InFlight {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        InFlight(self.clone())
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Clone, Debug)]
enum Item {
    /// Works for some milliseconds.
    Leaf {
        works: u64,
        end: End,
        limited: bool,
    },
    Graph(Spec),
    /// Dispatches so many tasks to a graph.
    FanOut(u64, Spec),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Done,
    /// Fails in its first attempt.
    Retried,
    /// Fails in each, and a handler takes over.
    Handled,
    /// Takes longer than its limit, and a handler takes over.
    Late,
}

#[derive(Clone, Debug)]
struct Spec {
    eager: bool,
    chain: bool,
    items: Vec<Item>,
}

struct Gauges {
    call: Gauge,
    limited: Gauge,
    limit: Limit,
}

const LATE: Duration = Duration::from_millis(20);

fn leaf(works: u64, end: End, limited: bool, gauges: &Arc<Gauges>) -> Node<Work> {
    let counted = Arc::clone(gauges);
    let node = move |ctx: Ctx| {
        let gauges = Arc::clone(&counted);
        async move {
            let _in_call = gauges.call.enter();
            let _in_limit = limited.then(|| gauges.limited.enter());
            match works {
                0 => {}
                1 => tokio::task::yield_now().await,
                _ => sleep(Duration::from_millis(works)).await,
            }
            match end {
                End::Done => Ok(Work::update().done(1)),
                End::Retried if ctx.attempt() > 1 => Ok(Work::update().done(1)),
                End::Late => {
                    sleep(LATE * 2).await;
                    Ok(Work::update().done(100))
                }
                End::Retried | End::Handled => Err(BoxError::from("no")),
            }
        }
    };
    let node = node.retry(RetryPolicy::attempts(2).initial(Duration::from_millis(3)));
    let node = if matches!(end, End::Late) { node.timeout(LATE) } else { node };
    if limited { node.limit(&gauges.limit) } else { node }
}

fn graph(spec: &Spec, gauges: &Arc<Gauges>) -> CompiledGraph<Work> {
    let counted = Arc::clone(gauges);
    let handler = move |_: Failure| {
        let gauges = Arc::clone(&counted);
        async move {
            let _in_call = gauges.call.enter();
            tokio::task::yield_now().await;
            Work::update().done(1)
        }
    };
    let mut graph = StateGraph::new().node("handler", handler);
    let mut before = START.to_owned();
    for (at, item) in spec.items.iter().enumerate() {
        let name = format!("n{at}");
        graph = match item {
            Item::Leaf { works, end, limited } => {
                graph.node(&*name, leaf(*works, *end, *limited, gauges).on_error("handler"))
            }
            Item::Graph(inner) => graph.node(&*name, self::graph(inner, gauges)),
            Item::FanOut(count, inner) => {
                let (count, to) = (*count, format!("{name}.each"));
                let target = to.clone();
                let dispatch = move || {
                    let target = target.clone();
                    async move {
                        let each = (0..count).map(|_| Dispatch::new(&target, 0_u8));
                        Command::<Work>::new().also_goto(each.collect::<Vec<_>>())
                    }
                };
                graph.node(&*name, dispatch.targets([to.clone()])).node(
                    &*to,
                    self::graph(inner, gauges)
                        .embed(|_: Input<u8>| Work::update(), |work: Work| Work::update().done(work.done)),
                )
            }
        };
        graph = graph.edge(&*before, &*name);
        if spec.chain {
            before = name;
        }
    }
    let graph = if spec.eager { graph.eager() } else { graph };
    graph.compile().unwrap()
}

/// The number of nodes that count themselves as done. A chain ends where a handler takes over: no edge leads
/// on from it.
fn wanted(spec: &Spec) -> u32 {
    let mut done = 0;
    for item in &spec.items {
        done += match item {
            Item::Leaf { .. } => 1,
            Item::Graph(inner) => wanted(inner),
            Item::FanOut(count, inner) => *count as u32 * wanted(inner),
        };
        let is_handled = matches!(item, Item::Leaf { end: End::Handled | End::Late, .. });
        if spec.chain && is_handled {
            break;
        }
    }
    done
}

fn specs() -> impl Strategy<Value = Spec> {
    let end = prop_oneof![4 => Just(End::Done), 1 => Just(End::Retried), 1 => Just(End::Handled), 1 => Just(End::Late)];
    let leaf =
        (0..6_u64, end, any::<bool>()).prop_map(|(works, end, limited)| Item::Leaf { works, end, limited });
    let of = |item: BoxedStrategy<Item>| {
        (any::<bool>(), any::<bool>(), prop::collection::vec(item, 1..4))
            .prop_map(|(eager, chain, items)| Spec { eager, chain, items })
    };
    let item = leaf.boxed().prop_recursive(4, 40, 4, move |inner| {
        let spec = of(inner.clone()).boxed();
        prop_oneof![
            2 => inner,
            2 => spec.clone().prop_map(Item::Graph),
            1 => (1..4_u64, spec).prop_map(|(count, spec)| Item::FanOut(count, spec)),
        ]
    });
    of(item.boxed())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn never_more_in_flight_and_never_stuck(spec in specs(), most in 1..5_usize, at_once in 1..3_usize, dropped_after in 0..60_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let gauges = Arc::new(Gauges {
                call: Gauge::default(),
                limited: Gauge::default(),
                limit: Limit::new("shared", at_once),
            });
            let graph = graph(&spec, &gauges);
            let run = || graph.invoke(Work::update()).max_concurrency(most).into_future();
            // A run that is dropped leaves no place taken.
            let _ = tokio::time::timeout(Duration::from_millis(dropped_after), run()).await;
            assert_eq!(gauges.limit.running(), 0);
            let outcome = tokio::time::timeout(Duration::from_secs(3600), run()).await.expect("it is stuck").unwrap();
            assert_eq!(outcome.output().done, wanted(&spec));
            assert!(gauges.call.most() <= most, "{} in flight, of {most}", gauges.call.most());
            assert!(gauges.limited.most() <= at_once, "{} of the limit's {at_once}", gauges.limited.most());
            assert_eq!(gauges.limit.running(), 0);
        });
    }
}

/// Ten dispatches to a graph of ten nodes, each of which takes a second.
fn ten_by_ten(gauges: &Arc<Gauges>) -> CompiledGraph<Work> {
    let leaf = Item::Leaf { works: 1000, end: End::Done, limited: false };
    let inner = Spec { eager: false, chain: false, items: vec![leaf; 10] };
    graph(&Spec { eager: false, chain: false, items: vec![Item::FanOut(10, inner)] }, gauges)
}

fn gauges(limit: Limit) -> Arc<Gauges> {
    Arc::new(Gauges { call: Gauge::default(), limited: Gauge::default(), limit })
}

#[tokio::test(start_paused = true)]
async fn all_places_are_used_and_each_event_says_when_a_task_began() {
    let gauges = gauges(Limit::new("unused", 1));
    let graph = ten_by_ten(&gauges);
    let begun = Instant::now();
    let events = graph.invoke(Work::update()).max_concurrency(10).views([View::Tasks]).subgraphs().stream();
    let events: Vec<_> = events.collect().await;
    let (mut running, mut most) = (0_usize, 0);
    for event in &events {
        match &event.kind {
            EventKind::TaskStarted { .. } if !event.namespace.is_empty() => running += 1,
            EventKind::TaskEnded { .. } if !event.namespace.is_empty() => running -= 1,
            _ => {}
        }
        most = most.max(running);
    }
    assert!(matches!(events.last().unwrap().kind, EventKind::Ended { .. }));
    assert_eq!((gauges.call.most(), most), (10, 10));
    assert_eq!(begun.elapsed(), Duration::from_secs(10), "ten at a time, a hundred seconds of work");
}

/// Another process, which counts the tasks that it runs at once.
struct Elsewhere {
    graph: CompiledGraph<Work>,
    running: Gauge,
}

#[async_trait::async_trait]
impl Host for Elsewhere {
    async fn run(&self, call: TaskCall) -> Result<TaskReply, BoxError> {
        let _running = self.running.enter();
        sleep(Duration::from_millis(5)).await;
        Ok(self.graph.run_task(call).await?)
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_runs_elsewhere_keeps_its_place() {
    let leaf = || StateGraph::new().node("a", async || Work::update().done(1)).node("b", async || {});
    let leaf = || leaf().edge(START, "a").edge(START, "b").compile().unwrap();
    let graph = || {
        let graph = StateGraph::new().node("one", leaf()).node("two", leaf()).node("three", async || {});
        graph.edge(START, "one").edge(START, "two").edge(START, "three").compile().unwrap()
    };
    for most in 1..4 {
        let running = Gauge::default();
        let graph = graph().host(Elsewhere { graph: graph(), running: running.clone() });
        let work = graph.invoke(Work::update()).max_concurrency(most).finish().await.unwrap();
        assert_eq!((work.done, running.most()), (2, most));
    }
}

#[tokio::test(start_paused = true)]
async fn two_calls_have_places_of_their_own() {
    let gauges = gauges(Limit::new("unused", 1));
    let graph = ten_by_ten(&gauges);
    let call = || graph.invoke(Work::update()).max_concurrency(10).into_future();
    let (one, other) = tokio::join!(call(), call());
    assert_eq!(one.unwrap().output().done + other.unwrap().output().done, 200);
    assert_eq!(gauges.call.most(), 20);
}

/// The times at which nodes began.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<Vec<Duration>>>);

fn searches(limit: &Limit, time: &VirtualTime, begun: &Begun, nodes: usize) -> CompiledGraph<Work> {
    let mut graph = StateGraph::new();
    for at in 0..nodes {
        let (time, begun) = (time.clone(), begun.clone());
        let search = move || {
            let (time, begun) = (time.clone(), begun.clone());
            async move {
                begun.0.lock().unwrap().push(time.elapsed());
                time.sleep(Duration::from_millis(50)).await;
                Work::update().done(1)
            }
        };
        let name = format!("search{at}");
        // Shorter than the wait for a place: the wait is not part of the attempt.
        graph =
            graph.node(&*name, search.limit(limit).timeout(Duration::from_millis(60))).edge(START, &*name);
    }
    graph.compile().unwrap().services(time.clone())
}

#[tokio::test]
async fn nodes_of_several_graphs_begin_no_faster_than_their_rate() {
    let limit = Limit::new("search", 2).rate(3, Duration::from_secs(1));
    let (time, begun) = (VirtualTime::new(), Begun::default());
    let graphs = [searches(&limit, &time, &begun, 5), searches(&limit, &time, &begun, 6)];
    let [one, other] = &graphs;
    let both = async {
        tokio::join!(one.invoke(Work::update()).into_future(), other.invoke(Work::update()).into_future())
    };
    let (one, other) = time.run(both).await;
    assert_eq!(one.unwrap().output().done + other.unwrap().output().done, 11);
    let begun = begun.0.lock().unwrap().clone();
    // Two at once, for 50 ms, and three in any second.
    let wanted = [0, 0, 50, 1000, 1000, 1050, 2000, 2000, 2050, 3000, 3000].map(Duration::from_millis);
    assert_eq!(begun, wanted);
}

#[tokio::test]
async fn attempts_that_waited_for_a_place_do_not_begin_together() {
    let limit = Limit::new("search", 2).rate(1, Duration::from_secs(1));
    let (time, begun) = (VirtualTime::new(), Begun::default());
    let mut graph = StateGraph::new();
    for at in 0..4 {
        let (clock, begun) = (time.clone(), begun.clone());
        // The first two end at the same time.
        let search = move || {
            begun.0.lock().unwrap().push(clock.elapsed());
            let rest = Duration::from_secs(10).saturating_sub(clock.elapsed());
            let ended = clock.sleep(rest);
            async move {
                ended.await;
                Work::update().done(1)
            }
        };
        let name = format!("search{at}");
        graph = graph.node(&*name, search.limit(&limit)).edge(START, &*name);
    }
    let graph = graph.compile().unwrap().services(time.clone());
    assert_eq!(time.run(graph.invoke(Work::update())).await.unwrap().output().done, 4);
    assert_eq!(*begun.0.lock().unwrap(), [0, 1, 10, 11].map(Duration::from_secs));
}

#[tokio::test]
async fn an_attempt_that_is_dropped_while_it_waits_uses_up_no_start() {
    let limit = Limit::new("search", 9).rate(1, Duration::from_secs(1));
    let (time, begun) = (VirtualTime::new(), Begun::default());
    let graph = searches(&limit, &time, &begun, 8);
    let run = graph.invoke(Work::update()).deadline(Duration::from_millis(1500));
    assert!(matches!(time.run(run).await.unwrap(), Outcome::Stopped { .. }));
    let graph = searches(&limit, &time, &begun, 1);
    assert_eq!(time.run(graph.invoke(Work::update())).await.unwrap().output().done, 1);
    let begun = begun.0.lock().unwrap().clone();
    assert_eq!(begun, [0, 1, 2].map(Duration::from_secs));
}

#[test]
fn a_graph_as_a_node_has_no_such_setting() {
    let inner = || StateGraph::<Work>::new().node("a", async || {}).edge(START, "a").compile().unwrap();
    let limit = Limit::new("search", 1);
    let graph = StateGraph::<Work>::new()
        .node("limited", inner().limit(&limit))
        .node("blocks", inner().blocking())
        .node("spawned", inner().spawned())
        .edge(START, "limited")
        .edge(START, "blocks")
        .edge(START, "spawned");
    let error = graph.compile().err().unwrap();
    let found: Vec<_> = error.problems().iter().map(|problem| problem.kind.clone()).collect();
    let why = "it is a graph: give the setting to the nodes in it";
    let problem = |node: &str, setting| ProblemKind::Misfit { node: node.to_owned(), setting, why };
    let wanted = [problem("limited", "limit"), problem("blocks", "blocking"), problem("spawned", "spawned")];
    assert_eq!(found, wanted);
}
