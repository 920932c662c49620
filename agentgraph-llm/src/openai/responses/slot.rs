//! One item of a streamed response, joined from its views: the deltas, the ends of its parts, the item at its
//! start and its end, and the item in the final response.

use serde_json::Value;

use crate::error::Result;
use crate::json::{Growing, Object, RawJson};
use crate::message::Block;

use super::items;
use crate::openai::wire::{self, array, bad, broken, filled, object};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Call,
    Other,
}

impl Kind {
    pub(super) fn of(item: &Object) -> Self {
        match filled(item, "type").unwrap_or_default().as_str() {
            "message" => Kind::Message,
            "reasoning" => Kind::Reasoning,
            "function_call" => Kind::Call,
            _ => Kind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Message => "message",
            Kind::Reasoning => "reasoning",
            Kind::Call => "function_call",
            Kind::Other => "",
        }
    }
}

/// The place of a part within its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The item's list that has the part: `content` or `summary`; empty for the arguments of a call.
    pub(super) list: &'static str,
    /// The type of the part.
    pub(super) kind: &'static str,
    /// The position in the list, if it is known.
    pub(super) number: Option<u64>,
}

/// A part of a message or of thinking, or the arguments of a call.
#[derive(Debug)]
pub(super) struct Part {
    list: &'static str,
    /// Empty for a part that is not read.
    kind: String,
    pub(super) number: u64,
    pub(super) text: Growing,
    /// The other fields of the part.
    fields: Object,
}

/// An item in progress.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) output_index: Option<u64>,
    pub(super) id: String,
    pub(super) kind: Kind,
    /// Whether two events had the id, so that the server does not change it with each event.
    pub(super) is_confirmed: bool,
    /// Whether a view of the item at its end has come.
    pub(super) is_done: bool,
    pub(super) is_started: bool,
    /// The bytes of the arguments that events have shown.
    pub(super) shown: usize,
    /// The blocks that were shown as a whole.
    pub(super) shown_blocks: Vec<Block>,
    /// The fields of all views.
    item: Object,
    /// The newest view of the item.
    newest: Option<RawJson>,
    pub(super) parts: Vec<Part>,
}

impl Slot {
    /// An item of which nothing but its place is known.
    pub(super) fn new(output_index: Option<u64>, id: String, kind: Kind) -> Self {
        let mut item = Object::default();
        if kind != Kind::Other {
            item = object(kind.name());
        }
        if !id.is_empty() {
            item.set("id", RawJson::string(&id));
        }
        Slot {
            output_index,
            id,
            kind,
            is_confirmed: false,
            is_done: false,
            is_started: false,
            shown: 0,
            shown_blocks: Vec::new(),
            item,
            newest: None,
            parts: Vec::new(),
        }
    }

    /// Whether only pieces of the item have come.
    pub(super) fn is_unannounced(&self) -> bool {
        self.newest.is_none()
    }

    pub(super) fn call_id(&self) -> Option<String> {
        filled(&self.item, "call_id")
    }

    /// The id and the name of a call.
    pub(super) fn call(&self) -> Option<(String, String)> {
        let id = self.call_id().or_else(|| filled(&self.item, "id"))?;
        Some((id, filled(&self.item, "name")?))
    }

    /// The part that takes a piece, made if there is none.
    pub(super) fn part(&mut self, place: Place) -> usize {
        let is_same = |part: &Part| {
            part.list == place.list
                && part.kind == place.kind
                && place.number.is_none_or(|number| part.number == number)
        };
        self.parts.iter().rposition(is_same).unwrap_or_else(|| {
            let in_list = self.parts.iter().filter(|part| part.list == place.list).count() as u64;
            self.add_part(place.list, place.kind, place.number.unwrap_or(in_list))
        })
    }

    fn add_part(&mut self, list: &'static str, kind: &str, number: u64) -> usize {
        self.parts.push(Part {
            list,
            kind: kind.to_owned(),
            number,
            text: Growing::default(),
            fields: Object::default(),
        });
        self.parts.len() - 1
    }

    /// Joins a view of the whole item. The parts that grew, with what is new in them.
    pub(super) fn join(&mut self, raw: RawJson) -> Result<Vec<(usize, String)>> {
        let mut view = Object::parse(raw.get()).map_err(|_| broken("an item that is not an object"))?;
        if self.kind == Kind::Call {
            for name in ["name", "call_id"] {
                let (known, new) = (filled(&self.item, name), filled(&view, name));
                if known.zip(new).is_some_and(|(known, new)| known != new) {
                    return Err(broken("two views of a call that contradict each other"));
                }
            }
        }
        let mut grown = Vec::new();
        for list in ["content", "summary"] {
            let has_parts = matches!(self.kind, Kind::Message | Kind::Reasoning);
            let Some(content) = view.get(list).filter(|_| has_parts).cloned() else { continue };
            let parts = match content.is_string() {
                true => vec![items::output_text(&content)],
                false => wire::items(&content).unwrap_or_default(),
            };
            for (number, part) in parts.into_iter().enumerate() {
                grown.extend(self.join_part(list, Some(number as u64), part)?);
            }
        }
        if let Some(arguments) = view.get("arguments").filter(|_| self.kind == Kind::Call) {
            let at = self.part(Place { list: "", kind: "arguments", number: Some(0) });
            grown.push((at, self.parts[at].text.whole_arguments(arguments).map_err(bad)?));
        }
        if self.id.is_empty() {
            self.id = filled(&view, "id").unwrap_or_default();
        }
        view.complete_from(std::mem::take(&mut self.item));
        self.item = view;
        self.newest = Some(raw);
        Ok(grown)
    }

