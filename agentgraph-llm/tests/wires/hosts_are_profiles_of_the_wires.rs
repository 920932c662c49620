//! The hosts that are known by name: where they are asked, with which key, and what they do in their own way.
//! Recorded shapes against a server of our own; none of them was tried live.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use agentgraph_llm::gemini::GoogleCredentials;
use agentgraph_llm::openai::Profile;
use agentgraph_llm::prelude::*;
use agentgraph_llm::{
    AnthropicModel, Authentication, Clock, Code, Error, GeminiModel, KeyProvider, ModelName, Origin,
    SecretString, Thinking,
};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::server::{Reply, Server};

const CHAT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const GEMINI: &str =
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}\n\n";
const MESSAGES: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);

/// The path and the lines of the head, and the body, of the request that a named model makes.
async fn asked(name: &str, path: &str, answer: &str, request: ChatRequest) -> (String, Value) {
    let server = Server::start([Reply::stream(answer)]).await;
    let name: ModelName = name.parse().unwrap();
    let settings = name.settings().api_key("not-a-real-key").base_url(format!("{}{path}", server.url));
    let response = settings.build().unwrap().chat(request).await.unwrap();
    assert_eq!(response.message.text(), "Hi", "{name}");
    let request = server.requests().remove(0);
    (request.head, serde_json::from_str(&request.body).unwrap())
}

fn has(head: &str, line: &str) -> bool {
    head.lines().any(|got| got == line)
}

#[tokio::test]
async fn each_name_is_asked_on_its_path_with_its_key() {
    let bearer = "authorization: bearer not-a-real-key";
    for (name, answer, path, key) in [
        ("azure:d", CHAT, "/openai/v1/chat/completions", "api-key: not-a-real-key"),
        ("bedrock:openai.gpt-oss-20b-1:0", CHAT, "/openai/v1/chat/completions", bearer),
        ("bedrock-anthropic:m", MESSAGES, "/anthropic/v1/messages", bearer),
        ("vertex:m", GEMINI, "/models/m:streamgeneratecontent?alt=sse", bearer),
        ("openrouter:acme/m", CHAT, "/v1/chat/completions", bearer),
        ("groq:m", CHAT, "/v1/chat/completions", bearer),
        ("mistral:m", CHAT, "/v1/chat/completions", bearer),
        ("deepseek:m", CHAT, "/v1/chat/completions", bearer),
        ("xai:m", CHAT, "/v1/chat/completions", bearer),
        ("together:m", CHAT, "/v1/chat/completions", bearer),
    ] {
        let (head, _) = asked(name, "", answer, ChatRequest::user("hi")).await;
        assert!(has(&head, &format!("post {path} http/1.1")), "{name}: {head}");
        assert!(has(&head, key), "{name}: {head}");
        assert_eq!(
            has(&head, "anthropic-version: 2023-06-01"),
            name.starts_with("bedrock-anthropic"),
            "{head}"
        );
    }
}

/// A conversation with a call, thinking, a limit and a stream: what hosts differ in.
fn conversation(author: &str) -> ChatRequest {
    let thought = Thinking::new("Hm.", None);
    let call = ToolUse::new("call_of_another", "f", json!({}));
    let mut answer = Message::new(Role::Assistant, [Block::from(thought), call.into()]);
    answer.origin = Some(Origin::new(author.to_owned(), "m"));
    let result = Message::tool_results([ToolResult::text("call_of_another", "done")]);
    ChatRequest::new([Message::user("go"), answer, result]).with_max_tokens(9)
}

