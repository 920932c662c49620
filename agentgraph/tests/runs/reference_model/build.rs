//! Builds the graph of a shape with the real engine.

use std::sync::Arc;
use std::time::Duration;

use agentgraph::node::IntoGoto;
use agentgraph::prelude::*;
use agentgraph::{Code, Failure, Goto, n_of};

use crate::common::poll::pending_for;

use super::behaviour::{Attempt, TaskCall, attempt, child_input, child_output, routed, time_at};
use super::outside::Outside;
use super::shape::{Child, Edge, Hop, Shape, Target, name, source_name, target_name};
use super::world::World;

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
    mut called: TaskCall,
    ctx: Ctx,
    world: Snapshot<World>,
) -> Result<Command<World>> {
    let data = &shape.nodes[called.node];
    let key = called.key(world.tick);
    outside.set_clock(time_at(world.tick));
    outside.touch(&key);
    ctx.spend("coins", data.coins);
    if data.drains {
        ctx.drain();
    }
    if data.emits {
        ctx.emit(ctx.attempt()).await;
    }
    pending_for(data.pending).await;
    let (writes, routing) = loop {
        match attempt(&shape, &called, &world, ctx.attempt()) {
            Attempt::Asks(request) => called.answers.push(ctx.interrupt(request)?),
            Attempt::Fails { text, again: true } => return Err(text.into()),
            Attempt::Fails { text, again: false } => return Err(Terminal::new(text).into()),
            Attempt::Returns(writes, routing) => break (writes, routing),
        }
    };
    outside.complete(key);
    let update = Command::update(writes.into_update());
    Ok(match routing {
        None => update,
        Some((true, targets)) => update.goto(gotos(targets)),
        Some((false, targets)) => update.also_goto(gotos(targets)),
    })
}

/// Returns the failed node and the text of its failure; the error code if the text is not the node's own.
fn node_and_text(failure: &Failure) -> (String, String) {
    let text = match failure.code() {
        Code::NodeFailed => failure.message(),
        other => other.as_str(),
    };
    (failure.node().to_owned(), text.to_owned())
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

/// Builds the graph, without a checkpointer.
pub fn build(shape: &Shape, outside: &Outside) -> CompiledGraph<World> {
    build_at("", shape, outside)
}

fn build_at(path: &str, shape: &Shape, outside: &Outside) -> CompiledGraph<World> {
    let shape = Arc::new(shape.clone());
    let graph = (0..shape.nodes.len())
        .fold(StateGraph::<World>::new(), |graph, node| with_node(graph, path, node, &shape, outside));
    let graph = shape.edges.iter().fold(graph, with_edge);
    let graph = (0..shape.routers.len()).fold(graph, |graph, slot| with_router(graph, slot, &shape));
    let graph = graph
        .interrupt_before(shape.before.iter().map(|node| name(*node)))
        .interrupt_after(shape.after.iter().map(|node| name(*node)));
    let graph = match shape.on_limit {
        None => graph,
        Some(node) => graph.on_limit(name(node)),
    };
    graph.compile().unwrap().services(outside.clone())
}

fn with_node(
    graph: StateGraph<World>,
    path: &str,
    node: usize,
    shape: &Arc<Shape>,
    outside: &Outside,
) -> StateGraph<World> {
    if let Some(child) = &shape.nodes[node].child {
        let child = with_memory(build_at(&format!("{path}{}/", name(node)), &child.shape, outside), child);
        let child = if shape.nodes[node].defers { child.defer() } else { child };
        return graph.node(name(node), child);
    }
    let data = Arc::clone(shape);
    let outside = outside.clone();
    let path = path.to_owned();
    let function =
        move |ctx: Ctx, world: Snapshot<World>, MaybeInput(input): MaybeInput, failure: Option<Failure>| {
            let failure = failure.as_ref().map(node_and_text);
            let path = path.clone();
            let called = TaskCall { path, node, input, failure, answers: Vec::new(), round: outside.round() };
            act(Arc::clone(&data), outside.clone(), called, ctx, world)
        };
    let data = &shape.nodes[node];
    let mut node_of_graph = function.into_node();
    if data.attempts > 1 {
        node_of_graph = node_of_graph.retry(RetryPolicy::attempts(data.attempts).initial(Duration::ZERO));
    }
    if let Some(handler) = data.handler {
        node_of_graph = node_of_graph.on_error(name(handler));
    }
    if data.defers {
        node_of_graph = node_of_graph.defer();
    }
    if let Some(targets) = data.declared_targets() {
        node_of_graph = node_of_graph.targets(targets.into_iter().map(target_name));
    }
    graph.node(name(node), node_of_graph)
}

/// Returns a subgraph as a node, embedded if it has a state of its own.
fn with_memory(graph: CompiledGraph<World>, child: &Child) -> agentgraph::node::Node<World> {
    if !child.embedded {
        return graph.memory(child.memory).into_node();
    }
    let input =
        |world: Snapshot<World>, MaybeInput(input): MaybeInput| child_input(&world, input).into_update();
    let output = |world: World| child_output(&world).into_update();
    graph.embed(input, output).memory(child.memory).into_node()
}

fn with_edge(graph: StateGraph<World>, edge: &Edge) -> StateGraph<World> {
    let to = target_name(edge.to);
    if let ([from], None) = (&edge.from[..], edge.timeout) {
        return graph.edge(source_name(*from), to);
    }
    let join = n_of(edge.needed, edge.from.iter().map(|from| source_name(*from)));
    match edge.timeout {
        None => graph.edge(join, to),
        Some(limit) => graph.edge(join.timeout(Duration::from_millis(limit)), to),
    }
}

fn with_router(graph: StateGraph<World>, slot: usize, shape: &Shape) -> StateGraph<World> {
    let router = &shape.routers[slot];
    let from = router.from;
    let options = router.options.clone();
    let decide = move |world: &World| routed(&options, world, from, slot);
    if router.typed {
        let hops = move |world: &World| {
            decide(world).into_iter().map(|(target, input)| Hop::to(target, input)).collect::<Vec<_>>()
        };
        return graph.route(source_name(from), hops);
    }
    let targets = (0..shape.nodes.len()).map(name).chain([END]);
    graph.branch(source_name(from), move |world: &World| gotos(decide(world)), targets)
}
