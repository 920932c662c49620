//! The notation of productions, read into a tree:
//!
//! | | |
//! |---|---|
//! | `word` | this word; of five letters or more also with one typing error |
//! | `a b`, `(a \| b)`, `[a]`, `a*` | one after the other, one of both, `a` or nothing, `a` any number of times |
//! | `{class}` | the production of this name |
//! | `<slot>`, `<slot:kind>` | a text of this kind, bound to the slot |
//! | `=slot:value` | binds a value to a slot, and reads nothing |

use winnow::Parser;
use winnow::ascii::multispace0;
use winnow::combinator::{alt, delimited, opt, preceded, repeat, separated, terminated};
use winnow::token::take_while;

/// A production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Word(&'static str),
    Slot { name: &'static str, kind: &'static str },
    Set { name: &'static str, value: &'static str },
    Class(&'static str),
    Seq(Vec<Node>),
    Alt(Vec<Node>),
    Opt(Box<Node>),
    Star(Box<Node>),
}

/// Reads a production. `None` if the notation is wrong, which a test excludes.
pub(crate) fn production(text: &'static str) -> Option<Node> {
    alternatives.parse(text).ok()
}

fn alternatives(input: &mut &'static str) -> winnow::Result<Node> {
    let all: Vec<Node> = separated(1.., sequence, token("|")).parse_next(input)?;
    Ok(single(all, Node::Alt))
}

fn sequence(input: &mut &'static str) -> winnow::Result<Node> {
    let all: Vec<Node> = preceded(multispace0, repeat(1.., starred)).parse_next(input)?;
    Ok(single(all, Node::Seq))
}

fn single(mut all: Vec<Node>, wrap: fn(Vec<Node>) -> Node) -> Node {
    if all.len() == 1 { all.remove(0) } else { wrap(all) }
}

fn starred(input: &mut &'static str) -> winnow::Result<Node> {
    let node = terminated(atom, multispace0).parse_next(input)?;
    let star = opt(token("*")).parse_next(input)?;
    Ok(if star.is_some() { Node::Star(Box::new(node)) } else { node })
}

fn atom(input: &mut &'static str) -> winnow::Result<Node> {
    alt((
        delimited(token("("), alternatives, ")"),
        delimited(token("["), alternatives, "]").map(|node| Node::Opt(Box::new(node))),
        delimited("{", name, "}").map(Node::Class),
        delimited("<", (name, opt(preceded(":", name))), ">")
            .map(|(name, kind)| Node::Slot { name, kind: kind.unwrap_or(name) }),
        preceded("=", (terminated(name, ":"), name)).map(|(name, value)| Node::Set { name, value }),
        take_while(1.., |c: char| !c.is_whitespace() && !"()[]{}<>|*=".contains(c)).map(Node::Word),
    ))
    .parse_next(input)
}

fn name(input: &mut &'static str) -> winnow::Result<&'static str> {
    take_while(1.., |c: char| c.is_alphanumeric() || c == '_').parse_next(input)
}

fn token<'s>(text: &'static str) -> impl Parser<&'s str, &'s str, winnow::error::ContextError> {
    terminated(text, multispace0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_is_read_into_a_tree() {
        let wanted = Node::Seq(vec![
            Node::Alt(vec![Node::Word("start"), Node::Seq(vec![Node::Word("kick"), Node::Word("off")])]),
            Node::Set { name: "to", value: "enrolling" },
            Node::Opt(Box::new(Node::Word("the"))),
            Node::Star(Box::new(Node::Class("exp"))),
            Node::Slot { name: "user", kind: "id" },
        ]);
        assert_eq!(production("(start | kick off) =to:enrolling [the] {exp}* <user:id>"), Some(wanted));
        assert_eq!(production("(a | b"), None);
        assert_eq!(production(""), None);
    }
}
