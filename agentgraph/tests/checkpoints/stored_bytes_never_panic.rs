//! Stored bytes are not trusted. Whatever they are, reading them succeeds or returns a typed error, and never
//! panics.
//!
//! `PROPTEST_CASES` sets the number of cases.
#![cfg(feature = "encryption")]

use std::path::PathBuf;
use std::sync::OnceLock;

use agentgraph::Code;
use agentgraph::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

use crate::common::pass_story::{pass, recorded_pass};
use crate::common::reading::{self, read};
use crate::common::stories::{Story, recorded};
use crate::common::tape::{Tape, hex, unhex};
use crate::common::thread_bytes::ThreadBytes;

fn config() -> Config {
    let mut config = Config::default();
    let failures = FileFailurePersistence::Direct("proptest-regressions/stored_bytes_never_panic.txt");
    config.failure_persistence = Some(Box::new(failures));
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 600;
    }
    config
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn tapes() -> &'static [Tape; 3] {
    static TAPES: OnceLock<[Tape; 3]> = OnceLock::new();
    TAPES.get_or_init(|| run(recorded()).map(|(_, tape)| tape.unchecked()))
}

/// Returns the same threads, encrypted.
fn encrypted_tapes() -> &'static [Tape; 3] {
    static TAPES: OnceLock<[Tape; 3]> = OnceLock::new();
    TAPES.get_or_init(|| {
        let [paused, long, large] = tapes();
        run(async {
            let encrypt = async |tape: &Tape| tape.through(reading::encrypted).await;
            [encrypt(paused).await, encrypt(long).await, encrypt(large).await]
        })
    })
}

