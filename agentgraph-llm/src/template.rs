//! Prompts with placeholders for values of a database.
//!
//! `$db.user.name$` is a placeholder for the value at `user`, `name` of a JSON value that the nodes of a
//! graph share. A template is parsed once, at its definition, so a malformed placeholder is found before any
//! model is called. Templates know nothing of nodes.
//!
//! | written | means |
//! |---|---|
//! | `$db.user.name$` | the value under these keys; keys may hold spaces, but no line ends and none of `.` `[` `$` |
//! | `$db.users.0.name$`, `$db.users[0].name$` | the first of an array; `.0` is also the key `"0"` of an object |
//! | `$db["a.b"].c$` | a key of any characters, as a JSON string |
//! | `$db$` | the whole value |
//! | `\$db.user$` | the text `$db.user$`; a backslash before a place is written `\\` |
//! | `$5`, `$dbase`, `\n` | themselves |
//!
//! Texts are inserted unchanged, other values as JSON in one line. A value that is missing or `null` is an
//! error unless the template has a [replacement](Template::missing_as), because a prompt such as "the goal is
//! None" is rarely intended.

mod path;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::error::{Code, Error, Result};

pub use path::Path;

/// A prompt with placeholders for values of a database. The [module](crate::template) describes the syntax.
///
/// ```
/// use agentgraph_llm::{Code, Template};
/// use serde_json::json;
///
/// let template = Template::parse("Is '$db.goals[0].text$' worth \\$db.x$? It costs $5 and $db.days$ days.")?;
/// let db = json!({"goals": [{"text": "sail"}], "days": 3});
/// assert_eq!(template.render(&db)?, "Is 'sail' worth $db.x$? It costs $5 and 3 days.");
///
/// let error = template.render(&json!({"goals": [], "days": null})).unwrap_err();
/// assert_eq!(error.code(), Code::MissingValue);
/// let text = template.missing_as("None").render(&json!({"goals": []}))?;
/// assert_eq!(text, "Is 'None' worth $db.x$? It costs $5 and None days.");
/// # Ok::<(), agentgraph_llm::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    missing: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Path),
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// `E_LLM_TEMPLATE` for a placeholder that is not closed or has an invalid path; the message quotes it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut at = 0;
        while let Some(found) = text[at..].find("$db") {
            let begin = at + found;
            let end = begin + "$db".len();
            plain += &text[at..begin];
            at = end;
            if !text[end..].starts_with(['.', '[', '$']) || take_backslashes(&mut plain) {
                plain += "$db";
            } else {
                let (path, length) = Path::parse(&text[end..]).map_err(|why| broken(text, begin, why))?;
                at = end + length;
                push_text(&mut pieces, &mut plain);
                pieces.push(Piece::Place(path));
            }
        }
        plain += &text[at..];
        push_text(&mut pieces, &mut plain);
        Ok(Template { pieces, missing: None })
    }

    /// A text without placeholders: every character is literal.
    pub fn plain(text: impl Into<String>) -> Self {
        let mut pieces = Vec::new();
        push_text(&mut pieces, &mut text.into());
        Template { pieces, missing: None }
    }

    /// Sets a replacement, such as `None`, for values that are missing or `null`.
    pub fn missing_as(mut self, text: impl Into<String>) -> Self {
        self.missing = Some(text.into());
        self
    }

    /// Appends a template, or a plain text such as a person's input. Of the two replacements for missing
    /// values, the first one that is set counts.
    pub fn and(mut self, more: impl Into<Template>) -> Self {
        let more = more.into();
        self.pieces.extend(more.pieces);
        self.missing = self.missing.or(more.missing);
        self
    }

    /// The paths of the placeholders, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(path) => Some(path),
            Piece::Text(_) => None,
        })
    }

    /// Inserts the values.
    ///
    /// # Errors
    /// `E_LLM_MISSING_VALUE` with all paths that lead to nothing or to `null`, and where each of them ends.
    /// Never if the template has a [replacement](Self::missing_as).
    pub fn render(&self, db: &Value) -> Result<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text += plain,
                Piece::Place(path) => match (path.get(db).and_then(written), &self.missing) {
                    (Some(value), _) => text += &value,
                    (None, Some(instead)) => text += instead,
                    (None, None) => return Err(self.missing_in(db)),
                },
            }
        }
        Ok(text)
    }

    /// Checks that every path leads to a value, before any prompt is written. A template with a
    /// [replacement](Self::missing_as) always passes.
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn check(&self, db: &Value) -> Result<()> {
        let is_there = |path: &Path| path.get(db).is_some_and(|value| !value.is_null());
        if self.missing.is_some() || self.paths().all(is_there) { Ok(()) } else { Err(self.missing_in(db)) }
    }

    fn missing_in(&self, db: &Value) -> Error {
        let mut reasons: Vec<String> = Vec::new();
        for reason in self.paths().filter_map(|path| path.why_missing(db)) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let message = format!(
            "the prompt asks for what the database does not have: {}; put it there, or say what to write instead with \
             `Template::missing_as`",
            reasons.join("; ")
        );
        Error::new(Code::MissingValue, message)
    }
}

