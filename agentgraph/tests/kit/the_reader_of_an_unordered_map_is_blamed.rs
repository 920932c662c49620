//! The order of a `HashMap` is no content: the node that made an order of it is named, not the one that
//! wrote the map.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use agentgraph::prelude::*;
use agentgraph::run::InterruptKey;
use agentgraph::testing::{FindingKind, Probe, TestGraph, Testable};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(State, Clone, Debug, Default)]
struct S {
    #[reduce(merge)]
    map: HashMap<String, u32>,
    #[reduce(merge)]
    numbers: HashMap<u32, String>,
    #[reduce(merge)]
    tree: BTreeMap<String, u32>,
    whole: HashMap<u32, HashSet<String>>,
    bags: Vec<Bag>,
    pairs: Vec<(String, u32)>,
    #[reduce(append)]
    order: Vec<String>,
    n: u32,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default)]
struct Bag {
    names: HashSet<String>,
    list: Vec<String>,
    #[serde(with = "as_pairs")]
    listed: HashMap<String, u32>,
}

mod as_pairs {
    use super::*;

    pub(super) fn serialize<T: Serializer>(map: &HashMap<String, u32>, to: T) -> Result<T::Ok, T::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, T: Deserializer<'de>>(from: T) -> Result<HashMap<String, u32>, T::Error> {
        Ok(Vec::<(String, u32)>::deserialize(from)?.into_iter().collect())
    }
}

fn names<T: FromIterator<String>>() -> T {
    (0..20).map(|n| format!("k{n}")).collect()
}

fn map() -> HashMap<String, u32> {
    (0..20).map(|n| (format!("k{n}"), n)).collect()
}

async fn fill() -> SUpdate {
    S::update().map(map())
}

async fn fill_tree() -> SUpdate {
    S::update().tree(map().into_iter().collect::<BTreeMap<_, _>>())
}

async fn fill_all() -> SUpdate {
    let bag = |_| Bag { names: names(), list: vec!["b".into(), "a".into()], listed: map() };
    let numbers: HashMap<u32, String> = (0..20).map(|n| (n, n.to_string())).collect();
    let update = S::update().map(map()).numbers(numbers).bags((0..3).map(bag).collect::<Vec<_>>());
    update.whole((0..9).map(|n| (n, names())).collect::<HashMap<_, _>>())
}

async fn sum(s: Snapshot<S>) -> SUpdate {
    S::update().n(s.map.values().sum::<u32>())
}

async fn order(s: Snapshot<S>) -> SUpdate {
    S::update().order(s.map.keys().cloned())
}

async fn sorted(s: Snapshot<S>) -> SUpdate {
    let mut keys: Vec<String> = s.map.keys().cloned().collect();
    keys.sort();
    S::update().order(keys)
}

async fn clock(_: Snapshot<S>) -> SUpdate {
    S::update().order([format!("{:?}", SystemTime::now())])
}

/// The same in two runs once in a million times.
fn first(s: &S) -> String {
    s.map.keys().take(5).cloned().collect()
}

/// A graph of these functions, one after the other.
macro_rules! line {
    ($($node:ident),*) => {{
        let graph = StateGraph::new()$(.node(stringify!($node), $node))*;
        let nodes = [START, $(stringify!($node)),*];
        nodes.windows(2).fold(graph, |graph, pair| graph.edge(pair[0], pair[1]))
    }};
}

fn of(graph: impl Fn() -> StateGraph<S> + Send + Sync + 'static) -> TestGraph<CompiledGraph<S>> {
    TestGraph::by(move || graph().compile().unwrap())
}

/// Both tests blame this node alone.
async fn assert_blamed<G: Testable<Input = SUpdate>>(test: TestGraph<G>, node: &str) {
    for report in [test.every_kill(S::update()).await, test.every_order(S::update()).seeds(8).await] {
        let blamed: Vec<&str> = report.findings().iter().map(|found| found.node()).collect();
        assert_eq!(blamed, [node], "{report}");
        assert_eq!(report.findings()[0].kind(), FindingKind::NotRepeatable);
        assert!(report.to_string().contains("sort them, or use a `BTreeMap`"), "{report}");
    }
}

async fn assert_clean(test: TestGraph<CompiledGraph<S>>) {
    test.every_kill(S::update()).await.assert_none();
    test.every_order(S::update()).seeds(8).await.assert_none();
}

fn inside(graph: StateGraph<S>) -> StateGraph<S> {
    StateGraph::new().node("inner", graph.compile().unwrap()).edge(START, "inner")
}

#[tokio::test]
async fn maps_and_sets_that_no_node_reads_in_an_order_are_clean() {
    assert_clean(of(|| line!(fill, sum))).await;
    assert_clean(of(|| line!(fill, sorted))).await;
    assert_clean(of(|| line!(fill_all, sum))).await;
    assert_clean(of(|| line!(fill_all, sum).eager())).await;
    assert_clean(of(|| inside(line!(fill_all, sum)))).await;
}

