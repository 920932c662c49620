//! Random graphs on the real engine: builds them, calls them, and says how each call came out in the model's words.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph::prelude::*;
use agentgraph::{Goto, InterruptKind, IntoGoto, RunBuilder, StopReason};
use futures_util::StreamExt;

use super::clock::Clock;
use super::model::{Call, Came};
use super::poll::pending_for;
use super::shape::{
    Hop, NODES, Shape, Target, answer, choose, digest, name, request, result, source_name, target_name,
    task_key,
};
use super::world::{World, Writes};

/// What nodes see and change outside the state.
#[derive(Clone, Default)]
pub struct Outside {
    /// The number of the call that is going on.
    pub round: Arc<AtomicU64>,
    /// Every completed execution of a task, by its key.
    effects: Arc<Mutex<Vec<String>>>,
    /// Looks at a task that begins or completes; says what is wrong with that.
    #[allow(clippy::type_complexity)]
    check: Option<Arc<dyn Fn(&str) + Send + Sync>>,
}

impl Outside {
    /// Calls `check` with the key of each task whose effects happen.
    pub fn checked(check: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Outside { check: Some(Arc::new(check)), ..Outside::default() }
    }

    pub fn effects(&self) -> Vec<String> {
        self.effects.lock().unwrap().clone()
    }

    fn touch(&self, key: &str) {
        if let Some(check) = &self.check {
            check(key);
        }
    }

    fn complete(&self, key: String) {
        self.touch(&key);
        self.effects.lock().unwrap().push(key);
    }
}

/// The input of a dispatch, if the task has one.
struct MaybeInput(Option<u64>);

impl FromTask<World> for MaybeInput {
    type Error = std::convert::Infallible;
    fn from_task(task: &Task<'_, World>) -> Result<Self, Self::Error> {
        Ok(MaybeInput(Input::<u64>::from_task(task).ok().map(|Input(input)| input)))
    }
}

async fn act(
    shape: Arc<Shape>,
    outside: Outside,
    node: usize,
    ctx: Ctx,
    world: Snapshot<World>,
    input: Option<u64>,
) -> Result<Command<World>> {
    let data = &shape.nodes[node];
    let key = task_key(node, world.tick, input);
    outside.touch(&key);
    pending_for(data.pending).await;
    let mut answers = Vec::new();
    for n in 0..data.asks {
        answers.push(ctx.interrupt::<u64>(request(node, input, n))?);
    }
    let (calls, good) = data.heals;
    if outside.round.load(Ordering::SeqCst) % calls != good {
        return Err(Terminal::new("not in this call").into());
    }
    if ctx.attempt() <= data.retries {
        return Err("not at this attempt".into());
    }
    let (writes, command) = result(&shape, node, &world, input, &answers);
    outside.complete(key);
    let update = Command::update(writes.into_update());
    Ok(match command {
        None => update,
        Some((true, targets)) => update.goto(gotos(targets)),
        Some((false, targets)) => update.also_goto(gotos(targets)),
    })
}

fn gotos(targets: Vec<(Target, u64)>) -> Vec<Goto> {
    targets.into_iter().map(goto).collect()
}

fn goto((target, input): (Target, u64)) -> Goto {
    match target {
        Target::Node(node) => name(node).into_goto(),
        Target::Dispatch(node) => Dispatch::new(name(node), input).into_goto(),
        Target::End => END.into_goto(),
        Target::Ghost => "ghost".into_goto(),
    }
}

/// Builds the graph that a shape describes.
pub fn build(shape: &Shape, outside: &Outside, saver: impl Checkpointer) -> CompiledGraph<World> {
    let shape = Arc::new(shape.clone());
    let mut graph = StateGraph::<World>::new();
    for node in 0..NODES {
        let (data, outside) = (Arc::clone(&shape), outside.clone());
        let function = move |ctx: Ctx, world: Snapshot<World>, MaybeInput(input): MaybeInput| {
            act(Arc::clone(&data), outside.clone(), node, ctx, world, input)
        };
        let attempts = shape.nodes[node].retries + 1;
        graph = match attempts {
            1 => graph.node(name(node), function),
            _ => graph
                .node(name(node), function.retry(RetryPolicy::attempts(attempts).initial(Duration::ZERO))),
        };
    }
    for edge in &shape.edges {
        let sources: Vec<&'static str> = edge.from.iter().map(|from| source_name(*from)).collect();
        graph = graph.edge(sources, target_name(edge.to));
    }
    for (slot, router) in shape.routers.iter().enumerate() {
        let (from, options) = (router.from, router.options.clone());
        let decide = move |world: &World| choose(&options, digest(world), from, slot);
        graph = if router.typed {
            graph.route(source_name(from), move |world: &World| {
                decide(world).into_iter().map(|(target, input)| Hop::to(target, input)).collect::<Vec<_>>()
            })
        } else {
            let targets = (0..NODES).map(name).chain([END]);
            graph.branch(source_name(from), move |world: &World| gotos(decide(world)), targets)
        };
    }
    graph = graph.interrupt_before(shape.before.iter().map(|node| name(*node)));
    graph = graph.interrupt_after(shape.after.iter().map(|node| name(*node)));
    graph.compile().unwrap().services(Clock::default()).checkpointer(saver)
}

