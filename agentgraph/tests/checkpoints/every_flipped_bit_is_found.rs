//! A flipped bit in a small stored row is an error, and never another state: in every byte of every full,
//! delta, segment and pending write of the stories, with their interrupts, failures and subgraphs.

use std::sync::Arc;

use agentgraph::prelude::*;
use agentgraph::{Code, MemorySaver};

use crate::common::later_stories::{self, asked, failed, handled, nested};
use crate::common::stories::{Story, large, long, paused, recorded};
use crate::common::tape::{Tape, hex, unhex};

fn graph_of(name: &str, saver: Arc<MemorySaver>) -> CompiledGraph<Story> {
    match name {
        "paused" => paused(saver),
        "long" => long(saver),
        "large" => large(saver, 2),
        "asked" => asked(saver, false, 2),
        "asked_eager" => asked(saver, true, 2),
        "failed" => failed(saver, false),
        "handled" => handled(saver),
        _ => nested(saver),
    }
}

/// Returns what a reader sees of a thread: its newest checkpoint, and its history.
async fn read(name: &str, tape: &Tape) -> [Result<String, Code>; 2] {
    let graph = graph_of(name, tape.play().await);
    let state = graph.state("t").await.map(|found| format!("{found:?}"));
    let history = graph.history("t").await.map(|found| format!("{found:?}"));
    [state, history].map(|read| read.map_err(|error| error.code()))
}

/// The stored bytes of a tape, by their position.
fn stored(tape: &mut Tape) -> Vec<&mut String> {
    let commits = tape.commits.iter_mut();
    let rows = commits.flat_map(|commit| [Some(&mut commit.record), commit.segment.as_mut()]);
    rows.flatten().chain(tape.writes.iter_mut().map(|write| &mut write.bytes)).collect()
}

#[tokio::test]
async fn a_flipped_bit_is_never_another_state() {
    let mut all = Vec::from(recorded().await);
    all.extend(later_stories::recorded().await);
    let (mut found, mut flipped) = (0, 0);
    for (name, mut tape) in all {
        let before = read(name, &tape).await;
        assert!(before.iter().all(Result::is_ok), "{name}: {before:?}");
        for row in 0..stored(&mut tape).len() {
            let bytes = unhex(stored(&mut tape)[row]);
            // Every bit of the frame, and one of each byte after it.
            let frame = 0..bytes.len().min(10) * 8;
            let content = (10..bytes.len()).map(|byte| byte * 8 + (byte + row) % 8);
            let mut errors = 0;
            let bits: Vec<usize> = frame.chain(content.step_by(1 + bytes.len() / 200)).collect();
            for bit in &bits {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                *stored(&mut tape)[row] = hex(&damaged);
                let after = read(name, &tape).await;
                for (after, before) in after.iter().zip(&before) {
                    match after {
                        Ok(_) => assert_eq!(after, before, "{name}: bit {bit} of row {row}"),
                        Err(code) => {
                            assert_eq!(*code, Code::CorruptCheckpoint, "{name}: bit {bit} of row {row}")
                        }
                    }
                }
                errors += usize::from(after.iter().any(Result::is_err));
            }
            *stored(&mut tape)[row] = hex(&bytes);
            // A row that is read is read whole.
            assert!(errors == 0 || errors == bits.len(), "{name}: {errors} of {} in row {row}", bits.len());
            (found, flipped) = (found + errors, flipped + bits.len());
        }
    }
    assert!(found * 10 > flipped * 7, "{found} of {flipped} flipped bits were read");
}
