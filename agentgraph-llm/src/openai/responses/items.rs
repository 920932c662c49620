//! Items of the model's output as blocks.

use crate::error::Result;
use crate::json::{Growing, Object, RawJson};
use crate::message::{Block, MessageIds, TextBlock, Thinking, ToolInput, ToolUse};

use crate::openai::failure;
use crate::openai::wire::{bad, broken, filled, items};

/// The further field of a block with the item that it came from: of thinking the whole item, of a text all
/// but its content.
pub(super) const ITEM: &str = "item";

/// The field of an unknown block that is an unknown part of a message.
pub(super) const PART: &str = "part";

/// The blocks of an item: one for each part of a message, and one for any other item.
///
/// # Errors
/// If a text of the item is half a character, which nothing could keep.
pub(super) fn blocks(raw: RawJson) -> Result<Vec<Block>> {
    Ok(known(&raw)?.unwrap_or_else(|| vec![Block::Unknown(raw)]))
}

fn known(raw: &RawJson) -> Result<Option<Vec<Block>>> {
    let Ok(fields) = Object::parse(raw.get()) else { return Ok(None) };
    match filled(&fields, "type").unwrap_or_default().as_str() {
        "message" => message(fields),
        "reasoning" => Ok(Some(vec![reasoning(raw, &fields)?])),
        "function_call" => Ok(Some(vec![function_call(fields)?])),
        _ => Ok(None),
    }
}

/// A field that is a text.
fn text_of(fields: &mut Object, name: &str) -> Result<Option<String>> {
    let Some(raw) = fields.get(name).filter(|raw| raw.is_string()) else { return Ok(None) };
    let mut text = Growing::default();
    text.whole_text(raw).map_err(bad)?;
    fields.take(name);
    Ok(Some(text.text().to_owned()))
}

fn message(mut item: Object) -> Result<Option<Vec<Block>>> {
    let Some(content) = item.take("content") else { return Ok(None) };
    let parts = match content.is_string() {
        true => Some(vec![output_text(&content)]),
        false => items(&content),
    };
    let Some(parts) = parts else { return Ok(None) };
    item.take("type");
    item.take("role");
    let mut blocks = parts.into_iter().map(part).collect::<Result<Vec<_>>>()?;
    // Nothing but unknown parts: the item stays whole, since only a text keeps the fields around its parts.
    if !blocks.is_empty() && blocks.iter().all(|block| matches!(block, Block::Unknown(_))) {
        return Ok(None);
    }
    if let Some(text) = blocks.iter_mut().find_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    }) && filled(&item, "id").is_some()
    {
        text.extra.insert(ITEM, item.to_json());
    }
    Ok(Some(blocks))
}

/// A part of a message with this text.
pub(super) fn output_text(text: &RawJson) -> RawJson {
    Object::default().with("type", RawJson::string("output_text")).with("text", text.clone()).to_json()
}

fn part(raw: RawJson) -> Result<Block> {
    Ok(known_part(&raw)?.unwrap_or_else(|| Block::Unknown(Object::default().with(PART, raw).to_json())))
}

/// The field with the text of a part of this type.
pub(super) fn text_field(kind: &str) -> Option<&'static str> {
    match kind {
        "output_text" | "text" | "summary_text" | "reasoning_text" => Some("text"),
        "refusal" => Some("refusal"),
        _ => None,
    }
}

fn known_part(raw: &RawJson) -> Result<Option<Block>> {
    let mut fields = Object::parse(raw.get()).unwrap_or_default();
    let kind = filled(&fields, "type").unwrap_or_default();
    let Some(field) = text_field(&kind) else { return Ok(None) };
    let Some(text) = text_of(&mut fields, field)? else { return Ok(None) };
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
    Ok(Some(block.into()))
}

fn reasoning(raw: &RawJson, item: &Object) -> Result<Block> {
    let mut thinking = Thinking::new(thinking_text(item)?, None);
    thinking.extra.insert(ITEM, raw.clone());
    Ok(thinking.into())
}

fn thinking_text(item: &Object) -> Result<String> {
    let lists = ["summary", "content"].into_iter().filter_map(|name| items(item.get(name)?));
    let mut texts = Vec::new();
    for part in lists.flatten() {
        let mut part = Object::parse(part.get()).unwrap_or_default();
        texts.extend(text_of(&mut part, "text")?.filter(|text| !text.is_empty()));
    }
    Ok(texts.join("\n\n"))
}

fn function_call(mut item: Object) -> Result<Block> {
    if failure::says_error(&item) {
        return Err(failure::from_event(&item));
    }
    let name = filled(&item, "name").ok_or_else(|| broken("a function call without a name"))?;
    item.take("name");
    // The result has to name its call.
    let id = filled(&item, "call_id").or_else(|| filled(&item, "id"));
    let id = id.unwrap_or_else(|| format!("call_{}", MessageIds::default().next_id()));
    let text = text_of(&mut item, "arguments")?;
    let text = text.or_else(|| item.take("arguments").map(|raw| raw.get().to_owned())).unwrap_or_default();
    let input = match text.trim() {
        // The provider says that more was to come, or that it failed.
        _ if matches!(filled(&item, "status").as_deref(), Some("incomplete" | "failed" | "cancelled")) => {
            ToolInput::Malformed(text)
        }
        "" | "null" => ToolInput::Json(RawJson::empty_object()),
        _ => ToolInput::from_text(text),
    };
    item.take("type");
    item.take("call_id");
    let mut call = ToolUse::new(id, name, RawJson::empty_object());
    call.input = input;
    call.extra = item.into_extra();
    Ok(call.into())
}
