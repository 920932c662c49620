//! The arguments of a call: whole, or streamed as values at JSON paths.

use serde_json::{Map, Value};

use super::decode::broken;
use crate::error::Result;
use crate::json::{Object, RawJson, TextPieces, is_same_json};

/// The deepest place that streamed arguments may have. Deeper JSON is read by no tool.
const MAX_DEPTH: usize = 127;

/// The most elements that lists may have before a place without having been sent.
const MAX_SKIPPED: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Arguments {
    whole: Option<RawJson>,
    value: Map<String, Value>,
    /// The number of elements that were not sent, in all lists.
    skipped: usize,
    /// The path of the text that continues, and its last half character.
    open: Option<(String, TextPieces)>,
}

/// A step of a path such as `$.orders[0].city`.
#[derive(Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Arguments {
    pub(super) fn set_whole(&mut self, args: RawJson) {
        self.whole = Some(args);
    }

    /// Adds one of the `partialArgs`.
    pub(super) fn push(&mut self, piece: &RawJson) -> Result<()> {
        let bad = || broken("a partial argument that cannot be read");
        let piece = Object::parse(piece.get()).map_err(|_| bad())?;
        let path: String = piece.get_as("jsonPath").ok_or_else(bad)?;
        let steps = steps(&path).filter(|steps| steps.len() <= MAX_DEPTH).ok_or_else(bad)?;
        let will_continue = piece.get_as("willContinue").unwrap_or(false);
        if let Some(text) = piece.get("stringValue") {
            return self.push_text(path, &steps, text, will_continue);
        }
        self.close()?;
        let value = match (piece.get("numberValue"), piece.get("boolValue"), piece.get("nullValue")) {
            (Some(value), _, _) | (_, Some(value), _) => value.parse().map_err(|_| bad())?,
            (_, _, Some(_)) => Value::Null,
            // Only the announcement of a value.
            _ => return Ok(()),
        };
        *self.place(&steps)? = value;
        Ok(())
    }

    fn push_text(&mut self, path: String, steps: &[Step], text: &RawJson, will_continue: bool) -> Result<()> {
        let continues = self.open.as_ref().is_some_and(|(open, _)| *open == path);
        if !continues {
            self.close()?;
            *self.place(steps)? = Value::String(String::new());
        }
        let (_, mut pieces) = self.open.take().unwrap_or_default();
        let more = pieces.push(text).map_err(|bad| broken(&bad.to_string()))?;
        if let Value::String(text) = self.place(steps)? {
            *text += &more;
        }
        self.open = Some((path, pieces));
        if will_continue { Ok(()) } else { self.close() }
    }

    fn close(&mut self) -> Result<()> {
        match self.open.take() {
            Some((_, pieces)) => pieces.end().map_err(|bad| broken(&bad.to_string())),
            None => Ok(()),
        }
    }

    fn place(&mut self, steps: &[Step]) -> Result<&mut Value> {
        let bad = || broken("a partial argument at a place that is not there");
        let Some((Step::Key(first), rest)) = steps.split_first() else { return Err(bad()) };
        let mut place = self.value.entry(first.clone()).or_insert(Value::Null);
        for step in rest {
            place = match step {
                Step::Key(key) => {
                    if place.is_null() {
                        *place = Value::Object(Map::new());
                    }
                    place.as_object_mut().ok_or_else(bad)?.entry(key.clone()).or_insert(Value::Null)
                }
                Step::Index(index) => {
                    if place.is_null() {
                        *place = Value::Array(Vec::new());
                    }
                    let items = place.as_array_mut().ok_or_else(bad)?;
                    if let Some(skipped) = index.checked_sub(items.len()) {
                        self.skipped = self.skipped.saturating_add(skipped);
                        if self.skipped > MAX_SKIPPED {
                            return Err(bad());
                        }
                        items.resize(*index + 1, Value::Null);
                    }
                    &mut items[*index]
                }
            };
        }
        Ok(place)
    }

    /// The arguments of a call that has ended. Those that came as a whole and in parts are two views of one.
    pub(super) fn json(&mut self) -> Result<RawJson> {
        self.close()?;
        let has_parts = !self.value.is_empty();
        let parts: RawJson = std::mem::take(&mut self.value).into();
        match self.whole.take().filter(|whole| !(has_parts && whole.is_blank())) {
            Some(whole) if has_parts && !is_same_json(whole.get(), parts.get()) => {
                Err(broken("two views of the arguments of a call that contradict each other"))
            }
            Some(whole) => Ok(whole),
            None => Ok(parts),
        }
    }

    /// The text of arguments that were cut.
    pub(super) fn json_so_far(self) -> String {
        let json: RawJson = self.whole.unwrap_or_else(|| self.value.into());
        json.get().to_owned()
    }
}

/// The steps of a path as RFC 9535 writes it: `$`, then `.name`, `['name']`, `["name"]` or `[0]`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, left) = after.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Key(name.to_owned()));
            rest = left;
        } else {
            let inside = rest.strip_prefix('[')?;
            let (step, left) = match inside.chars().next()? {
                quote @ ('\'' | '"') => quoted(&inside[1..], quote)?,
                _ => {
                    let (number, left) = inside.split_once(']')?;
                    (Step::Index(number.trim().parse().ok()?), left)
                }
            };
            steps.push(step);
            rest = left;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

/// The name up to a quote and its bracket, and what follows.
fn quoted(text: &str, quote: char) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            letter if letter == quote => {
                let left = text[at + 1..].strip_prefix(']')?;
                return Some((Step::Key(name), left));
            }
            letter => name.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_all_their_forms() {
        let key = |name: &str| Step::Key(name.to_owned());
        for (path, expected) in [
            ("$.city", Some(vec![key("city")])),
            ("$.orders[0].city", Some(vec![key("orders"), Step::Index(0), key("city")])),
            ("$['a.b'][\"it's\"]", Some(vec![key("a.b"), key("it's")])),
            ("$['it\\'s']", Some(vec![key("it's")])),
            ("$", None),
            ("city", None),
            ("$..city", None),
            ("$[", None),
            ("$['a", None),
            ("$[x]", None),
        ] {
            assert_eq!(steps(path), expected, "{path}");
        }
    }
}
