//! Answers that are no stream: JSON, a web page, compressed bytes, too many bytes.

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};
use futures_util::StreamExt;

use super::wire::{Failure, Settings, WIRES, Wire, text};
use crate::wires::server::{Reply, Server, Step};

async fn ask(wire: &dyn Wire, reply: Reply) -> Result<ChatResponse, Error> {
    let server = Server::start([reply]).await;
    let settings = Settings { max_retries: 0, ..Settings::of(&server) };
    wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await
}

#[tokio::test]
async fn json_instead_of_a_stream_is_the_same_answer() {
    for wire in WIRES {
        let streamed = ask(*wire, Reply::stream(text(*wire, "all of it").concat())).await.unwrap();
        let whole = ask(*wire, Reply::json(200, "", &wire.whole("all of it"))).await.unwrap();
        assert_eq!(whole.message, streamed.message, "{}", wire.name());
        assert_eq!((whole.stop, whole.usage), (streamed.stop, streamed.usage), "{}", wire.name());

        let server = Server::start([Reply::json(200, "", &wire.whole("all of it"))]).await;
        let stream =
            wire.model(&Settings::of(&server)).unwrap().stream(ChatRequest::user("hi")).await.unwrap();
        let events: Vec<_> = stream.map(Result::unwrap).collect().await;
        assert!(
            matches!(&events[..], [ChatEvent::TextDelta { text, .. }, ChatEvent::Finished(_)] if text == "all of it"),
            "{}: {events:?}",
            wire.name()
        );
    }
}

#[tokio::test]
async fn json_that_is_no_answer_is_an_error() {
    for wire in WIRES {
        for body in ["", "null", "[]", "{", "\"text\"", "{\"unrelated\": 1}"] {
            let error = ask(*wire, Reply::json(200, "", body)).await.unwrap_err();
            assert_eq!(error.code(), Code::Decode, "{}: {body:?} gives {error}", wire.name());
        }
        let error = ask(*wire, Reply::json(200, "", &wire.error_body(Failure::Overloaded, "busy"))).await;
        assert!(error.unwrap_err().is_overloaded(), "{}", wire.name());
    }
}

