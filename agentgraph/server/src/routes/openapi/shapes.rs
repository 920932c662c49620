//! The shapes of bodies and answers, for the document alone: routes read and write JSON. Answers have no
//! other fields, so that a test of recorded answers finds one that is missing here; bodies may have more.
#![expect(dead_code, reason = "their fields are read by the derive")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

pub(super) type Anything = Value;
pub(super) type Object = Map<String, Value>;
pub(super) type Document = Object;

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum ThreadStatus {
    Idle,
    Busy,
    Interrupted,
    Error,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum RunStatus {
    Pending,
    Running,
    Error,
    Success,
    Timeout,
    Interrupted,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(super) enum Strategy {
    Reject,
    Enqueue,
    Interrupt,
    Rollback,
}

macro_rules! shapes {
    (#[$about:meta] $($name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty),* $(,)? })*) => { $(
        #[derive(JsonSchema)]
        #[$about]
        pub(super) struct $name { $($(#[$of_field])* $field: $type),* }
    )* };
}

shapes! {
    #[schemars(deny_unknown_fields)]
    Health { ok: bool }
    Failure { detail: String, code: Option<String> }
    Info { version: String, langgraph_py_version: Option<String>, flags: Object, host: Object }
    Assistant {
        assistant_id: String, graph_id: String, created_at: String, updated_at: String, config: Object,
        context: Object, metadata: Object, name: String, description: Option<String>, version: u64,
    }
    Drawing { nodes: Vec<Object>, edges: Vec<Object> }
    Schemas {
        graph_id: String, input_schema: Option<Object>, output_schema: Option<Object>,
        state_schema: Option<Object>, config_schema: Option<Object>, context_schema: Option<Object>,
    }
    Thread {
        thread_id: String, created_at: String, updated_at: String, state_updated_at: String, metadata: Object,
        status: ThreadStatus, config: Object, error: Option<Object>, values: Option<Object>,
        interrupts: BTreeMap<String, Vec<Interrupt>>,
    }
    Interrupt { id: String, value: Value }
    Checkpoint { thread_id: String, checkpoint_ns: String, checkpoint_id: Option<String> }
    Task {
        id: String, name: String, path: Vec<String>, error: Option<String>, interrupts: Vec<Interrupt>,
        checkpoint: Option<Checkpoint>, state: Option<Box<ThreadState>>, result: Option<Object>,
    }
    ThreadState {
        values: Object, next: Vec<String>, tasks: Vec<Task>, interrupts: Vec<Interrupt>,
        metadata: Option<Object>, created_at: Option<String>, checkpoint: Option<Checkpoint>, parent_checkpoint: Option<Checkpoint>,
        checkpoint_id: Option<String>, parent_checkpoint_id: Option<String>,
    }
    Changed { checkpoint: Checkpoint, configurable: Checkpoint, checkpoint_id: String }
    Reply {
        id: Value, #[schemars(rename = "type")] kind: String, result: Option<Object>, meta: Option<Object>,
        error: Option<String>, message: Option<String>,
    }
    Run {
        run_id: String, thread_id: String, assistant_id: String, created_at: String, updated_at: String,
        status: RunStatus, metadata: Object, kwargs: Object, multitask_strategy: Strategy,
    }
    Item {
        namespace: Vec<String>, key: String, value: Object, created_at: String, updated_at: String,
        score: Option<f64>,
    }
    Found { items: Vec<Item> }
    Namespaces { namespaces: Vec<Vec<String>> }
}

shapes! {
    #[schemars()]
    NewAssistant {
        graph_id: String, assistant_id: Option<String>, name: Option<String>, description: Option<String>,
        config: Option<Object>, context: Option<Object>, metadata: Option<Object>, if_exists: Option<String>,
    }
    AssistantChange {
        graph_id: Option<String>, name: Option<String>, description: Option<String>, config: Option<Object>,
        context: Option<Object>, metadata: Option<Object>,
    }
    Version { version: u64 }
    Search {
        limit: Option<u64>, offset: Option<u64>, ids: Option<Vec<String>>, metadata: Option<Object>,
        values: Option<Object>, status: Option<String>, graph_id: Option<String>, name: Option<String>,
        sort_by: Option<String>, sort_order: Option<String>, select: Option<Vec<String>>,
        extract: Option<BTreeMap<String, String>>,
    }
    NewThread {
        thread_id: Option<String>, metadata: Option<Object>, graph_id: Option<String>,
        if_exists: Option<String>, supersteps: Option<Vec<Object>>,
    }
    ThreadChange { metadata: Option<Object> }
    StateChange {
        values: Option<Object>, as_node: Option<String>, checkpoint: Option<Object>,
        checkpoint_id: Option<String>,
    }
    At { checkpoint: Option<Object>, checkpoint_id: Option<String>, subgraphs: Option<bool> }
    History {
        limit: Option<u64>, before: Option<Value>, metadata: Option<Object>, checkpoint: Option<Object>,
        select: Option<Vec<String>>,
    }
    Command { id: i64, method: String, params: Option<Object> }
    Following {
        channels: Vec<String>, namespaces: Option<Vec<Vec<String>>>, depth: Option<u64>, since: Option<u64>,
    }
    NewRun {
        assistant_id: String, input: Option<Object>, command: Option<RunCommand>, checkpoint: Option<Object>,
        checkpoint_id: Option<String>, config: Option<Object>, context: Option<Object>,
        metadata: Option<Object>, stream_mode: Option<Value>, stream_subgraphs: Option<bool>,
        stream_resumable: Option<bool>, interrupt_before: Option<Value>, interrupt_after: Option<Value>,
        durability: Option<String>, multitask_strategy: Option<Strategy>, on_disconnect: Option<String>,
        on_completion: Option<String>, if_not_exists: Option<String>, after_seconds: Option<f64>,
        strict_resume: Option<bool>,
    }
    RunCommand { resume: Option<Value>, update: Option<Value>, goto: Option<Value> }
    Cancelled { status: Option<String>, thread_id: Option<String>, run_ids: Option<Vec<String>> }
    NewItem { namespace: Vec<String>, key: String, value: Object, index: Option<Value>, ttl: Option<f64> }
    ItemPlace { namespace: Vec<String>, key: String }
    ItemSearch {
        namespace_prefix: Option<Vec<String>>, filter: Option<Object>, query: Option<String>,
        limit: Option<u64>, offset: Option<u64>, refresh_ttl: Option<bool>,
    }
    Listing {
        prefix: Option<Vec<String>>, suffix: Option<Vec<String>>, max_depth: Option<u64>, limit: Option<u64>,
        offset: Option<u64>,
    }
}