    /// Joins a view of a whole part. Of a part with a text: where it is, and what is new in it.
    pub(super) fn join_part(
        &mut self,
        list: &'static str,
        number: Option<u64>,
        raw: RawJson,
    ) -> Result<Option<(usize, String)>> {
        let mut fields = Object::parse(raw.get()).map_err(|_| broken("a part that is not an object"))?;
        let kind = filled(&fields, "type").unwrap_or_default();
        let field = items::text_field(&kind);
        let is_same = |part: &Part| {
            let is_kind = if field.is_some() { part.kind == kind } else { part.kind.is_empty() };
            part.list == list && is_kind && number.is_none_or(|number| part.number == number)
        };
        let at = self.parts.iter().rposition(is_same).unwrap_or_else(|| {
            let in_list = self.parts.iter().filter(|part| part.list == list).count() as u64;
            let kind = if field.is_some() { kind.as_str() } else { "" };
            self.add_part(list, kind, number.unwrap_or(in_list))
        });
        let part = &mut self.parts[at];
        let new = match field.and_then(|field| fields.get(field)).filter(|text| text.get() != "null") {
            Some(text) => part.text.whole_text(text).map_err(bad)?,
            None => String::new(),
        };
        fields.complete_from(std::mem::take(&mut part.fields));
        part.fields = fields;
        Ok(field.map(|_| (at, new)))
    }

    /// Adds an annotation that came by itself. The views of the whole part have it, too.
    pub(super) fn annotate(&mut self, place: Place, at: Option<usize>, annotation: RawJson) {
        let part = self.part(place);
        let fields = &mut self.parts[part].fields;
        let mut all = fields.get("annotations").and_then(wire::items).unwrap_or_default();
        if at.is_none_or(|at| at >= all.len()) && !all.contains(&annotation) {
            all.push(annotation);
            fields.set("annotations", array(all));
        }
    }

    /// The blocks, each with the number of its part.
    pub(super) fn blocks(&self) -> Result<Vec<(u64, Block)>> {
        let numbers: Vec<_> = self.list("content").map(|part| part.number).collect();
        let blocks = items::blocks(self.joined()?)?;
        let is_by_part = self.kind == Kind::Message && blocks.len() == numbers.len();
        let number = |at: usize| if is_by_part { numbers[at] } else { at as u64 };
        Ok(blocks.into_iter().enumerate().map(|(at, block)| (number(at), block)).collect())
    }

    /// The parts of a list, in order.
    fn list(&self, list: &'static str) -> impl Iterator<Item = &Part> {
        let mut parts: Vec<_> = self.parts.iter().filter(|part| part.list == list).collect();
        parts.sort_by_key(|part| part.number);
        parts.into_iter()
    }

    /// The item of all views: the newest one unchanged, if it has everything.
    fn joined(&self) -> Result<RawJson> {
        let mut item = self.item.clone();
        if item.get("status").is_some() && !self.is_done {
            item.set("status", RawJson::string("completed"));
        }
        if self.kind == Kind::Call
            && !self.is_done
            && self.parts.iter().all(|part| part.text.text().is_empty())
        {
            // The arguments never came, which is not the same as none.
            item.set("status", RawJson::string("incomplete"));
        }
        for list in ["content", "summary"] {
            let parts = self.list(list).map(Part::joined).collect::<Result<Vec<_>>>()?;
            if !parts.is_empty() || (list == "content" && self.kind == Kind::Message) {
                item.set(list, array(parts));
            }
        }
        for part in self.list("") {
            let text = part.text.finish().map_err(bad)?;
            // An item that is not read has its own view of the field, unless that says less.
            let is_known = || filled(&item, &part.kind).is_some_and(|known| known.len() >= text.len());
            if !(text.is_empty() || (self.kind == Kind::Other && is_known())) {
                item.set(&part.kind, RawJson::string(text));
            }
        }
        let item = item.to_json();
        let value = |raw: &RawJson| raw.parse::<Value>().ok();
        Ok(match &self.newest {
            Some(newest) if value(newest).is_some() && value(newest) == value(&item) => newest.clone(),
            _ => item,
        })
    }
}

impl Part {
    fn joined(&self) -> Result<RawJson> {
        let text = self.text.finish().map_err(bad)?;
        let mut fields = self.fields.clone();
        if fields.get("type").is_none() {
            fields = object(&self.kind);
            self.fields.iter().for_each(|(name, value)| fields.set(name, value.clone()));
        }
        if let Some(field) = items::text_field(&self.kind)
            && fields.get_as::<String>(field).as_deref() != Some(text)
        {
            fields.set(field, RawJson::string(text));
        }
        Ok(fields.to_json())
    }
}
