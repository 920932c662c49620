//! The graphs whose processes are killed. Every task has an effect in the log and leaves its mark in the
//! state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentgraph::node::Node;
use agentgraph::prelude::*;
use agentgraph::{BoxError, Failure, Memory};
use futures_util::future::try_join;
use serde::{Deserialize, Serialize};

use super::faults::Fault;
use super::log::{Event, Log};
use super::mark::Mark;
use super::points::Points;
use crate::common::poll::pending_for;

#[derive(State, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    #[reduce(append)]
    pub marks: Vec<Mark>,
    pub round: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Story {
    /// Three nodes. The second one needs two attempts.
    Chain,
    /// Three siblings, one with a successor of its own, and a join of all.
    Join,
    /// Five dispatches and a node that runs after all of them.
    Dispatches,
    /// A subgraph of three supersteps beside another node.
    Subgraph,
    /// A node with four durable steps, two of them at once, beside another node.
    DurableSteps,
    /// A node that interrupts twice, beside another node.
    Questions,
    /// A subgraph that interrupts.
    QuestionInside,
    /// A subgraph with a memory, called three times in a run.
    Memory,
    /// A node that always fails and its error handler, beside another node.
    Handler,
    /// A node that fails once in every process, and with it the call, beside other nodes.
    Stumble,
    /// One node six times.
    Loop,
    /// One node, often enough for a segment to fold deltas.
    LongLoop,
}

impl Story {
    pub const ALL: [Story; 11] = [
        Story::Chain,
        Story::Join,
        Story::Dispatches,
        Story::Subgraph,
        Story::DurableSteps,
        Story::Questions,
        Story::QuestionInside,
        Story::Memory,
        Story::Handler,
        Story::Stumble,
        Story::Loop,
    ];

    /// Whether a call may fail and the next call continue the run.
    pub fn stumbles(self) -> bool {
        self == Story::Stumble
    }

    pub fn graph(self, world: &World) -> StateGraph<Ledger> {
        match self {
            Story::Chain => chain(world),
            Story::Join => join(world),
            Story::Dispatches => dispatches(world),
            Story::Subgraph => around(world, world.subgraph(world.acts("2.sub.3", "last"))),
            Story::DurableSteps => durable_steps(world),
            Story::Questions => questions(world),
            Story::QuestionInside => around(world, world.subgraph(asks("2.sub.3", world))),
            Story::Memory => memory(world),
            Story::Handler => handler(world),
            Story::Stumble => stumble(world),
            Story::Loop => looped(world, 6),
            Story::LongLoop => looped(world, 1_100),
        }
    }
}

/// The world outside of the engine, in which nodes have effects.
#[derive(Clone)]
pub struct World {
    pub log: Arc<Log>,
    pub points: Arc<Points>,
    pub fault: Option<Fault>,
}

impl World {
    /// Performs an effect. The log has it before the engine receives the result of the task.
    pub fn act(&self, ctx: &Ctx, mark: &Mark) {
        let event =
            || Event::Effect { run: ctx.run().to_string(), mark: mark.clone(), attempt: ctx.attempt() };
        match self.fault {
            Some(Fault::EffectsAfterTheEnd) => return self.act_late(mark.clone(), event()),
            Some(Fault::TasksRunTwice) => self.log.write(event()),
            _ => {}
        }
        self.points.pass("before an effect");
        self.log.write(event());
        self.points.pass("after an effect");
    }

    fn act_late(&self, mark: Mark, event: Event) {
        let log = Arc::clone(&self.log);
        tokio::spawn(async move {
            while !log.has_stored(&mark) {
                tokio::task::yield_now().await;
            }
            log.write(event);
        });
    }

    /// Returns the marks that a node writes into the state.
    fn marks_to_write(&self, mark: Mark) -> Vec<Mark> {
        match self.fault {
            Some(Fault::TasksWriteMarksTwice) => vec![mark.clone(), mark],
            _ => vec![mark],
        }
    }

