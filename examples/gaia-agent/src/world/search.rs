//! The services that tools search, in the forms of the real ones. The answers are handwritten: nothing was
//! recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};

use super::files::escaped;
use super::{Page, World};

/// The pairs of a query.
fn pairs(RawQuery(query): RawQuery) -> BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://world/?{}", query.unwrap_or_default()));
    url.map(|url| url.query_pairs().into_owned().collect()).unwrap_or_default()
}

/// How many words of a query are in a text, for the order of results.
fn hits(query: &str, text: &str) -> usize {
    let text = text.to_lowercase();
    let words = query.to_lowercase();
    let words = words.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 2);
    words.filter(|word| text.contains(word)).count()
}

/// The things with hits, those with most of them first.
fn found<'w, T>(things: impl Iterator<Item = &'w T>, query: &str, text: impl Fn(&T) -> String) -> Vec<&'w T> {
    let mut counted: Vec<_> = things.map(|thing| (hits(query, &text(thing)), thing)).collect();
    counted.retain(|(count, _)| *count > 0);
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    counted.into_iter().map(|(_, thing)| thing).collect()
}

/// `w/api.php` of MediaWiki: the search, and the text of an article.
pub(super) async fn wikipedia(State(world): State<Arc<World>>, query: RawQuery) -> Json<Value> {
    let asked = pairs(query);
    if let Some(title) = asked.get("page") {
        return Json(match world.articles.get(title) {
            Some(text) => json!({ "parse": { "pageid": 1, "title": title, "text": as_html(text) } }),
            None => {
                json!({ "error": { "code": "missingtitle", "info": "The page you specified doesn't exist." } })
            }
        });
    }
    let query = asked.get("srsearch").cloned().unwrap_or_default();
    let mut titles: Vec<_> = world
        .articles
        .iter()
        // A title counts more than the text.
        .map(|(title, text)| (3 * hits(&query, title) + hits(&query, text), title, text))
        .filter(|(count, _, _)| *count > 0)
        .collect();
    titles.sort_by_key(|(count, title, _)| (std::cmp::Reverse(*count), title.len()));
    let search: Vec<_> = titles
        .iter()
        .take(5)
        .map(|(_, title, text)| {
            let snippet: String = text.chars().take(60).collect();
            json!({ "ns": 0, "title": title, "snippet": format!("<span class=\"searchmatch\">{}</span>", escaped(&snippet)) })
        })
        .collect();
    Json(
        json!({ "batchcomplete": true, "query": { "searchinfo": { "totalhits": search.len() }, "search": search } }),
    )
}

/// The lines of an article, some of them headings, as a page.
fn as_html(text: &str) -> String {
    let line = |line: &str| {
        let text = escaped(line.trim_matches(['=', '*', ' ']));
        match line.chars().take_while(|sign| *sign == '=').count() {
            0 if line.starts_with('*') => format!("<li>{text}</li>"),
            0 => format!("<p>{text}</p>"),
            level => format!("<h{level}>{text}</h{level}>"),
        }
    };
    text.lines().map(line).collect()
}

/// `api/query` of arXiv: a feed of papers.
pub(super) async fn arxiv(State(world): State<Arc<World>>, query: RawQuery) -> Response {
    let asked = pairs(query);
    let query = asked.get("search_query").cloned().unwrap_or_default().replace("all:", "");
    let count = asked.get("max_results").and_then(|count| count.parse().ok()).unwrap_or(10);
    let text =
        |paper: &super::Paper| format!("{} {} {}", paper.title, paper.authors.join(" "), paper.summary);
    let papers = found(world.papers.iter(), &query, text);
    let entries: String = papers
        .into_iter()
        .take(count)
        .map(|paper| {
            let authors: String =
                paper.authors.iter().map(|name| format!("<author><name>{}</name></author>", escaped(name))).collect();
            format!(
                "<entry><id>http://arxiv.org/abs/{}</id><updated>{day}T10:00:00Z</updated><published>{day}T10:00:00Z</published>\
                 <title>{}</title><summary>{}</summary>{authors}\
                 <arxiv:comment xmlns:arxiv=\"http://arxiv.org/schemas/atom\">{}</arxiv:comment></entry>\n",
                escaped(&paper.id),
                escaped(&paper.title),
                escaped(&paper.summary),
                escaped(&paper.comment),
                day = escaped(&paper.submitted)
            )
        })
        .collect();
    let feed = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>ArXiv Query</title>\n{entries}</feed>"
    );
    ([("content-type", "application/atom+xml")], feed).into_response()
}

