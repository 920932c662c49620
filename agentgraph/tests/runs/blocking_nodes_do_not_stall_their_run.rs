//! Nodes that block run on threads of their own, in every discipline, and can do there what other nodes can.
//! An attempt that overran its limit is a timeout even if it ended, and a node that blocks its run is named.

use std::error::Error as _;
use std::future::pending;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentgraph::checkpoint::Services;
use agentgraph::policy::TimeoutKind;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Code, Failure, Timeout};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct Words {
    #[reduce(append)]
    said: Vec<String>,
}

fn say(word: &str) -> WordsUpdate {
    Words::update().said([word])
}

/// Blocks its thread until all others are here, too.
async fn meet(ctx: Ctx, barrier: Dep<Arc<Barrier>>) -> WordsUpdate {
    barrier.wait();
    say(ctx.node())
}

#[tokio::test]
async fn four_blocking_nodes_meet_on_one_thread_of_the_runtime_in_every_discipline() {
    for eager in [false, true] {
        let mut graph = StateGraph::new().dep(Arc::new(Barrier::new(4)));
        for name in ["a", "b", "c", "d"] {
            graph = graph.node(name, meet.blocking()).edge(START, name);
        }
        let graph = if eager { graph.eager() } else { graph }.compile().unwrap();
        for stored in [false, true] {
            let graph = if stored { graph.clone().checkpointer(MemorySaver::new()) } else { graph.clone() };
            let call = graph.invoke(Words::update());
            let call = if stored { call.thread("t") } else { call };
            let mut said = call.finish().await.unwrap().said;
            said.sort();
            assert_eq!(said, ["a", "b", "c", "d"], "eager: {eager}, stored: {stored}");
        }
    }
}

#[tokio::test]
async fn sync_and_async_nodes_of_a_dependency_graph_meet() {
    let barrier = Arc::new(Barrier::new(3));
    let (first, second, third) = (Arc::clone(&barrier), Arc::clone(&barrier), barrier);
    let graph = DependencyGraph::<u32>::new()
        .node("constant", DependencyNode::of(move || u32::from(first.wait().is_leader())).blocking())
        .node("sync", DependencyNode::of(move |_: Deps<u32>| u32::from(second.wait().is_leader())).blocking())
        .node(
            "async",
            DependencyNode::of(move |_: Deps<'_, u32>| {
                let third = Arc::clone(&third);
                async move { u32::from(third.wait().is_leader()) }
            })
            .blocking(),
        )
        .compile()
        .unwrap();
    let outputs = graph.invoke(()).finish().await.unwrap();
    assert_eq!(outputs["constant"] + outputs["sync"] + outputs["async"], 1, "one of them came last");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn spawned_nodes_use_the_threads_of_the_runtime() {
    let graph = StateGraph::new().dep(Arc::new(Barrier::new(2)));
    let graph = graph.node("a", meet.spawned()).node("b", meet.spawned()).edge(START, "a").edge(START, "b");
    let graph = graph.compile().unwrap();
    assert_eq!(graph.invoke(Words::update()).finish().await.unwrap().said, ["a", "b"]);
}

#[tokio::test]
async fn blocking_code_may_block_on_futures() {
    async fn nested(runtime: Dep<tokio::runtime::Handle>) -> WordsUpdate {
        let inner = runtime.block_on(async {
            tokio::task::yield_now().await;
            "inner"
        });
        std::thread::park_timeout(Duration::from_millis(1));
        tokio::task::yield_now().await;
        say(inner)
    }
    let graph = StateGraph::new().node("a", nested.blocking()).edge(START, "a");
    let graph = graph.dep(tokio::runtime::Handle::current()).compile().unwrap();
    assert_eq!(graph.invoke(Words::update()).finish().await.unwrap().said, ["inner"]);
}