    /// Returns a node that performs its effect.
    fn acts(&self, place: &'static str, name: &'static str) -> Node<Ledger> {
        self.acts_after(0, place, name)
    }

    /// Returns a node that is pending for `polls` polls and then performs its effect.
    fn acts_after(&self, polls: u32, place: &'static str, name: &'static str) -> Node<Ledger> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            async move {
                pending_for(polls).await;
                let mark = Mark::new(place, name);
                world.act(&ctx, &mark);
                Ledger::update().marks(world.marks_to_write(mark))
            }
        };
        node.into_node()
    }

    /// Returns a node that fails as long as `should` holds.
    fn fails(
        &self,
        mark: Mark,
        should: impl Fn(&Ctx) -> bool + Clone + Send + Sync + 'static,
    ) -> Node<Ledger> {
        let world = self.clone();
        let node = move |ctx: Ctx| {
            let world = world.clone();
            let should = should.clone();
            let mark = mark.clone();
            async move {
                pending_for(2).await;
                if should(&ctx) {
                    let run = ctx.run().to_string();
                    let attempt = ctx.attempt();
                    world.log.write(Event::Tried { run, mark, attempt });
                    return Err::<LedgerUpdate, BoxError>("not this time".into());
                }
                world.act(&ctx, &mark);
                Ok(Ledger::update().marks([mark]))
            }
        };
        node.into_node()
    }

    /// Returns a subgraph: one node, then two at once, then `last`.
    fn subgraph(&self, last: Node<Ledger>) -> CompiledGraph<Ledger> {
        let graph = StateGraph::new()
            .node("first", self.acts("2.sub.1", "first"))
            .node("left", self.acts_after(1, "2.sub.2", "left"))
            .node("right", self.acts_after(3, "2.sub.2", "right"))
            .node("last", last);
        let graph = graph.edge(START, "first").edge("first", "left").edge("first", "right");
        graph.edge(["left", "right"], "last").compile().unwrap()
    }
}

fn chain(world: &World) -> StateGraph<Ledger> {
    let second = world.fails(Mark::new(2, "b"), |ctx| ctx.attempt() == 1);
    let second = second.retry(RetryPolicy::attempts(2).initial(Duration::ZERO));
    let graph = StateGraph::new().node("a", world.acts("1", "a")).node("b", second);
    graph.node("c", world.acts("3", "c")).edge(START, "a").edge("a", "b").edge("b", "c")
}

fn join(world: &World) -> StateGraph<Ledger> {
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("b", world.acts("2", "b"))
        .node("c", world.acts_after(4, "2", "c"))
        .node("d", world.acts_after(2, "2", "d"))
        .node("e", world.acts("3", "e"))
        .node("f", world.acts("4", "f"));
    let graph = graph.edge(START, "a").edge("a", "b").edge("a", "c").edge("a", "d");
    graph.edge("c", "e").edge(["b", "d", "e"], "f")
}

fn dispatches(world: &World) -> StateGraph<Ledger> {
    let plan = world.clone();
    let plan = move |ctx: Ctx| {
        let mark = Mark::new(1, "plan");
        plan.act(&ctx, &mark);
        let each = (0..5).map(|number: u32| Dispatch::new("work", number));
        let command = Command::update(Ledger::update().marks([mark]));
        std::future::ready(command.goto(each.collect::<Vec<_>>()))
    };
    let graph = StateGraph::new().node("plan", plan.targets(["work"])).node("work", work(world));
    graph.node("gather", world.acts("3", "gather")).edge(START, "plan").edge("work", "gather")
}

fn work(world: &World) -> Node<Ledger> {
    let world = world.clone();
    let node = move |ctx: Ctx, Input(number): Input<u32>| {
        let world = world.clone();
        async move {
            pending_for(number % 3).await;
            let mark = Mark::new(2, format_args!("work_{number}"));
            world.act(&ctx, &mark);
            Ledger::update().marks([mark])
        }
    };
    node.into_node()
}

