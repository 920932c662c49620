//! Fuzzes whatever reads stored bytes: full records, deltas, segments, headers and pending writes, by way of
//! reading a thread and going on with it. `run.sh` builds and runs it; the test `stored_bytes_never_panic`
//! replays its corpus.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use std::cell::OnceCell;

use common::reading::read_thread;
use common::thread_bytes::{Part, ThreadBytes};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let thread = ThreadBytes::read(data);
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| Builder::new_current_thread().build().unwrap());
        runtime.block_on(async { read_thread(thread.graph.into(), thread.play().await).await });
    });
});

// Three times out of four one part is changed within itself, so that what frames it goes on to fit.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut thread = ThreadBytes::read(&data[..size]);
    let choice = seed % 8;
    let place = (seed / 8) as usize;
    if choice < 2 || thread.parts.is_empty() {
        return fuzzer_mutate(data, size, max_size);
    }
    let at = place % thread.parts.len();
    match choice {
        2 => drop(thread.parts.remove(at)),
        3 => {
            let again = thread.parts[at].clone();
            thread.parts.insert(place / 7 % (thread.parts.len() + 1), again);
        }
        _ => change(&mut thread.parts[at], place),
    }
    let bytes = thread.write();
    let length = bytes.len().min(max_size);
    data[..length].copy_from_slice(&bytes[..length]);
    length
});

fn change(part: &mut Part, place: usize) {
    let bytes = match part {
        Part::Record { header, .. } if place.is_multiple_of(2) => header,
        Part::Record { operations, .. } => operations,
        Part::Raw { bytes, .. } => bytes,
        Part::Write { slot, .. } if place.is_multiple_of(5) => {
            *slot = (place as u32 / 5) % 7;
            return;
        }
        Part::Write { bytes, .. } => bytes,
    };
    let size = bytes.len();
    bytes.resize(size + 64, 0);
    let size = fuzzer_mutate(bytes, size, size + 64);
    bytes.truncate(size);
}