#[tokio::test]
async fn a_node_elsewhere_does_durable_steps_asks_emits_and_panics_as_others_do() {
    async fn work(ctx: Ctx, calls: Dep<Arc<AtomicUsize>>) -> Result<WordsUpdate> {
        let first = ctx
            .once("first", async {
                calls.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok::<_, BoxError>("first".to_owned())
            })
            .await?;
        ctx.emit(&first).await;
        let answer: String = ctx.interrupt("go on?")?;
        let second = ctx.once("second", async { Ok::<_, BoxError>("second".to_owned()) }).await?;
        Ok(Words::update().said([first, answer, second]))
    }
    async fn bad() -> WordsUpdate {
        panic!("burst")
    }
    async fn mourn(failure: Failure) -> WordsUpdate {
        say(failure.message())
    }
    for spawned in [false, true] {
        let calls = Arc::new(AtomicUsize::new(0));
        let (work, bad) =
            if spawned { (work.spawned(), bad.spawned()) } else { (work.blocking(), bad.blocking()) };
        let graph = StateGraph::new()
            .node("work", work.keep_output())
            .node("bad", bad.on_error("mourn"))
            .node("mourn", mourn)
            .edge(START, "work")
            .edge("work", "bad")
            .dep(Arc::clone(&calls))
            .compile()
            .unwrap()
            .checkpointer(MemorySaver::new());
        let events = graph.invoke(Words::update()).thread("t").views([View::Custom]).stream();
        let events: Vec<_> = events.collect().await;
        let emitted = events.iter().filter(|event| matches!(event.kind, EventKind::Custom { .. })).count();
        assert!(graph.state("t").await.unwrap().unwrap().interrupts.len() == 1);
        let words = graph.resume("yes").thread("t").finish().await.unwrap();
        assert!(words.said[3].contains("burst"), "{words:?}");
        assert_eq!((emitted, &words.said[..3]), (1, &["first", "yes", "second"].map(str::to_owned)[..]));
        assert_eq!(calls.load(Ordering::SeqCst), 1, "the step was stored before the question");
    }
}

#[tokio::test]
async fn events_arrive_while_a_node_blocks() {
    let (go_on, wait) = channel();
    let wait = Arc::new(Mutex::new(wait));
    let node = move |ctx: Ctx| {
        let wait = Arc::clone(&wait);
        async move {
            ctx.emit("it begins").await;
            wait.lock().unwrap().recv_timeout(Duration::from_secs(60)).unwrap();
        }
    };
    let graph = StateGraph::<Words>::new().node("a", node.blocking()).edge(START, "a").compile().unwrap();
    let mut events = graph.invoke(Words::update()).views([View::Custom]).stream();
    let first = events.next().await.unwrap();
    assert!(matches!(first.kind, EventKind::Custom { .. }), "{first:?}");
    go_on.send(()).unwrap();
    assert!(matches!(events.next().await.unwrap().kind, EventKind::Ended { .. }));
}

/// Tells when it is dropped.
struct Gone(Sender<()>);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn a_dropped_run_ends_its_attempts_at_their_next_await() {
    for spawned in [false, true] {
        let (gone, ended) = channel();
        let (gone, begun) = (Arc::new(Mutex::new(Some(gone))), Arc::new(Semaphore::new(0)));
        let begins = Arc::clone(&begun);
        let node = move || {
            let gone = Gone(gone.lock().unwrap().take().unwrap());
            begins.add_permits(1);
            async move {
                let _gone = gone;
                pending::<WordsUpdate>().await
            }
        };
        let node = if spawned { node.spawned() } else { node.blocking() };
        let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
        let run = Box::pin(graph.invoke(Words::update()).into_future());
        match select(run, pin!(begun.acquire())).await {
            Either::Left(_) => panic!("it has ended"),
            Either::Right((_, run)) => drop(run),
        }
        let ended = tokio::task::spawn_blocking(move || ended.recv_timeout(Duration::from_secs(60)));
        ended.await.unwrap().unwrap();
    }
}

/// A blocking call of another library: it returns when `release` says so. As services, its limits are over as
/// soon as the call is under way.
#[derive(Clone)]
struct Slow {
    calls: Arc<AtomicUsize>,
    under_way: Arc<Semaphore>,
    release: Arc<Mutex<Receiver<()>>>,
}

#[async_trait::async_trait]
impl Services for Slow {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
    async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            self.under_way.acquire().await.unwrap().forget();
        }
    }
    fn random(&self) -> u64 {
        1
    }
}

async fn wait_for_the_release(slow: Dep<Slow>) -> WordsUpdate {
    slow.calls.fetch_add(1, Ordering::SeqCst);
    slow.under_way.add_permits(1);
    let _ = slow.release.lock().unwrap().recv_timeout(Duration::from_secs(60));
    say("late")
}