fn around(world: &World, inside: CompiledGraph<Ledger>) -> StateGraph<Ledger> {
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("inside", inside)
        .node("beside", world.acts_after(5, "2", "beside"))
        .node("end", world.acts("3", "end"));
    let graph = graph.edge(START, "a").edge("a", "inside").edge("a", "beside");
    graph.edge(["inside", "beside"], "end")
}

/// The marks of the steps are named as those of a subgraph: they are stored before the state shows them.
fn durable_steps(world: &World) -> StateGraph<Ledger> {
    let steps = world.clone();
    let steps = move |ctx: Ctx| {
        let world = steps.clone();
        async move {
            let step = |place: &'static str, name: &'static str, polls: u32| {
                let world = world.clone();
                let in_step = ctx.clone();
                ctx.once_for("step", name, async move {
                    pending_for(polls).await;
                    let mark = Mark::new(place, name);
                    world.act(&in_step, &mark);
                    Ok(mark)
                })
            };
            let first = step("2.sub.1", "first", 0).await?;
            let both = try_join(step("2.sub.2", "left", 1), step("2.sub.2", "right", 3));
            let (left, right) = both.await?;
            let last = step("2.sub.3", "last", 0).await?;
            Result::<_>::Ok(Ledger::update().marks([first, left, right, last]))
        }
    };
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("steps", steps)
        .node("beside", world.acts_after(2, "2", "beside"))
        .node("end", world.acts("3", "end"));
    let graph = graph.edge(START, "a").edge("a", "steps").edge("a", "beside");
    graph.edge(["steps", "beside"], "end")
}

/// Each call adds 14 to the total in the memory, and the thread shows the marks of each call. The totals must
/// be 14, 28 and 42, whatever was killed. A larger total means that an undone call left a trace.
fn memory(world: &World) -> StateGraph<Ledger> {
    let remembers = |world: &World, step: u32, name: &'static str| {
        let world = world.clone();
        move |ctx: Ctx, ledger: Snapshot<Ledger>| {
            let world = world.clone();
            async move {
                pending_for(1).await;
                let total = ledger.round + 7;
                let call = total.div_ceil(14);
                let mark = Mark::new(format_args!("{call}.sub.{step}"), format_args!("{name}_{total}"));
                world.act(&ctx, &mark);
                Ledger::update().marks([mark]).round(total)
            }
        }
    };
    let child = StateGraph::new()
        .node("half", remembers(world, 1, "half"))
        .node("whole", remembers(world, 2, "whole"))
        .edge(START, "half")
        .edge("half", "whole")
        .compile()
        .unwrap();
    let sub = child.embed(
        |_: Snapshot<Ledger>| Ledger::update(),
        |child: Ledger| {
            let earlier = child.marks.len().saturating_sub(2);
            Ledger::update().round(child.round).marks(child.marks.into_iter().skip(earlier))
        },
    );
    let graph = StateGraph::new().node("memory", sub.memory(Memory::PerThread)).edge(START, "memory");
    graph.branch("memory", |ledger: &Ledger| if ledger.round < 42 { "memory" } else { END }, ["memory", END])
}

fn questions(world: &World) -> StateGraph<Ledger> {
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("ask", asks("2.ask.1", world))
        .node("beside", world.acts_after(1, "2", "beside"))
        .node("end", world.acts("3", "end"));
    let graph = graph.edge(START, "a").edge("a", "ask").edge("a", "beside");
    graph.edge(["ask", "beside"], "end")
}

