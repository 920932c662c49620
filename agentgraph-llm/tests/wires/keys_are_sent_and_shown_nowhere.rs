//! The key of a call: how it is sent, where it comes from, and where it must not appear.

use std::sync::atomic::{AtomicU32, Ordering};

use agentgraph_llm::prelude::*;
use agentgraph_llm::{Authentication, Code, Error, http_client_builder};

use super::wire::{Failure, KEY, SecretString, Settings, WIRES, Wire, text};
use crate::server::{Reply, Server};

/// Asks once and returns the head of the request.
async fn head(wire: &dyn Wire, change: impl Fn(Settings) -> Settings) -> String {
    let server = Server::start([Reply::stream(text(wire, "done").concat())]).await;
    let model = wire.model(&change(Settings::of(&server))).unwrap();
    model.chat(ChatRequest::user("hi")).await.unwrap();
    server.requests().remove(0).head
}

fn has_line(head: &str, line: &str) -> bool {
    head.lines().any(|got| got == line)
}

#[tokio::test]
async fn the_key_is_sent_in_the_header_of_the_wire_or_in_another() {
    for wire in WIRES {
        let plain = head(*wire, |settings| settings).await;
        assert!(has_line(&plain, &wire.key_line(KEY)), "{}: {plain}", wire.name());
        assert!(has_line(&plain, "content-type: application/json"), "{plain}");
        assert!(!plain.contains("accept-encoding") || cfg!(feature = "gzip"), "{plain}");

        let named = Some(Authentication::header("X-Gate-Key"));
        let other = head(*wire, |settings| Settings { authentication: named.clone(), ..settings }).await;
        assert!(has_line(&other, &format!("x-gate-key: {KEY}")), "{}: {other}", wire.name());
        assert_eq!(other.matches(KEY).count(), 1, "{other}");

        let bearer = Some(Authentication::Bearer);
        let other = head(*wire, |settings| Settings { authentication: bearer.clone(), ..settings }).await;
        assert!(has_line(&other, &format!("authorization: bearer {KEY}")), "{}: {other}", wire.name());
    }
}

#[tokio::test]
async fn headers_of_the_user_are_sent_and_replace_the_key() {
    for wire in WIRES {
        let line = wire.key_line("of-the-user");
        let (name, value) = line.split_once(": ").unwrap();
        let (name, value): (&'static str, &'static str) = (name.to_owned().leak(), value.to_owned().leak());
        for key in [None, Some(KEY.to_owned())] {
            let header = Some((name, value));
            let head = head(*wire, |settings| Settings { key: key.clone(), header, ..settings }).await;
            assert!(has_line(&head, &line) && !head.contains(KEY), "{}: {head}", wire.name());
        }
        let other = Some(("X-Team", "blue"));
        let head = head(*wire, |settings| Settings { header: other, ..settings }).await;
        assert!(has_line(&head, "x-team: blue") && has_line(&head, &wire.key_line(KEY)), "{head}");
    }
}

#[tokio::test]
async fn a_client_of_the_user_is_used() {
    for wire in WIRES {
        let client = http_client_builder().user_agent("own-client").build().unwrap();
        let head = head(*wire, |settings| Settings { client: Some(client.clone()), ..settings }).await;
        assert!(has_line(&head, "user-agent: own-client"), "{}: {head}", wire.name());
    }
}

#[tokio::test]
async fn a_source_of_keys_is_asked_for_each_request_and_each_retry() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    fn next_key() -> Result<SecretString, Error> {
        Ok(format!("token-{}", ASKED.fetch_add(1, Ordering::SeqCst)).into())
    }
    for wire in WIRES {
        let before = ASKED.load(Ordering::SeqCst);
        let failed = Reply::json(500, "", &wire.error_body(Failure::Server, "broken"));
        let done = || Reply::stream(text(*wire, "done").concat());
        let server = Server::start([failed, done(), done()]).await;
        let model =
            wire.model(&Settings { key: None, keys: Some(next_key), ..Settings::of(&server) }).unwrap();
        model.chat(ChatRequest::user("hi")).await.unwrap();
        model.chat(ChatRequest::user("hi")).await.unwrap();
        for (at, request) in server.requests().iter().enumerate() {
            let line = wire.key_line(&format!("token-{}", before + at as u32));
            assert!(has_line(&request.head, &line), "{}: {line} in {}", wire.name(), request.head);
        }
        assert_eq!(server.requests().len(), 3);
    }
}