#[tokio::test]
async fn the_node_that_reads_the_map_in_an_order_is_blamed() {
    assert_blamed(of(|| line!(fill, order)), "order").await;
    assert_blamed(of(|| line!(fill_all, order)), "order").await;
    assert_blamed(of(|| line!(fill, order).eager()), "order").await;
    assert_blamed(of(|| inside(line!(fill_all, order))), "inner/order").await;
    assert_blamed(of(|| line!(fill_all, order, sum, copy, clock)), "order").await;
}

/// Reads what others wrote, and is as right as they are.
async fn copy(s: Snapshot<S>) -> SUpdate {
    S::update().order(s.order.clone()).whole(s.whole.clone())
}

#[tokio::test]
async fn a_node_wrong_by_itself_is_blamed_behind_an_innocent_one() {
    assert_blamed(of(|| line!(fill, clock)), "clock").await;
    assert_blamed(of(|| line!(fill_tree, clock)), "clock").await;
    assert_blamed(of(|| line!(fill_all, copy, clock, copy_again)), "clock").await;
}

async fn copy_again(s: Snapshot<S>) -> SUpdate {
    copy(s).await
}

#[tokio::test]
async fn an_order_that_is_written_belongs_to_its_writer() {
    async fn pairs() -> SUpdate {
        S::update().pairs(map().into_iter().collect::<Vec<_>>())
    }
    async fn list_beside_a_set() -> SUpdate {
        let list = names::<HashSet<String>>().into_iter().collect();
        S::update().bags(vec![Bag::default(), Bag { names: names(), list, ..Bag::default() }])
    }
    async fn keys(s: Snapshot<S>) -> SUpdate {
        S::update().order(s.pairs.iter().map(|pair| pair.0.clone()))
    }
    assert_blamed(of(|| line!(pairs, keys)), "pairs").await;
    assert_blamed(of(|| line!(fill_all, list_beside_a_set)), "list_beside_a_set").await;
}

#[tokio::test]
async fn keys_that_are_no_text_and_sets_are_read_in_an_order_too() {
    async fn numbers(s: Snapshot<S>) -> SUpdate {
        S::update().order([format!("{:?}", s.numbers.keys())])
    }
    async fn set(s: Snapshot<S>) -> SUpdate {
        S::update().order(s.bags[0].names.iter().cloned())
    }
    async fn listed(s: Snapshot<S>) -> SUpdate {
        S::update().order(s.bags[1].listed.keys().cloned())
    }
    assert_blamed(of(|| line!(fill_all, numbers)), "numbers").await;
    assert_blamed(of(|| line!(fill_all, set)), "set").await;
    assert_blamed(of(|| line!(fill_all, listed)), "listed").await;
}

async fn work(Input(name): Input<String>) -> SUpdate {
    S::update().order([name])
}

#[tokio::test]
async fn the_node_that_dispatches_in_an_order_is_blamed_and_not_the_one_that_works() {
    async fn each(s: Snapshot<S>) -> Command<S> {
        Command::to(s.map.keys().map(|name| Dispatch::new("work", name.clone())).collect::<Vec<_>>())
    }
    async fn one(s: Snapshot<S>) -> Command<S> {
        Command::to(Dispatch::new("work", first(&s)))
    }
    assert_blamed(of(|| line!(fill, each).node("work", work)), "each").await;
    assert_blamed(of(|| line!(fill, one).node("work", work)), "one").await;
}

#[tokio::test]
async fn the_node_whose_route_reads_an_order_is_blamed() {
    async fn note(ctx: Ctx) -> SUpdate {
        S::update().order([ctx.node().to_owned()])
    }
    let graph = || {
        let first = |s: &S| s.map.keys().next().cloned().unwrap();
        let graph = names::<Vec<_>>().into_iter().fold(line!(fill), |graph, name| graph.node(name, note));
        graph.branch("fill", first, names::<Vec<_>>())
    };
    let report = of(graph).every_kill(S::update()).await;
    // Two undisturbed runs take the same node once in twenty times.
    assert_eq!(report.findings()[0].kind(), FindingKind::FickleRoute, "{report}");
    assert!(report.findings().iter().all(|found| found.node() == "fill"), "{report}");
}

