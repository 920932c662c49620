//! The wire of Gemini: requests, responses, errors, counts and embeddings.

mod embeddings_are_asked_for_in_batches;
mod errors_say_what_helps;
mod no_bytes_make_the_decoder_fail;
mod requests_match_generate_content;
mod responses_are_read_without_loss;
mod signatures_return_on_the_part_that_they_came_on;
mod streamed_arguments_are_put_together;

use agentgraph_llm::gemini::StreamDecoder;
use agentgraph_llm::{ChatEvent, ChatResponse, Error, MessageIds};
use serde_json::{Value, json};

/// The events of a stream of these chunks.
fn events(chunks: &[Value]) -> Vec<Result<ChatEvent, Error>> {
    let mut decoder = StreamDecoder::new().call_ids(MessageIds::sequence("c"));
    for chunk in chunks {
        decoder.push(format!("data: {chunk}\r\n\r\n").as_bytes());
    }
    decoder.end();
    std::iter::from_fn(|| decoder.next_event()).collect()
}

/// The response at the end of a stream of these chunks.
fn stream(chunks: &[Value]) -> Result<ChatResponse, Error> {
    match events(chunks).pop().unwrap()? {
        ChatEvent::Finished(response) => Ok(response),
        event => panic!("{event:?} is the last event"),
    }
}

/// A chunk with these parts.
fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}]})
}

/// A chunk that ends the stream.
fn finish(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}]})
}

/// The response to these parts.
fn answer(all: Value) -> ChatResponse {
    stream(&[parts(all), finish("STOP")]).unwrap()
}
