//! The bytes of a stream in pieces, with other line ends, with pings, and cut off.

use agentgraph_llm::Code;
use agentgraph_llm::prelude::*;
use futures_util::StreamExt;

use super::wire::{Failure, Settings, WIRES, Wire, quoted, text};
use crate::server::{Reply, Server};

/// The events of one reply, or of its beginning, and the last error.
async fn read(wire: &dyn Wire, reply: Reply) -> Vec<String> {
    read_all(wire, vec![reply]).await.remove(0)
}

async fn read_all(wire: &dyn Wire, replies: Vec<Reply>) -> Vec<Vec<String>> {
    let count = replies.len();
    let server = Server::start(replies).await;
    let settings = Settings { max_retries: 0, ..Settings::of(&server) };
    let model = wire.model(&settings).unwrap();
    let mut all = Vec::new();
    for _ in 0..count {
        let mut shown = Vec::new();
        match model.stream(ChatRequest::user("hi")).await {
            Err(error) => shown.push(error.to_string()),
            Ok(stream) => {
                let events = stream.map(|event| match event {
                    Ok(ChatEvent::Finished(response)) => {
                        let response = (response.message.content.clone(), response.stop, response.usage);
                        format!("finished {response:?}")
                    }
                    Ok(event) => format!("{event:?}"),
                    Err(error) => error.to_string(),
                });
                shown.extend(events.collect::<Vec<_>>().await);
            }
        }
        all.push(shown);
    }
    all
}

fn call(wire: &dyn Wire) -> String {
    wire.call(&quoted([r#"{"path":"#, r#" "/tmp/🦀"#, r#"","n":1.0}"#])).concat()
}

#[tokio::test]
async fn every_split_of_the_bytes_gives_the_same_events() {
    for wire in WIRES {
        for stream in [text(*wire, "Hello wörld 🦀").concat(), call(*wire)] {
            let bytes = stream.as_bytes();
            let whole = read(*wire, Reply::stream(bytes)).await;
            assert!(whole.last().unwrap().starts_with("finished"), "{}: {whole:?}", wire.name());
            assert!(whole.len() > 2, "{}: {whole:?}", wire.name());
            assert_eq!(read(*wire, Reply::chunks(bytes.chunks(1))).await, whole, "{}", wire.name());
            let cuts = (0..bytes.len()).map(|cut| {
                let (head, tail) = bytes.split_at(cut);
                Reply::chunks([head, tail])
            });
            for (cut, events) in read_all(*wire, cuts.collect()).await.into_iter().enumerate() {
                assert_eq!(events, whole, "{} cut at {cut}", wire.name());
            }
        }
    }
}

#[tokio::test]
async fn line_ends_marks_comments_and_pings_do_not_matter() {
    for wire in WIRES {
        let events = text(*wire, "Hello 🦀 world");
        let whole = read(*wire, Reply::stream(events.concat())).await;
        let pinged = wire.ping().map(|ping| events.join(ping));
        for other in [
            events.concat().replace('\n', "\r\n"),
            events.concat().replace('\n', "\r"),
            format!("\u{feff}{}", events.concat()),
            format!(": hello\n\n{}", events.join(": still here\n\n")),
            events.join("data: \n\n"),
            events.concat().replace("data: ", "data:"),
            events.concat().replace("data: ", "id: 7\nretry: 5\ndata: "),
            events.concat().replace("}\n\n", "}   \n\n"),
            events.concat().trim_end().to_owned(),
        ]
        .into_iter()
        .chain(pinged)
        {
            assert_eq!(read(*wire, Reply::stream(&other)).await, whole, "{}: {other:?}", wire.name());
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_an_error_and_never_an_answer() {
    for wire in WIRES {
        for events in [text(*wire, "Once upon a time"), wire.call(&quoted(["{\"a\"", ":1}"]))] {
            for cut in 0..wire.complete(&events) {
                let shown = read(*wire, Reply::stream(events[..cut].concat())).await;
                let (last, before) = shown.split_last().unwrap();
                assert!(last.starts_with(Code::Truncated.as_str()), "{} after {cut}: {shown:?}", wire.name());
                assert!(before.iter().all(|event| !event.starts_with("finished")), "{shown:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_error_after_the_start_is_the_last_event() {
    for wire in WIRES {
        let mut events = text(*wire, "Once upon");
        events.insert(wire.hidden() + 1, wire.error_event(Failure::Overloaded, "too much"));
        let shown = read(*wire, Reply::stream(events.concat())).await;
        assert_eq!(shown.len(), 2, "{}: {shown:?}", wire.name());
        assert!(shown[0].contains("Once "), "{shown:?}");
        assert!(shown[1].starts_with(Code::Overloaded.as_str()), "{}: {shown:?}", wire.name());
    }
}

#[tokio::test]
async fn bytes_that_are_no_json_are_an_error() {
    for wire in WIRES {
        for bytes in
            [b"data: {\"type\":\n\n".as_slice(), b"data: [1\n\n", b"data: \"\xff\"\n\n", b"data: {]\n\n"]
        {
            let mut events = text(*wire, "Once upon").concat().into_bytes();
            let at = text(*wire, "Once upon")[..=wire.hidden()].concat().len();
            events.splice(at..at, bytes.iter().copied());
            let shown = read(*wire, Reply::stream(&events)).await;
            assert!(shown.last().unwrap().starts_with(Code::Decode.as_str()), "{}: {shown:?}", wire.name());
        }
    }
}
