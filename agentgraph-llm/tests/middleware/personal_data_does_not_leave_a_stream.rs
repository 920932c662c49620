//! A listener and the store get the same clean text, however an answer is cut.

use std::sync::Arc;

use agentgraph::{EventKind, View};
use agentgraph_llm::middleware::{
    Middleware, ModelRetry, NextTool, Pii, PiiKind, PiiPlace, PiiStrategy, Turn,
};
use agentgraph_llm::*;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;

use crate::support::{Take, Takes, TestClock, block_on, events, heard, stored};

const ADDRESS: &str = "ada@lovelace.org";

fn cut(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| text[cut[0]..cut[1]].to_owned()).collect()
}

proptest! {
    #[test]
    fn whatever_the_pieces(
        words in prop::collection::vec(prop_oneof![Just(ADDRESS.to_owned()), "[a-z]{1,6}"], 1..8),
        cuts in prop::collection::vec(0_usize..200, 0..10),
        broken in prop::option::of(prop::collection::vec(0_usize..200, 1..4)),
    ) {
        let text = words.join(" ");
        let clean = text.replace(ADDRESS, "[REDACTED_EMAIL]");
        // An attempt that breaks off in the middle, perhaps of an address.
        let broken = broken.map(|cuts| {
            let mut pieces = cut(&text, &cuts);
            pieces.pop();
            Take { pieces, breaks: true }
        });
        let model = Takes::new("m", broken.into_iter().chain([Take { pieces: cut(&text, &cuts), breaks: false }]));
        // The retry inside, so that the restart comes through the cleaner.
        let chain = Nested(Pii::new(PiiKind::email()), ModelRetry::new().clock(TestClock::new()));
        let events = block_on(events(&chain, model, ChatRequest::user("hi")));
        prop_assert_eq!(heard(&events), clean.clone());
        prop_assert_eq!(stored(&events), Some(clean));
        for event in &events {
            if let Ok(ChatEvent::TextDelta { text, .. }) = event {
                prop_assert!(!text.contains("ada@"), "{text}");
            }
        }
    }
}

/// Two middleware as an agent would nest them.
struct Nested(Pii, ModelRetry);

#[async_trait::async_trait]
impl Middleware for Nested {
    fn name(&self) -> &str {
        "nested"
    }

    async fn wrap_model(
        &self,
        request: middleware::ModelRequest,
        next: middleware::NextModel<'_>,
    ) -> Result<ChatStream> {
        let (retry, model) = (self.1.clone(), request.model.clone());
        let inner = RetriedModel(retry, model);
        self.0.wrap_model(request.with_model(Arc::new(inner)), next).await
    }
}

struct RetriedModel(ModelRetry, Arc<dyn ChatModel>);

#[async_trait::async_trait]
impl ChatModel for RetriedModel {
    fn info(&self) -> ModelInfo {
        self.1.info()
    }

    async fn stream(&self, request: ChatRequest) -> Result<ChatStream> {
        let request = middleware::ModelRequest::new(self.1.clone(), request);
        self.0.wrap_model(request, middleware::NextModel::direct()).await
    }
}

#[tokio::test]
async fn blocks_are_cleaned_apart_and_thinking_too() {
    struct Interleaved;

    #[async_trait::async_trait]
    impl ChatModel for Interleaved {
        fn info(&self) -> ModelInfo {
            ModelInfo::new("test", "interleaved")
        }

        async fn stream(&self, _: ChatRequest) -> Result<ChatStream> {
            let thinking = |text: &str| Ok(ChatEvent::ThinkingDelta { index: 0, thinking: text.into() });
            let text = |index, text: &str| Ok(ChatEvent::TextDelta { index, text: text.into() });
            let blocks = [Block::from(Thinking::new("of a@b.org", None)), "to a@b.org".into(), "x".into()];
            let response = ChatResponse::new(Message::new(Role::Assistant, blocks), StopReason::EndTurn);
            let events = vec![
                thinking("of a@"),
                text(1, "to a@"),
                thinking("b.org"),
                text(2, "x"),
                text(1, "b.org"),
                Ok(ChatEvent::Finished(response)),
            ];
            Ok(ChatStream::new(stream::iter(events)))
        }
    }

    let events = events(&Pii::new(PiiKind::email()), Arc::new(Interleaved), ChatRequest::user("hi")).await;
    let (mut thinking, mut texts) = (String::new(), [const { String::new() }; 3]);
    for event in &events {
        match event.as_ref().unwrap() {
            ChatEvent::ThinkingDelta { thinking: piece, .. } => thinking += piece,
            ChatEvent::TextDelta { index, text } => texts[*index] += text,
            _ => {}
        }
    }
    assert_eq!(thinking, "of [REDACTED_EMAIL]");
    assert_eq!(texts, ["", "to [REDACTED_EMAIL]", "x"]);
    let Some(Ok(ChatEvent::Finished(response))) = events.last() else { panic!("{events:?}") };
    assert_eq!(response.message.text(), "to [REDACTED_EMAIL]x");
}