/// One change to some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: usize, mask: u8 },
    Set { at: usize, to: u8 },
    Cut { at: usize },
    Insert { at: usize, bytes: Vec<u8> },
    Remove { at: usize, count: usize },
    Replace { with: Vec<u8> },
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |at: usize| at % bytes.len().max(1);
        match self {
            Damage::Replace { with } => *bytes = with.clone(),
            _ if bytes.is_empty() => {}
            Damage::Flip { at, mask } => {
                let at = place(*at);
                bytes[at] ^= mask;
            }
            Damage::Set { at, to } => {
                let at = place(*at);
                bytes[at] = *to;
            }
            Damage::Cut { at } => bytes.truncate(place(*at)),
            Damage::Insert { at, bytes: more } => {
                let at = place(*at);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Remove { at, count } => {
                let from = place(*at);
                let to = (from + count).min(bytes.len());
                bytes.drain(from..to);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = |most: usize| proptest::collection::vec(any::<u8>(), 0..most);
    // MessagePack markers that announce long values, and the numbers of operations.
    let telling =
        prop_oneof![0_u8..16, proptest::sample::select(vec![0x91, 0xc1, 0xc4, 0xc6, 0xcf, 0xdd, 0xdf, 0xff])];
    prop_oneof![
        4 => (any::<usize>(), any::<u8>()).prop_map(|(at, mask)| Damage::Flip { at, mask }),
        4 => (any::<usize>(), telling).prop_map(|(at, to)| Damage::Set { at, to }),
        2 => any::<usize>().prop_map(|at| Damage::Cut { at }),
        2 => (any::<usize>(), bytes(12)).prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
        2 => (any::<usize>(), 1..12_usize).prop_map(|(at, count)| Damage::Remove { at, count }),
        1 => bytes(80).prop_map(|with| Damage::Replace { with }),
    ]
}

async fn graph_of(tape: &Tape, which: usize) -> CompiledGraph<Story> {
    reading::graph_of(which, tape.play().await)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_damaged_thread_is_read_or_refused(
        which in 0..3_usize,
        encrypted in any::<bool>(),
        target in any::<proptest::sample::Index>(),
        damages in proptest::collection::vec(damage(), 1..4),
    ) {
        let mut tape = if encrypted { encrypted_tapes() } else { tapes() }[which].clone();
        let which = if encrypted { which + usize::from(reading::ENCRYPTED) } else { which };
        let segments: Vec<usize> = (0..tape.commits.len()).filter(|at| tape.commits[*at].segment.is_some()).collect();
        let commits = tape.commits.len();
        let writes = tape.writes.len();
        let target = target.index(commits + segments.len() + writes);
        let text = if target < commits {
            &mut tape.commits[target].record
        } else if target < commits + segments.len() {
            tape.commits[segments[target - commits]].segment.as_mut().unwrap()
        } else {
            &mut tape.writes[target - commits - segments.len()].bytes
        };
        let mut bytes = unhex(text);
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        *text = hex(&bytes);
        run(async { read(&graph_of(&tape, which).await).await });
    }

    /// Records of nodes are damaged, name other nodes, are repeated under other tasks, or are missing.
    #[test]
    fn a_damaged_pass_is_read_or_refused(
        damages in proptest::collection::vec((any::<usize>(), damage_of_a_pass()), 1..4),
        encrypted in any::<bool>(),
    ) {
        let mut tape = tape_of_a_pass().clone();
        damages.into_iter().for_each(|(at, damage)| damage.apply(&mut tape, at));
        run(async {
            let which = usize::from(reading::PASS);
            if encrypted {
                let tape = tape.through(reading::encrypted).await;
                reading::read_thread(which + usize::from(reading::ENCRYPTED), tape.play().await).await;
            } else {
                reading::read_thread(which, tape.play().await).await;
            }
        });
    }

    #[test]
    fn any_operations_after_a_good_header_are_read_or_refused(
        operations in proptest::collection::vec(operation(), 0..12),
    ) {
        let mut tape = tapes()[0].clone();
        let mut record = unhex(&tape.commits[0].record);
        let header = u32::from_be_bytes([record[1], record[2], record[3], record[4]]) as usize;
        record.truncate(5 + header);
        record.extend(operations.concat());
        tape.commits[0].record = hex(&record);
        run(async { read(&graph_of(&tape, 0).await).await });
    }
}

fn tape_of_a_pass() -> &'static Tape {
    static TAPE: OnceLock<Tape> = OnceLock::new();
    TAPE.get_or_init(|| run(recorded_pass()).unchecked())
}

/// One change to the stored data of a pass.
#[derive(Clone, Debug)]
enum DamageOfAPass {
    /// Damages the bytes of a checkpoint or a write.
    Bytes(Damage),
    /// Replaces the n-th text of one letter.
    Name(usize, u8),
    /// Repeats a write under the id of a task that does not exist.
    Twice(u128),
    Gone,
}

fn damage_of_a_pass() -> impl Strategy<Value = DamageOfAPass> {
    prop_oneof![
        2 => damage().prop_map(DamageOfAPass::Bytes),
        4 => (any::<usize>(), proptest::sample::select(b"abcdefghxy?".to_vec()))
            .prop_map(|(at, to)| DamageOfAPass::Name(at, to)),
        2 => any::<u128>().prop_map(DamageOfAPass::Twice),
        1 => Just(DamageOfAPass::Gone),
    ]
}

impl DamageOfAPass {
    fn apply(&self, tape: &mut Tape, at: usize) {
        let commits = tape.commits.len();
        let writes = tape.writes.len();
        let at = at % (commits + writes);
        let write = at.checked_sub(commits);
        let text = match write {
            Some(write) => &mut tape.writes[write].bytes,
            None => &mut tape.commits[at].record,
        };
        let mut bytes = unhex(text);
        match (self, write) {
            (DamageOfAPass::Bytes(damage), _) => damage.apply(&mut bytes),
            (DamageOfAPass::Name(nth, to), _) => {
                let names: Vec<usize> = (1..bytes.len()).filter(|at| bytes[at - 1] == 0xa1).collect();
                if let Some(name) = names.get(nth % names.len().max(1)) {
                    bytes[*name] = *to;
                }
            }
            (DamageOfAPass::Twice(task), Some(write)) => {
                let task = agentgraph::checkpoint::TaskId::from_u128(*task).to_string();
                let again = crate::common::tape::Write { task, ..tape.writes[write].clone() };
                tape.writes.push(again);
                return;
            }
            (DamageOfAPass::Gone, Some(write)) => {
                tape.writes.remove(write);
                return;
            }
            _ => {}
        }
        *text = hex(&bytes);
    }
}

/// Generates one well-formed operation on any field. The payload may not fit the field.
fn operation() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![9 => 0..10_u64, 1 => any::<u64>()];
    let number = prop_oneof![3 => 0..5_u64, 1 => any::<u64>()];
    let value = prop_oneof![
        Just(vec![0x90]),
        Just(vec![0x80]),
        Just(vec![0xa1, b'x']),
        Just(vec![0x92, 1, 2]),
        Just(vec![0xdd, 0xff, 0xff, 0xff, 0xff]),
        proptest::collection::vec(any::<u8>(), 0..9),
    ];
    (field, 0..10_u8, number.clone(), number, value).prop_map(|(field, op, first, second, value)| {
        let mut bytes = uint(field);
        bytes.push(op);
        match op {
            0 => bytes.extend(bin(&value)),
            1 => bytes.extend([uint(first), bin(&value)].concat()),
            2 => bytes.extend([bin(&[0xa1, b'k']), bin(&value)].concat()),
            3 => bytes.extend([vec![0xa1, b'k'], bin(&value)].concat()),
            4 => bytes.extend([0xa1, b'k']),
            5 => bytes.extend(uint(first)),
            6 => bytes.extend([uint(first), uint(second)].concat()),
            _ => {}
        }
        bytes
    })
}

