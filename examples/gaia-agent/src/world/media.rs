//! A model that sees and hears, over the wire of Gemini: it reads the pixels and the samples that it is sent.
//! Of videos it knows those of the world by their ids.

use std::io::Cursor;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use serde_json::{Value, json};

use super::World;

/// The side of a point of a letter, in pixels.
pub(super) const SCALE: usize = 4;
/// Samples a second.
pub(super) const RATE: u32 = 4_000;
/// Samples of a unit of Morse code.
pub(super) const UNIT: u32 = 200;

/// The letters in Morse code, and in five by seven points, a row a number.
const LETTERS: [(char, &str, [u8; 7]); 36] = [
    ('A', ".-", [0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11]),
    ('B', "-...", [0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e]),
    ('C', "-.-.", [0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e]),
    ('D', "-..", [0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e]),
    ('E', ".", [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f]),
    ('F', "..-.", [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10]),
    ('G', "--.", [0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f]),
    ('H', "....", [0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11]),
    ('I', "..", [0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e]),
    ('J', ".---", [0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c]),
    ('K', "-.-", [0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11]),
    ('L', ".-..", [0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f]),
    ('M', "--", [0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11]),
    ('N', "-.", [0x11, 0x19, 0x15, 0x13, 0x11, 0x11, 0x11]),
    ('O', "---", [0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e]),
    ('P', ".--.", [0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10]),
    ('Q', "--.-", [0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d]),
    ('R', ".-.", [0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11]),
    ('S', "...", [0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e]),
    ('T', "-", [0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04]),
    ('U', "..-", [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e]),
    ('V', "...-", [0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04]),
    ('W', ".--", [0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11]),
    ('X', "-..-", [0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11]),
    ('Y', "-.--", [0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04]),
    ('Z', "--..", [0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f]),
    ('0', "-----", [0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e]),
    ('1', ".----", [0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e]),
    ('2', "..---", [0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f]),
    ('3', "...--", [0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e]),
    ('4', "....-", [0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02]),
    ('5', ".....", [0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e]),
    ('6', "-....", [0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e]),
    ('7', "--...", [0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08]),
    ('8', "---..", [0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e]),
    ('9', "----.", [0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c]),
];

pub(super) fn glyph(letter: char) -> [u8; 7] {
    LETTERS.iter().find(|(known, ..)| *known == letter).map_or([0; 7], |(_, _, glyph)| *glyph)
}

pub(super) fn code(letter: char) -> &'static str {
    LETTERS.iter().find(|(known, ..)| *known == letter).map_or("", |(_, code, _)| code)
}

/// The text in a picture of large letters; `?` for one that is none.
pub(super) fn read_picture(png: &[u8]) -> Option<String> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(png), png::Limits { bytes: 16 << 20 });
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut pixels).ok()?;
    let samples = frame.color_type.samples();
    let (width, height) = (frame.width as usize, frame.height as usize);
    let is_dark = |x: usize, y: usize| {
        let at = (y * width + x) * samples;
        x < width && y < height && pixels.get(at).is_some_and(|level| *level < 128)
    };
    // The middle of each point.
    let middle = |point: usize| point * SCALE + SCALE / 2;
    let count = (width / SCALE).saturating_sub(1) / 6;
    let letters = (0..count).map(|at| {
        let row = |row: usize| {
            let bits = (0..5).filter(|column| is_dark(middle(at * 6 + 1 + column), middle(row + 1)));
            bits.fold(0_u8, |bits, column| bits | (0b10000 >> column))
        };
        let glyph: [u8; 7] = std::array::from_fn(row);
        match LETTERS.iter().find(|(_, _, known)| *known == glyph) {
            Some((letter, ..)) => *letter,
            None if glyph == [0; 7] => ' ',
            None => '?',
        }
    });
    Some(letters.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The text of a recording of Morse code; `?` for a letter that is none.
pub(super) fn read_recording(wav: &[u8]) -> Option<String> {
    let mut reader = hound::WavReader::new(Cursor::new(wav)).ok()?;
    let unit = (reader.spec().sample_rate / (RATE / UNIT)).max(1);
    let samples: Vec<i32> = reader.samples::<i32>().take(20_000_000).collect::<Result<_, _>>().ok()?;
    let is_on = |part: &[i32]| part.iter().filter(|level| level.abs() > 20).count() * 2 > part.len();
    let mut signals: Vec<(bool, u32)> = Vec::new();
    for part in samples.chunks(unit as usize) {
        match signals.last_mut() {
            Some((on, units)) if *on == is_on(part) => *units += 1,
            _ => signals.push((is_on(part), 1)),
        }
    }
    let (mut text, mut letter) = (String::new(), String::new());
    for (on, units) in signals.into_iter().chain([(false, 7)]) {
        match (on, units) {
            (true, units) => letter.push(if units < 2 { '.' } else { '-' }),
            (false, 0..2) => {}
            (false, units) => {
                if !letter.is_empty() {
                    let known = LETTERS.iter().find(|(_, code, _)| *code == letter);
                    text.push(known.map_or('?', |(letter, ..)| *letter));
                    letter.clear();
                }
                if units > 5 {
                    text.push(' ');
                }
            }
        }
    }
    Some(text.trim().to_owned())
}

/// `:generateContent` and `:streamGenerateContent` of any model.
pub(super) async fn generate(
    State(world): State<Arc<World>>,
    Path(method): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    let parts: Vec<&Value> = body["contents"]
        .as_array()
        .and_then(|contents| contents.last())
        .and_then(|last| last["parts"].as_array())
        .map(|parts| parts.iter().collect())
        .unwrap_or_default();
    let said = parts.iter().find_map(|part| perceive(&world, part));
    let Some(text) = said else {
        let error = json!({ "error": { "code": 400, "message": "there is no medium in the request", "status": "INVALID_ARGUMENT" } });
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    };
    let answer = json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 260, "candidatesTokenCount": 20, "totalTokenCount": 280 },
        "modelVersion": method.split(':').next().unwrap_or_default(),
    });
    match method.ends_with(":streamGenerateContent") {
        false => Json(answer).into_response(),
        true => {
            ([(header::CONTENT_TYPE, "text/event-stream")], format!("data: {answer}\r\n\r\n")).into_response()
        }
    }
}

/// The content of a part, in words; `None` for a part without a medium.
fn perceive(world: &World, part: &Value) -> Option<String> {
    if let Some(uri) = part["fileData"]["fileUri"].as_str() {
        let id = uri.rsplit("v=").next().unwrap_or_default();
        let scenes = world.videos.get(id).map(|video| video.scenes.join("\n"));
        let scenes = scenes.filter(|scenes| !scenes.is_empty());
        return Some(scenes.unwrap_or_else(|| "The video cannot be played.".to_owned()));
    }
    let data = part.get("inlineData")?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data["data"].as_str()?).ok()?;
    let kind = data["mimeType"].as_str().unwrap_or_default();
    let text = match kind.split('/').next().unwrap_or_default() {
        "image" => {
            read_picture(&bytes).map(|text| format!("The image shows the text \"{text}\" in large letters."))
        }
        "audio" => read_recording(&bytes).map(|text| format!("The recording is Morse code: {text}")),
        _ => None,
    };
    Some(text.unwrap_or_else(|| format!("Nothing can be made out in this file of the type {kind}.")))
}
