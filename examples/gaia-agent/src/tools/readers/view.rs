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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_in_parts_that_join() {
        let text: String = (0..9_000).map(|at| format!("line {at} é\n")).collect();
        let mut joined = String::new();
        let mut start = 0;
        loop {
            let shown = view(&text, start, None);
            let (part, note) = shown.rsplit_once("\n[characters ").unwrap();
            joined += part;
            match note.split_once("`start` ") {
                Some((_, next)) => start = next.split(',').next().unwrap().parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(joined, text);
        let pages = (1..=4).map(|number| page(&text, number, None));
        let pages: String = pages.map(|shown| shown.rsplit_once("\n[page ").unwrap().0.to_owned()).collect();
        assert_eq!(pages, text);
        assert_eq!(page(&text, 9, None), "[there are 4 pages: there is no page 9]");
        assert_eq!((view("a", 0, None), page("a", 0, None)), ("a".to_owned(), "a".to_owned()));
        assert!(view("a", 7, None).contains("nothing at 7"));
    }

    #[test]
    fn places_are_found_in_any_case_and_can_be_read_from() {
        let text = format!("{}Die GRÖSSE ist 7{}", "x ".repeat(20_000), " y".repeat(5_000));
        assert_eq!(view(&text, 0, Some("größe")), "[`größe` is not in the text, from character 0 on]");
        let found = view(&text, 0, Some("grösse"));
        assert!(found.starts_with("[at character 40004]") && found.contains("ist 7"), "{found}");
        assert!(view(&text, 40_004, None).starts_with("GRÖSSE ist 7"));
        assert!(page(&text, 1, Some("grösse")).starts_with("[on page 2]"));
        let many = view(&"word . ".repeat(3_000), 0, Some("word"));
        assert!(many.contains("there are more: go on with `start`"), "{many}");
    }
}