/// Returns a node that interrupts twice and then performs its effect. The code before an interrupt runs
/// again with each answer. The value of an interrupt is the mark of its answer, without the brackets that
/// would make it a mark in the stored bytes.
fn asks(place: &'static str, world: &World) -> Node<Ledger> {
    let world = world.clone();
    let node = move |ctx: Ctx| {
        let world = world.clone();
        async move {
            let answers: [Mark; 2] =
                [ctx.interrupt(format!("{place}:first"))?, ctx.interrupt(format!("{place}:second"))?];
            let mark = Mark::new(place.replace(".1", ".2"), "asked");
            world.act(&ctx, &mark);
            Result::<_>::Ok(Ledger::update().marks(answers.into_iter().chain([mark])))
        }
    };
    node.into_node()
}

fn handler(world: &World) -> StateGraph<Ledger> {
    let mends = world.clone();
    let mends = move |ctx: Ctx, failure: Failure| {
        let mark = Mark::new("2.handler.1", failure.node());
        mends.act(&ctx, &mark);
        std::future::ready(Command::update(Ledger::update().marks([mark])).goto("end"))
    };
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("breaks", world.fails(Mark::new("2.handler.0", "breaks"), |_| true).on_error("mends"))
        .node("mends", mends.targets(["end"]))
        .node("beside", world.acts_after(1, "2", "beside"))
        .node("end", world.acts("3", "end"));
    graph.edge(START, "a").edge("a", "breaks").edge("a", "beside")
}

fn stumble(world: &World) -> StateGraph<Ledger> {
    let stumbled = Arc::new(AtomicBool::new(false));
    let once = move |_: &Ctx| !stumbled.swap(true, Ordering::SeqCst);
    let graph = StateGraph::new()
        .node("a", world.acts("1", "a"))
        .node("b", world.acts("2", "b"))
        .node("stumbles", world.fails(Mark::new(2, "stumbles"), once))
        .node("c", world.acts("2", "c"))
        .node("d", world.acts_after(5, "2", "d"))
        .node("end", world.acts("3", "end"));
    let graph = graph.edge(START, "a").edge("a", "b").edge("a", "stumbles").edge("a", "c").edge("a", "d");
    graph.edge(["b", "stumbles", "c", "d"], "end")
}

fn looped(world: &World, rounds: u64) -> StateGraph<Ledger> {
    let world = world.clone();
    let node = move |ctx: Ctx, ledger: Snapshot<Ledger>| -> std::future::Ready<LedgerUpdate> {
        let round = ledger.round + 1;
        let mark = Mark::new(round, "work");
        world.act(&ctx, &mark);
        std::future::ready(Ledger::update().marks([mark]).round(round))
    };
    let goes_on = move |ledger: &Ledger| if ledger.round < rounds { "work" } else { END };
    StateGraph::new().node("work", node).edge(START, "work").branch("work", goes_on, ["work", END])
}

/// Returns a graph in which `round` nodes finish, each after a random number of yields, and one node fails
/// the first time.
pub fn race(world: &World, seed: u64) -> StateGraph<Ledger> {
    let send = |ledger: Snapshot<Ledger>| {
        let each = (0..ledger.round).map(|number| Dispatch::new("work", number)).collect::<Vec<_>>();
        std::future::ready(Command::to(each).also_goto("fails"))
    };
    let works = world.clone();
    let works = move |ctx: Ctx, Input(number): Input<u64>| {
        let world = works.clone();
        async move {
            let elsewhere = tokio::spawn(yield_times(super::chance::mix(seed, number) % 8));
            elsewhere.await?;
            let mark = Mark::new(2, format_args!("work_{number}"));
            world.act(&ctx, &mark);
            Result::<_>::Ok(Ledger::update().marks([mark]))
        }
    };
    let failed = Arc::new(AtomicBool::new(false));
    let fails = move || {
        let first = !failed.swap(true, Ordering::SeqCst);
        async move {
            yield_times(super::chance::mix(seed, u64::MAX) % 12).await;
            if first { Err::<(), BoxError>("not this time".into()) } else { Ok(()) }
        }
    };
    let graph = StateGraph::new().node("send", send.targets(["work", "fails"])).node("work", works);
    graph.node("fails", fails).edge(START, "send")
}

async fn yield_times(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}
