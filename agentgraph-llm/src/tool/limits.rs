//! Limits of one tool: the time of a call and the size of its result.

use std::time::Duration;

use async_trait::async_trait;

use super::{StateType, Tool, ToolCall, ToolError, ToolOutput, ToolSpec};
use crate::json::RawJson;
use crate::message::Block;

/// Limits for any tool.
///
/// ```
/// use agentgraph_llm::prelude::*;
/// # use schemars::JsonSchema;
/// use std::time::Duration;
/// # #[derive(serde::Deserialize, JsonSchema)]
/// # struct Query { text: String }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let search = FnTool::new("search", "Searches.", async |query: Query| {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     Ok::<_, ToolError>(query.text)
/// });
/// let search = search.timeout(Duration::from_secs(5)).max_result_bytes(10_000);
///
/// let call = ToolCall::detached("call-1", "search");
/// let input = RawJson::parse_text(r#"{"text": "tide"}"#).unwrap();
/// let error = search.call(&input, &call).await.unwrap_err();
/// assert_eq!(error.to_string(), "the tool took longer than 5s and was stopped");
/// # }
/// ```
pub trait ToolExt: Tool + Sized {
    /// Stops a call that takes longer. The model reads that it failed.
    fn timeout(self, limit: Duration) -> LimitedTool<Self> {
        LimitedTool { tool: self, timeout: Some(limit), max_bytes: None }
    }

    /// Cuts a result that is larger, and says so at its end. Text counts as UTF-8; other blocks count with
    /// their JSON, and are left out whole.
    fn max_result_bytes(self, bytes: usize) -> LimitedTool<Self> {
        LimitedTool { tool: self, timeout: None, max_bytes: Some(bytes) }
    }
}

impl<T: Tool> ToolExt for T {}

/// A tool with limits: see [`ToolExt`].
#[derive(Clone, Debug)]
pub struct LimitedTool<T> {
    tool: T,
    timeout: Option<Duration>,
    max_bytes: Option<usize>,
}

impl<T> LimitedTool<T> {
    /// As [`ToolExt::timeout`].
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// As [`ToolExt::max_result_bytes`].
    pub fn max_result_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }
}

#[async_trait]
impl<T: Tool> Tool for LimitedTool<T> {
    fn spec(&self) -> ToolSpec {
        self.tool.spec()
    }

    fn state(&self) -> Option<StateType> {
        self.tool.state()
    }

    async fn call(&self, input: &RawJson, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let running = self.tool.call(input, call);
        let mut output = match self.timeout {
            None => running.await?,
            Some(limit) => tokio::time::timeout(limit, running).await.map_err(|_| too_slow(limit))??,
        };
        if let Some(bytes) = self.max_bytes {
            output.content = cut(output.content, bytes);
        }
        Ok(output)
    }
}

fn too_slow(limit: Duration) -> ToolError {
    ToolError::Failed(format!("the tool took longer than {limit:?} and was stopped"))
}

/// The blocks up to the limit, and a note about the rest.
fn cut(content: Vec<Block>, limit: usize) -> Vec<Block> {
    let total: usize = content.iter().map(size).sum();
    if total <= limit {
        return content;
    }
    let mut kept = Vec::with_capacity(content.len());
    let mut room = limit;
    for mut block in content {
        let bytes = size(&block);
        if bytes <= room {
            room -= bytes;
            kept.push(block);
            continue;
        }
        if let Block::Text(text) = &mut block {
            text.text.truncate(char_boundary(&text.text, room));
            room -= text.text.len();
            kept.push(block);
        }
        break;
    }
    kept.push(Block::text(format!(
        "[the result was cut: {} of {total} bytes are shown; ask for less at a time]",
        limit - room
    )));
    kept
}

fn size(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.text.len(),
        other => serde_json::to_vec(other).map_or(0, |json| json.len()),
    }
}

/// The last character boundary at or before `index`.
fn char_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_result_is_a_prefix_within_the_limit(texts in prop::collection::vec(".{0,12}", 0..5), limit in 0usize..40) {
            let whole: String = texts.concat();
            let blocks = cut(texts.into_iter().map(Block::text).collect(), limit);
            let shown: Vec<_> = blocks.iter().filter_map(Block::as_text).collect();
            if whole.len() <= limit {
                prop_assert_eq!(shown.concat(), whole);
            } else {
                let kept = shown[..shown.len() - 1].concat();
                prop_assert!(whole.starts_with(&kept) && kept.len() <= limit && limit - kept.len() < 4);
                let note = shown[shown.len() - 1];
                let sizes = format!("{} of {} bytes", kept.len(), whole.len());
                prop_assert!(note.contains(&sizes), "{}", note);
            }
        }
    }
}
