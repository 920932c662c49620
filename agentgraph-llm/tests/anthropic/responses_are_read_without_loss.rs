//! Responses of the Messages API in their wire form and in their decoded form.
//!
//! Each `tests/anthropic/wire/NAME.sse` or `NAME.json` has an `.expected` file beside it: the events, the
//! message as it would be sent back, and the other fields of the response. `UPDATE_EXPECTED=1` writes these
//! files; read the difference before you keep it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use agentgraph_llm::anthropic::{self, StreamDecoder};
use agentgraph_llm::*;
use proptest::prelude::*;

fn cases(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/anthropic/wire");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == extension)).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn check(path: &Path, got: &str) {
    let expected = path.with_extension(format!("{}.expected", path.extension().unwrap().display()));
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&expected, got).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(got, expected, "{}", path.display());
}

fn events(pieces: &[&[u8]]) -> Vec<Result<ChatEvent>> {
    let mut decoder = StreamDecoder::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    decoder.end();
    events.extend(std::iter::from_fn(|| decoder.next_event()));
    events
}

fn show(events: &[Result<ChatEvent>]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            Ok(ChatEvent::Finished(response)) => text += &show_response(response),
            Ok(event) => writeln!(text, "{event:?}").unwrap(),
            Err(error) => text += &show_error(error),
        }
    }
    text
}

fn show_error(error: &Error) -> String {
    format!("{error}\nworth a retry: {}\n", error.is_retryable())
}

fn show_response(response: &ChatResponse) -> String {
    let ChatResponse { message, stop, usage, model, id, extra, raw_usage, .. } = response;
    let mut text = format!("Finished {id:?} of {model:?}: {stop:?}\n");
    for block in &message.content {
        writeln!(text, "  {}", serde_json::to_string(block).unwrap()).unwrap();
    }
    writeln!(text, "  {usage:?}").unwrap();
    writeln!(text, "  {}", serde_json::to_string(extra).unwrap()).unwrap();
    if let Some(raw) = raw_usage {
        writeln!(text, "  {raw}").unwrap();
    }
    text
}

#[test]
fn streams_give_the_expected_events_wherever_they_are_cut() {
    for path in cases("sse") {
        let bytes = std::fs::read(&path).unwrap();
        let whole = show(&events(&[&bytes]));
        check(&path, &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(show(&events(&single)), whole, "{}, byte by byte", path.display());
        for cut in 0..bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(show(&events(&[head, tail])), whole, "{}, cut at {cut}", path.display());
        }
    }
}

#[test]
fn line_ends_do_not_matter() {
    for path in cases("sse") {
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap()) else { continue };
        let expected = show(&events(&[text.as_bytes()]));
        for end in ["\r\n", "\r"] {
            let bytes = format!("\u{feff}{}", text.replace('\n', end));
            assert_eq!(show(&events(&[bytes.as_bytes()])), expected, "{} with {end:?}", path.display());
        }
    }
}

#[test]
fn every_stream_that_stops_early_is_an_error_and_never_an_answer() {
    let bytes =
        std::fs::read(cases("sse").into_iter().find(|path| path.ends_with("tools.sse")).unwrap()).unwrap();
    let last = bytes.windows(12).rposition(|window| window == b"message_stop").unwrap();
    for cut in 0..last {
        let events = events(&[&bytes[..cut]]);
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.code(), Code::Truncated, "cut at {cut}");
        assert!(events[..events.len() - 1].iter().all(Result::is_ok));
    }
}

#[test]
fn a_stream_of_small_events_that_never_ends_is_refused() {
    let mut piece = b"data: {\"type\":\"ping\"}\n\n:".to_vec();
    piece.resize((1 << 20) - 1, b' ');
    piece.push(b'\n');
    let mut decoder = StreamDecoder::new();
    for _ in 0..64 {
        decoder.push(&piece);
        assert!(decoder.next_event().is_none());
    }
    decoder.push(b"\n");
    let error = decoder.next_event().unwrap().unwrap_err();
    assert_eq!(error.code(), Code::Decode, "{error}");
    decoder.end();
    assert!(decoder.next_event().is_none());
}

#[test]
fn whole_answers_are_read_with_tolerance() {
    for path in cases("json") {
        let got = match anthropic::decode(&std::fs::read(&path).unwrap()) {
            Ok(response) => show_response(&response),
            Err(error) => show_error(&error),
        };
        check(&path, &got);
    }
}

#[test]
fn only_a_known_stop_reason_is_an_end() {
    let known = [
        ("end_turn", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("tool_use", StopReason::ToolUse),
        ("pause_turn", StopReason::PauseTurn),
        ("refusal", StopReason::Refusal),
        ("model_context_window_exceeded", StopReason::ContextWindowExceeded),
    ];
    for (reason, expected) in known {
        let body = format!(r#"{{"content":[],"stop_reason":"{reason}"}}"#);
        let stop = anthropic::decode(body.as_bytes()).unwrap().stop;
        assert_eq!((stop.as_str(), &stop), (reason, &expected));
    }
    for (reason, code) in
        [("\"tomorrow\"", Code::StopReason), ("\"\"", Code::Truncated), ("null", Code::Truncated)]
    {
        let body = format!(
            r#"{{"content":[{{"type":"text","text":"a"}}],"stop_reason":{reason},"usage":{{"output_tokens":3}}}}"#
        );
        let error = anthropic::decode(body.as_bytes()).unwrap_err();
        assert_eq!((error.code(), error.usage().output_total), (code, 3));
        assert_eq!(error.partial().unwrap().text(), "a");
        assert_eq!(error.stop_reason(), (code == Code::StopReason).then_some("tomorrow"));
    }
}

/// Generates pieces of real events, so that random input passes the first check.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known: &[&str] = &[
        "data: ",
        "\n\n",
        "\r",
        "{\"type\":\"",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
        "error",
        "\",\"index\":",
        "0",
        "-1",
        "18446744073709551615",
        ",\"content_block\":",
        ",\"delta\":",
        "{",
        "}",
        "{\"type\":\"text\",\"text\":\"\"}",
        "{\"type\":\"text_delta\",\"text\":\"a\"}",
        "{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"n\"}",
        "{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}",
        "{\"type\":\"citations_delta\",\"citation\":1}",
        "null",
        "[]",
        "\"usage\":",
        ",",
    ];
    prop_oneof![
        4 => prop::sample::select(known).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #[test]
    fn any_bytes_give_events_that_end_once(fragments in prop::collection::vec(fragment(), 0..40), size in 1usize..30) {
        let bytes = fragments.concat();
        let whole = events(&[&bytes]);
        prop_assert!(!whole.is_empty());
        let ends = |event: &Result<ChatEvent>| matches!(event, Ok(ChatEvent::Finished(_)) | Err(_));
        prop_assert_eq!(whole.iter().filter(|event| ends(event)).count(), 1);
        prop_assert!(ends(whole.last().unwrap()));
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(show(&events(&pieces)), show(&whole));
    }

    #[test]
    fn any_bytes_as_a_body_are_read_or_refused(fragments in prop::collection::vec(fragment(), 0..40)) {
        let _ = anthropic::decode(&fragments.concat());
    }
}
