//! Reads `#[reduce(..)]`, `#[channel(..)]` and `#[state(..)]`. Checks their grammar, but not whether
//! they fit the field.

use syn::parse::ParseStream;
use syn::{Attribute, Error, Ident, LitStr, Meta, Result};

use super::ast::{Lifetime, Reduce};
use crate::mistakes::Mistakes;
use crate::words::{self, Words};

const REDUCE: Words = Words {
    attribute: "reduce",
    known: &["append", "merge", "last", "by_id", "sum", "min", "max", "with", "reducer"],
};
const WRITE: Words = Words { attribute: "reduce", known: &["write"] };
const CHANNEL: Words =
    Words { attribute: "channel", known: &["run", "ephemeral", "untracked", "secret", "alias"] };
const STATE: Words = Words { attribute: "state", known: &["volatile"] };

/// The content of the attributes of a field.
pub(super) struct FieldAttributes {
    pub(super) reduce: Reduce,
    pub(super) lifetime: Lifetime,
    pub(super) aliases: Vec<LitStr>,
    pub(super) secret: bool,
}

/// Whether the struct is volatile.
pub(super) fn of_struct(attributes: &[Attribute], mistakes: &mut Mistakes) -> bool {
    let mut volatile = false;
    for attribute in attributes {
        if attribute.path().is_ident("state") {
            match parse(attribute, &STATE, volatile_word) {
                Ok(()) => volatile = true,
                Err(error) => mistakes.add(error),
            }
        }
        for word in ["reduce", "channel"] {
            if attribute.path().is_ident(word) {
                mistakes.at(attribute, format!("`#[{word}(..)]` belongs on a field"));
            }
        }
    }
    volatile
}

fn volatile_word(input: ParseStream) -> Result<()> {
    loop {
        let word = STATE.parse(input)?;
        words::no_value(input, &word)?;
        if !words::next(input)? {
            return Ok(());
        }
    }
}

pub(super) fn of_field(attributes: &[Attribute], mistakes: &mut Mistakes) -> FieldAttributes {
    let mut reduce = None;
    let mut channel = ChannelWords::default();
    for attribute in attributes {
        let path = attribute.path();
        let read = if path.is_ident("reduce") {
            parse(attribute, &REDUCE, reduction).and_then(|said| match reduce.replace(said) {
                None => Ok(()),
                Some(_) => Err(Error::new_spanned(
                    attribute,
                    "the field has a reducer already: keep one `#[reduce(..)]`",
                )),
            })
        } else if path.is_ident("channel") {
            parse(attribute, &CHANNEL, |input| channel.read(input))
        } else if path.is_ident("state") {
            Err(Error::new_spanned(attribute, "`#[state(..)]` belongs on the struct"))
        } else {
            Ok(())
        };
        if let Err(error) = read {
            mistakes.add(error);
        }
    }
    FieldAttributes {
        reduce: reduce.unwrap_or(Reduce::Once),
        lifetime: channel.lifetime.map_or(Lifetime::Thread, |(lifetime, _)| lifetime),
        aliases: channel.aliases,
        secret: channel.secret,
    }
}

/// Reads the words in the parentheses of an attribute.
fn parse<T>(attribute: &Attribute, words: &Words, read: impl FnOnce(ParseStream) -> Result<T>) -> Result<T> {
    match &attribute.meta {
        Meta::List(list) if !list.tokens.is_empty() => attribute.parse_args_with(read),
        _ => {
            let message =
                format!("`#[{}(..)]` needs a word in parentheses: {}", words.attribute, words.choices());
            Err(Error::new_spanned(attribute, message))
        }
    }
}

fn reduction(input: ParseStream) -> Result<Reduce> {
    let word = REDUCE.parse(input)?;
    let reduce = match word.to_string().as_str() {
        "with" => {
            let function = words::value(input, &word, "with = path::to::function")?;
            Reduce::With(Box::new(function), write(input)?)
        }
        "reducer" => {
            let reducer = words::value(input, &word, "reducer = path::to::Reducer")?;
            Reduce::Reducer(Box::new(reducer), write(input)?)
        }
        plain => {
            words::no_value(input, &word)?;
            match plain {
                "append" => Reduce::Append(word),
                "merge" => Reduce::Merge(word),
                "by_id" => Reduce::ById(word),
                "sum" => Reduce::Sum(word),
                "min" => Reduce::Min,
                "max" => Reduce::Max,
                _ => Reduce::Last,
            }
        }
    };
    if words::next(input)? { Err(input.error("a field has one reducer")) } else { Ok(reduce) }
}

/// Reads `, write = Type`, if it is there.
fn write(input: ParseStream) -> Result<Option<Box<syn::Type>>> {
    if !words::next(input)? {
        return Ok(None);
    }
    let word = WRITE.parse(input)?;
    words::value(input, &word, "write = Type").map(|ty| Some(Box::new(ty)))
}

#[derive(Default)]
struct ChannelWords {
    lifetime: Option<(Lifetime, Ident)>,
    aliases: Vec<LitStr>,
    secret: bool,
}

impl ChannelWords {
    fn read(&mut self, input: ParseStream) -> Result<()> {
        loop {
            let word = CHANNEL.parse(input)?;
            match word.to_string().as_str() {
                "alias" => self.aliases.push(words::value(input, &word, "alias = \"old_name\"")?),
                "secret" => self.hide(&word, input)?,
                "run" => self.live(Lifetime::Run, word, input)?,
                "ephemeral" => self.live(Lifetime::Ephemeral, word, input)?,
                _ => self.live(Lifetime::Untracked, word, input)?,
            }
            if !words::next(input)? {
                return Ok(());
            }
        }
    }

    fn hide(&mut self, word: &Ident, input: ParseStream) -> Result<()> {
        words::no_value(input, word)?;
        if std::mem::replace(&mut self.secret, true) {
            return Err(Error::new(word.span(), "the channel is `secret` already: say it once"));
        }
        Ok(())
    }

    fn live(&mut self, lifetime: Lifetime, word: Ident, input: ParseStream) -> Result<()> {
        words::no_value(input, &word)?;
        if let Some((_, earlier)) = &self.lifetime {
            let message = format!(
                "the channel is `{earlier}` already: `run`, `ephemeral` and `untracked` exclude each other"
            );
            return Err(Error::new(word.span(), message));
        }
        self.lifetime = Some((lifetime, word));
        Ok(())
    }
}
