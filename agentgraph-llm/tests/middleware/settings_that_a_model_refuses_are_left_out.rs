//! A setting that a model refuses is left out for that model, and for no other; every other error passes.

use std::sync::Arc;

use agentgraph_llm::middleware::{ModelFallback, RefusedSettings};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Error};

use super::support::{events, stored};

/// Refuses these settings, in the words of OpenAI.
fn picky(name: &'static str, temperature: bool, top_p: bool) -> ScriptedModel {
    let refused = |setting: &str| {
        let message = format!("the request was refused: Unsupported value: '{setting}' is not supported");
        Reply::error(Error::new(Code::BadRequest, message))
    };
    let model = ScriptedModel::from_fn(move |request| match (request.temperature, request.top_p) {
        (Some(_), _) if temperature => refused("temperature"),
        (_, Some(_)) if top_p => refused("top_p"),
        _ => Reply::text(name),
    });
    model.named(name)
}

fn request() -> ChatRequest {
    ChatRequest::user("hi").with_temperature(0.0).with_top_p(0.5)
}

fn asked(model: &ScriptedModel) -> Vec<(bool, bool)> {
    let requests = model.requests();
    requests.iter().map(|request| (request.temperature.is_some(), request.top_p.is_some())).collect()
}

#[tokio::test]
async fn each_refused_setting_costs_one_request_once() {
    let (model, settings) = (picky("picky", true, true), RefusedSettings::new());
    for _ in 0..2 {
        assert_eq!(
            stored(&events(&settings, Arc::new(model.clone()), request()).await).as_deref(),
            Some("picky")
        );
    }
    assert_eq!(asked(&model), [(true, true), (false, true), (false, false), (false, false)]);
}

#[tokio::test]
async fn another_model_gets_the_setting() {
    let (settings, picky, open) =
        (RefusedSettings::new(), picky("picky", true, false), picky("open", false, false));
    events(&settings, Arc::new(picky), request()).await;
    events(&settings, Arc::new(open.clone()), request()).await;
    assert_eq!(asked(&open), [(true, true)]);
}

#[tokio::test]
async fn other_errors_pass_and_no_setting_is_lost() {
    let busy = || Error::new(Code::RateLimited, "the temperature of the servers is high");
    let wrong = || Error::new(Code::BadRequest, "the tool has no name");
    let unset = || Error::new(Code::BadRequest, "top_k is not supported");
    for error in [busy(), wrong(), unset()] {
        let code = error.code();
        let model = ScriptedModel::new([Reply::error(error)]);
        let events = events(&RefusedSettings::new(), Arc::new(model.clone()), request()).await;
        assert_eq!(events.last().unwrap().as_ref().unwrap_err().code(), code);
        assert_eq!(asked(&model), [(true, true)]);
    }
}

#[tokio::test]
async fn a_setting_that_the_request_does_not_have_is_not_blamed() {
    let model = ScriptedModel::new([Reply::error(Error::new(Code::BadRequest, "temperature is missing"))]);
    let events = events(&RefusedSettings::new(), Arc::new(model.clone()), ChatRequest::user("hi")).await;
    assert!(events.last().unwrap().is_err());
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn inside_a_fallback_each_model_keeps_what_it_accepts() {
    let down = ScriptedModel::from_fn(|_| Reply::error(Error::new(Code::Server, "down"))).named("down");
    let spare = picky("spare", true, false);
    let agent = Agent::new(down.clone())
        .settings(request_settings())
        .middleware(ModelFallback::new([Arc::new(spare.clone()) as Arc<dyn ChatModel>]))
        .middleware(RefusedSettings::new())
        .compile()
        .unwrap();
    let answer = agent.invoke("hi").await.unwrap().into_finished().unwrap();
    assert_eq!(answer.text(), "spare");
    assert_eq!(asked(&down), [(true, false)]);
    assert_eq!(asked(&spare), [(true, false), (false, false)]);
}

fn request_settings() -> ChatRequest {
    ChatRequest::default().with_temperature(0.0)
}
