//! Files of every kind that the benchmark has, each written by another program (`fixtures/make_files.py`): a
//! value of the file is in the text, or its bytes arrive at the model that sees and hears.

use std::sync::{Arc, Mutex};

use agentgraph_llm::GeminiModel;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::{Scene, call, call_with, fixture};

async fn scene(names: &[&str]) -> Scene {
    let scene = Scene::new().await;
    for name in names {
        scene.folder.write(&format!("here/{name}"), fixture(name));
    }
    scene
}

async fn read(name: &str) -> Result<String, String> {
    call(&scene(&[name]).await, "read_file", json!({ "path": name })).await
}

#[tokio::test]
async fn a_value_of_each_kind_is_in_its_text() {
    let cases: [(&str, &[&str]); 15] = [
        ("legs.xlsx", &["2\tant\t6", "`read_excel`"]),
        ("legs.xls", &["2\tant\t6"]),
        ("gifts.pdf", &["[page 1]", "Gift exchange"]),
        ("double.py", &["print(21 * 2)"]),
        (
            "gifts.docx",
            &["# Gift exchange\n", "- Rebecca\n", "| Harry | Rebecca |\n", "[header1]\nOffice of the elves"],
        ),
        ("gifts.html", &["# Gift exchange\n", "- Rebecca\n", "| Harry | Rebecca |"]),
        (
            "animals.pptx",
            &[
                "[slide 1]\n# Crustaceans\nshape on slide 1\n[notes of the speaker]\nSay that crabs count.",
                "| squid | octopus |",
            ],
        ),
        ("birds.csv", &["owl,3"]),
        ("latin1.csv", &["Müller;Köln", "[the text is in windows-1252, by a guess]"]),
        ("utf16.csv", &["Müller\tKöln", "[the text is in UTF-16LE, as its first bytes say]"]),
        ("cyrillic.txt", &["Столица Норвегии называется Осло", "windows-1251"]),
        ("protein.pdb", &["GLY A   2       2.912"]),
        ("person.jsonld", &["0000-0002-1825-0097"]),
        ("shop.xml", &["Größe 7", "as it declares"]),
        ("poem.txt", &["A stanza,\n    and its indent.\n"]),
    ];
    for (name, parts) in cases {
        let text = read(name).await.unwrap();
        for part in parts {
            assert!(text.contains(part), "{name} lacks {part:?}:\n{text}");
        }
        assert!(!text.contains("p { line-height"), "{text}");
    }
}

#[tokio::test]
async fn an_archive_shows_its_files_and_each_has_a_path_for_all_tools() {
    let scene = scene(&["bundle.zip"]).await;
    let text = call(&scene, "read_file", json!({ "path": "bundle.zip" })).await.unwrap();
    for part in
        ["2 files\n", "bundle.zip/data/legs.xlsx (4", "a spreadsheet: `read_excel`", "2\tant\t6", "Größe 7"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let path = |path: &str| json!({ "path": path });
    let cells = call(&scene, "read_excel", path("bundle.zip/data/legs.xlsx")).await.unwrap();
    assert!(cells.contains("2\tant\t6"), "{cells}");
    assert!(call(&scene, "read_file", path("bundle.zip/shop.xml")).await.unwrap().contains("Größe 7"));
    let error = call(&scene, "read_file", path("bundle.zip/none.txt")).await.unwrap_err();
    assert!(error.contains("no file `none.txt`; it has data/legs.xlsx, shop.xml"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_read_is_said_with_the_tool_that_can_help() {
    let without = |name: &'static str| async move {
        let scene = scene(&[name]).await;
        let bare = gaia_agent::GaiaAgent::builder(agentgraph_llm::ScriptedModel::new([
            agentgraph_llm::Reply::tool_call("read_file", json!({ "path": name })),
            agentgraph_llm::Reply::text("FINAL ANSWER: done"),
        ]));
        let agent = bare
            .folder(scene.folder.path())
            .current_folder(scene.folder.file("here"))
            .checkpointer(agentgraph::MemorySaver::new())
            .build()
            .unwrap();
        agent.solve("t", &gaia_agent::agent::Task::ask("?")).await.unwrap();
        crate::support::results(&agent, "t").await.pop().unwrap().0
    };
    for (name, part, tool) in [
        ("scan.pdf", "no text layer: its 1 pages are pictures", "`analyze_image`"),
        ("sign.png", "It is an image", "`analyze_image`"),
        ("sign.jpg", "It is an image", "`analyze_image`"),
        ("tone.mp3", "It is a recording", "`understand_audio`"),
        ("locked.xlsx", "a password protects", ""),
        ("locked.pdf", "a password protects it", ""),
        ("legs.ods", "an OpenDocument file", ""),
    ] {
        let error = read(name).await.unwrap_err();
        assert!(error.contains(part) && error.contains(tool), "{name}: {error}");
        // Without a model for media, its tools are not named.
        let error = without(name).await;
        assert!(
            error.contains(part) && !error.contains("analyze_image") && !error.contains("understand"),
            "{error}"
        );
    }
    let locked = read("locked.zip").await.unwrap();
    assert!(locked.contains("locked.zip/shop.xml (a password protects `shop.xml`)"), "{locked}");
    let scene = Scene::new().await;
    scene.folder.write("here/empty.xlsx", "");
    let empty = call(&scene, "read_excel", json!({ "path": "empty.xlsx" })).await.unwrap_err();
    assert!(empty.contains("It is an empty file"), "{empty}");
    scene.folder.write("here/page.pdf", "<!DOCTYPE html><p>Not found</p>");
    let text = call(&scene, "read_file", json!({ "path": "page.pdf" })).await.unwrap();
    assert_eq!(text, "[by its name this is a PDF; its content is a web page]\nNot found");
}

#[tokio::test]
async fn the_list_of_files_names_kinds_and_tools() {
    let scene = scene(&["legs.xlsx", "sign.png", "legs.ods"]).await;
    let list = call(&scene, "list_files", json!({})).await.unwrap();
    assert_eq!(
        list.lines().map(|line| line.split_once("; ").unwrap().1).collect::<Vec<_>>(),
        [
            "an OpenDocument file)",
            "a spreadsheet: `read_excel` shows its cells)",
            "an image: `analyze_image` looks at it)"
        ]
    );
}

#[tokio::test]
async fn the_bytes_and_the_media_type_arrive_at_the_model_that_sees_and_hears() {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let answer = |State(seen): State<Arc<Mutex<Vec<Value>>>>, Json(body): Json<Value>| async move {
        seen.lock().unwrap().push(body);
        let answer = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "seen" }] }, "finishReason": "STOP" }] });
        ([("content-type", "text/event-stream")], format!("data: {answer}\r\n\r\n")).into_response()
    };
    let routes = Router::new().route("/v1beta/models/{method}", post(answer)).with_state(Arc::clone(&seen));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    for (name, tool, media_type) in [
        ("sign.png", "analyze_image", "image/png"),
        ("sign.jpg", "analyze_image", "image/jpeg"),
        ("scan.pdf", "analyze_image", "application/pdf"),
        ("tone.mp3", "understand_audio", "audio/mpeg"),
    ] {
        let scene = scene(&[name]).await;
        let media = GeminiModel::builder().api_key("k").model("eyes").base_url(&url).build().unwrap();
        let input = json!({ "path": name, "question": "what?" });
        let said = call_with(&scene, move |builder| builder.media(Arc::new(media)), tool, input).await;
        assert_eq!(said.as_deref(), Ok("seen"), "{name}");
        let body = seen.lock().unwrap().pop().unwrap();
        let part = &body["contents"][0]["parts"][0]["inlineData"];
        let bytes = base64::engine::general_purpose::STANDARD.decode(part["data"].as_str().unwrap()).unwrap();
        assert_eq!((part["mimeType"].as_str(), bytes), (Some(media_type), fixture(name)), "{name}");
    }
}