#[tokio::test]
async fn an_error_of_a_source_of_keys_ends_the_call_before_anything_is_sent() {
    for wire in WIRES {
        let server = Server::start([]).await;
        let keys: super::wire::Keys = || Err(Error::new(Code::Auth, "the vault is closed"));
        let model = wire.model(&Settings { key: None, keys: Some(keys), ..Settings::of(&server) }).unwrap();
        let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Auth, "the vault is closed"), "{}", wire.name());
        assert!(server.requests().is_empty());
    }
}

#[tokio::test]
async fn a_source_of_keys_that_fails_for_a_moment_is_asked_again() {
    static FAILED: AtomicU32 = AtomicU32::new(0);
    fn second_try() -> Result<SecretString, Error> {
        match FAILED.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => Err(Error::new(Code::Connection, "the vault is not there")),
            _ => Ok("token-of-the-vault".into()),
        }
    }
    for wire in WIRES {
        let server = Server::start([Reply::stream(text(*wire, "done").concat())]).await;
        let settings = Settings { key: None, keys: Some(second_try), ..Settings::of(&server) };
        wire.model(&settings).unwrap().chat(ChatRequest::user("hi")).await.unwrap();
        assert_eq!((settings.waits.millis(), server.requests().len()), (vec![500], 1), "{}", wire.name());
    }
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_removed_from_errors() {
    fn provided() -> Result<SecretString, Error> {
        Ok(KEY.into())
    }
    for wire in WIRES {
        let body = |failure| wire.error_body(failure, &format!("no access with {KEY}"));
        let id = format!("{}: req_{KEY}\r\n", wire.request_id());
        let event = wire.error_event(Failure::Auth, &format!("no access with {KEY}"));
        let line = wire.key_line(KEY);
        let (name, value) = line.split_once(": ").unwrap();
        let header: (&'static str, &'static str) = (name.to_owned().leak(), value.to_owned().leak());
        for (keys, header) in
            [(None, None), (Some(provided as super::wire::Keys), None), (None, Some(header))]
        {
            let refused = || Reply::json(401, &id, &body(Failure::Auth));
            // A source of keys is asked for another one.
            let again = keys.map(|_| refused());
            let replies = [
                refused(),
                Reply::json(500, &id, &body(Failure::Server)),
                Reply::json(200, &id, &body(Failure::Server)),
                Reply::stream_with(&id, &event),
            ];
            let count = replies.len();
            let server = Server::start(again.into_iter().chain(replies)).await;
            let settings = Settings { keys, header, max_retries: 0, ..Settings::of(&server) };
            let model = wire.model(&settings).unwrap();
            for _ in 0..count {
                let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
                let shown = format!("{error} {error:?} {error:#?}");
                assert!(!shown.contains("hunter2"), "{}: {shown}", wire.name());
                assert!(shown.contains("[redacted]"), "{}: {shown}", wire.name());
            }
        }
    }
}

#[tokio::test]
async fn a_short_key_does_not_change_the_texts_of_errors() {
    for wire in WIRES {
        let reply = Reply::json(401, "", &wire.error_body(Failure::Auth, "the keeper keeps the keys"));
        let server = Server::start([reply]).await;
        let model = wire.model(&Settings { key: Some("ke".to_owned()), ..Settings::of(&server) }).unwrap();
        let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
        assert!(error.message().contains("the keeper keeps the keys"), "{}: {error}", wire.name());
    }
}
