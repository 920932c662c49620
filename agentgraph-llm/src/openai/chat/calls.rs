//! The tool calls of a streamed message. Servers differ in how they say which call a piece belongs to.

use crate::error::Result;
use crate::json::{Growing, Object, RawJson, is_same_json};
use crate::message::{Block, MessageIds, ToolInput, ToolUse};
use crate::model::ChatEvent;

use crate::openai::failure;
use crate::openai::wire::{bad, broken, extend, merged};

/// A piece of a call as the server sent it.
pub(super) struct Piece {
    /// The position of the call, which is missing, null or always 0 in some servers.
    index: Option<u64>,
    id: String,
    kind: Option<String>,
    name: String,
    arguments: Option<RawJson>,
    raw: RawJson,
    rest: Object,
}

impl Piece {
    pub(super) fn parse(raw: RawJson) -> Result<Self> {
        let mut rest = Object::parse(raw.get()).map_err(|_| broken("a tool call that is not an object"))?;
        if failure::says_error(&rest) {
            return Err(failure::from_event(&rest));
        }
        let index = rest.take("index");
        let index =
            index.and_then(|index| index.parse().ok().or_else(|| index.parse::<String>().ok()?.parse().ok()));
        let id = rest.take("id").map(|id| id.parse::<String>().unwrap_or_else(|_| id.get().to_owned()));
        let kind = rest.take("type").and_then(|kind| kind.parse().ok());
        let mut function: Object = rest.take_as("function").unwrap_or_default();
        let name = function.take("name").and_then(|name| name.parse().ok());
        let arguments = function.take("arguments").filter(|value| value.get() != "null");
        Ok(Piece {
            index,
            id: id.filter(|id| id != "null").unwrap_or_default(),
            kind,
            name: name.unwrap_or_default(),
            arguments,
            raw,
            rest,
        })
    }

    pub(super) fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// Whether it cannot be the start of a call.
    pub(super) fn only_continues(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }

    /// Whether it is an empty form, which some servers send beside a text.
    pub(super) fn says_nothing(&self) -> bool {
        let has_arguments = self.arguments.as_ref().is_some_and(|arguments| !arguments.is_blank());
        self.only_continues() && self.is_function() && self.rest.is_empty() && !has_arguments
    }

    /// The arguments, if they look like whole ones.
    fn whole_arguments(&self) -> Option<String> {
        let raw = self.arguments.as_ref()?;
        let text = raw.parse::<String>().unwrap_or_else(|_| raw.get().to_owned());
        let is_whole = text.trim().starts_with('{') && text.trim().ends_with('}');
        is_whole.then_some(text)
    }

    fn is_function(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind.is_empty() || kind == "function")
    }
}

/// A call in progress.
#[derive(Debug, Default)]
pub(super) struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    input: Growing,
    /// Arguments that no event has shown yet.
    unshown: String,
    is_started: bool,
    rest: Object,
    /// A call that is no function call, unchanged.
    raw: Option<RawJson>,
}

impl Call {
    /// Whether a piece continues this call, which is the last one of its index or of the message.
    pub(super) fn takes(&self, piece: &Piece) -> bool {
        // Read only where it decides: most pieces continue, and there may be very many.
        let is_complete = || {
            let text = self.input.text().trim();
            text.starts_with('{') && text.ends_with('}') && RawJson::parse_text(text).is_ok()
        };
        let has_new_name = !piece.name.is_empty() && !self.name.is_empty();
        let starts_empty = has_new_name && self.input.text().trim().is_empty();
        if !piece.id.is_empty() && !self.id.is_empty() {
            // Some servers invent an id for each piece; a call that is not complete goes on.
            return piece.id == self.id || !(is_complete() || starts_empty || self.raw.is_some());
        }
        // The same name again is the server's habit while the arguments are incomplete, and a new call after.
        let is_another = has_new_name && (is_complete() || (starts_empty && piece.index.is_none()));
        !is_another
    }

    pub(super) fn has_id_of(&self, piece: &Piece) -> bool {
        !piece.id.is_empty() && self.id == piece.id
    }

    pub(super) fn has_index_of(&self, piece: &Piece) -> bool {
        self.index == piece.index
    }

