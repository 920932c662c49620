//! The results in a page of DuckDuckGo, and the text in a piece of HTML. Pure, and tolerant: a page that
//! looks different has no results.

use reqwest::Url;

/// The most results that are read.
const MOST: usize = 10;

/// The results of a page: title, address and a line each.
pub(super) fn results(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((attributes, title, after)) = element(rest, "result__a") {
        let link = attribute(attributes, "href").map(|link| target(&text(link))).unwrap_or_default();
        // The line of a result comes before the next result.
        let next = after.find("result__a").unwrap_or(after.len());
        let line =
            element(&after[..next], "result__snippet").map(|(_, line, _)| text(line)).unwrap_or_default();
        found.push(format!("{}\n{link}\n{line}", text(title)));
        if found.len() == MOST {
            break;
        }
        rest = after;
    }
    found
}

/// The attributes and the content of the first link of a class, and what follows it.
fn element<'p>(page: &'p str, class: &str) -> Option<(&'p str, &'p str, &'p str)> {
    let mut from = 0;
    loop {
        let at = from + page.get(from..)?.find(class)?;
        from = at + class.len();
        let open = page[..at].rfind('<')?;
        let is_whole = page[from..].starts_with(['"', '\'', ' ']) && page[..at].ends_with(['"', '\'', ' ']);
        let close = at + page[at..].find('>')?;
        if !is_whole || !page[open..].starts_with("<a") {
            continue;
        }
        let end = close + page[close..].find("</a")?;
        return Some((&page[open..close], &page[close + 1..end], &page[end..]));
    }
}

fn attribute<'p>(tag: &'p str, name: &str) -> Option<&'p str> {
    let (_, rest) = tag.split_once(&format!("{name}="))?;
    let quote = rest.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    rest[1..].split(quote).next()
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
    let mut text = String::new();
    let mut is_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    let text = unescaped(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text with its character references replaced.
pub(super) fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let end = after.char_indices().take(10).find(|(_, letter)| *letter == ';').map(|(at, _)| at);
        match end.and_then(|end| Some((character(&after[..end])?, end))) {
            Some((character, end)) => {
                plain.push(character);
                rest = &after[end + 1..];
            }
            None => {
                plain.push('&');
                rest = after;
            }
        }
    }
    plain + rest
}

fn character(name: &str) -> Option<char> {
    let of_number = |digits: &str, base| u32::from_str_radix(digits, base).ok().and_then(char::from_u32);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        "ndash" => Some('–'),
        "mdash" => Some('—'),
        "hellip" => Some('…'),
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => of_number(&hex[1..], 16),
            digits => of_number(digits, 10),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn results_are_read_with_their_addresses() {
        let page = r#"<div class="result"><h2 class="result__title">
            <a rel="nofollow" class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1&amp;rut=0">The <b>first</b> &amp; best</a></h2>
            <a class="result__snippet" href="x">A line &#x27;here&#39;.</a></div>
            <a class="result__a" href="https://b.example/">Second</a> <a class="result__snippets" href="x">no</a>"#;
        assert_eq!(
            results(page),
            ["The first & best\nhttps://a.example/x?y=1\nA line 'here'.", "Second\nhttps://b.example/\n"]
        );
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "(<a |</a>|class=|result__a|result__snippet|href=|\"|'|>|<|&#|&amp;|;|é| ){0,60}") {
            results(&page);
            text(&page);
        }
    }
}