/// How calls are made.
#[derive(Clone, Debug)]
pub struct Manner {
    pub streamed: bool,
    pub views: Vec<View>,
    pub max_concurrency: Option<usize>,
}

impl Manner {
    pub fn awaited() -> Self {
        Manner { streamed: false, views: Vec::new(), max_concurrency: None }
    }
}

/// The future of a call, and of everything that it does.
pub type Calling = Pin<Box<dyn Future<Output = Came> + Send>>;

/// Sets a call up. Answers are those of [`answer`].
pub async fn call(graph: &CompiledGraph<World>, shape: &Shape, manner: &Manner, call: &Call) -> Calling {
    let run = match call {
        Call::Invoke { input, abandon } => {
            let writes = input.iter().enumerate().map(|(at, write)| (*write, 3 + at as u64)).collect();
            let run = graph.invoke(Writes { writes, ..Writes::default() }.into_update());
            if *abandon { run.abandon() } else { run }
        }
        Call::Proceed => graph.proceed(),
        Call::Resume(count) => {
            let open = graph.state("t").await.unwrap().unwrap().interrupts;
            let answers = open.iter().map(|asked| (asked.id.unwrap(), answer(asked.value.as_u64().unwrap())));
            let answers: Vec<_> = answers.take(*count).collect();
            match &answers[..] {
                [(_, bare)] if open.len() == 1 => graph.resume(bare),
                _ => graph.resume_many(answers),
            }
        }
    };
    let run = run.thread("t").max_supersteps(shape.limit);
    let run = match manner.max_concurrency {
        None => run,
        Some(tasks) => run.max_concurrency(tasks),
    };
    if manner.streamed { Box::pin(streamed(run.views(manner.views.clone()))) } else { Box::pin(awaited(run)) }
}

async fn awaited(run: RunBuilder<World>) -> Came {
    came(run.await)
}

/// Reads the stream to its end and checks what every stream promises.
async fn streamed(run: RunBuilder<World>) -> Came {
    let mut events = run.stream_capacity(2).stream();
    let mut ended = None;
    let mut seen = 0;
    while let Some(event) = events.next().await {
        assert_eq!(event.seq, seen, "events are numbered without gaps");
        assert!(ended.is_none(), "an event after the last one");
        seen += 1;
        if let EventKind::Ended(outcome) = event.kind {
            ended = Some(came(outcome));
        }
    }
    ended.expect("a stream ends with its outcome")
}

fn came(outcome: Result<Outcome<World>, agentgraph::Error>) -> Came {
    match outcome {
        Err(error) => Came::Failed(error.code().as_str()),
        Ok(Outcome::Finished { stuck, .. }) => {
            let names = |names: Vec<String>| names.iter().map(|name| known(name)).collect();
            let stuck =
                stuck.into_iter().map(|join| (known(&join.to), names(join.arrived), names(join.missing)));
            Came::Finished { stuck: stuck.collect() }
        }
        Ok(Outcome::Interrupted { interrupts, .. }) if interrupts[0].id.is_none() => {
            let stops = interrupts.iter().map(|stop| (known(&stop.node), stop.kind == InterruptKind::Before));
            Came::Broke(stops.collect())
        }
        Ok(Outcome::Interrupted { interrupts, .. }) => Came::Asked(
            interrupts.iter().map(|asked| (known(&asked.node), asked.value.as_u64().unwrap())).collect(),
        ),
        Ok(Outcome::Stopped { reason, .. }) => {
            assert_eq!(reason, StopReason::Limit);
            Came::Limit
        }
    }
}

/// The static text of a name.
fn known(text: &str) -> &'static str {
    let names = (0..NODES).map(name).chain([START, END]);
    names.into_iter().find(|known| *known == text).expect("only names of the graph are told")
}

/// The call that follows an outcome; none when the thread has come to its end.
pub fn follow(shape: &Shape, came: &Came, inputs_used: &mut usize) -> Option<Call> {
    match came {
        Came::Asked(open) => Some(Call::Resume(if shape.answers_all { open.len() } else { 1 })),
        Came::Broke(_) | Came::Limit | Came::Failed("E_NODE_FAILED") => Some(Call::Proceed),
        Came::Failed(_) => next_input(shape, true, inputs_used),
        Came::Finished { .. } => next_input(shape, false, inputs_used),
    }
}

/// The next run of the thread.
pub fn next_input(shape: &Shape, abandon: bool, used: &mut usize) -> Option<Call> {
    let input = shape.inputs.get(*used)?.clone();
    *used += 1;
    Some(Call::Invoke { input, abandon })
}

/// The checkpoints of the thread, oldest first.
pub async fn history(graph: &CompiledGraph<World>) -> Vec<(World, Vec<&'static str>)> {
    let mut checkpoints = graph.history("t").await.unwrap();
    checkpoints.reverse();
    checkpoints
        .into_iter()
        .map(|checkpoint| (checkpoint.values, checkpoint.next.iter().map(|name| known(name)).collect()))
        .collect()
}
