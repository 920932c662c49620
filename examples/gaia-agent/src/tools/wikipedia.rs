//! The tool `wikipedia`: an article with its tables, a section of it, and as it was on a day.

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::desk::Desk;
use super::readers::view;
use super::search::{below, failed, not_empty, part, read, with};
use super::{html, work::Work};

#[derive(Deserialize)]
struct Hit {
    title: String,
    #[serde(default)]
    snippet: String,
}

#[derive(Deserialize)]
struct Revision {
    revid: u64,
    #[serde(default)]
    timestamp: String,
}

#[derive(Deserialize)]
struct Parsed {
    title: String,
    text: String,
}

/// Looks a subject up in Wikipedia: the text of the best article with its lists and tables, and the titles of
/// others.
#[tool]
pub(super) async fn wikipedia(
    desk: CallContext<Desk>,
    /// The subject, or the title of an article.
    query: String,
    /// The heading of a section, to show that alone.
    section: Option<String>,
    /// The first character to show, counted from 0, for long articles.
    #[default(0)]
    start: usize,
    /// A word or phrase: the places that have it are shown in place of the text.
    find: Option<String>,
    /// A day such as `2022-12-31`: the article as it was at its end.
    date: Option<String>,
) -> Result<String, ToolError> {
    let query = not_empty(&query)?;
    let hits =
        ask(&desk, &[("action", "query"), ("list", "search"), ("srlimit", "5"), ("srsearch", query)]).await?;
    let hits: Vec<Hit> = part(&hits, "/query/search")?.ok_or_else(|| failed("the answer has no list"))?;
    let Some(best) = hits.first() else { return Ok(format!("Wikipedia has no article about `{query}`.")) };
    let revision = match date.as_deref().map(str::trim).filter(|date| !date.is_empty()) {
        Some(date) => Some(revision_of(&desk, &best.title, date).await?),
        None => None,
    };
    let id = revision.as_ref().map(|revision| revision.revid.to_string());
    let which = id.as_deref().map_or(("page", best.title.as_str()), |id| ("oldid", id));
    let parts = [
        ("action", "parse"),
        ("prop", "text"),
        ("redirects", "1"),
        ("disableeditsection", "1"),
        ("disabletoc", "1"),
        which,
    ];
    let article: Option<Parsed> = part(&ask(&desk, &parts).await?, "/parse")?;
    let article =
        article.ok_or_else(|| failed(format!("Wikipedia does not give the article `{}`", best.title)))?;
    let text = desk.blocking(move |_, work| text_of(&article, work)).await?.map_err(failed)?;
    let (text, sections) = (section_of(&text.1, section.as_deref())?, format!("# {}\n", text.0));
    let mut shown = sections + &view(&text, start, find.as_deref());
    let base = &desk.services.addresses.wikipedia;
    let here = address(base, &best.title, id.as_deref())?;
    let at = revision.map(|revision| format!(", as of {}", revision.timestamp)).unwrap_or_default();
    shown += &format!("\n\n[{here}{at}]");
    if hits.len() > 1 {
        shown += "\n\nOther articles:";
        for hit in &hits[1..] {
            let address = address(base, &hit.title, None)?;
            shown += &format!("\n- {}: {}\n  {address}", hit.title, html::text(&hit.snippet));
        }
    }
    Ok(shown)
}

async fn ask(desk: &Desk, pairs: &[(&str, &str)]) -> Result<Value, ToolError> {
    let url = below(&desk.services.addresses.wikipedia, "w/api.php")?;
    let url = with(&with(&url, &[("format", "json"), ("formatversion", "2")]), pairs);
    let answer: Value = read(&desk.services.http.get_text(&url).await.map_err(failed)?)?;
    let said = |part: &str| answer["error"][part].as_str().unwrap_or_default();
    match answer["error"] {
        Value::Null => Ok(answer),
        _ => Err(failed(format!("Wikipedia refused the request ({}): {}", said("code"), said("info")))),
    }
}

/// The last revision at the end of a day.
async fn revision_of(desk: &Desk, title: &str, date: &str) -> Result<Revision, ToolError> {
    let day: jiff::civil::Date =
        date.parse().map_err(|_| ToolError::invalid_arguments("`date` is a day such as 2022-12-31"))?;
    let end = format!("{day}T23:59:59Z");
    let parts = [
        ("action", "query"),
        ("prop", "revisions"),
        ("rvprop", "ids|timestamp"),
        ("rvlimit", "1"),
        ("rvdir", "older"),
    ];
    let url: Vec<_> =
        parts.into_iter().chain([("rvstart", end.as_str()), ("titles", title), ("redirects", "1")]).collect();
    let revision = part(&ask(desk, &url).await?, "/query/pages/0/revisions/0")?;
    revision.ok_or_else(|| failed(format!("the article `{title}` did not exist at the end of {day}")))
}

/// The title and the text of an article.
fn text_of(article: &Parsed, work: &Work) -> Result<(String, String), String> {
    Ok((article.title.clone(), html::page(&article.text, None, work)?.text.trim().to_owned()))
}

/// The level and the name of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let name = line.trim_start_matches('#');
    let level = line.len() - name.len();
    (level > 1 && name.starts_with(' ')).then(|| (level, name.trim()))
}

/// The text of a section with those below it; the whole text, with a list of the sections, if none is named.
fn section_of(text: &str, section: Option<&str>) -> Result<String, ToolError> {
    let names: Vec<&str> = text.lines().filter_map(heading).map(|(_, name)| name).collect();
    let Some(wanted) = section.map(str::trim).filter(|wanted| !wanted.is_empty()) else {
        let list =
            if names.is_empty() { String::new() } else { format!("\n\n[sections: {}]", names.join("; ")) };
        return Ok(format!("{text}{list}"));
    };
    let mut lines = text
        .lines()
        .skip_while(|line| !heading(line).is_some_and(|(_, name)| name.eq_ignore_ascii_case(wanted)));
    let Some(first) = lines.next() else {
        return Err(failed(format!("there is no section `{wanted}`; there are {}", names.join("; "))));
    };
    let level = heading(first).map_or(0, |(level, _)| level);
    let rest = lines.take_while(|line| heading(line).is_none_or(|(below, _)| below > level));
    Ok(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
}

/// The address of an article for people, which `visit_page` opens as well.
fn address(base: &Url, title: &str, revision: Option<&str>) -> Result<Url, ToolError> {
    let url = below(base, &format!("wiki/{}", title.replace(' ', "_").replace('?', "%3F")))?;
    Ok(revision.map_or(url.clone(), |id| with(&url, &[("oldid", id)])))
}
