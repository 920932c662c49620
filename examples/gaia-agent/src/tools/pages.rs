//! The tools `visit_page` and `archive_page`: a page of the web as text.

use std::sync::Arc;

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};

use super::desk::Desk;
use super::kinds::{self, Reader};
use super::readers::{self, Source};
use super::search::below;
use super::{html, work::Work};
use crate::net::Fetched;

/// The most links that are listed.
const LINKS: usize = 80;

/// Opens an address of the web and shows its text: a page with its headings, lists, tables and links, a
/// PDF, or another file with a text.
#[tool]
pub(super) async fn visit_page(
    desk: CallContext<Desk>,
    /// The address, with http or https, such as a search has found.
    url: String,
    /// A word or phrase: the places that have it are shown in place of the text.
    find: Option<String>,
    /// The number of the page to show, for long texts.
    #[default(1)]
    page: usize,
) -> Result<String, ToolError> {
    let fetched = desk.services.guard.fetch(&url).await.map_err(ToolError::failed)?;
    show(&desk, fetched, find, page).await
}

/// Opens an archived copy of a page of the web, as it was on a day.
#[tool]
pub(super) async fn archive_page(
    desk: CallContext<Desk>,
    /// The address of the page.
    url: String,
    /// The day, such as `2021-03-09`; the copy nearest to it is shown.
    date: String,
    /// A word or phrase: the places that have it are shown in place of the text.
    find: Option<String>,
    /// The number of the page to show, for long texts.
    #[default(1)]
    page: usize,
) -> Result<String, ToolError> {
    let day: jiff::civil::Date = date
        .trim()
        .parse()
        .map_err(|_| ToolError::invalid_arguments("`date` is a day such as 2021-03-09"))?;
    // With `id_` the archive sends the page as it was, without its own frame.
    let copy = format!("web/{}id_/{}", day.strftime("%Y%m%d"), url.trim());
    let address = below(&desk.services.addresses.archive, &copy)?;
    let fetched = desk.services.guard.fetch(address.as_str()).await.map_err(ToolError::failed)?;
    show(&desk, fetched, find, page).await
}

/// The text of what was fetched, below its address after redirects.
async fn show(desk: &Desk, fetched: Fetched, find: Option<String>, page: usize) -> Result<String, ToolError> {
    let services = Arc::clone(&desk.services);
    let shown = desk.blocking(move |_, work| {
        let offers = |tool: &str| services.offers(tool);
        let (text, links) = text_of(&fetched, work, &offers)?;
        let shown = readers::page(&text, page, find.as_deref());
        let links = if page <= 1 && find.is_none() { links } else { String::new() };
        Ok(format!("[{}]\n{shown}{links}", fetched.url))
    });
    shown.await?.map_err(|why: String| ToolError::failed(why))
}

/// The text, and a list of the links of a page.
fn text_of(
    fetched: &Fetched,
    work: &Work,
    offers: &dyn Fn(&str) -> bool,
) -> Result<(String, String), String> {
    let name = fetched.name.clone().unwrap_or_default();
    let said = fetched.media_type.as_deref().unwrap_or_default().to_lowercase();
    let (kind, _) = kinds::identify(&name, &fetched.bytes);
    let is_page = kind.reader == Reader::Html || (kind.reader == Reader::Text && said.contains("html"));
    if is_page {
        let label = said.split_once("charset=").map_or("", |(_, label)| label.trim_matches(['"', ' ', ';']));
        let page = html::page(&readers::decode(&fetched.bytes, label), Some(&fetched.url), work)?;
        let links = page.links.iter().take(LINKS).map(|(text, link)| format!("- {text}: {link}\n"));
        let links: String = links.collect();
        let links = if links.is_empty() { links } else { format!("\n\nLinks:\n{links}") };
        return Ok((page.to_text(), links));
    }
    let read = readers::read(&fetched.bytes, Source { path: &name, work, offers, depth: 0 });
    let text =
        read.map_err(|why| format!("{} cannot be shown: {why} `download_file` stores it.", fetched.url))?;
    Ok((text, String::new()))
}
