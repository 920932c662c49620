//! The tools that list, read and fetch files.

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};
use sha2::{Digest, Sha256};

use super::desk::Desk;
use super::{documents, sheets};
use crate::net::Fetched;

/// The longest file that is read.
const LONGEST: u64 = 20 << 20;
/// The most characters of a file that one call shows.
const SHOWN: usize = 30_000;

/// Lists the files that can be read: those of the current folder and those in `downloads`, with their sizes.
#[tool]
pub(super) async fn list_files(desk: CallContext<Desk>) -> Result<String, ToolError> {
    let files = desk.blocking(super::folders::Folders::list).await?;
    Ok(if files.is_empty() { "There are no files.".to_owned() } else { files.join("\n") })
}

/// Reads a text file, or the text of a PDF.
#[tool]
pub(super) async fn read_file(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The first character to show, counted from 0, for long files.
    #[default(0)]
    start: usize,
) -> Result<String, ToolError> {
    let (path, bytes) = desk.read(&path, LONGEST).await?;
    let text = desk.blocking(move |_| documents::read_text(&bytes)).await?;
    let text = text.map_err(|why| ToolError::failed(format!("`{path}` cannot be read: {why}")))?;
    Ok(part(&text, start))
}

/// Reads a spreadsheet: the cells of one sheet or of all of them.
#[tool]
pub(super) async fn read_excel(
    desk: CallContext<Desk>,
    /// The path of the file, as `list_files` shows it.
    path: String,
    /// The name of the sheet; all sheets if it is left out.
    sheet: Option<String>,
    /// The first character to show, counted from 0, for long files.
    #[default(0)]
    start: usize,
) -> Result<String, ToolError> {
    let (path, bytes) = desk.read(&path, LONGEST).await?;
    let text = desk.blocking(move |_| sheets::read_sheets(&bytes, sheet.as_deref())).await?;
    let text = text.map_err(|why| ToolError::failed(format!("`{path}` cannot be read: {why}")))?;
    Ok(part(&text, start))
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
    let stored = desk.blocking(move |folders| folders.store(&name, &fetched.bytes)).await?;
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

/// The part of a text that one call shows.
pub(super) fn part(text: &str, start: usize) -> String {
    let total = text.chars().count();
    let shown: String = text.chars().skip(start).take(SHOWN).collect();
    let end = start + shown.chars().count();
    match (start, end) {
        (0, end) if end == total => {
            if shown.is_empty() {
                "[the file is empty]".to_owned()
            } else {
                shown
            }
        }
        (start, _) if start >= total => {
            format!("[the text has {total} characters: there is nothing at {start}]")
        }
        _ => format!("{shown}\n[characters {start} to {end} of {total}: set `start` for others]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(said: Option<&str>, wanted: Option<&str>) -> String {
        let url = "https://files.example/report".parse().unwrap();
        let fetched = Fetched { url, media_type: None, name: said.map(str::to_owned), bytes: Vec::new() };
        file_name(&fetched, wanted)
    }

    #[test]
    fn names_of_downloads_are_plain_and_lead_nowhere() {
        assert_eq!(named(Some("report.pdf"), None), "report.pdf");
        assert_eq!(named(Some("report.pdf"), Some("my report.pdf")), "my report.pdf");
        for said in
            ["../../etc/passwd", "/etc/passwd", "..\\..\\passwd", ".passwd", "pass\0wd", "pa/../passwd"]
        {
            assert_eq!(named(Some(said), None), "passwd", "{said:?}");
        }
        for said in [None, Some(""), Some(".."), Some("/"), Some("\u{202e}"), Some("...")] {
            let name = named(said, None);
            assert!(name.starts_with("download-") && name == named(said, None), "{said:?}: {name}");
        }
        assert_eq!(named(Some(&"a".repeat(500)), None).len(), 100);
    }

    #[test]
    fn a_long_text_is_shown_in_parts() {
        let text = "é".repeat(SHOWN + 10);
        assert!(
            part(&text, 0)
                .ends_with(&format!("[characters 0 to {SHOWN} of {}: set `start` for others]", SHOWN + 10))
        );
        assert!(part(&text, SHOWN).starts_with(&"é".repeat(10)));
        assert!(part(&text, usize::MAX / 2).contains("nothing"));
        assert_eq!((part("", 0), part("a", 0)), ("[the file is empty]".to_owned(), "a".to_owned()));
    }
}
