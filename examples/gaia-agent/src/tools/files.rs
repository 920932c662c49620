//! The tools that list, read and fetch files.

use std::sync::Arc;

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};
use sha2::{Digest, Sha256};

use super::desk::Desk;
use super::kinds::{self, Reader};
use super::readers::{self, Source, Wanted};
use crate::net::Fetched;

/// The longest file that is read.
const LONGEST: u64 = 20 << 20;

/// Lists the files that can be read: those of the current folder and those in `downloads`, with their sizes,
/// kinds and the tools for them.
#[tool]
pub(super) async fn list_files(desk: CallContext<Desk>) -> Result<String, ToolError> {
    let files = desk.blocking(|folders, _| folders.list()).await?;
    let offers = |tool: &str| desk.services.offers(tool);
    let described = files.into_iter().map(|line| {
        let kind = line.rsplit_once(" (").and_then(|(path, _)| kinds::by_name(path));
        match (kind, line.strip_suffix(')')) {
            (Some(kind), Some(line)) => match kind.tools(&offers) {
                tools if tools.is_empty() => format!("{line}; {})", kind.name),
                tools => format!("{line}; {}: {tools})", kind.name),
            },
            _ => line,
        }
    });
    let lines: Vec<_> = described.collect();
    Ok(if lines.is_empty() { "There are no files.".to_owned() } else { lines.join("\n") })
}

/// Reads the text of a file: a plain text, a PDF, a Word document, a presentation with its notes, a web page,
/// or all files of an archive. A file within an archive has a path such as `a.zip/b.txt`.
#[tool]
pub(super) async fn read_file(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The first character to show, counted from 0, for long files.
    #[default(0)]
    start: usize,
    /// A word or phrase: the places that have it are shown in place of the text.
    find: Option<String>,
) -> Result<String, ToolError> {
    let (path, bytes) = desk.read(&path, LONGEST).await?;
    let services = Arc::clone(&desk.services);
    let read = desk.blocking(move |_, work| {
        let source = Source { path: &path, work, offers: &|tool| services.offers(tool), depth: 0 };
        match readers::read(&bytes, source) {
            Ok(text) => Ok(readers::view(&text, start, find.as_deref())),
            Err(why) => Err(ToolError::failed(format!("`{path}` cannot be read: {why}"))),
        }
    });
    read.await?
}

/// Reads a spreadsheet: the cells of one sheet or of all of them, with their rows and columns.
#[tool]
pub(super) async fn read_excel(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The name of the sheet; all sheets if it is left out.
    sheet: Option<String>,
    /// The cells to show, such as `B2:D40`, `B:D` or `C7`; all if it is left out.
    range: Option<String>,
    /// The number of the first row to show, for long sheets.
    #[default(1)]
    start: u32,
    /// A text: only rows that have it are shown.
    find: Option<String>,
    /// Whether to show fills, comments, merged ranges, hidden rows, formulas and formats as well.
    #[default(false)]
    details: bool,
) -> Result<String, ToolError> {
    let (path, bytes) = desk.read(&path, LONGEST).await?;
    let wanted = Wanted { sheet, range, start, find, details };
    let services = Arc::clone(&desk.services);
    let read = desk.blocking(move |_, work| {
        let (kind, _) = kinds::identify(&path, &bytes);
        let read = match kind.reader {
            Reader::Sheet => readers::read_sheets(&bytes, &wanted, work),
            _ => Err(kind.sentence(&|tool| services.offers(tool))),
        };
        read.map_err(|why| ToolError::failed(format!("`{path}` cannot be read: {why}")))
    });
    read.await?
}

/// Downloads a file from the web into `downloads`, and returns its path.
#[tool]
pub(super) async fn download_file(
    desk: CallContext<Desk>,
    /// The address, with http or https. A path alone is one on the server of the evaluation.
    url: String,
    /// The name for the file; that of the server if it is left out.
    name: Option<String>,
) -> Result<String, ToolError> {
    let fetched = desk.services.guard.fetch(&url).await.map_err(ToolError::failed)?;
    let name = file_name(&fetched, name.as_deref());
    let size = fetched.bytes.len();
    let kind = fetched.media_type.unwrap_or_else(|| "of an unknown kind".to_owned());
    let stored = desk.blocking(move |folders, _| folders.store(&name, &fetched.bytes)).await?;
    let path = stored.map_err(ToolError::failed)?;
    Ok(format!("The file is `{path}` ({size} bytes, {kind})."))
}

/// A plain name. The same download has the same name, so a call that runs again changes nothing.
fn file_name(fetched: &Fetched, wanted: Option<&str>) -> String {
    let said = wanted.or(fetched.name.as_deref()).unwrap_or_default();
    let last = said.rsplit(['/', '\\']).next().unwrap_or_default().trim_start_matches('.');
    let is_plain = |letter: &char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ' ');
    let name: String = last.chars().filter(is_plain).take(100).collect();
    match name.trim() {
        "" => {
            let hash = Sha256::digest(fetched.url.as_str());
            format!("download-{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3])
        }
        name => name.to_owned(),
    }
}