fn uint(number: u64) -> Vec<u8> {
    match number {
        0..128 => vec![number as u8],
        _ => [&[0xcf][..], &number.to_be_bytes()].concat(),
    }
}

fn bin(bytes: &[u8]) -> Vec<u8> {
    [&[0xc4, bytes.len() as u8][..], bytes].concat()
}

/// Returns a record of format 1 with this header map and these operations.
fn record(header: &[u8], operations: &[u8]) -> Vec<u8> {
    [&[1][..], &(header.len() as u32).to_be_bytes(), header, operations].concat()
}

/// Returns records that announce far more bytes than follow, are nested deeply, or have impossible numbers.
fn hostile() -> Vec<Vec<u8>> {
    let deep = |marker: u8, depth: usize| vec![marker; depth];
    let next = |value: &[u8]| [&[0x81, 0xa4][..], b"next", value].concat();
    let fields = [&[0x81, 0xa6][..], b"fields", &[0x92, 0xa1, b'a', 0xa1, b'b']].concat();
    let mut records = vec![
        vec![1, 0xff, 0xff, 0xff, 0xff],
        record(&[0xdf, 0xff, 0xff, 0xff, 0xff], &[]),
        record(&next(&[0xdd, 0xff, 0xff, 0xff, 0xff]), &[]),
        record(&next(&[0xdb, 0xff, 0xff, 0xff, 0xff]), &[]),
        record(&next(&deep(0x91, 200_000)), &[]),
        record(&next(&[&[0x91][..], &deep(0x81, 200_000)].concat()), &[]),
        record(&[&[0x81, 0xa1, b'?'][..], &deep(0x91, 200_000), &[0xc0]].concat(), &[]),
    ];
    let operations: [&[u8]; 8] = [
        &[0, 0, 0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0, 1, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc4, 0, 0, 1, 5, 0xc4, 0],
        &[0, 0, 0xc4, 1, 0x90, 0, 1, 0xce, 0xff, 0xff, 0xff, 0xff, 0xc4, 0],
        &[0, 0, 0xc4, 5, 0xdd, 0xff, 0xff, 0xff, 0xff, 0, 5, 0xce, 0xff, 0xff, 0xff, 0xff],
        &[0xce, 0x00, 0x0f, 0xff, 0xff, 7],
        &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 7],
        &[0, 6, 0, 0],
        &[0, 6, 0xce, 0xff, 0xff, 0xff, 0xff, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    records.extend(operations.map(|operations| record(&fields, operations)));
    records
}

/// Returns the peak memory of this process in KiB, or `None` where the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the folder of the threads that the fuzzer (`agentgraph/fuzz`) found. Each thread reaches code that
/// the others do not.
fn corpus() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"))
}

#[test]
fn the_corpus_of_the_fuzzer_is_read_or_refused_with_little_memory() {
    let before = peak_memory();
    let mut count = 0;
    for file in std::fs::read_dir(corpus()).unwrap() {
        let path = file.unwrap().path();
        let thread = ThreadBytes::read(&std::fs::read(&path).unwrap());
        run(async { reading::read_thread(thread.graph.into(), thread.play().await).await });
        count += 1;
    }
    assert!(count > 100, "only {count} threads in {}", corpus().display());
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        assert!(after - before < 64 * 1024, "{} KiB", after - before);
    }
}

#[test]
fn the_recorded_pass_is_read_correctly_without_damage() {
    let tape = tape_of_a_pass();
    let thread = ThreadBytes::of(reading::PASS.into(), tape);
    assert_eq!(ThreadBytes::read(&thread.write()), thread);
    run(async {
        let graph = pass(thread.play().await);
        let state = graph.state("t").await.unwrap().unwrap();
        let done: Vec<_> = state.values.names().collect();
        assert_eq!(
            (&done[..], &state.next[..]),
            (&["y", "a", "x", "b", "e"][..], &["c".to_owned(), "d".to_owned()][..])
        );
    });
    if std::env::var_os("WRITE_SEEDS").is_some() {
        std::fs::write(corpus().join("seed-pass"), thread.write()).unwrap();
    }
}