/// A body under a type, or under none.
fn typed(kind: &str, pieces: &[&[u8]]) -> Reply {
    let head = format!("HTTP/1.1 200 OK\r\n{kind}transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    let mut bytes = head.into_bytes();
    for piece in pieces {
        bytes.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    bytes.extend(b"0\r\n\r\n");
    Reply::say(bytes)
}

const WRONG_TYPES: [&str; 5] = [
    "",
    "content-type: text/plain\r\n",
    "content-type: text/event-stream\r\n",
    "content-type: application/octet-stream\r\n",
    "content-type: application/x-ndjson; charset=utf-8\r\n",
];

#[tokio::test]
async fn json_under_a_wrong_type_or_none_is_an_answer() {
    for wire in WIRES {
        for kind in WRONG_TYPES {
            let whole = wire.whole("all of it");
            let (begin, end) = whole.as_bytes().split_at(1);
            for pieces in [
                &[whole.as_bytes()][..],
                &[begin, end],
                &[b"\n", b" \r\n", begin, end],
                &[b"\xEF", b"\xBB\xBF", begin, end],
            ] {
                let answer = ask(*wire, typed(kind, pieces)).await.unwrap();
                assert_eq!(answer.message.text(), "all of it", "{}: {kind}", wire.name());
            }
        }
    }
}

#[tokio::test]
async fn json_that_is_no_answer_is_never_called_a_cut_stream() {
    for wire in WIRES {
        for kind in WRONG_TYPES {
            for body in ["{\"unrelated\": 1}", "[]", "{", "{\"a\":1}\n{\"b\":2}\n"] {
                let error = ask(*wire, typed(kind, &[body.as_bytes()])).await.unwrap_err();
                assert_eq!(error.code(), Code::Decode, "{}: {kind}{body} gives {error}", wire.name());
            }
            let busy = wire.error_body(Failure::Overloaded, "busy");
            let error = ask(*wire, typed(kind, &[busy.as_bytes()])).await.unwrap_err();
            assert!(error.is_overloaded(), "{}: {kind} gives {error}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_stream_under_a_wrong_type_is_a_stream() {
    for wire in WIRES {
        for kind in WRONG_TYPES {
            let events = text(*wire, "all of it").concat();
            let pieces: Vec<&[u8]> = events.as_bytes().chunks(7).collect();
            let answer = ask(*wire, typed(kind, &pieces)).await.unwrap();
            assert_eq!(answer.message.text(), "all of it", "{}: {kind}", wire.name());
        }
    }
}

#[tokio::test]
async fn prose_under_a_wrong_type_is_refused_by_name() {
    for wire in WIRES {
        for body in ["upstream connect error", "<html>", "  <!doctype html>"] {
            let error =
                ask(*wire, typed("content-type: text/plain\r\n", &[body.as_bytes()])).await.unwrap_err();
            assert_eq!(
                (error.code(), error.is_retryable()),
                (Code::Decode, false),
                "{}: {error}",
                wire.name()
            );
            assert!(error.message().contains("text/plain instead of a stream"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_web_page_is_refused_without_a_retry() {
    for wire in WIRES {
        let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n\r\n<html>".as_slice();
        let error = ask(*wire, Reply::say(page)).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (Code::Decode, false), "{}", wire.name());
        assert!(error.message().contains("text/html instead of a stream"), "{error}");
    }
}

#[tokio::test]
async fn compression_that_was_not_asked_for_is_refused_by_name() {
    for wire in WIRES {
        for encoding in ["br", "deflate", "zstd", "X-New"] {
            let headers = format!("content-encoding: {encoding}\r\n");
            for reply in
                [Reply::stream_with(&headers, "\u{1}\u{2}"), Reply::json(200, &headers, "\u{1}\u{2}")]
            {
                let error = ask(*wire, reply).await.unwrap_err();
                assert_eq!((error.code(), error.is_retryable()), (Code::Decode, false), "{}", wire.name());
                assert!(error.message().contains(&format!("content-encoding: {}", encoding.to_lowercase())));
            }
        }
        let plain = Reply::stream_with("content-encoding: identity\r\n", text(*wire, "done").concat());
        assert_eq!(ask(*wire, plain).await.unwrap().message.text(), "done", "{}", wire.name());
    }
}

#[tokio::test]
async fn gzip_is_read_if_the_feature_is_on_and_refused_by_name_otherwise() {
    for wire in WIRES {
        let bytes = gzip(text(*wire, "done").concat().as_bytes());
        let result = ask(*wire, Reply::stream_with("content-encoding: gzip\r\n", bytes)).await;
        if cfg!(feature = "gzip") {
            assert_eq!(result.unwrap().message.text(), "done", "{}", wire.name());
        } else {
            let error = result.unwrap_err();
            assert_eq!(error.code(), Code::Decode, "{}", wire.name());
            assert!(error.message().contains("content-encoding: gzip") && error.message().contains("`gzip`"));
        }
    }
}

/// The bytes in gzip's format, not compressed: a header, one stored block, and the sum (RFC 1951, RFC 1952).
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap();
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
        }
    }
    let head = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF, 1];
    let block = [length.to_le_bytes(), (!length).to_le_bytes()].concat();
    let foot = [(!sum).to_le_bytes(), u32::from(length).to_le_bytes()].concat();
    [&head, &block[..], bytes, &foot].concat()
}

#[tokio::test]
async fn a_hundred_megabytes_are_refused() {
    let megabyte = vec![b'a'; 1 << 20];
    let hundred = || Step::Repeat(megabyte.clone(), 100);
    for wire in WIRES {
        let json = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"a\":\"".as_slice();
        let error = ask(*wire, Reply::say(json).then(hundred())).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (Code::Decode, false), "{}: {error}", wire.name());

        let error = ask(*wire, Reply::stream("data: {\"a\":\"").then(hundred())).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (Code::Decode, false), "{}: {error}", wire.name());

        let mut comment = megabyte.clone();
        comment[0] = b':';
        comment[(1 << 20) - 1] = b'\n';
        let reply = Reply::stream("").then(Step::Repeat(comment, 100));
        let error = ask(*wire, reply).await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (Code::Decode, false), "{}: {error}", wire.name());

        let failed = b"HTTP/1.1 500 Broken\r\ncontent-type: application/json\r\n\r\n".as_slice();
        let error = ask(*wire, Reply::say(failed).then(hundred())).await.unwrap_err();
        assert_eq!((error.code(), error.status()), (Code::Server, Some(500)), "{}: {error}", wire.name());
    }
}
