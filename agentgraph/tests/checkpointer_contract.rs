//! What every checkpointer must do, run against all that there are.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "checkpointer_contract/script.rs"]
mod script;
mod sqlite_folder;

use std::sync::Arc;

use agentgraph::checkpoint::{
    Checkpointer, ListQuery, MemorySaver, PendingWrite, Place, Put, PutWrites, RowKind, SqliteSaver,
};
use agentgraph::{CheckpointId, Code, TaskId};
use proptest::prelude::*;
use sqlite_folder::Folder;

const CASES: &[(&str, &str)] = &[
    (
        "an empty store answers",
        "get t
         => nothing
         get t 0.0
         => nothing
         row t 0.0
         => nothing
         list t
         =>
         threads
         =>
         delete t
         => ok",
    ),
    (
        "a full and the deltas after it, in order",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 0.2 delta c
         => ok
         get t
         => full 0.0 a, delta 0.1 b, delta 0.2 c
         get t 0.1
         => full 0.0 a, delta 0.1 b
         get t 0.0
         => full 0.0 a
         get t 0.3
         => nothing
         get t 1.0
         => nothing
         row t 0.1
         => delta 0.1 b
         row t 0.3
         => nothing",
    ),
    (
        "the newest full at or before a step",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 0.2 full c
         => ok
         put t 0.3 delta d
         => ok
         get t
         => full 0.2 c, delta 0.3 d
         get t 0.2
         => full 0.2 c
         get t 0.1
         => full 0.0 a, delta 0.1 b",
    ),
    (
        "segments stand for the deltas up to their step",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 0.2 delta c segment=bc
         => ok
         put t 0.3 delta d
         => ok
         put t 0.4 delta e segment=de
         => ok
         put t 0.5 delta f
         => ok
         get t
         => full 0.0 a, segment 0.2 bc, segment 0.4 de, delta 0.5 f
         get t 0.4
         => full 0.0 a, segment 0.2 bc, segment 0.4 de
         get t 0.3
         => full 0.0 a, segment 0.2 bc, delta 0.3 d
         get t 0.2
         => full 0.0 a, segment 0.2 bc
         get t 0.1
         => full 0.0 a, delta 0.1 b
         row t 0.2
         => delta 0.2 c
         list t
         => delta 0.5 f, delta 0.4 e, delta 0.3 d, delta 0.2 c, delta 0.1 b, full 0.0 a",
    ),
    (
        "a full ends the reach of segments",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b segment=b
         => ok
         put t 0.2 full c
         => ok
         put t 0.3 delta d
         => ok
         get t
         => full 0.2 c, delta 0.3 d",
    ),
    (
        "a lost race is stale and changes nothing",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         writes t 0.1 1:0=w
         => ok
         writes t 0.0 2:0=v
         => ok
         put t 0.1 delta other segment=s clears
         => E_STALE
         put t 0.0 full other
         => E_STALE
         get t
         => full 0.0 a, delta 0.1 b, write 1:0 w
         get t 0.0
         => full 0.0 a, write 2:0 v
         put t 0.2 delta c
         => ok",
    ),
    (
        "a step below the newest is stale, also where a row is missing",
        "put t 0.0 full a
         => ok
         put t 0.7 full b
         => ok
         put t 0.5 delta c
         => E_STALE
         list t
         => full 0.7 b, full 0.0 a",
    ),
    (
        "a tail without a full is no checkpoint, but its row is there",
        "put t 0.3 delta a
         => ok
         get t
         => nothing
         row t 0.3
         => delta 0.3 a
         threads
         => t",
    ),
    (
        "pending writes: by task and slot, replaced in place",
        "put t 0.0 full a
         => ok
         writes t 0.0 2:0=d 1:1=c 1:0=a
         => ok
         get t
         => full 0.0 a, write 1:0 a, write 1:1 c, write 2:0 d
         writes t 0.0 1:0=new 3:4294967295=e
         => ok
         get t
         => full 0.0 a, write 1:0 new, write 1:1 c, write 2:0 d, write 3:4294967295 e
         writes t 0.0
         => ok
         writes t 0.0 340282366920938463463374607431768211455:0=last 9:0=x 9:0=y
         => ok
         get t
         => full 0.0 a, write 1:0 new, write 1:1 c, write 2:0 d, write 3:4294967295 e, write 9:0 y, write 340282366920938463463374607431768211455:0 last",
    ),
    (
        "a commit clears the writes of the step before it, on its branch, if asked",
        "put t 0.0 full a
         => ok
         writes t 0.0 1:0=x
         => ok
         put t 0.1 delta b
         => ok
         get t 0.0
         => full 0.0 a, write 1:0 x
         writes t 0.1 1:0=y
         => ok
         writes t/n 0.1 1:0=z
         => ok
         put t/n 0.1 full n
         => ok
         put t 0.2 delta c clears
         => ok
         get t 0.1
         => full 0.0 a, delta 0.1 b
         get t 0.0
         => full 0.0 a, write 1:0 x
         get t/n
         => full 0.1 n, write 1:0 z",
    ),
    (
        "writes on a step that is not there wait for it, and begin no thread and no branch",
        "writes t 0.0 1:0=x
         => ok
         threads
         =>
         get t
         => nothing
         put t 0.0 full a
         => ok
         writes t 4.0 1:0=y
         => ok
         get t
         => full 0.0 a, write 1:0 x
         list t
         => full 0.0 a",
    ),
    (
        "the newest branch is the default",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 2.1 full c
         => ok
         put t 2.2 delta d
         => ok
         put t 1.1 full e
         => ok
         put t 0.2 delta f
         => ok
         get t
         => full 2.1 c, delta 2.2 d
         get t 0.2
         => full 0.0 a, delta 0.1 b, delta 0.2 f
         get t 1.1
         => full 1.1 e
         get t 1.2
         => nothing
         list t
         => delta 2.2 d, full 2.1 c
         list t branch=0
         => delta 0.2 f, delta 0.1 b, full 0.0 a
         list t branch=3
         =>",
    ),
    (
        "namespaces are apart",
        "put t 0.0 full root
         => ok
         put t/n 0.0 full child
         => ok
         put t/m 0.5 full other
         => ok
         get t
         => full 0.0 root
         get t/n
         => full 0.0 child
         list t/m
         => full 0.5 other
         get t/x
         => nothing
         threads
         => t",
    ),
    (
        "a list can begin before a step and end after a number",
        "put t 0.0 full a
         => ok
         put t 0.1 delta b
         => ok
         put t 0.2 delta c
         => ok
         list t limit=2
         => delta 0.2 c, delta 0.1 b
         list t before=2
         => delta 0.1 b, full 0.0 a
         list t before=2 limit=1
         => delta 0.1 b
         list t before=0
         =>
         list t limit=0
         =>
         list t before=18446744073709551615 limit=18446744073709551615
         => delta 0.2 c, delta 0.1 b, full 0.0 a",
    ),
    (
        "threads are sorted and deleted whole",
        "put b 0.0 full 1
         => ok
         put a 0.0 full 2
         => ok
         put a/n 0.0 full 3
         => ok
         put ab 1.0 full 4
         => ok
         writes a 0.0 1:0=x
         => ok
         threads
         => a, ab, b
         delete a
         => ok
         threads
         => ab, b
         get a
         => nothing
         get a/n
         => nothing
         put a 0.0 full again
         => ok
         get a
         => full 0.0 again
         delete nobody
         => ok",
    ),
];

