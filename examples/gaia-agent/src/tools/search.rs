//! The tools that search: arXiv, DuckDuckGo and Tavily; and what they share.

use agentgraph::CallContext;
use agentgraph_llm::{ToolError, tool};
use reqwest::Url;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use super::{feed, html};

pub(super) fn failed(why: impl std::fmt::Display) -> ToolError {
    ToolError::failed(why)
}

/// The address of a service with a path below it.
pub(super) fn below(base: &Url, path: &str) -> Result<Url, ToolError> {
    let base = base.as_str().trim_end_matches('/');
    Url::parse(&format!("{base}/{path}")).map_err(failed)
}

/// The address with more of a query.
pub(super) fn with(url: &Url, pairs: &[(&str, &str)]) -> Url {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    url
}

pub(super) fn not_empty(query: &str) -> Result<&str, ToolError> {
    match query.trim() {
        "" => Err(ToolError::invalid_arguments("`query` is empty")),
        query => Ok(query),
    }
}

/// Searches arXiv for papers: title, authors, dates and abstract of each.
#[tool]
pub(super) async fn arxiv_search(
    desk: CallContext<Desk>,
    /// Words of the title, the abstract or the authors, or arXiv's own syntax such as `au:hinton AND
    /// ti:dropout`.
    query: String,
    /// How many papers, up to 10.
    #[default(5)]
    max_results: u8,
) -> Result<String, ToolError> {
    let query = not_empty(&query)?;
    let query = if query.contains(':') { query.to_owned() } else { format!("all:{query}") };
    let http = &desk.services.http;
    let url = below(&desk.services.addresses.arxiv, "api/query")?;
    let count = max_results.clamp(1, 10).to_string();
    let url = with(&url, &[("search_query", &query), ("start", "0"), ("max_results", &count)]);
    let text = http.get_text(&url).await.map_err(failed)?;
    let papers = feed::papers(&text).map_err(failed)?;
    if papers.is_empty() {
        return Ok(format!("arXiv has no paper for `{query}`."));
    }
    Ok(papers.join("\n\n"))
}

/// Searches the web with DuckDuckGo: title, address and a line of each page.
#[tool]
pub(super) async fn duckduckgo_search(
    desk: CallContext<Desk>,
    /// The words to search for.
    query: String,
) -> Result<String, ToolError> {
    let query = not_empty(&query)?;
    let http = &desk.services.http;
    let url = below(&desk.services.addresses.duckduckgo, "html/")?;
    let page = http.get_text(&with(&url, &[("q", query)])).await.map_err(failed)?;
    let results = html::results(&page);
    if results.is_empty() {
        let is_refused = page.contains("anomaly") || page.contains("captcha");
        let why =
            if is_refused { "DuckDuckGo asks for a person: use another search" } else { "no page was found" };
        return if is_refused { Err(failed(why)) } else { Ok(format!("For `{query}`, {why}.")) };
    }
    Ok(results.join("\n\n"))
}

#[derive(Deserialize)]
struct TavilyAnswer {
    answer: Option<String>,
    #[serde(default)]
    results: Vec<TavilyResult>,
}

#[derive(Deserialize)]
struct TavilyResult {
    title: String,
    url: String,
    #[serde(default)]
    content: String,
}

/// Searches the web with Tavily, which also summarises: a short answer, and the content of the best pages.
#[tool]
pub(super) async fn tavily_search(
    desk: CallContext<Desk>,
    /// The question or the words to search for.
    query: String,
    /// How many pages, up to 10.
    #[default(5)]
    max_results: u8,
) -> Result<String, ToolError> {
    let query = not_empty(&query)?;
    let services = &desk.services;
    let key = services.tavily_key.as_ref().ok_or_else(|| failed("there is no TAVILY_API_KEY"))?;
    let url = below(&services.addresses.tavily, "search")?;
    let body = json!({ "query": query, "max_results": max_results.clamp(1, 10), "include_answer": true });
    let request = services.http.post(&url, &body).bearer_auth(key.expose_secret());
    let found: TavilyAnswer = read(&services.http.text(&url, request).await.map_err(failed)?)?;
    let answer =
        found.answer.filter(|answer| !answer.trim().is_empty()).map(|answer| format!("Answer: {answer}"));
    let pages =
        found.results.iter().map(|page| format!("{}\n{}\n{}", page.title, page.url, page.content.trim()));
    let all: Vec<_> = answer.into_iter().chain(pages).collect();
    Ok(if all.is_empty() { format!("For `{query}`, no page was found.") } else { all.join("\n\n") })
}

pub(super) fn read<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, ToolError> {
    serde_json::from_str(text)
        .map_err(|error| failed(format!("the service's answer has another form: {error}")))
}

/// A part of an answer, by its JSON pointer; `None` if the answer has no such part.
pub(super) fn part<T: for<'de> Deserialize<'de>>(answer: &Value, path: &str) -> Result<Option<T>, ToolError> {
    answer.pointer(path).map(T::deserialize).transpose().map_err(failed)
}
