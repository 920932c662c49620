//! Web pages as readable text, and the results in a page of DuckDuckGo. Pure, and tolerant: a page that
//! looks different has less text and no results.
//!
//! A page is read as tokens; no tree is made, so depth costs nothing.

use std::cell::RefCell;

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::states::State;
use html5ever::tokenizer::{
    BufferQueue, StartTag, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;

use super::work::Work;

/// The most results that are read.
const MOST: usize = 10;
/// The most bytes of a page's text, and the most links.
const TEXT: usize = 8 << 20;
const LINKS: usize = 1_000;
/// The bytes that are read between two looks at the clock.
const PIECE: usize = 64 << 10;

/// Elements that have no readable text.
const SILENT: [&str; 8] = ["script", "style", "template", "svg", "iframe", "object", "noembed", "noframes"];

/// A part of a page.
enum Part<'p> {
    Open(&'p Tag),
    Close(&'p str),
    Text(&'p str),
}

struct Sink<F>(RefCell<F>);

impl<F: FnMut(Part<'_>)> TokenSink for Sink<F> {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut heard = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == StartTag => {
                heard(Part::Open(&tag));
                match &*tag.name {
                    "script" => return TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "iframe" | "noembed" | "noframes" | "xmp" => {
                        return TokenSinkResult::RawData(RawKind::Rawtext);
                    }
                    "title" | "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => {}
                }
            }
            Token::TagToken(tag) => heard(Part::Close(&tag.name)),
            Token::CharacterTokens(text) => heard(Part::Text(&text)),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Calls a function with each part of a page.
fn scan(page: &str, state: Option<State>, work: &Work, heard: impl FnMut(Part<'_>)) -> Result<(), String> {
    let options = TokenizerOpts { initial_state: state, ..TokenizerOpts::default() };
    let tokenizer = Tokenizer::new(Sink(RefCell::new(heard)), options);
    let queue = BufferQueue::default();
    let mut rest = page;
    while !rest.is_empty() {
        work.check()?;
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        queue.push_back(StrTendril::from(&rest[..end]));
        let _ = tokenizer.feed(&queue);
        rest = &rest[end..];
    }
    tokenizer.end();
    Ok(())
}

fn attribute<'t>(tag: &'t Tag, name: &str) -> Option<&'t str> {
    let name = LocalName::from(name);
    tag.attrs.iter().find(|attribute| attribute.name.local == name).map(|attribute| &*attribute.value)
}

/// A page as text: headings, lists and tables keep their form.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) text: String,
    /// The text and the address of each link, once.
    pub(super) links: Vec<(String, String)>,
}

impl Page {
    /// The title and the text.
    pub(super) fn to_text(&self) -> String {
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = self.text.trim();
        let is_heading = text.lines().next().is_some_and(|line| line.trim_start_matches('#').trim() == title);
        if title.is_empty() || is_heading { text.to_owned() } else { format!("# {title}\n\n{text}") }
    }
}

/// The text of a page; links are complete with the address of the page.
pub(super) fn page(html: &str, base: Option<&Url>, work: &Work) -> Result<Page, String> {
    let mut writer = Writer::default();
    scan(html, None, work, |part| match part {
        Part::Open(tag) => writer.open(tag, base),
        Part::Close(name) => writer.close(name),
        Part::Text(text) => writer.write(text),
    })?;
    Ok(writer.page)
}

#[derive(Default)]
struct Writer {
    page: Page,
    /// The silent element that is open, and how many of its name.
    silent: Option<(String, usize)>,
    is_title: bool,
    is_plain: bool,
    /// The counts of open lists; `None` for a list with points.
    lists: Vec<Option<u32>>,
    /// The cells of a row are on one line. A table within a cell begins anew.
    cells: Vec<Option<usize>>,
    link: Option<(String, usize)>,
    /// A mark of a heading or of a list waits for its text.
    is_marked: bool,
}

impl Writer {
    fn open(&mut self, tag: &Tag, base: Option<&Url>) {
        let name = &*tag.name;
        if let Some((open, count)) = &mut self.silent {
            *count += usize::from(open == name);
            return;
        }
        match name {
            "title" if self.page.title.is_empty() => self.is_title = true,
            name if SILENT.contains(&name) && !tag.self_closing => self.silent = Some((name.to_owned(), 1)),
            "br" => self.new_line(1),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.new_line(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.page.text += &format!("{} ", "#".repeat(level));
                self.is_marked = true;
            }
            "ol" | "ul" => {
                self.new_line(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((name == "ol").then_some(0));
            }
            "li" => self.item(),
            "table" => {
                self.new_line(2);
                self.cells.push(None);
            }
            "tr" => {
                self.end_row();
                self.new_line(1);
            }
            "td" | "th" => {
                self.end_cell();
                let columns =
                    attribute(tag, "colspan").and_then(|count| count.trim().parse().ok()).unwrap_or(1);
                if let Some(cell) = self.cells.last_mut() {
                    if self.page.text.ends_with('\n') {
                        self.page.text.push_str("| ");
                    }
                    *cell = Some(usize::clamp(columns, 1, 50));
                }
            }
            "img" => {
                if let Some(words) = attribute(tag, "alt").map(str::trim).filter(|words| !words.is_empty()) {
                    self.write(&format!(" [picture: {words}] "));
                }
            }
            "a" => {
                let whole = |link: &str| match base {
                    Some(base) => base
                        .join(link)
                        .ok()
                        .filter(|url| matches!(url.scheme(), "http" | "https"))
                        .map(String::from),
                    None => Some(link.to_owned()),
                };
                self.link = attribute(tag, "href").and_then(whole).map(|link| (link, self.page.text.len()));
            }
            name => self.border(name),
        }
        self.is_plain |= name == "pre";
    }

    fn close(&mut self, name: &str) {
        if let Some((open, count)) = &mut self.silent {
            *count -= usize::from(open == name);
            if *count == 0 {
                self.silent = None;
            }
            return;
        }
        match name {
            "title" => self.is_title = false,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.new_line(1),
            "ol" | "ul" => {
                self.lists.pop();
                self.new_line(if self.lists.is_empty() { 2 } else { 1 });
            }
            "tr" => self.end_row(),
            "td" | "th" => self.end_cell(),
            "table" => {
                self.end_row();
                self.cells.pop();
                self.new_line(2);
            }
            "a" => self.end_link(),
            name => self.border(name),
        }
        self.is_plain &= name != "pre";
    }

    /// Elements with an empty line around them, and those that begin and end a line.
    fn border(&mut self, name: &str) {
        match name {
            "p" | "ul" | "ol" | "dl" | "table" | "blockquote" | "pre" | "body" => self.new_line(2),
            "div" | "section" | "article" | "header" | "footer" | "main" | "aside" | "nav" | "form"
            | "figure" | "figcaption" | "dt" | "dd" | "address" | "details" | "summary" | "fieldset"
            | "hr" | "option" | "caption" => self.new_line(1),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.is_marked = false;
        self.new_line(1);
        let depth = self.lists.len().clamp(1, 10) - 1;
        let mark = match self.lists.last_mut() {
            Some(Some(count)) => {
                *count += 1;
                format!("{count}. ")
            }
            _ => "- ".to_owned(),
        };
        self.page.text += &format!("{}{mark}", "  ".repeat(depth));
        self.is_marked = true;
    }

    fn end_cell(&mut self) {
        if let Some(columns) = self.cells.last_mut().and_then(Option::take) {
            self.page.text.truncate(self.page.text.trim_end_matches(' ').len());
            self.page.text.push_str(&" |".repeat(columns));
            self.page.text.push(' ');
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        self.new_line(1);
    }

    fn end_link(&mut self) {
        let Some((link, from)) = self.link.take() else { return };
        let text = self.page.text.get(from..).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_known = self.page.links.iter().any(|(_, known)| *known == link);
        if !text.is_empty() && !is_known && self.page.links.len() < LINKS {
            self.page.links.push((text, link));
        }
    }

    /// Ends the line, with so many line feeds; within a cell there is only a space.
    fn new_line(&mut self, count: usize) {
        if self.cells.last().is_some_and(Option::is_some) {
            self.write(" ");
            return;
        }
        if std::mem::take(&mut self.is_marked) {
            return;
        }
        let text = &mut self.page.text;
        text.truncate(text.trim_end_matches(' ').len());
        let there = text.len() - text.trim_end_matches('\n').len();
        if !text.is_empty() {
            text.push_str(&"\n".repeat(count.saturating_sub(there)));
        }
    }

    fn write(&mut self, text: &str) {
        if self.silent.is_some() || self.page.text.len() > TEXT {
            return;
        }
        let (is_plain, out) = match self.is_title {
            true => (false, &mut self.page.title),
            false => (self.is_plain, &mut self.page.text),
        };
        for letter in text.chars() {
            match letter {
                letter if is_plain => out.push(letter),
                letter if letter.is_whitespace() => {
                    if !out.is_empty() && !out.ends_with([' ', '\n']) {
                        out.push(' ');
                    }
                }
                letter => {
                    out.push(letter);
                    self.is_marked &= self.is_title;
                }
            }
        }
    }
}

/// The results of a page, without adverts: title, address and a line each.
pub(super) fn results(page: &str) -> Vec<String> {
    let mut found: Vec<[String; 3]> = Vec::new();
    let mut is_advert = false;
    // The part of the last result that the text belongs to.
    let mut part = None;
    let scanned = scan(page, None, &Work::new(), |token| match token {
        Part::Open(tag) => {
            let classes = attribute(tag, "class").unwrap_or_default();
            let has = |class: &str| classes.split_whitespace().any(|word| word == class);
            if has("result") {
                is_advert = has("result--ad");
            } else if has("result__a") {
                let link = target(attribute(tag, "href").unwrap_or_default());
                part = (!is_advert && !link.contains("duckduckgo.com/y.js")).then_some(0);
                if part.is_some() {
                    found.push([String::new(), link, String::new()]);
                }
            } else if has("result__snippet") && !is_advert {
                part = Some(2);
            }
        }
        Part::Close("a" | "div") => part = None,
        Part::Close(_) => {}
        Part::Text(text) => {
            if let (Some(part), Some(last)) = (part, found.last_mut()) {
                last[part].push_str(text);
            }
        }
    });
    if scanned.is_err() {
        return Vec::new();
    }
    let one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    found
        .iter()
        .take(MOST)
        .map(|[title, link, line]| format!("{}\n{link}\n{}", one_line(title), one_line(line)))
        .collect()
}

/// The address behind a redirect of DuckDuckGo.
fn target(link: &str) -> String {
    let whole = if link.starts_with("//") { format!("https:{link}") } else { link.to_owned() };
    let behind = Url::parse(&whole).ok().and_then(|url| {
        url.query_pairs().find(|(name, _)| name == "uddg").map(|(_, address)| address.into_owned())
    });
    behind.unwrap_or(whole)
}

/// The text of a piece of HTML, on one line.
pub(super) fn text(html: &str) -> String {
    collected(html, None).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text with its character references replaced.
pub(super) fn unescaped(text: &str) -> String {
    collected(text, Some(State::RawData(RawKind::Rcdata)))
}

fn collected(html: &str, state: Option<State>) -> String {
    let mut text = String::new();
    let scanned = scan(html, state, &Work::new(), |part| {
        if let Part::Text(piece) = part {
            text.push_str(piece);
        }
    });
    // Nothing ends this work.
    scanned.map_or_else(|_| html.to_owned(), |()| text)
}
