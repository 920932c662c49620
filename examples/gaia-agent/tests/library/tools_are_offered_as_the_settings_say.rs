//! The seventeen tools under the names of the document: with typed arguments, and offered only where their
//! keys are.

use agentgraph_llm::{Reply, ScriptedModel};
use gaia_agent::GaiaAgent;
use gaia_agent::agent::Task;
use serde_json::{Value, json};

use crate::common::Folder;
use crate::support::{NAMES, Scene, call_with};

#[tokio::test]
async fn a_tool_without_its_key_is_not_offered() {
    let folder = Folder::new();
    let model = || ScriptedModel::from_fn(|_| Reply::text("FINAL ANSWER: 1"));
    let bare = GaiaAgent::builder(model()).folder(folder.path()).build().unwrap().tools();
    assert_eq!(
        bare,
        [
            "duckduckgo_search",
            "visit_page",
            "archive_page",
            "wikipedia",
            "youtube_transcript",
            "arxiv_search",
            "list_files",
            "read_file",
            "read_excel",
            "download_file",
            "calculator"
        ]
    );
    let tavily =
        GaiaAgent::builder(model()).folder(folder.path()).tavily_key("k".into()).build().unwrap().tools();
    assert!(tavily.contains(&"tavily_search".to_owned()) && tavily.len() == bare.len() + 1);
    let scene = Scene::new().await;
    assert_eq!(scene.builder(model()).python(scene.python()).build().unwrap().tools(), NAMES);
}

#[tokio::test]
async fn each_tool_has_a_description_and_typed_arguments_with_descriptions() {
    let scene = Scene::new().await;
    let model = ScriptedModel::new(["FINAL ANSWER: 1"]);
    let agent = scene.builder(model.clone()).python(scene.python()).build().unwrap();
    agent.solve("t", &Task::ask("What?")).await.unwrap();
    let tools = &model.requests()[0].tools;
    assert_eq!(tools.len(), 17);
    for tool in tools {
        assert!(tool.description.len() > 30, "{}", tool.name);
        assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
        for (name, argument) in tool.input_schema["properties"].as_object().unwrap() {
            assert!(
                argument["description"].as_str().is_some_and(|text| text.len() > 10),
                "{} {name}",
                tool.name
            );
        }
        // The context of a tool is no argument.
        let text = tool.input_schema.to_string();
        assert!(!text.contains("desk") && !text.contains("solving"), "{text}");
    }
}

#[tokio::test]
async fn wrong_arguments_run_nothing_and_are_explained() {
    let scene = Scene::new().await;
    let hostile: [Value; 7] = [
        json!({}),
        json!({ "path": 7, "query": 7, "expression": 7, "url": 7, "code": 7, "video": 7, "question": 7, "date": 7 }),
        json!({ "path": null, "query": null, "expression": null, "url": null, "code": null, "video": null }),
        json!({ "path": ["a"], "query": { "a": 1 }, "expression": [], "url": {}, "code": [], "video": {} }),
        json!({ "desk": {}, "solving": {} }),
        json!({ "path": "a", "query": "a", "expression": "1", "url": "a", "code": "1", "video": "a", "unknown": true }),
        json!({ "start": -1, "max_results": 900, "language": 5 }),
    ];
    let before = scene.server.requests();
    for tool in NAMES {
        for input in &hostile {
            // A tool without arguments is called with none.
            if tool == "list_files" && *input == json!({}) {
                continue;
            }
            let python = scene.python();
            let said = call_with(&scene, move |builder| builder.python(python), tool, input.clone()).await;
            let error = said.expect_err(tool);
            assert!(
                error.contains("invalid arguments") || error.contains("there is no argument"),
                "{tool} {input}: {error}"
            );
        }
    }
    assert_eq!(scene.server.requests(), before, "no service was asked");
}