#[tokio::test]
async fn each_host_gets_the_fields_that_it_takes() {
    for (name, author, limit, has_stream_options, thinking, call_id) in [
        ("azure:m", "azure.ai.openai", "max_completion_tokens", true, None, "call_of_another"),
        ("openrouter:m", "openrouter", "max_tokens", true, Some("reasoning"), "call_of_another"),
        ("groq:m", "groq", "max_completion_tokens", true, None, "call_of_another"),
        ("mistral:m", "mistral_ai", "max_tokens", false, None, "d7a7b7fd0"),
        ("deepseek:m", "deepseek", "max_tokens", true, Some("reasoning_content"), "call_of_another"),
        ("xai:m", "x_ai", "max_tokens", true, Some("reasoning_content"), "call_of_another"),
        ("together:m", "together", "max_tokens", true, Some("reasoning"), "call_of_another"),
    ] {
        let (_, body) = asked(name, "", CHAT, conversation(author)).await;
        assert_eq!(body[limit], 9, "{name}: {body}");
        assert_eq!(body.get("stream_options").is_some(), has_stream_options, "{name}");
        let answer = &body["messages"][1];
        let sent: Vec<_> = ["reasoning", "reasoning_content"]
            .into_iter()
            .filter(|field| answer.get(field).is_some())
            .collect();
        assert_eq!(sent, Vec::from_iter(thinking), "{name}: {answer}");
        let (call, result) = (&answer["tool_calls"][0]["id"], &body["messages"][2]["tool_call_id"]);
        assert_eq!(call, result, "{name}");
        if name == "mistral:m" {
            assert!(
                call.as_str()
                    .is_some_and(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
            );
        } else {
            assert_eq!(call, call_id, "{name}");
        }
    }
    // Thinking of another model is not sent, and DeepSeek wants the field all the same.
    let (_, body) = asked("deepseek:m", "", CHAT, conversation("acme")).await;
    assert_eq!(body["messages"][1]["reasoning_content"], "");
}

#[tokio::test]
async fn each_host_is_heard_in_its_own_way() {
    let openrouter = concat!(
        ": OPENROUTER PROCESSING\n\n",
        "data: {\"id\":\"gen-1\",\"provider\":\"Acme\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",",
        "\"reasoning\":\"Hm.\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm.\",\"index\":0}]},\"finish_reason\":null}]}\n\n",
        "data: {\"id\":\"gen-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"native_finish_reason\":\"end_turn\"}]}\n\n",
        "data: {\"id\":\"gen-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    );
    let groq = concat!(
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":null}],\"x_groq\":{\"id\":\"req\"}}\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"req\",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}},\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );
    let mistral = concat!(
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"Hm.\"}]}]},\"finish_reason\":null}]}\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );
    let deepseek = concat!(
        ": keep-alive\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"Hm.\"},\"finish_reason\":null}]}\n\n",
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\",\"reasoning_content\":null},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"prompt_cache_hit_tokens\":1}}\n\n",
        "data: [DONE]\n\n",
    );
    let together = concat!(
        "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":\"Hi\",\"delta\":{\"token_id\":1,\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":\"eos\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    );
    for (name, answer) in [
        ("openrouter:m", openrouter),
        ("groq:m", groq),
        ("mistral:m", mistral),
        ("deepseek:m", deepseek),
        ("together:m", together),
    ] {
        let server = Server::start([Reply::stream(answer)]).await;
        let model: ModelName = name.parse().unwrap();
        let model = model.settings().api_key("not-a-real-key").base_url(&server.url).build().unwrap();
        let response = model.chat(ChatRequest::user("hi")).await.unwrap();
        assert_eq!(response.message.text(), "Hi", "{name}");
        assert_eq!((response.usage.input_total, response.usage.output_total), (3, 2), "{name}");
    }
}

#[tokio::test]
async fn an_address_of_a_deployment_keeps_its_query_and_shows_it_nowhere() {
    let server = Server::start([Reply::stream(CHAT), Reply::stream(GEMINI)]).await;
    let url = format!("{}/openai/deployments/d?api-version=2024-10-21&code=hunter2", server.url);
    let azure = OpenAiChatModel::builder().profile(Profile::azure()).base_url(url).api_key("not-a-real-key");
    let model = azure.model("d").build().unwrap();
    assert!(!format!("{model:?}").contains("hunter2"));
    model.chat(ChatRequest::user("hi")).await.unwrap();
    let gemini =
        GeminiModel::builder().base_url(format!("{}/v1?team=blue", server.url)).api_key("not-a-real-key");
    gemini.model("m").build().unwrap().chat(ChatRequest::user("hi")).await.unwrap();
    let heads: Vec<_> = server.requests().into_iter().map(|request| request.head).collect();
    let path = "post /openai/deployments/d/chat/completions?api-version=2024-10-21&code=hunter2 http/1.1";
    assert!(has(&heads[0], path), "{}", heads[0]);
    assert!(
        has(&heads[1], "post /v1/models/m:streamgeneratecontent?team=blue&alt=sse http/1.1"),
        "{}",
        heads[1]
    );
}

#[tokio::test]
async fn a_host_without_an_address_of_its_own_says_what_it_needs() {
    let build = |name: &str| {
        let name: ModelName = name.parse().unwrap();
        name.settings().api_key("not-a-real-key").build().map(|model| model.info()).unwrap_err()
    };
    assert!(build("azure:d").message().contains("`.base_url(..)`"));
    for variable in ["AWS_REGION", "GOOGLE_CLOUD_LOCATION"] {
        assert!(std::env::var(variable).is_err(), "{variable} is set: unset it for the tests");
    }
    assert!(build("bedrock:m").message().contains("AWS_REGION"));
    assert!(build("vertex:m").message().contains("GOOGLE_CLOUD_LOCATION"));
    let bedrock =
        AnthropicModel::builder().bedrock().base_url("https://bedrock-runtime.eu-west-1.amazonaws.com");
    assert!(bedrock.model("m").build().unwrap_err().message().contains("no API key"));
}

/// A source that keeps its token until it is refused.
#[derive(Default)]
struct Tokens(AtomicU32);

#[async_trait]
impl KeyProvider for Tokens {
    async fn key(&self) -> Result<SecretString, Error> {
        Ok(format!("token-of-time-{}", self.0.load(Ordering::SeqCst)).into())
    }

    async fn refused(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_token_that_expires_in_mid_run_is_replaced_once_and_costs_no_retry() {
    let refused = || Reply::json(401, "", r#"{"error":{"code":"401","message":"the token has expired"}}"#);
    let server =
        Server::start([Reply::stream(CHAT), refused(), Reply::stream(CHAT), refused(), refused()]).await;
    let azure = OpenAiChatModel::builder().profile(Profile::azure()).authentication(Authentication::Bearer);
    let azure = azure.key_provider(Tokens::default()).base_url(&server.url).max_retries(0);
    let model = azure.model("d").build().unwrap();
    for _ in 0..2 {
        model.chat(ChatRequest::user("hi")).await.unwrap();
    }
    let error = model.chat(ChatRequest::user("hi")).await.unwrap_err();
    assert_eq!(error.code(), Code::Auth);
    let sent: Vec<_> = server
        .requests()
        .iter()
        .flat_map(|request| {
            request
                .head
                .lines()
                .find_map(|line| line.strip_prefix("authorization: bearer token-of-time-"))
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(sent, ["0", "0", "1", "1", "2"]);
}

/// A clock that a test sets.
#[derive(Clone)]
struct Now(Arc<std::sync::Mutex<SystemTime>>);

impl Now {
    fn new() -> Self {
        Now(Arc::new(std::sync::Mutex::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000))))
    }

    fn pass(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }
}

#[async_trait]
impl Clock for Now {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    fn jitter(&self) -> f64 {
        0.0
    }

    async fn sleep(&self, _: Duration) {}
}

fn token(name: &str) -> Reply {
    Reply::json(
        200,
        "",
        &json!({"access_token": name, "expires_in": 3599, "token_type": "Bearer"}).to_string(),
    )
}

#[tokio::test]
async fn vertex_gets_tokens_of_the_metadata_server_until_they_expire() {
    let metadata = Server::start([token("token-one"), token("token-two")]).await;
    let vertex = Server::start((0..3).map(|_| Reply::stream(GEMINI))).await;
    let clock = Now::new();
    let host = metadata.url.strip_prefix("http://").unwrap();
    let credentials = GoogleCredentials::metadata_server(Some(host)).unwrap().clock(clock.clone());
    let url = format!("{}/v1/projects/p/locations/global/publishers/google", vertex.url);
    let model = GeminiModel::builder().vertex_at(url).key_provider(credentials).model("m").build().unwrap();
    for seconds in [0, 3300, 200] {
        clock.pass(seconds);
        model.chat(ChatRequest::user("hi")).await.unwrap();
    }
    let line = "get /computemetadata/v1/instance/service-accounts/default/token http/1.1";
    assert!(
        metadata
            .requests()
            .iter()
            .all(|request| has(&request.head, line) && has(&request.head, "metadata-flavor: google"))
    );
    assert_eq!(metadata.requests().len(), 2);
    let sent: Vec<_> =
        vertex.requests().iter().map(|request| request.head.contains("bearer token-two")).collect();
    assert_eq!(sent, [false, false, true]);
    let path = "post /v1/projects/p/locations/global/publishers/google/models/m:streamgeneratecontent?alt=sse http/1.1";
    assert!(has(&vertex.requests()[0].head, path));
}

#[tokio::test]
async fn a_service_account_signs_a_statement_and_a_user_refreshes() {
    let server = Server::start([
        token("token-one"),
        token("token-two"),
        Reply::json(400, "", r#"{"error":"invalid_grant"}"#),
    ])
    .await;
    let key = include_str!("service_account_test_key.pem");
    let account = json!({"type": "service_account", "client_email": "agent@p.iam.gserviceaccount.com", "private_key": key,
        "private_key_id": "k1", "token_uri": server.url});
    let credentials = GoogleCredentials::from_json(&account.to_string()).unwrap().clock(Now::new());
    assert_eq!(exposed(credentials.key().await.unwrap()), "token-one");
    assert!(!format!("{credentials:?}").contains("PRIVATE"));
    let body = server.requests()[0].body.clone();
    let statement = body
        .strip_prefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=")
        .unwrap();
    let (text, signature) = statement.rsplit_once('.').unwrap();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let (header, claims) = text.split_once('.').unwrap();
    let [header, claims]: [Value; 2] =
        [header, claims].map(|part| serde_json::from_slice(&decode(part)).unwrap());
    assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    assert_eq!(
        claims,
        json!({"iss": "agent@p.iam.gserviceaccount.com", "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": server.url, "iat": 1_795_000_000_u64, "exp": 1_795_003_600_u64})
    );
    assert_eq!(decode(signature).len(), 256);

    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "1//r",
        "token_uri": server.url});
    let credentials = GoogleCredentials::from_json(&user.to_string()).unwrap();
    assert_eq!(exposed(credentials.key().await.unwrap()), "token-two");
    assert_eq!(
        server.requests()[1].body,
        "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=1%2F%2Fr"
    );
    credentials.refused().await;
    let error = credentials.key().await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (Code::Auth, false));
}

fn exposed(key: SecretString) -> String {
    use secrecy::ExposeSecret;
    key.expose_secret().to_owned()
}