    /// Whether a piece is this call again, as some servers send it at the end.
    pub(super) fn is_repeated_by(&self, piece: &Piece) -> bool {
        let is_known = match piece.id.is_empty() {
            true => piece.index.is_some() && self.index == piece.index,
            false => self.id == piece.id,
        };
        is_known
            && (piece.name.is_empty() || piece.name == self.name)
            && self.input.text().trim_end().ends_with('}')
            && piece.whole_arguments().is_some_and(|whole| is_same_json(self.input.text(), &whole))
    }

    /// Joins a view of the whole call. The events of what is new in it.
    pub(super) fn join(&mut self, piece: Piece, index: usize, out: &mut Vec<ChatEvent>) -> Result<()> {
        if let Some(known) = &self.raw {
            let mut whole = Object::parse(without_index(&piece.raw).get()).unwrap_or_default();
            whole.complete_from(Object::parse(known.get()).unwrap_or_default());
            self.raw = Some(whole.to_json());
            return Ok(());
        }
        if !piece.name.is_empty() && !self.name.is_empty() && piece.name != self.name {
            return Err(broken("two views of a tool call that contradict each other"));
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        if self.id.is_empty() {
            self.id = piece.id;
        }
        let mut rest = piece.rest;
        rest.complete_from(std::mem::take(&mut self.rest));
        self.rest = rest;
        if let Some(arguments) = piece.arguments {
            self.unshown += &self.input.whole_arguments(&arguments).map_err(bad)?;
        }
        if !self.unshown.is_empty() {
            self.show(index, out);
        }
        Ok(())
    }

    /// Adds a piece. The events of the call at this position of the message.
    pub(super) fn push(&mut self, piece: Piece, index: usize, out: &mut Vec<ChatEvent>) -> Result<()> {
        if self.raw.is_some() || !piece.is_function() {
            let raw = without_index(&piece.raw);
            if self.id.is_empty() {
                self.id = piece.id;
            }
            self.raw = Some(match self.raw.take() {
                Some(old) => merged("", old, raw),
                None => raw,
            });
            return Ok(());
        }
        self.index = self.index.or(piece.index);
        if self.id.is_empty() {
            self.id = piece.id;
        }
        self.add_name(&piece.name)?;
        for (name, value) in piece.rest.iter() {
            extend(&mut self.rest, name, value.clone());
        }
        if let Some(arguments) = piece.arguments {
            let piece = self.input.push_arguments(&arguments).map_err(bad)?;
            self.unshown += &piece;
        }
        if !self.unshown.is_empty() {
            self.show(index, out);
        }
        Ok(())
    }

    /// A name comes whole, repeated, or in pieces before the arguments.
    fn add_name(&mut self, name: &str) -> Result<()> {
        if name.is_empty() || name == self.name {
            return Ok(());
        }
        if self.is_started || !(self.name.is_empty() || self.input.text().is_empty()) {
            return Err(broken("a tool call whose name changes"));
        }
        self.name += name;
        Ok(())
    }

    fn show(&mut self, index: usize, out: &mut Vec<ChatEvent>) {
        if self.id.is_empty() || self.name.is_empty() {
            return;
        }
        if !self.is_started {
            self.is_started = true;
            out.push(ChatEvent::ToolUseStarted { index, id: self.id.clone(), name: self.name.clone() });
        }
        if !self.unshown.is_empty() {
            out.push(ChatEvent::ToolInputDelta { index, json: std::mem::take(&mut self.unshown) });
        }
    }

    pub(super) fn finish(mut self, index: usize, out: &mut Vec<ChatEvent>) -> Result<Block> {
        if let Some(raw) = self.raw {
            let block = Block::Unknown(raw);
            out.push(ChatEvent::Block { index, block: block.clone() });
            return Ok(block);
        }
        if self.id.is_empty() {
            // The result has to name its call, so a call without an id gets one.
            self.id = format!("call_{}", MessageIds::default().next_id());
        }
        self.show(index, out);
        let text = self.input.finish().map_err(bad)?;
        let input = match text.trim() {
            "" => ToolInput::Json(RawJson::empty_object()),
            _ => ToolInput::from_text(text.to_owned()),
        };
        let mut call = ToolUse::new(self.id, self.name, RawJson::empty_object());
        call.input = input;
        call.extra = self.rest.into_extra();
        Ok(call.into())
    }
}

fn without_index(raw: &RawJson) -> RawJson {
    let fields = Object::parse(raw.get()).ok();
    let without = fields.and_then(|mut fields| fields.take("index").map(|_| fields.to_json()));
    without.unwrap_or_else(|| raw.clone())
}