#[tokio::test]
async fn the_node_that_asks_in_an_order_is_blamed() {
    async fn ask(ctx: Ctx, s: Snapshot<S>) -> Result<SUpdate> {
        let yes: bool = ctx.interrupt(format!("buy {}?", first(&s)))?;
        Ok(S::update().n(u32::from(yes)))
    }
    async fn ask_by_key(ctx: Ctx, s: Snapshot<S>) -> Result<SUpdate> {
        let yes: bool = ctx.interrupt_as(first(&s), "buy?")?;
        Ok(S::update().n(u32::from(yes)))
    }
    async fn ask_for_any_value(ctx: Ctx, s: Snapshot<S>) -> Result<SUpdate> {
        let key = InterruptKey::new("buy").for_any_value();
        let yes: bool = ctx.interrupt_as(key, format!("buy one of {:?}?", s.map.keys()))?;
        Ok(S::update().n(u32::from(yes)))
    }
    assert_clean(of(|| line!(fill, ask_for_any_value, sum)).answer(true)).await;
    assert_blamed(of(|| line!(fill, ask_by_key, sum)).answer(true), "ask_by_key").await;
    assert_blamed(of(|| line!(fill, ask, sum)).answer(true), "ask").await;
    assert_blamed(of(|| inside(line!(fill, ask, sum))).answer(true), "inner/ask").await;
}

#[tokio::test]
async fn the_node_that_names_a_durable_step_by_an_order_is_blamed() {
    async fn named(ctx: Ctx, s: Snapshot<S>) -> Result<SUpdate> {
        let first = first(&s);
        Ok(S::update().n(ctx.once(format!("buy {first}"), async { Ok(1) }).await?))
    }
    async fn keyed(ctx: Ctx, s: Snapshot<S>) -> Result<SUpdate> {
        let first = first(&s);
        Ok(S::update().n(ctx.once_for("buy", first, async { Ok(1) }).await?))
    }
    async fn pays(s: Snapshot<S>) {
        Probe::new().effect(("pay", first(&s)));
    }
    assert_blamed(of(|| line!(fill, named, sum)), "named").await;
    assert_blamed(of(|| line!(fill, keyed, sum)), "keyed").await;
    assert_blamed(of(|| line!(fill, pays, sum)), "pays").await;
}

/// `count` runs twice, and is another one the second time by the fault of `order`.
#[tokio::test]
async fn in_a_loop_the_first_output_that_differs_counts() {
    async fn count(s: Snapshot<S>) -> SUpdate {
        S::update().n(s.n + 1).order([format!("{:?}", s.order.last())])
    }
    let again = |s: &S| if s.n < 2 { "count" } else { END };
    assert_blamed(of(move || line!(fill, count, order).branch("order", again, ["count", END])), "order")
        .await;
}

/// After a kill the map is another one, so the fault shows also where two undisturbed runs agree.
#[tokio::test]
async fn of_two_faults_that_a_kill_shows_each_is_blamed() {
    async fn untracked(s: Snapshot<Draft>) -> DraftUpdate {
        Draft::update().first(s.draft.clone()).map(map())
    }
    async fn write() -> DraftUpdate {
        Draft::update().draft("a draft")
    }
    async fn second(s: Snapshot<Draft>) -> DraftUpdate {
        Draft::update().second(s.draft.clone())
    }
    #[derive(State, Clone, Debug, Default)]
    struct Draft {
        #[channel(untracked)]
        draft: String,
        #[reduce(merge)]
        map: HashMap<String, u32>,
        first: String,
        second: String,
    }
    let graph = || line!(write, untracked, second).compile().unwrap();
    let report = TestGraph::by(graph).every_kill(Draft::update()).await;
    let blamed: Vec<_> = report.findings().iter().map(|found| (found.kind(), found.node())).collect();
    let differs = FindingKind::EndDiffers;
    assert_eq!(blamed, [(differs, "untracked"), (differs, "second")], "{report}");
}

#[tokio::test]
async fn a_node_of_a_dependency_graph_that_reads_an_order_is_blamed() {
    type Map = HashMap<u32, HashSet<String>>;
    fn fill(_: Deps<'_, Map>) -> Map {
        (0..9).map(|n| (n, names())).collect()
    }
    fn same(deps: Deps<'_, Map>) -> Map {
        deps["fill"].clone()
    }
    fn first(deps: Deps<'_, Map>) -> Map {
        let order: Vec<String> = deps["fill"].keys().map(u32::to_string).collect();
        HashMap::from([(0, HashSet::from([order.concat()]))])
    }
    let graph = |last: fn(Deps<'_, Map>) -> Map| {
        let graph = DependencyGraph::new().node("fill", fill).node("last", last);
        graph.edge("fill", "last").compile().unwrap()
    };
    let report = TestGraph::by(move || graph(same)).every_kill(()).await;
    report.assert_none();
    let report = TestGraph::by(move || graph(first)).every_kill(()).await;
    let [found] = report.findings() else { panic!("{report}") };
    assert_eq!((found.kind(), found.node()), (FindingKind::NotRepeatable, "last"));
}