#[tokio::test]
async fn a_sheet_shows_what_a_person_sees_beside_the_values() {
    let scene = scene(&["plots.xlsx", "sums.xlsx"]).await;
    let ask = |more: Value| {
        let mut input = json!({ "path": "plots.xlsx", "sheet": "Plots" });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let plain = call(&scene, "read_excel", ask(json!({}))).await.unwrap();
    assert!(plain.contains("\n5\t\t14:30:00\t2023-07-04\t0.125\n"), "{plain}");
    assert!(plain.contains("[there are 12 cells with a fill, 1 comments, 1 merged ranges, 2 hidden rows or columns: set `details`"), "{plain}");
    assert!(plain.starts_with("Sheets: Plots, Rows, Secret (hidden)\n"), "{plain}");
    let all = call(&scene, "read_excel", ask(json!({ "details": true }))).await.unwrap();
    for part in [
        "00FF00 (green): B1 D1 A2 C2 B3 D3\n",
        "FF0000 (red): A1 C1 B2 D2 A3 C3\n",
        "0.0%: D5\n",
        "C6: =A6+B6\n",
        "### Comments\nA1: the walk begins here\n",
        "### Merged\nA7:C7\n",
        "### Hidden\ncolumn F:F\nrow 8\n",
    ] {
        assert!(all.contains(part), "{part:?}: {all}");
    }
    let part = call(&scene, "read_excel", ask(json!({ "range": "b5:C5", "details": true }))).await.unwrap();
    assert!(part.contains("row\tB\tC\n5\t14:30:00\t2023-07-04\n") && !part.contains("green"), "{part}");
    let sums = call(&scene, "read_excel", json!({ "path": "sums.xlsx", "details": true })).await.unwrap();
    assert!(sums.contains("1\t20\t22\t42\n") && sums.contains("C1: =A1+B1"), "{sums}");
}

#[tokio::test]
async fn any_row_of_a_long_sheet_is_reached() {
    let scene = scene(&["plots.xlsx"]).await;
    let rows = |start: u64| json!({ "path": "plots.xlsx", "sheet": "Rows", "start": start });
    let mut next = 1;
    let mut seen = 0;
    loop {
        let text = call(&scene, "read_excel", rows(next)).await.unwrap();
        seen += text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).count();
        assert!(text.contains(&format!("\n{next}\t{next}\tname {next}\n")), "{text}");
        match text.split_once("[the rows from ") {
            Some((_, rest)) => next = rest.split(' ').next().unwrap().parse().unwrap(),
            None => break,
        }
    }
    assert!(seen == 3000 && next > 1, "{seen}");
    let found =
        call(&scene, "read_excel", json!({ "path": "plots.xlsx", "sheet": "rows", "find": "NAME 2999" }))
            .await
            .unwrap();
    assert!(found.contains("row\tA\tB\n2999\t2999\tname 2999\n"), "{found}");
}
