use std::sync::{Arc, Mutex};

use agentgraph_llm::mcp::{McpClient, McpOAuth, McpTokenStore};
use agentgraph_llm::prelude::*;
use agentgraph_llm::{Code, Result, SecretString};
use reqwest::Url;
use serde_json::json;

use crate::call;
use crate::guarded_server::{Guarded, agree, visit};

/// What outlives a process.
#[derive(Clone, Default)]
struct Keychain(Arc<Mutex<Option<SecretString>>>);

#[async_trait::async_trait]
impl McpTokenStore for Keychain {
    async fn load(&self) -> Result<Option<SecretString>> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn save(&self, tokens: Option<SecretString>) -> Result<()> {
        *self.0.lock().unwrap() = tokens;
        Ok(())
    }
}

/// A program whose user is not there.
fn unattended() -> McpOAuth {
    McpOAuth::in_browser(|_| Err(agentgraph_llm::Error::new(Code::Auth, "a person was asked")))
}

async fn connected(server: &Guarded, oauth: McpOAuth) -> Result<McpClient> {
    McpClient::http(server.url()).oauth(oauth).connect().await
}

/// The result of a tool without arguments.
async fn run(client: &McpClient, name: &str) -> Result<String, ToolError> {
    let tools = client.tools().await?;
    let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
    Ok(call(tool, json!({})).await?.content.iter().filter_map(Block::as_text).collect())
}

fn grants(server: &Guarded) -> Vec<String> {
    server.lock().token_requests.iter().map(|asked| asked["grant_type"].clone()).collect()
}

#[tokio::test]
async fn a_person_is_asked_once_and_the_program_registers_itself() {
    let server = Guarded::started().await;
    let (oauth, opened) = server.agreed();
    let client = connected(&server, oauth.client_name("notes app")).await.unwrap();
    assert_eq!(run(&client, "read").await.unwrap(), "a note");
    assert_eq!(opened.lock().unwrap().len(), 1);
    let address = Url::parse(&opened.lock().unwrap()[0]).unwrap();
    let query = |wanted: &str| address.query_pairs().find(|(name, _)| name == wanted).unwrap().1.into_owned();
    assert_eq!((query("client_id"), query("scope")), ("registered-1".to_owned(), "read".to_owned()));
    assert!(query("redirect_uri").starts_with("http://127.0.0.1:"));
    assert_eq!(grants(&server), ["authorization_code"]);
}

#[tokio::test]
async fn a_program_of_the_web_brings_the_redirect_itself() {
    let server = Guarded::started().await;
    let oauth =
        McpOAuth::redirect(
            "https://app.example/callback",
            |address| async move { Ok(agree(&address).await) },
        );
    let client = connected(&server, oauth.client_id("known").scopes(["read", "write"])).await.unwrap();
    assert_eq!(run(&client, "write").await.unwrap(), "written");
}

#[tokio::test]
async fn a_redirect_with_another_state_is_refused() {
    let server = Guarded::started().await;
    let oauth = McpOAuth::redirect("https://app.example/callback", |address| async move {
        Ok(agree(&address).await.replace("state=", "state=x"))
    });
    let error = connected(&server, oauth).await.unwrap_err();
    assert_eq!(error.code(), Code::Auth);
    assert!(error.message().contains("does not belong to the login"), "{error}");
    assert!(grants(&server).is_empty());
}

#[tokio::test]
async fn a_refusal_of_the_person_is_the_error() {
    let server = Guarded::started().await;
    let oauth = McpOAuth::redirect("https://app.example/callback", |address| async move {
        Ok(agree(&address).await.replace("code=", "error=access_denied&was="))
    });
    let error = connected(&server, oauth).await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("access_denied"), "{error}");
}

