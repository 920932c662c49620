//! Random scripts for stores.

use agentgraph::CheckpointId;
use agentgraph::checkpoint::{Place, Put, RowKind};
use proptest::prelude::*;

pub(crate) fn full(thread: &str, step: u64) -> Put<'_> {
    let place = Place::root(thread);
    let id = CheckpointId::new(0, step);
    Put::new(place, id, RowKind::Full, b"x")
}

pub(crate) fn lines() -> impl Strategy<Value = String> {
    let place = prop_oneof![Just("a"), Just("a/n"), Just("b"), Just("b/n")];
    let thread = prop_oneof![Just("a"), Just("b"), Just("c")];
    let lease = prop_oneof![Just("A"), Just("B")];
    let id = (0..3u32, 0..9u64).prop_map(|(branch, step)| format!("{branch}.{step}"));
    let by = proptest::option::weighted(0.3, lease.clone())
        .prop_map(|lease| lease.map_or(String::new(), |lease| format!(" by={lease}")));
    let optional = |name: &'static str, range: std::ops::Range<u32>| {
        proptest::option::of(range)
            .prop_map(move |number| number.map_or(String::new(), |number| format!(" {name}={number}")))
    };
    let query = (optional("branch", 0..4), optional("before", 0..10), optional("limit", 0..4));
    let bytes = || prop_oneof![6 => "[a-z]{0,3}", 1 => "large:[ab]"];
    let write = (1..4u32, 0..3u32, bytes()).prop_map(|(task, slot, bytes)| format!("{task}:{slot}={bytes}"));
    let writes = proptest::collection::vec(write, 0..4);
    let after = proptest::option::weighted(0.3, id.clone())
        .prop_map(|id| id.map_or(String::new(), |id| format!(" after={id}")));
    let with = proptest::option::weighted(0.2, writes.clone()).prop_map(Option::unwrap_or_default);
    let record = prop_oneof![9 => "[a-z]{1,4}", 1 => "large:[ab]"];
    let put = (place.clone(), id.clone(), any::<[bool; 3]>(), record, by.clone(), (after, with));
    let part = prop_oneof![
        (id.clone(), "[A-Z]{1,3}").prop_map(|(id, record)| format!(" full={id}:{record}")),
        id.clone().prop_map(|id| format!(" unfold={id}")),
        (0..3u32, 0..9u64, 1..9u64)
            .prop_map(|(branch, start, count)| format!(" gone={branch}:{start}..{}", start + count)),
    ];
    prop_oneof![
        8 => put.prop_map(|(place, id, [full, segment, clears], record, by, (after, with))| {
            let kind = if full { "full" } else { "delta" };
            let segment = if segment { format!(" segment=s{record}") } else { String::new() };
            let clears = if clears { " clears" } else { "" };
            let with: String = with.iter().map(|write| format!(" with={write}")).collect();
            format!("put {place} {id} {kind} {record}{segment}{clears}{by}{after}{with}")
        }),
        2 => place.clone().prop_map(|place| format!("get {place}")),
        3 => (place.clone(), id.clone()).prop_map(|(place, id)| format!("get {place} {id}")),
        1 => (place.clone(), id.clone()).prop_map(|(place, id)| format!("row {place} {id}")),
        1 => (place.clone(), query).prop_map(|(place, (a, b, c))| format!("list {place}{a}{b}{c}")),
        3 => (place.clone(), id.clone(), writes, by.clone())
            .prop_map(|(place, id, writes, by)| format!("writes {place} {id} {}{by}", writes.join(" "))),
        1 => Just("threads".to_owned()),
        2 => (proptest::option::of(thread.clone()), optional("limit", 0..3))
            .prop_map(|(after, limit)| format!("waiting{}{limit}", after.map_or(String::new(), |after| format!(" after={after}")))),
        1 => thread.clone().prop_map(|thread| format!("namespaces {thread}")),
        1 => place.clone().prop_map(|place| format!("branches {place}")),
        1 => thread.clone().prop_map(|thread| format!("delete {thread}")),
        1 => (thread.clone(), thread.clone()).prop_map(|(from, to)| format!("copy {from} {to}")),
        3 => (thread.clone(), 0..9u32, 1..5u32, lease.clone(), any::<bool>()).prop_map(
            |(thread, now, length, lease, seize)| {
                let seize = if seize { " seize" } else { "" };
                format!("acquire {thread} {now} {} as {lease}{seize}", now + length)
            }
        ),
        1 => (thread.clone(), lease.clone(), 0..12u32)
            .prop_map(|(thread, lease, until)| format!("renew {thread} {lease} {until}")),
        1 => (thread, lease).prop_map(|(thread, lease)| format!("release {thread} {lease}")),
        2 => (place, proptest::collection::vec(part, 1..4), by)
            .prop_map(|(place, parts, by)| format!("rewrite {place}{}{by}", parts.concat())),
    ]
}
