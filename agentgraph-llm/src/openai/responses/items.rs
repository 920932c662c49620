//! Items of the model's output as blocks.

use crate::json::{Object, RawJson};
use crate::message::{Block, MessageIds, TextBlock, Thinking, ToolInput, ToolUse};

use crate::openai::wire::{filled, items};

/// The further field of a block with the item that it came from: of thinking the whole item, of a text all
/// but its content.
pub(super) const ITEM: &str = "item";

/// The field of an unknown block that is an unknown part of a message.
pub(super) const PART: &str = "part";

/// The blocks of an item: one for each part of a message, and one for any other item.
pub(super) fn blocks(raw: RawJson) -> Vec<Block> {
    known(&raw).unwrap_or_else(|| vec![Block::Unknown(raw)])
}

fn known(raw: &RawJson) -> Option<Vec<Block>> {
    let fields = Object::parse(raw.get()).ok()?;
    match filled(&fields, "type")?.as_str() {
        "message" => message(fields),
        "reasoning" => Some(vec![reasoning(raw, &fields)]),
        "function_call" => Some(vec![function_call(fields)?]),
        _ => None,
    }
}

fn message(mut item: Object) -> Option<Vec<Block>> {
    let content = item.take("content")?;
    let parts = match content.is_string() {
        true => vec![output_text(&content)],
        false => items(&content)?,
    };
    item.take("type");
    item.take("role");
    let mut blocks: Vec<_> = parts.into_iter().map(part).collect();
    // Nothing but unknown parts: the item stays whole, since only a text keeps the fields around its parts.
    if !blocks.is_empty() && blocks.iter().all(|block| matches!(block, Block::Unknown(_))) {
        return None;
    }
    if let Some(text) = blocks.iter_mut().find_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    }) && filled(&item, "id").is_some()
    {
        text.extra.insert(ITEM, item.to_json());
    }
    Some(blocks)
}

fn output_text(text: &RawJson) -> RawJson {
    Object::default().with("type", RawJson::string("output_text")).with("text", text.clone()).to_json()
}

fn part(raw: RawJson) -> Block {
    known_part(&raw).unwrap_or_else(|| Block::Unknown(Object::default().with(PART, raw).to_json()))
}

fn known_part(raw: &RawJson) -> Option<Block> {
    let mut fields = Object::parse(raw.get()).ok()?;
    let kind = filled(&fields, "type")?;
    let text: String = match kind.as_str() {
        "output_text" | "text" => fields.take_as("text")?,
        "refusal" => fields.take_as("refusal")?,
        _ => return None,
    };
    if kind != "refusal" {
        fields.take("type");
    }
    for empty in ["annotations", "logprobs"] {
        if fields.get(empty).is_some_and(|value| matches!(value.get(), "[]" | "null")) {
            fields.take(empty);
        }
    }
    let mut block = TextBlock::new(text);
    block.extra = fields.into_extra();
    Some(block.into())
}

fn reasoning(raw: &RawJson, item: &Object) -> Block {
    let mut thinking = Thinking::new(thinking_text(item), None);
    thinking.extra.insert(ITEM, raw.clone());
    thinking.into()
}

fn thinking_text(item: &Object) -> String {
    let lists = ["summary", "content"].into_iter().filter_map(|name| items(item.get(name)?));
    let texts = lists.flatten().filter_map(|part| Object::parse(part.get()).ok()?.get_as::<String>("text"));
    texts.collect::<Vec<_>>().join("\n\n")
}

fn function_call(mut item: Object) -> Option<Block> {
    let name = item.take_as::<String>("name")?;
    // The result has to name its call.
    let id = filled(&item, "call_id").or_else(|| filled(&item, "id"));
    let id = id.unwrap_or_else(|| format!("call_{}", MessageIds::default().next_id()));
    let input = item.take("arguments").map_or_else(|| ToolInput::from_text("{}"), |raw| arguments(&raw));
    item.take("type");
    item.take("call_id");
    let mut call = ToolUse::new(id, name, RawJson::empty_object());
    call.input = input;
    call.extra = item.into_extra();
    Some(call.into())
}

/// Arguments are JSON in a string; some servers give the object itself.
fn arguments(raw: &RawJson) -> ToolInput {
    let text = raw.parse::<String>().unwrap_or_else(|_| raw.get().to_owned());
    match text.trim() {
        "" | "null" => ToolInput::Json(RawJson::empty_object()),
        _ => ToolInput::from_text(text),
    }
}
