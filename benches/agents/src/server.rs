//! Counts the calls a second that the embedded UpGrade server answers over loopback, and those of a bare
//! handler that reads a body and returns one. Callers and server share the machine, so only the ratio is
//! meaningful.

mod caller;
mod scene;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use agentgraph_benches::{Arguments, Problem};
pub(crate) use caller::Caller;
use scene::{Call, Kept, Scene};

const CONNECTIONS: [usize; 2] = [1, 16];
const CALLS: [Call; 5] = [Call::Init, Call::Assign, Call::Mark, Call::Read, Call::Mix];

/// Returns the duration of the measurement of each figure.
fn span(arguments: &Arguments) -> Duration {
    Duration::from_millis(if arguments.quick { 150 } else { 3000 })
}

pub(crate) fn main(arguments: &Arguments) -> Result<(), Problem> {
    println!("| calls | kept | connections | calls a second | the bare handler beside it | ratio |");
    println!("|---|---|---|---|---|---|");
    tokio::runtime::Runtime::new()?.block_on(table(arguments))
}

async fn table(arguments: &Arguments) -> Result<(), Problem> {
    let span = span(arguments);
    let bare = scene::bare().await?;
    for connections in CONNECTIONS {
        for kept in [Kept::Memory, Kept::File] {
            for call in CALLS {
                let scene = Scene::new(kept).await?;
                // In direct succession, because the machine's speed changes.
                let floor = rate(bare, Call::Bare, connections, span).await?;
                let rate = rate(scene.addr(), call, connections, span).await?;
                let (name, kept, ratio) = (call.name(), kept.name(), rate / floor);
                println!("| {name} | {kept} | {connections} | {rate:.0} | {floor:.0} | {ratio:.2} |");
                scene.end().await?;
            }
        }
    }
    Ok(())
}

/// Returns the calls a second of `connections` callers, each of which waits for its response before it
/// calls again.
async fn rate(addr: SocketAddr, call: Call, connections: usize, span: Duration) -> Result<f64, Problem> {
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let end = begun + span;
    let callers = (0..connections).map(|_| {
        let next = next.clone();
        tokio::spawn(async move {
            let mut caller = Caller::new(addr).await?;
            let mut done = 0;
            while Instant::now() < end {
                let at = next.fetch_add(1, Ordering::Relaxed);
                caller.call(&call.request(at)).await?;
                done += 1;
            }
            Ok::<u64, Problem>(done)
        })
    });
    let mut done = 0;
    for caller in callers.collect::<Vec<_>>() {
        done += caller.await??;
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}
