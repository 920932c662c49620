//! The needs of a driven run as bytes, in order: what a durable engine compares on replay.

use agentgraph::host::{Need, NeedKind, StoreChange};

fn bytes(value: &impl serde::Serialize) -> Vec<u8> {
    rmp_serde::to_vec_named(value).unwrap()
}

pub fn bytes_of(needs: &[Need]) -> Vec<u8> {
    let mut all = Vec::new();
    for need in needs {
        all.extend(need.id.to_u64().to_be_bytes());
        match &need.kind {
            NeedKind::Task(call) => {
                let mut call = call.clone();
                call.encode_state().unwrap();
                all.extend(bytes(&call));
            }
            NeedKind::Store(StoreChange { set, clear, commit, .. }) => {
                all.extend(bytes(&(set, clear, commit)))
            }
            NeedKind::Timer(duration) => all.extend(bytes(duration)),
            _ => all.extend(b"withdrawn"),
        }
    }
    all
}