#[tokio::test]
async fn a_timeout_ends_a_blocking_attempt_for_its_run_and_is_retried_only_on_request() {
    for names_timeouts in [false, true] {
        let (release, released) = channel();
        let release_by = Arc::new(Mutex::new(released));
        let slow =
            Slow { calls: Arc::default(), under_way: Arc::new(Semaphore::new(0)), release: release_by };
        let retry = RetryPolicy::attempts(2).initial(Duration::ZERO);
        let retry = if names_timeouts { retry.retry_on(|error| error.is::<Timeout>()) } else { retry };
        let limit = Duration::from_secs(3);
        let graph = StateGraph::new()
            .node("a", wait_for_the_release.blocking().timeout(limit).retry(retry))
            .edge(START, "a")
            .dep(slow.clone())
            .compile()
            .unwrap()
            .services(slow.clone());
        let error = graph.invoke(Words::update()).await.unwrap_err();
        let timeout = error.source().unwrap().downcast_ref::<Timeout>().unwrap();
        assert_eq!((error.code(), timeout.limit, timeout.unstopped), (Code::NodeTimeout, limit, true));
        let attempts = 1 + u32::from(names_timeouts);
        assert_eq!(slow.calls.load(Ordering::SeqCst), attempts as usize);
        assert_eq!(error.failures()[0].attempt(), attempts);
        drop(release);
    }
}

/// A node that asks after its attempt was given up. It says when it has asked.
async fn ask_late(ctx: Ctx, slow: Dep<Slow>, asked: Dep<Arc<Semaphore>>) -> Result<WordsUpdate> {
    if ctx.attempt() > 1 {
        asked.acquire().await?.forget();
        return Ok(say("second"));
    }
    slow.under_way.add_permits(1);
    let _ = slow.release.lock().unwrap().recv_timeout(Duration::from_secs(60));
    let question = ctx.interrupt::<String>("late?");
    asked.add_permits(1);
    Ok(say(&question?))
}

#[tokio::test]
async fn an_attempt_that_was_given_up_asks_nothing() {
    let (release, released) = channel();
    let release_by = Arc::new(Mutex::new(released));
    let slow = Slow { calls: Arc::default(), under_way: Arc::new(Semaphore::new(0)), release: release_by };
    // The first attempt goes on as soon as the second one is decided.
    let retry = RetryPolicy::attempts(2).initial(Duration::ZERO).retry_on(move |_| release.send(()).is_ok());
    let graph = StateGraph::new()
        .node("a", ask_late.blocking().timeout(Duration::from_secs(3)).retry(retry))
        .edge(START, "a")
        .dep(slow.clone())
        .dep(Arc::new(Semaphore::new(0)))
        .compile()
        .unwrap()
        .services(slow)
        .checkpointer(MemorySaver::new());
    let words = graph.invoke(Words::update()).thread("t").finish().await.unwrap();
    assert_eq!(words.said, ["second"]);
}

/// A clock that nodes move by hand, and whose sleeps never end: code that blocks keeps timers from firing.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

#[async_trait::async_trait]
impl Services for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
    async fn sleep(&self, duration: Duration) {
        if !duration.is_zero() {
            pending().await
        }
    }
    fn random(&self) -> u64 {
        u64::MAX
    }
}

#[tokio::test]
async fn an_attempt_that_overran_its_limit_is_a_timeout_even_if_it_ended() {
    /// Blocks for the milliseconds, and shows signs of life if asked to.
    fn blocks(ms: u64, signs: bool, fails: bool, hand: &Hand) -> agentgraph::node::Node<Words> {
        let hand = hand.clone();
        let node = move |ctx: Ctx| {
            let hand = hand.clone();
            async move {
                for _ in 0..10 {
                    hand.advance(ms / 10);
                    if signs {
                        ctx.heartbeat();
                    }
                }
                if fails { Err(BoxError::from("failed")) } else { Ok(say("done")) }
            }
        };
        node.into_node()
    }
    let limit = Duration::from_millis(50);
    for fails in [false, true] {
        for (ms, idle, signs, wanted) in [
            (50, false, false, None),
            (60, false, false, Some(TimeoutKind::Run)),
            (300, false, true, Some(TimeoutKind::Run)),
            (50, true, false, None),
            (60, true, false, Some(TimeoutKind::Idle)),
            (300, true, true, None),
        ] {
            let hand = Hand::default();
            let node = blocks(ms, signs, fails, &hand);
            let node = if idle { node.idle_timeout(limit) } else { node.timeout(limit) };
            let node = node.retry(RetryPolicy::attempts(3).initial(Duration::ZERO));
            let graph = StateGraph::new().node("a", node).edge(START, "a").compile().unwrap();
            let result = graph.services(hand).invoke(Words::update()).await;
            let context = format!("{ms} ms, idle: {idle}, signs: {signs}, fails: {fails}");
            let Some(kind) = wanted else {
                assert_eq!(result.is_err(), fails, "{context}");
                continue;
            };
            let error = result.unwrap_err();
            let timeout = *error.source().unwrap().downcast_ref::<Timeout>().unwrap();
            assert_eq!((error.code(), error.failures()[0].attempt()), (Code::NodeTimeout, 1), "{context}");
            assert_eq!((timeout.kind, timeout.unstopped), (kind, true), "{context}");
        }
    }
}