#[tokio::test]
async fn a_blocked_answer_ends_before_the_match() {
    let pii = Pii::new(PiiKind::email()).strategy(PiiStrategy::Block);
    let model =
        Takes::new("m", [Take { pieces: cut("write to ada@b.org now", &[3, 11, 14]), breaks: false }]);
    let events = events(&pii, model, ChatRequest::user("hi")).await;
    assert_eq!(heard(&events), "write to ");
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().code(), Code::PiiFound);
}

#[tokio::test]
async fn signed_thinking_with_a_match_is_dropped_and_other_is_kept_unchanged() {
    for (thinking, stays) in [("of a@b.org", false), ("of nobody", true)] {
        let model = ScriptedModel::new([Reply::thinking(thinking, "signature").and_text("ok")]);
        let events = events(&Pii::new(PiiKind::email()), Arc::new(model), ChatRequest::user("hi")).await;
        let Some(Ok(ChatEvent::Finished(response))) = events.last() else { panic!("{events:?}") };
        let kept: Vec<Block> =
            stays.then(|| Thinking::new(thinking, Some("signature".into())).into()).into_iter().collect();
        assert_eq!(response.message.content, [kept, vec!["ok".into()]].concat());
    }
}

proptest! {
    #[test]
    fn arguments_are_heard_stored_and_run_clean(
        before in "[a-z\"\\\\]{0,4}",
        is_escaped: bool,
    ) {
        let value = serde_json::json!({"to": [format!("{before} {ADDRESS}")], "n": 1});
        let text = if is_escaped { value.to_string().replace('@', "\\u0040") } else { value.to_string() };
        let model = ScriptedModel::new([Reply::raw_tool_call("mail", text)]);
        let events = block_on(events(&Pii::new(PiiKind::email()), Arc::new(model), ChatRequest::user("hi")));
        let Some(Ok(ChatEvent::Finished(response))) = events.last() else { panic!("{events:?}") };
        let stored = response.message.tool_uses().next().unwrap().input.clone();
        let mut heard = String::new();
        for event in &events {
            if let Ok(ChatEvent::ToolInputDelta { json, .. }) = event {
                prop_assert!(!json.contains("lovelace"), "{json}");
                heard += json;
            }
        }
        let clean: serde_json::Value = serde_json::from_str(&heard).unwrap();
        prop_assert_eq!(&clean, &serde_json::json!({"to": [format!("{before} [REDACTED_EMAIL]")], "n": 1}));
        prop_assert_eq!(stored.text(), heard.as_str());
    }
}