struct Saver {
    name: &'static str,
    saver: Arc<dyn Checkpointer>,
    _folder: Option<Folder>,
}

async fn savers() -> Vec<Saver> {
    let folder = Folder::new();
    let file = SqliteSaver::open(folder.file("threads.db")).await.unwrap();
    let in_memory = SqliteSaver::in_memory().unwrap();
    vec![
        Saver { name: "memory", saver: Arc::new(MemorySaver::new()), _folder: None },
        Saver { name: "SQLite in memory", saver: Arc::new(in_memory), _folder: None },
        Saver { name: "SQLite file", saver: Arc::new(file), _folder: Some(folder) },
    ]
}

fn full<'a>(place: Place<'a>, step: u64, record: &'a [u8]) -> Put<'a> {
    let id = CheckpointId::new(0, step);
    Put { place, id, fence: 0, kind: RowKind::Full, record, segment: None, clears_writes: false }
}

#[tokio::test]
async fn every_case_of_the_contract() {
    for (case, text) in CASES {
        let expected: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        for Saver { name, saver, .. } in savers().await {
            let transcript = script::run(&*saver, text).await.replace("=> \n", "=>\n");
            assert_eq!(transcript, expected, "{name}: {case}");
        }
    }
}

#[tokio::test]
async fn any_text_is_a_name() {
    let long = "long ".repeat(20_000);
    let names = [
        "",
        " ",
        "'",
        "\"; DROP TABLE checkpoint; --",
        "a\0b",
        "a\0",
        "\0",
        "名前",
        "é",
        "e\u{301}",
        "%",
        "?1",
        &long,
    ];
    for Saver { name: of, saver, .. } in savers().await {
        for name in names {
            for (thread, namespace) in [(name, ""), ("t", name)] {
                let place = Place { thread, namespace };
                let record = format!("{thread}|{namespace}");
                let stored = saver.put(full(place, 0, record.as_bytes())).await;
                assert!(stored.is_ok() || (thread, namespace) == ("t", ""), "{of}: {name:?}: {stored:?}");
                let write =
                    PendingWrite { task: TaskId::from_u128(1), slot: 0, bytes: record.clone().into() };
                saver.put_writes(PutWrites::new(place, CheckpointId::new(0, 0), &[write])).await.unwrap();
                let tail = saver.get(place, None).await.unwrap().unwrap();
                assert_eq!(tail.rows[0].record, record.as_bytes(), "{of}: {name:?}");
                assert_eq!(tail.writes[0].bytes, record.as_bytes(), "{of}: {name:?}");
            }
        }
        let mut expected: Vec<&str> = names.to_vec();
        expected.push("t");
        expected.sort_unstable();
        assert_eq!(saver.threads().await.unwrap(), expected, "{of}");
        for name in names {
            saver.delete_thread(name).await.unwrap();
        }
        assert_eq!(saver.threads().await.unwrap(), ["t"], "{of}");
    }
}