#[tokio::test]
async fn a_question_that_was_asked_late_stays_open() {
    async fn ask(ctx: Ctx, hand: Dep<Hand>) -> Result<WordsUpdate> {
        hand.advance(300);
        let answer: String = ctx.interrupt("now?")?;
        Ok(say(&answer))
    }
    let hand = Hand::default();
    let graph = StateGraph::new().node("ask", ask.timeout(Duration::from_millis(50))).edge(START, "ask");
    let graph = graph.dep(hand.clone()).compile().unwrap().services(hand).checkpointer(MemorySaver::new());
    let outcome = graph.invoke(Words::update()).thread("t").await.unwrap();
    assert_eq!(outcome.interrupts().len(), 1);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The warnings while `work` runs.
fn warnings(work: impl Future<Output = ()>) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).without_time();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    tracing::subscriber::with_default(subscriber.finish(), || runtime.block_on(work));
    let bytes = log.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

#[test]
fn a_node_that_blocks_its_run_is_named_once() {
    async fn quick() {}
    async fn blocks(hand: Dep<Hand>) {
        hand.advance(101);
    }
    async fn just_not(hand: Dep<Hand>) {
        hand.advance(100);
    }
    for eager in [false, true] {
        let hand = Hand::default();
        let inner = StateGraph::<Words>::new().node("deep", blocks).edge(START, "deep").dep(hand.clone());
        let graph = StateGraph::<Words>::new()
            .node("quick", quick)
            .node("blocks", blocks)
            .node("just_not", just_not)
            .node("inner", inner.compile().unwrap())
            .edge(START, "quick")
            .edge("quick", "blocks")
            .edge("blocks", "just_not")
            .edge("just_not", "inner")
            .dep(hand.clone());
        let graph = if eager { graph.eager() } else { graph }.compile().unwrap().services(hand);
        let lines = warnings(async {
            for _ in 0..3 {
                graph.invoke(Words::update()).await.unwrap();
            }
        });
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].contains("node=\"blocks\"") && lines[1].contains("node=\"deep\""), "{lines:#?}");
        assert!(lines.iter().all(|line| line.contains(".blocking()")), "{lines:#?}");
    }
}

#[test]
fn a_node_of_a_dependency_graph_that_blocks_its_pass_is_named() {
    let hand = Hand::default();
    let (first, second) = (hand.clone(), hand.clone());
    let graph = DependencyGraph::<u8>::new()
        .node("sync", move |_: Deps<u8>| {
            first.advance(200);
            1
        })
        .node("async", move |_: Deps<'_, u8>| {
            let second = second.clone();
            async move {
                second.advance(200);
                2
            }
        })
        .compile()
        .unwrap()
        .services(hand);
    let mut lines = warnings(async {
        for _ in 0..3 {
            graph.invoke(()).await.unwrap();
        }
    });
    lines.sort();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("node=\"async\"") && lines[1].contains("node=\"sync\""), "{lines:#?}");
}

#[test]
fn a_graph_whose_nodes_are_fast_is_soon_not_timed_any_more() {
    /// Counts how often the clock is read, and makes the first poll slow.
    #[derive(Clone, Default)]
    struct Counting {
        hand: Hand,
        reads: Arc<AtomicUsize>,
    }
    #[async_trait::async_trait]
    impl Services for Counting {
        fn now(&self) -> SystemTime {
            self.hand.now()
        }
        fn elapsed(&self) -> Duration {
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.hand.elapsed()
        }
        async fn sleep(&self, duration: Duration) {
            self.hand.sleep(duration).await;
        }
        fn random(&self) -> u64 {
            1
        }
    }
    async fn step(words: Snapshot<Words>, clock: Dep<Counting>) -> Command<Words> {
        if words.said.is_empty() {
            clock.hand.advance(150);
        }
        let goto = if words.said.len() < 50 { "step" } else { END };
        Command::update(say("x")).goto(goto)
    }
    let clock = Counting::default();
    let graph =
        StateGraph::new().node("step", step).edge(START, "step").dep(clock.clone()).compile().unwrap();
    let graph = graph.services(clock.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut reads = Vec::new();
    for run in 0..60 {
        clock.reads.store(0, Ordering::SeqCst);
        let begin = if run == 0 { Words::update() } else { say("begun") };
        runtime.block_on(graph.invoke(begin).into_future()).unwrap();
        reads.push(clock.reads.load(Ordering::SeqCst));
    }
    assert!(reads[1] > 100, "each node is timed after a slow run: {reads:?}");
    assert!(reads[59] < 10, "and not for ever: {reads:?}");
}