fn pages<'w>(world: &'w World, query: &str) -> Vec<&'w Page> {
    found(world.pages.iter(), query, |page| format!("{} {}", page.title, page.text))
}

/// `html/` of DuckDuckGo: a page of results.
pub(super) async fn duckduckgo(State(world): State<Arc<World>>, query: RawQuery) -> Html<String> {
    let asked = pairs(query);
    let query = asked.get("q").cloned().unwrap_or_default();
    let results: String = pages(&world, &query)
        .into_iter()
        .map(|page| {
            let mut link = reqwest::Url::parse("https://duckduckgo.com/l/").ok();
            if let Some(link) = &mut link {
                link.query_pairs_mut().append_pair("uddg", &page.url).append_pair("rut", "0");
            }
            let link = link.map(String::from).unwrap_or_default();
            let link = escaped(link.trim_start_matches("https:"));
            format!(
                "<div class=\"result results_links\"><h2 class=\"result__title\"><a rel=\"nofollow\" class=\"result__a\" href=\"{link}\">{}</a></h2>\
                 <a class=\"result__snippet\" href=\"{link}\">{}</a></div>\n",
                escaped(&page.title),
                escaped(&page.text)
            )
        })
        .collect();
    Html(format!("<html><body><div id=\"links\">{results}</div></body></html>"))
}

/// `search` of Tavily.
pub(super) async fn tavily(
    State(world): State<Arc<World>>,
    headers: HeaderMap,
    Json(asked): Json<Value>,
) -> Response {
    let has_key = headers.get("authorization").is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
    if !has_key {
        let error = json!({ "detail": { "error": "Unauthorized: missing or invalid API key." } });
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    let query = asked["query"].as_str().unwrap_or_default();
    let results: Vec<_> = pages(&world, query)
        .into_iter()
        .take(asked["max_results"].as_u64().unwrap_or(5) as usize)
        .map(|page| json!({ "title": page.title, "url": page.url, "content": page.text, "score": 0.9 }))
        .collect();
    Json(json!({ "query": query, "answer": null, "images": [], "results": results, "response_time": 0.1 }))
        .into_response()
}

/// `watch` of YouTube: a page with the key of the player's interface.
pub(super) async fn watch(State(world): State<Arc<World>>, query: RawQuery) -> Html<String> {
    let asked = pairs(query);
    let is_known = asked.get("v").is_some_and(|id| world.videos.contains_key(id));
    let script = if is_known {
        r#"<script>ytcfg.set({"INNERTUBE_API_KEY":"a-key-of-the-page"});</script>"#
    } else {
        ""
    };
    Html(format!("<html><head>{script}</head></html>"))
}

/// `youtubei/v1/player` of YouTube: the tracks of captions.
pub(super) async fn player(
    State(world): State<Arc<World>>,
    query: RawQuery,
    Json(body): Json<Value>,
) -> Response {
    let asked = pairs(query);
    if asked.get("key").map(String::as_str) != Some("a-key-of-the-page") {
        return (StatusCode::BAD_REQUEST, "a key of the page is missing").into_response();
    }
    let id = body["videoId"].as_str().unwrap_or_default();
    let has_lines = world.videos.get(id).is_some_and(|video| !video.lines.is_empty());
    let tracks = match has_lines {
        true => {
            json!([{ "baseUrl": format!("/youtube/api/timedtext?v={id}&lang=en"), "languageCode": "en", "kind": "asr" }])
        }
        false => json!([]),
    };
    Json(json!({ "captions": { "playerCaptionsTracklistRenderer": { "captionTracks": tracks } } }))
        .into_response()
}

/// `api/timedtext` of YouTube: the captions, escaped twice as there.
pub(super) async fn captions(State(world): State<Arc<World>>, query: RawQuery) -> Response {
    let asked = pairs(query);
    let video = asked.get("v").and_then(|id| world.videos.get(id)).cloned().unwrap_or_default();
    let lines: String = video
        .lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let line = escaped(&escaped(line).replace('\'', "&#39;"));
            format!("<text start=\"{}\" dur=\"2\">{line}</text>", 2 * at)
        })
        .collect();
    let document = format!("<?xml version=\"1.0\" encoding=\"utf-8\" ?><transcript>{lines}</transcript>");
    ([("content-type", "text/xml")], document).into_response()
}