#[tokio::test]
async fn records_of_any_size() {
    let place = Place::root("t");
    for Saver { name, saver, .. } in savers().await {
        for (step, size) in [0, 1, 1_000, 4_061, 4_096, 70_000, 10_000_000].into_iter().enumerate() {
            let record: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let id = CheckpointId::new(0, step as u64);
            let mut put = full(place, id.step, &record);
            put.segment = Some(&record);
            saver.put(put).await.unwrap();
            let write = PendingWrite { task: TaskId::from_u128(7), slot: 1, bytes: record.clone() };
            saver.put_writes(PutWrites::new(place, id, std::slice::from_ref(&write))).await.unwrap();
            let row = saver.row(place, id).await.unwrap().unwrap();
            assert!(row.record == record, "{name}: {size} bytes");
            let tail = saver.get(place, Some(id)).await.unwrap().unwrap();
            assert!(tail.rows.iter().all(|row| row.record == record), "{name}: {size} bytes");
            assert_eq!(tail.rows.len(), 2, "{name}: {size} bytes");
            assert!(tail.writes == [write], "{name}: {size} bytes");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_on_threads_of_their_own_all_succeed() {
    many_threads().await;
}

#[tokio::test]
async fn writers_on_threads_of_their_own_all_succeed_on_one_core() {
    many_threads().await;
}

async fn many_threads() {
    const RUNS: u64 = 40;
    const STEPS: u64 = 25;
    for Saver { name, saver, .. } in savers().await {
        let runs = (0..RUNS).map(|run| {
            let saver = Arc::clone(&saver);
            tokio::spawn(async move {
                let thread = format!("t{run}");
                for step in 0..STEPS {
                    let record = format!("{run}.{step}");
                    saver.put(full(Place::root(&thread), step, record.as_bytes())).await.unwrap();
                }
            })
        });
        for run in runs.collect::<Vec<_>>() {
            run.await.unwrap();
        }
        for run in 0..RUNS {
            let thread = format!("t{run}");
            let rows = saver.list(Place::root(&thread), ListQuery::default()).await.unwrap();
            let found: Vec<String> =
                rows.iter().rev().map(|row| String::from_utf8_lossy(&row.record).into_owned()).collect();
            let expected: Vec<String> = (0..STEPS).map(|step| format!("{run}.{step}")).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_on_one_thread_one_wins_each_step() {
    one_thread().await;
}

#[tokio::test]
async fn of_writers_on_one_thread_one_wins_each_step_on_one_core() {
    one_thread().await;
}

async fn one_thread() {
    const WRITERS: u64 = 16;
    for Saver { name, saver, .. } in savers().await {
        for step in 0..20 {
            let writers = (0..WRITERS).map(|writer| {
                let saver = Arc::clone(&saver);
                tokio::spawn(async move {
                    let record = writer.to_be_bytes();
                    let stored = saver.put(full(Place::root("t"), step, &record)).await;
                    let beside = format!("beside {step}.{writer}");
                    saver.put(full(Place::root(&beside), 0, b"x")).await.unwrap();
                    stored.map(|()| writer)
                })
            });
            let mut winners = Vec::new();
            for writer in writers.collect::<Vec<_>>() {
                match writer.await.unwrap() {
                    Ok(writer) => winners.push(writer),
                    Err(error) => {
                        assert_eq!(error.code(), Code::Stale, "{name}: {error}");
                        assert_eq!(error.thread(), Some("t"), "{name}");
                    }
                }
            }
            assert_eq!(winners.len(), 1, "{name}: step {step}");
            let row = saver.row(Place::root("t"), CheckpointId::new(0, step)).await.unwrap().unwrap();
            assert_eq!(row.record, winners[0].to_be_bytes(), "{name}: step {step}");
        }
    }
}

#[tokio::test]
async fn a_lost_race_says_what_to_do() {
    for Saver { name, saver, .. } in savers().await {
        saver.put(full(Place::root("t"), 3, b"a")).await.unwrap();
        let error = saver.put(full(Place::root("t"), 3, b"b")).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "E_STALE: checkpoint 0.3 was committed by another run; read the thread again before you go on (thread `t`)",
            "{name}"
        );
    }
}

#[tokio::test]
async fn what_needs_no_await_answers_as_put_does() {
    for Saver { name, saver, .. } in savers().await {
        let mut answered = 0;
        for step in 0..200 {
            let put = full(Place::root("t"), step, b"x");
            match saver.try_put(&put) {
                Some(stored) => {
                    stored.unwrap();
                    answered += 1;
                    let again = saver.try_put(&put).map(|again| again.unwrap_err().code());
                    assert!(matches!(again, Some(Code::Stale) | None), "{name}: {again:?}");
                }
                None => saver.put(put).await.unwrap(),
            }
        }
        assert!(answered > 150, "{name}: a run by itself was answered at once only {answered} times");
        assert_eq!(saver.list(Place::root("t"), ListQuery::default()).await.unwrap().len(), 200, "{name}");
    }
}

fn lines() -> impl Strategy<Value = String> {
    let place = prop_oneof![Just("a"), Just("a/n"), Just("b"), Just("b/n")];
    let thread = prop_oneof![Just("a"), Just("b")];
    let id = (0..3u32, 0..9u64).prop_map(|(branch, step)| format!("{branch}.{step}"));
    let optional = |name: &'static str, range: std::ops::Range<u32>| {
        proptest::option::of(range)
            .prop_map(move |number| number.map_or(String::new(), |number| format!(" {name}={number}")))
    };
    let query = (optional("branch", 0..4), optional("before", 0..10), optional("limit", 0..4));
    let write =
        (1..4u32, 0..3u32, "[a-z]{0,3}").prop_map(|(task, slot, bytes)| format!(" {task}:{slot}={bytes}"));
    let put = (place.clone(), id.clone(), any::<bool>(), "[a-z]{1,4}", any::<bool>(), any::<bool>());
    prop_oneof![
        6 => put.prop_map(|(place, id, full, record, segment, clears)| {
            let kind = if full { "full" } else { "delta" };
            let segment = if segment { format!(" segment=s{record}") } else { String::new() };
            let clears = if clears { " clears" } else { "" };
            format!("put {place} {id} {kind} {record}{segment}{clears}")
        }),
        2 => place.clone().prop_map(|place| format!("get {place}")),
        2 => (place.clone(), id.clone()).prop_map(|(place, id)| format!("get {place} {id}")),
        1 => (place.clone(), id.clone()).prop_map(|(place, id)| format!("row {place} {id}")),
        1 => (place.clone(), query).prop_map(|(place, (a, b, c))| format!("list {place}{a}{b}{c}")),
        2 => (place, id, proptest::collection::vec(write, 0..4))
            .prop_map(|(place, id, writes)| format!("writes {place} {id}{}", writes.concat())),
        1 => Just("threads".to_owned()),
        1 => thread.prop_map(|thread| format!("delete {thread}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_answers_as_memory_does(lines in proptest::collection::vec(lines(), 1..60)) {
        let script = lines.join("\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let memory = runtime.block_on(script::run(&MemorySaver::new(), &script));
        let sqlite = runtime.block_on(script::run(&SqliteSaver::in_memory().unwrap(), &script));
        prop_assert_eq!(sqlite, memory);
    }
}
