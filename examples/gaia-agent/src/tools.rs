//! The seventeen tools of the agent. Their names and arguments are what a model sees; what they work with is
//! the [`Desk`] of the question.
//!
//! A tool without its key is not offered, and neither is one that the person has not allowed.

mod arithmetic;
mod desk;
mod feed;
mod files;
mod folders;
mod html;
mod kinds;
mod media;
mod numbers;
mod pages;
mod python;
mod readers;
mod search;
mod wikipedia;
mod work;
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
    let python = services.python.as_ref().map(|python| python.timeout).unwrap_or_default();
    let python = python + Duration::from_secs(10);
    let all: [Arc<dyn Tool>; 17] = [
        limited(search::duckduckgo_search(), SEARCH),
        limited(search::tavily_search(), SEARCH),
        limited(pages::visit_page(), MEDIA),
        limited(pages::archive_page(), MEDIA),
        limited(wikipedia::wikipedia(), SEARCH),
        limited(youtube::youtube_transcript(), SEARCH),
        limited(search::arxiv_search(), SEARCH),
        limited(files::list_files(), FILE),
        limited(files::read_file(), FILE),
        limited(files::read_excel(), FILE),
        limited(files::download_file(), MEDIA),
        limited(python::execute_python_file(), python),
        limited(media::understand_video(), MEDIA),
        limited(media::understand_audio(), MEDIA),
        limited(media::analyze_image(), MEDIA),
        limited(calculator(), FILE),
        limited(python::python_repl(), python),
    ];
    all.into_iter().filter(|tool| services.offers(&tool.spec().name)).collect()
}

/// A sentence about a file: its kind, judged by its name, and the tools for it that these services offer.
pub(crate) fn about_file(name: &str, services: &Services) -> String {
    match kinds::by_name(name) {
        Some(kind) => kind.sentence(&|tool| services.offers(tool)),
        None => "`read_file` shows its text, or says what it is.".to_owned(),
    }
}

/// The kind of a file by its content, in words; `None` for a text, and for data of an unknown kind.
///
/// ```
/// assert_eq!(gaia_agent::tools::kind_by_content(b"%PDF-1.7"), Some("a PDF"));
/// ```
pub fn kind_by_content(content: &[u8]) -> Option<&'static str> {
    kinds::by_content(content).map(|kind| kind.name)
}

fn limited(tool: impl Tool + 'static, time: Duration) -> Arc<dyn Tool> {
    Arc::new(tool.timeout(time).max_result_bytes(RESULT))
}

#[cfg(test)]
mod tests;