/// The seeds are the threads that the fuzzer begins with. With `WRITE_SEEDS`, this test writes them to the
/// corpus.
#[test]
fn the_seeds_of_the_fuzzer_are_read_without_an_error() {
    let encrypted = (usize::from(reading::ENCRYPTED)..).zip(encrypted_tapes());
    for (which, tape) in tapes().iter().enumerate().chain(encrypted) {
        // Encrypted records are not framed part by part, so the long encrypted thread is too large for a
        // seed.
        if which == usize::from(reading::ENCRYPTED) + 1 {
            continue;
        }
        let thread = ThreadBytes::of(which, tape);
        let bytes = thread.write();
        assert_eq!(ThreadBytes::read(&bytes), thread);
        run(async {
            let graph = reading::graph_of(which, thread.play().await);
            let state = graph.state("t").await.unwrap().unwrap();
            let taped = graph_of(tape, which).await.state("t").await.unwrap().unwrap();
            assert_eq!(state.values, taped.values);
            assert_eq!(state.next, taped.next);
        });
        if std::env::var_os("WRITE_SEEDS").is_some() {
            std::fs::create_dir_all(corpus()).unwrap();
            std::fs::write(corpus().join(format!("seed-{which}")), bytes).unwrap();
        }
    }
}

#[test]
fn records_that_announce_huge_values_take_little_memory() {
    let before = peak_memory();
    for bytes in hostile() {
        let tape = Tape {
            commits: vec![crate::common::tape::Commit { record: hex(&bytes), ..Default::default() }],
            writes: Vec::new(),
        };
        run(async { read(&graph_of(&tape, 0).await).await });
    }
    for (slot, bytes) in [(0, 0x91), (1, 0x91), (1, 0x81), (2, 0x91), (4, 0x91)] {
        let mut tape = tapes()[0].clone();
        let target = tape.writes.iter_mut().find(|write| write.slot == slot);
        if let Some(write) = target {
            write.bytes = hex(&vec![bytes; 200_000]);
        }
        run(async { read(&graph_of(&tape, 0).await).await });
    }
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        // Other tests of this file run at the same time and need a few megabytes.
        assert!(after - before < 64 * 1024, "{} KiB", after - before);
    }
}

#[test]
fn a_thread_with_one_damaged_checkpoint_keeps_its_earlier_ones() {
    let mut tape = tapes()[1].clone();
    let last = tape.commits.len() - 1;
    tape.commits[last].record = hex(b"\x01rubbish");
    run(async {
        let graph = graph_of(&tape, 1).await;
        let error = graph.state("t").await.unwrap_err();
        assert_eq!(error.code(), Code::CorruptCheckpoint);
        assert!(error.to_string().contains("checkpoint 0.1025 cannot be read"), "{error}");
        let id = agentgraph::CheckpointId::new(0, 1025);
        let earlier = graph.history("t").before(id).limit(1).await.unwrap();
        assert_eq!(earlier[0].values.count, 1024);
    });
}

#[test]
fn hostile_encrypted_bytes_take_little_memory() {
    let before = peak_memory();
    let envelope = |name: u8, length: usize| [&[0xc1, 1, name][..], &vec![0x41; length]].concat();
    let mut hostile: Vec<Vec<u8>> = (0..70).map(|length| envelope(1, length)).collect();
    hostile.extend([
        vec![0xc1],
        vec![0xc1, 1],
        vec![0xc1, 2],
        envelope(255, 10),
        envelope(255, 400),
        envelope(0, 100),
    ]);
    hostile.push(envelope(1, 4_000_000));
    hostile.push([b"\xc1\x01\x01k".to_vec(), vec![0; 200]].concat());
    for bytes in hostile {
        for which in [0, usize::from(reading::ENCRYPTED)] {
            let tape = Tape {
                commits: vec![crate::common::tape::Commit { record: hex(&bytes), ..Default::default() }],
                writes: Vec::new(),
            };
            run(async { read(&graph_of(&tape, which).await).await });
        }
    }
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        assert!(after - before < 96 * 1024, "{} KiB", after - before);
    }
}

/// Records under the right key come from a holder of the key. They are trusted as little as records in clear.
#[test]
fn hostile_records_under_the_right_key_are_read_or_refused() {
    for bytes in hostile() {
        let tape = Tape {
            commits: vec![crate::common::tape::Commit { record: hex(&bytes), ..Default::default() }],
            writes: Vec::new(),
        };
        run(async {
            let tape = tape.through(reading::encrypted).await;
            read(&graph_of(&tape, reading::ENCRYPTED.into()).await).await;
        });
    }
}
