//! A run as one ordered stream: the state after each superstep, and the messages that nodes emit meanwhile.

use agentgraph::prelude::*;
use futures_util::StreamExt;

#[derive(State, Clone, Debug, Default)]
struct Countdown {
    left: u32,
}

#[derive(Route)]
enum Next {
    Tick,
    #[route(end)]
    Done,
}

async fn tick(ctx: Ctx, state: Snapshot<Countdown>) -> CountdownUpdate {
    ctx.emit(format!("{} ...", state.left)).await;
    Countdown::update().left(state.left - 1)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let graph = StateGraph::new()
        .node("tick", tick)
        .edge(START, "tick")
        .route("tick", |state: &Countdown| if state.left > 0 { Next::Tick } else { Next::Done })
        .compile()?;

    let mut seen = Vec::new();
    let mut events = graph.invoke(Countdown::update().left(3)).views([View::Custom, View::Values]).stream();
    while let Some(event) = events.next().await {
        let line = match event.kind {
            EventKind::Custom { node, value } => format!("{node} says {value}"),
            EventKind::Values(state) => format!("{} left", state.left),
            EventKind::Ended(outcome) => format!("over, {} left", outcome?.output().left),
            _ => continue,
        };
        println!("{:>2} {line}", event.seq);
        seen.push(line);
    }
    assert_eq!(seen.len(), 8);
    assert_eq!(seen[1], "tick says \"3 ...\"");
    assert_eq!(seen[7], "over, 0 left");
    Ok(())
}
