//! [`view`] and [`page`]: the part of a text that one call shows, and how to go on; or the places of a word
//! in it.

/// The most characters that one call shows.
pub(in crate::tools) const SHOWN: usize = 30_000;
/// How far back a part may end, to end with a line.
const BACK: usize = 2_000;
/// The most places of a word, and the characters around each.
const PLACES: usize = 20;
const AROUND: usize = 150;

/// The part from a character on; with `find`, the places from there on that have this text.
pub(in crate::tools) fn view(text: &str, start: usize, find: Option<&str>) -> String {
    let letters: Vec<char> = text.chars().collect();
    let total = letters.len();
    if start > 0 && start >= total {
        return format!("[the text has {total} characters: there is nothing at {start}]");
    }
    if let Some(wanted) = wanted(find) {
        let more = |at: usize| format!("go on with `start` {at}");
        return places(&letters, start, wanted, &|at| format!("at character {at}"), &more);
    }
    let end = end_of_part(&letters, start);
    let shown: String = letters[start..end].iter().collect();
    match (start, end == total) {
        (0, true) => shown,
        (_, true) => format!("{shown}\n[characters {start} to {end}: the end of the text]"),
        (_, false) => format!(
            "{shown}\n[characters {start} to {end} of {total}: go on with `start` {end}, or look for a word with `find`]"
        ),
    }
}

/// The same by pages, counted from 1.
pub(in crate::tools) fn page(text: &str, number: usize, find: Option<&str>) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut starts = vec![0];
    while let Some(end) =
        starts.last().map(|start| end_of_part(&letters, *start)).filter(|end| *end < letters.len())
    {
        starts.push(end);
    }
    let count = starts.len();
    let page_of = |at: usize| starts.partition_point(|start| *start <= at);
    let Some(&start) = starts.get(number.saturating_sub(1)) else {
        return format!("[there are {count} pages: there is no page {number}]");
    };
    if let Some(wanted) = wanted(find) {
        let more = |at: usize| format!("go on with `page` {}", page_of(at));
        return places(&letters, start, wanted, &|at| format!("on page {}", page_of(at)), &more);
    }
    let shown: String =
        letters[start..starts.get(number.max(1)).copied().unwrap_or(letters.len())].iter().collect();
    match count {
        1 => shown,
        _ => format!(
            "{shown}\n[page {} of {count}: set `page` for others, or look for a word with `find`]",
            number.max(1)
        ),
    }
}

fn wanted(find: Option<&str>) -> Option<&str> {
    find.map(str::trim).filter(|wanted| !wanted.is_empty())
}

/// Where the part that begins at a character ends: with a line, if one ends near.
fn end_of_part(letters: &[char], start: usize) -> usize {
    let end = (start + SHOWN).min(letters.len());
    if end == letters.len() {
        return end;
    }
    let line = letters[end - BACK..end].iter().rposition(|letter| *letter == '\n');
    line.map_or(end, |at| end - BACK + at + 1)
}

/// The places that have a text, in any case, with what is around them.
fn places(
    letters: &[char],
    start: usize,
    wanted: &str,
    name: &dyn Fn(usize) -> String,
    more: &dyn Fn(usize) -> String,
) -> String {
    // One character each, so that places stay what they are.
    let lower = |letter: &char| letter.to_lowercase().next().unwrap_or(*letter);
    let text: Vec<char> = letters.iter().map(lower).collect();
    let word: Vec<char> = wanted.chars().map(|letter| lower(&letter)).collect();
    let mut found = String::new();
    let (mut count, mut shown_to) = (0, start);
    for at in (start..text.len()).filter(|at| text[*at..].starts_with(&word)) {
        // A place that is shown already is not shown again.
        if at < shown_to {
            continue;
        }
        if count == PLACES {
            return format!("{found}[there are more: {}]", more(at));
        }
        count += 1;
        let (from, to) = (at.saturating_sub(AROUND), (at + word.len() + AROUND).min(letters.len()));
        shown_to = to;
        let around: String = letters[from..to].iter().collect();
        found += &format!("[{}]\n{around}\n\n", name(at));
    }
    match count {
        0 => format!(
            "[`{wanted}` is not in the text, from {} on]",
            name(start).trim_start_matches("at ").trim_start_matches("on ")
        ),
        _ => found.trim_end().to_owned(),
    }
}
