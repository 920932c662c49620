//! What workers post to a relay.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Posts of one worker, in order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    pub(crate) posts: Vec<Post>,
}

/// One event, or the end of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Post {
    pub(crate) graph: String,
    pub(crate) thread: String,
    /// The id of the call, as its caller made it.
    pub(crate) call: String,
    /// Where it comes from: the loop of an invocation, or an attempt of a task.
    pub(crate) source: String,
    /// The execution of the source. An attempt that runs again after a kill is another one, and may say
    /// something else. The loop says the same again when it is replayed, so it has always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) execution: Option<String>,
    pub(crate) post: Posted,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Posted {
    /// An event in its JSON form, and its number in its source, counted from 0.
    Event { seq: u64, event: Value },
    /// The call is over.
    End,
}