fn push_text(pieces: &mut Vec<Piece>, plain: &mut String) {
    if !plain.is_empty() {
        pieces.push(Piece::Text(std::mem::take(plain)));
    }
}

/// Halves the backslashes at the end of `plain`, which are in front of a placeholder. `true` if they escape
/// it.
fn take_backslashes(plain: &mut String) -> bool {
    let count = plain.len() - plain.trim_end_matches('\\').len();
    plain.truncate(plain.len() - count + count / 2);
    count % 2 == 1
}

/// A value as prompt text; `None` for `null`.
fn written(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

fn broken(text: &str, begin: usize, why: &str) -> Error {
    let before = &text[..begin];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = format!(
        "the place at line {line} column {column} of the template cannot be read: {why}; write `$db.a.b$`, or `\\$db` for \
         the text"
    );
    Error::new(Code::Template, message)
}

impl From<&str> for Template {
    /// As [`plain`](Template::plain).
    fn from(text: &str) -> Self {
        Template::plain(text)
    }
}

impl From<String> for Template {
    /// As [`plain`](Template::plain).
    fn from(text: String) -> Self {
        Template::plain(text)
    }
}

/// The text as it is written.
impl fmt::Debug for Template {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Place(path) => format!("$db{path}$"),
        };
        out.debug_tuple("Template").field(&self.pieces.iter().map(show).collect::<String>()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rendered(text: &str, db: &Value) -> String {
        Template::parse(text).unwrap().render(db).unwrap()
    }

    #[test]
    fn places_are_replaced_and_other_text_stays() {
        let db = json!({
            "a": {"b": "x", "b c": "sp", "0": "zero"}, "list": [1, {"k": [true]}], "d.e": {"$": "odd", "\"]": "q"},
            "n": 1.5, "map": {"z": 1, "y": []}, "text": "$db.a.b$", "empty": ""
        });
        let cases = [
            ("", ""),
            ("$db.a.b$", "x"),
            ("<$db.a.b$$db.n$>", "<x1.5>"),
            ("$db.a.b c$", "sp"),
            ("$db.a.0$ $db.list.0$ $db.list[0]$ $db.list[1].k[0]$ $db.list.1.k.0$", "zero 1 1 true true"),
            (r#"$db["d.e"]["$"]$ $db["d.e"]["\"]"]$ $db["a"].b$"#, "odd q x"),
            ("$db.map$", r#"{"y":[],"z":1}"#),
            ("$db.empty$.", "."),
            // Inserted values are not parsed again.
            ("$db.text$", "$db.a.b$"),
            ("$5, $dbase, $db, db.a.b$, $ db.a$, $$", "$5, $dbase, $db, db.a.b$, $ db.a$, $$"),
            ("$$db.n$$", "$1.5$"),
            (r"\$db.n$ \ \n", r"$db.n$ \ \n"),
            (r"\\$db.n$ \\\$db.n$", r"\1.5 \$db.n$"),
            (r"\$db", r"\$db"),
        ];
        for (text, expected) in cases {
            assert_eq!(rendered(text, &db), expected, "{text}");
        }
    }

    #[test]
    fn an_invalid_place_is_reported_with_its_position_and_reason() {
        let cases = [
            ("$db.a", 1, 1, "it is not closed"),
            ("to\nbe $db.a\n$", 2, 4, "it is not closed"),
            ("é $db.$", 1, 3, "a key is empty"),
            ("$db.a..b$", 1, 1, "a key is empty"),
            ("$db[x]$", 1, 1, "between brackets stands an index or a key in quotes"),
            ("$db[-1]$", 1, 1, "between brackets stands an index or a key in quotes"),
            ("$db[99999999999999999999]$", 1, 1, "between brackets stands an index or a key in quotes"),
            (r#"$db["a]$"#, 1, 1, "between brackets stands an index or a key in quotes"),
            (r#"$db["a"x$"#, 1, 1, "a bracket is not closed"),
            ("$db[0]a$", 1, 1, "behind a bracket stands a dot, a bracket or the end"),
        ];
        for (text, line, column, why) in cases {
            let error = Template::parse(text).unwrap_err();
            assert_eq!(error.code(), Code::Template, "{text}");
            let place =
                format!("at line {line} column {column} of the template cannot be read: {why}; write");
            assert!(error.message().contains(&place), "{text}: {error}");
        }
    }

    #[test]
    fn missing_values_are_reported_with_the_place_where_the_path_ends() {
        let template =
            Template::parse("$db.a.x$ $db.a.x$ $db.l[2].k$ $db.l.k$ $db.t.k$ $db.none$ $db.a.b$").unwrap();
        let db = json!({"a": {"b": 1, "c": 2}, "l": [0, 1], "t": "text", "none": null});
        let error = template.render(&db).unwrap_err();
        assert_eq!(error.code(), Code::MissingValue);
        let reasons = "`db.a.x`: `db.a` has only `b`, `c`; `db.l[2].k`: `db.l` has 2 items; `db.l.k`: `db.l` is an array; \
                       `db.t.k`: `db.t` is a string; `db.none`: it is null;";
        assert!(error.message().contains(reasons), "{error}");
        assert_eq!(template.check(&db).unwrap_err().message(), error.message());
        assert!(!error.is_retryable() && !error.to_string().contains("text\""), "values are not shown");
        let lenient = template.missing_as("None");
        assert_eq!(lenient.render(&db).unwrap(), "None None None None None None 1");
        assert!(lenient.check(&db).is_ok());
    }

    #[test]
    fn plain_text_appended_to_a_template_is_not_parsed() {
        let typed = "what is $db.secret$? \\";
        let template =
            Template::parse("$db.greeting$ ").unwrap().and(typed).and(Template::parse("$db.n$").unwrap());
        let text = template.render(&json!({"greeting": "Hi,", "n": 1, "secret": "s"})).unwrap();
        assert_eq!(text, "Hi, what is $db.secret$? \\1");
    }

    proptest! {
        /// A path of any keys and indices finds its value, and the displayed path parses back to itself.
        #[test]
        fn a_path_leads_where_a_walk_leads(steps in prop::collection::vec(step(), 0..5)) {
                        let db = steps.iter().rev().fold(json!("leaf"), |inner, step| match step {
                Ok(key) => json!({ "other": 1, (key.as_str()): inner }),
                Err(index) => Value::Array([vec![Value::Null; *index], vec![inner]].concat()),
            });
            let dotted: String = steps.iter().map(|step| match step {
                Ok(key) => format!("[{}]", Value::from(key.as_str())),
                Err(index) => format!(".{index}"),
            }).collect();
            let template = Template::parse(&format!("<$db{dotted}$>")).unwrap();
            prop_assert_eq!(template.render(&db).unwrap(), "<leaf>");
            let shown = template.paths().next().unwrap().to_string();
            let again = Template::parse(&format!("$db{shown}$")).unwrap();
            prop_assert_eq!(again.paths().next(), template.paths().next(), "{}", shown);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[$db.a\\[\\]\"0\\\\ \n]{0,30}") {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&json!({"a": [1]}));
                let plain: usize = text.matches("$db").count();
                prop_assert!(template.paths().count() <= plain);
            }
            prop_assert_eq!(Template::plain(text.clone()).render(&Value::Null).unwrap(), text);
        }
    }

    fn step() -> impl Strategy<Value = Result<String, usize>> {
        prop_oneof![any::<String>().prop_map(Ok), "[a-z]{1,3}".prop_map(Ok), (0usize..3).prop_map(Err)]
    }
}