#[tokio::test]
async fn each_place_is_cleaned_apart() {
    let reply = || Reply::text("to a@b.org").and_raw_tool_call("mail", r#"{"to":"a@b.org"}"#);
    let clean = async |place| {
        let pii = Pii::new(PiiKind::email()).only_in([place]);
        let events = events(&pii, Arc::new(ScriptedModel::new([reply()])), ChatRequest::user("hi")).await;
        let Some(Ok(ChatEvent::Finished(response))) = events.last() else { panic!("{events:?}") };
        let inputs = events.iter().filter_map(|event| match event {
            Ok(ChatEvent::ToolInputDelta { json, .. }) => Some(json.as_str()),
            _ => None,
        });
        let input = response.message.tool_uses().next().unwrap().input.text();
        assert_eq!(inputs.collect::<String>(), input);
        assert_eq!(heard(&events), response.message.text());
        (response.message.text(), input.to_owned())
    };
    let (text, input) =
        (("to a@b.org", "to [REDACTED_EMAIL]"), (r#"{"to":"a@b.org"}"#, r#"{"to":"[REDACTED_EMAIL]"}"#));
    assert_eq!(clean(PiiPlace::Output).await, (text.1.to_owned(), input.0.to_owned()));
    assert_eq!(clean(PiiPlace::Arguments).await, (text.0.to_owned(), input.1.to_owned()));
    assert_eq!(clean(PiiPlace::Input).await, (text.0.to_owned(), input.0.to_owned()));
}

#[tokio::test]
async fn a_blocked_argument_fails_and_is_not_heard() {
    let model = ScriptedModel::new([Reply::tool_call("mail", serde_json::json!({"to": "a@b.org"}))]);
    let pii = Pii::new(PiiKind::email()).strategy(PiiStrategy::Block);
    let events = events(&pii, Arc::new(model), ChatRequest::user("hi")).await;
    assert!(!events.iter().any(|event| matches!(event, Ok(ChatEvent::ToolInputDelta { .. }))));
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().code(), Code::PiiFound);
}

#[tokio::test]
async fn results_that_are_json_stay_json() {
    let pii = Pii::new(PiiKind::credit_card());
    let call = ToolCall::detached("c", "look_up");
    let clean = |text| {
        let (pii, call) = (pii.clone(), call.clone());
        async move { pii.wrap_tool(&call, NextTool::of(tool(Ok(text))).unwrap()).await.unwrap() }
    };
    let output = clean(r#" {"card":4111111111111111,"n":1e400}"#).await;
    assert_eq!(output, ToolOutput::text(r#" {"card":"[REDACTED_CREDIT_CARD]","n":1e400}"#));
    assert_eq!(clean("{no json 4111111111111111").await, ToolOutput::text("{no json [REDACTED_CREDIT_CARD]"));
}

/// The limit that the docs state, and what helps.
#[tokio::test]
async fn only_the_checkpoint_of_the_input_has_what_the_caller_stored() {
    use agentgraph::MemorySaver;

    let kept = async |input: Message| {
        let agent = Agent::new(ScriptedModel::new(["ok"])).middleware(Pii::new(PiiKind::email()));
        let agent = agent.compile().unwrap().checkpointer(MemorySaver::new());
        agent.invoke(input).thread("t").await.unwrap().into_finished().unwrap();
        let history = agent.history("t").await.unwrap();
        let has = |text: String| text.contains("a@b.org");
        history.iter().map(|checkpoint| has(format!("{:?}", checkpoint.values.messages))).collect::<Vec<_>>()
    };
    let raw = Message::user("I am a@b.org");
    let found = kept(raw.clone()).await;
    assert!(!found[..found.len() - 1].contains(&true), "the newest first: {found:?}");
    let clean = Pii::new(PiiKind::email()).clean(&raw).unwrap();
    assert!(!kept(clean).await.contains(&true));
}

#[tokio::test]
async fn input_and_results_of_tools_are_cleaned() {
    let pii = Pii::new(PiiKind::email());
    let messages = [Message::user("I am a@b.org").with_id("m"), Message::assistant("a@b.org?")];
    let mut turn = Turn::detached(pii.name(), messages);
    pii.before_agent(&mut turn).await.unwrap();
    assert_eq!(turn.messages()[0].text(), "I am [REDACTED_EMAIL]");
    assert_eq!((turn.messages()[0].id.as_str(), turn.messages().len()), ("m", 2));

    let call = ToolCall::detached("c", "look_up");
    let clean = pii.wrap_tool(&call, NextTool::of(tool(Ok("a@b.org"))).unwrap()).await.unwrap();
    assert_eq!(clean, ToolOutput::text("[REDACTED_EMAIL]"));
    let error = pii.wrap_tool(&call, NextTool::of(tool(Err("no a@b.org"))).unwrap()).await.unwrap_err();
    assert!(matches!(error, ToolError::Failed(why) if why == "no [REDACTED_EMAIL]"));

    let elsewhere = pii.only_in([PiiPlace::Output]);
    let raw = elsewhere.wrap_tool(&call, NextTool::of(tool(Ok("a@b.org"))).unwrap()).await.unwrap();
    assert_eq!(raw, ToolOutput::text("a@b.org"));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tool(result: Result<&'static str, &'static str>) -> FnTool {
    FnTool::new("look_up", "Looks up.", move |_: Nothing| async move { result.map_err(ToolError::failed) })
}

#[tokio::test]
async fn text_without_matches_passes_at_once() {
    let model = ScriptedModel::new(["one two three"]);
    let pii = Pii::new(PiiKind::email());
    let request = middleware::ModelRequest::new(Arc::new(model), ChatRequest::user("hi"));
    let mut stream = pii.wrap_model(request, middleware::NextModel::direct()).await.unwrap();
    let Some(Ok(ChatEvent::TextDelta { text, .. })) = stream.next().await else { panic!("no piece") };
    assert_eq!(text, "one ");
}

#[tokio::test]
async fn a_run_of_an_agent_is_heard_and_stored_clean() {
    let take = |text: &str, breaks| Take { pieces: cut(text, &[4, 8, 11]), breaks };
    let first = Takes::new("first", [take("Ask ada@lovel", true)]);
    let second: Arc<dyn ChatModel> = Takes::new("second", [take("Ask ada@lovelace.org now", false)]);
    let agent = Agent::new(first)
        .middleware(Pii::new(PiiKind::email()))
        .middleware(middleware::ModelFallback::new([second]))
        .compile()
        .unwrap();
    let mut events = agent.invoke("go").views([View::Messages]).stream();
    let (mut pieces, mut ended) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        match event.kind {
            EventKind::Message { piece, .. } => {
                assert!(!piece.to_string().contains("ada@"), "{piece}");
                pieces.push(Ok(serde_json::from_value(piece).unwrap()));
            }
            EventKind::Ended(outcome) => ended = Some(outcome),
            _ => {}
        }
    }
    assert_eq!(heard(&pieces), "Ask [REDACTED_EMAIL] now");
    assert_eq!(stored(&pieces).as_deref(), Some("Ask [REDACTED_EMAIL] now"));
    let state = ended.unwrap().unwrap().into_finished().unwrap();
    assert_eq!(state.messages.last().unwrap().text(), "Ask [REDACTED_EMAIL] now");
}
