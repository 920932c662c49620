//! The fifteen tools of the agent. Their names and arguments are what a model sees; what they work with is
//! the [`Desk`] of the question.
//!
//! A tool without its key is not offered, and neither is one that the person has not allowed.

mod arithmetic;
mod desk;
mod documents;
mod feed;
mod files;
mod folders;
mod html;
mod media;
mod numbers;
mod python;
mod search;
mod sheets;
mod youtube;

use std::sync::Arc;
use std::time::Duration;

use agentgraph_llm::{Tool, ToolError, ToolExt, tool};

pub(crate) use arithmetic::evaluate;
pub use desk::{Desk, Services};
pub use folders::{FileError, Folders, FoundFile};

/// The longest time of a call, and the most bytes of its result.
const SEARCH: Duration = Duration::from_secs(60);
const MEDIA: Duration = Duration::from_secs(180);
const FILE: Duration = Duration::from_secs(60);
const RESULT: usize = 60_000;

/// The names of all tools, in the order in which they are offered.
pub const NAMES: [&str; 15] = [
    "duckduckgo_search",
    "tavily_search",
    "wikipedia",
    "youtube_transcript",
    "arxiv_search",
    "list_files",
    "read_file",
    "read_excel",
    "download_file",
    "execute_python_file",
    "understand_video",
    "understand_audio",
    "analyze_image",
    "calculator",
    "python_repl",
];

/// Calculates the value of an arithmetic expression: `+ - * / // % **`, brackets, and functions such as
/// `sqrt`, `round`, `log`, `sin`, `max`, `sum`, `gcd` and `factorial`.
#[tool]
fn calculator(
    /// The expression, such as `(3 + 4) * sqrt(16)`. Numbers have no thousands separators.
    expression: String,
) -> Result<String, ToolError> {
    evaluate(&expression).map_err(ToolError::failed)
}

/// The tools that these services offer.
pub fn offered(services: &Services) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![limited(search::duckduckgo_search(), SEARCH)];
    if services.tavily_key.is_some() {
        tools.push(limited(search::tavily_search(), SEARCH));
    }
    tools.push(limited(search::wikipedia(), SEARCH));
    tools.push(limited(youtube::youtube_transcript(), SEARCH));
    tools.push(limited(search::arxiv_search(), SEARCH));
    tools.push(limited(files::list_files(), FILE));
    tools.push(limited(files::read_file(), FILE));
    tools.push(limited(files::read_excel(), FILE));
    tools.push(limited(files::download_file(), MEDIA));
    let python = services.python.as_ref().map(|python| python.timeout + Duration::from_secs(10));
    if let Some(limit) = python {
        tools.push(limited(python::execute_python_file(), limit));
    }
    if services.media.is_some() {
        tools.push(limited(media::understand_video(), MEDIA));
        tools.push(limited(media::understand_audio(), MEDIA));
        tools.push(limited(media::analyze_image(), MEDIA));
    }
    tools.push(limited(calculator(), FILE));
    if let Some(limit) = python {
        tools.push(limited(python::python_repl(), limit));
    }
    tools
}

fn limited(tool: impl Tool + 'static, time: Duration) -> Arc<dyn Tool> {
    Arc::new(tool.timeout(time).max_result_bytes(RESULT))
}