#[tokio::test]
async fn another_page_that_visits_the_port_does_not_end_the_login() {
    let server = Guarded::started().await;
    let oauth = McpOAuth::in_browser(|address| {
        let address = address.to_owned();
        tokio::spawn(async move {
            let back = agree(&address).await;
            assert_eq!(visit(&back.replace("state=", "state=x")).await.status(), 400);
            assert_eq!(visit(&back.replace("/callback", "/favicon.ico")).await.status(), 404);
            assert_eq!(visit(&back).await.status(), 200);
        });
        Ok(())
    });
    connected(&server, oauth).await.unwrap();
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused() {
    let server = Guarded::started().await;
    server.lock().expires_in = 0;
    let (oauth, opened) = server.agreed();
    let client = connected(&server, oauth).await.unwrap();
    assert_eq!(grants(&server), ["authorization_code", "refresh_token"]);
    server.revoke();
    assert_eq!(run(&client, "read").await.unwrap(), "a note");
    assert_eq!(grants(&server), ["authorization_code", "refresh_token", "refresh_token"]);
    assert_eq!(opened.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_person_is_asked_again_when_the_token_cannot_be_renewed() {
    let server = Guarded::started().await;
    let (oauth, opened) = server.agreed();
    let client = connected(&server, oauth).await.unwrap();
    let tools = client.tools().await.unwrap();
    server.revoke();
    server.lock().refresh.clear();
    // Both calls are refused, and one login serves both.
    let (one, other) = tokio::join!(call(&tools[0], json!({})), call(&tools[0], json!({})));
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    assert_eq!(opened.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_tool_that_needs_a_further_scope_asks_for_it() {
    let server = Guarded::started().await;
    let (oauth, opened) = server.agreed();
    let client = connected(&server, oauth).await.unwrap();
    assert_eq!(run(&client, "write").await.unwrap(), "written");
    assert!(opened.lock().unwrap()[1].contains("scope=read+write"));
    // Later calls have both.
    assert_eq!(run(&client, "read").await.unwrap(), "a note");
    assert_eq!(run(&client, "write").await.unwrap(), "written");
    assert_eq!(opened.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_scope_that_was_granted_and_is_refused_is_not_asked_for_again() {
    let server = Guarded::started().await;
    let (oauth, opened) = server.agreed();
    let client = connected(&server, oauth.scopes(["read", "write"])).await.unwrap();
    for scope in server.lock().access.values_mut() {
        *scope = "read".to_owned();
    }
    let error = run(&client, "write").await.unwrap_err();
    assert!(format!("{error:?}").contains("whose scopes were granted"), "{error:?}");
    assert_eq!(opened.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn tokens_survive_the_process() {
    let (server, keychain) = (Guarded::started().await, Keychain::default());
    let (oauth, _) = server.agreed();
    let first = connected(&server, oauth.store(keychain.clone())).await.unwrap();
    let second = connected(&server, unattended().store(keychain.clone())).await.unwrap();
    assert_eq!(run(&second, "read").await.unwrap(), "a note");
    // A refresh token that the other one has used up is not used again.
    server.revoke();
    assert_eq!(run(&second, "read").await.unwrap(), "a note");
    server.revoke();
    assert_eq!(run(&first, "read").await.unwrap(), "a note");
    assert_eq!(grants(&server), ["authorization_code", "refresh_token", "refresh_token"]);
}

#[tokio::test]
async fn stored_tokens_of_another_client_or_none_at_all_are_not_used() {
    let (server, keychain) = (Guarded::started().await, Keychain::default());
    let (oauth, _) = server.agreed();
    connected(&server, oauth.store(keychain.clone())).await.unwrap();
    let error =
        connected(&server, unattended().client_id("known").store(keychain.clone())).await.unwrap_err();
    assert_eq!(error.message(), "a person was asked");
    assert!(keychain.0.lock().unwrap().is_none());
    *keychain.0.lock().unwrap() = Some(r#"{"client_id": "hunter2"#.into());
    let error = connected(&server, unattended().store(keychain)).await.unwrap_err();
    assert!(error.code() == Code::Config && error.message().contains("delete them"), "{error}");
}

#[tokio::test]
async fn a_program_with_a_secret_asks_no_person() {
    let server = Guarded::started().await;
    let oauth = McpOAuth::client_credentials("known", "hunter2hunter2");
    let client = connected(&server, oauth).await.unwrap();
    server.revoke();
    assert_eq!(run(&client, "read").await.unwrap(), "a note");
    assert_eq!(grants(&server), ["client_credentials", "client_credentials"]);
    let wrong = McpOAuth::client_credentials("known", "hunter3hunter3");
    let error = connected(&server, wrong).await.unwrap_err();
    assert!(error.code() == Code::Auth && !error.to_string().contains("hunter3"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_host_is_refused() {
    let (server, elsewhere) = (Guarded::started().await, Guarded::started().await);
    server.lock().redirect = Some(format!("{}/token", elsewhere.lock().issuer));
    let (oauth, _) = server.agreed();
    let error = connected(&server, oauth.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::Auth, "{error}");
    assert!(grants(&elsewhere).is_empty());
    // The same with a client that follows it.
    let following =
        reqwest::Client::builder().redirect(reqwest::redirect::Policy::limited(3)).build().unwrap();
    let builder = McpClient::http(server.url()).oauth(oauth).http_client(following);
    assert_eq!(builder.connect().await.unwrap_err().code(), Code::Auth);
}

#[tokio::test]
async fn a_page_that_is_none_of_the_web_is_not_opened() {
    let server = Guarded::started().await;
    server.lock().metadata = json!({"authorization_endpoint": "file:///bin/sh"});
    let error = connected(&server, unattended()).await.unwrap_err();
    assert!(error.message().contains("does not begin with `https://`"), "{error}");
}

#[tokio::test]
async fn a_server_without_s256_is_refused() {
    let server = Guarded::started().await;
    server.lock().metadata = json!({"code_challenge_methods_supported": ["plain"]});
    let error = connected(&server, unattended()).await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("S256"), "{error}");
}
