//! An authorization server and an MCP server that takes its tokens, on two ports of this machine.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use agentgraph_llm::mcp::{McpOAuth, McpServer};
use agentgraph_llm::prelude::*;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

/// Reads a note.
#[tool]
fn read() -> String {
    "a note".to_owned()
}

/// Writes a note.
#[tool]
fn write() -> String {
    "written".to_owned()
}

/// Two servers. What they do can be changed while they run.
#[derive(Clone)]
pub(crate) struct Guarded(Arc<Mutex<Inner>>);

pub(crate) struct Inner {
    pub(crate) mcp: String,
    pub(crate) issuer: String,
    /// Tokens that the MCP server takes, with their scopes.
    pub(crate) access: HashMap<String, String>,
    pub(crate) refresh: HashMap<String, String>,
    codes: HashMap<String, HashMap<String, String>>,
    clients: HashSet<String>,
    count: usize,
    /// The seconds that the next token lasts.
    pub(crate) expires_in: u64,
    /// The fields of all token requests.
    pub(crate) token_requests: Vec<HashMap<String, String>>,
    /// Where the token endpoint redirects to.
    pub(crate) redirect: Option<String>,
    /// The MCP server repeats the token in an error.
    pub(crate) repeats_token: bool,
    /// Changes of the authorization server's metadata.
    pub(crate) metadata: Value,
}

impl Guarded {
    pub(crate) async fn started() -> Self {
        let listen = || async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            (listener, address)
        };
        let ((auth, issuer), (mcp, address)) = (listen().await, listen().await);
        let state = Guarded(Arc::new(Mutex::new(Inner {
            mcp: format!("{address}/mcp"),
            issuer,
            access: HashMap::new(),
            refresh: HashMap::new(),
            codes: HashMap::new(),
            clients: HashSet::from(["known".to_owned()]),
            count: 0,
            expires_in: 3600,
            token_requests: Vec::new(),
            redirect: None,
            repeats_token: false,
            metadata: json!({}),
        })));
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(state.clone());
        tokio::spawn(async move { axum::serve(auth, router).await });
        let server = McpServer::new("notes", "1").tool(read).tool(write).into_router().unwrap();
        let router = server
            .layer(from_fn_with_state(state.clone(), guard))
            .merge(Router::new().route("/resource", get(resource)).with_state(state.clone()));
        tokio::spawn(async move { axum::serve(mcp, router).await });
        state
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        self.lock().mcp.clone()
    }

    /// The settings of a program whose user agrees at once, and the addresses that were opened.
    pub(crate) fn agreed(&self) -> (McpOAuth, Arc<Mutex<Vec<String>>>) {
        let opened = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&opened);
        let oauth = McpOAuth::in_browser(move |address| {
            seen.lock().unwrap().push(address.to_owned());
            let address = address.to_owned();
            tokio::spawn(async move {
                let back = agree(&address).await;
                assert_eq!(visit(&back).await.status(), 200);
            });
            Ok(())
        });
        (oauth, opened)
    }

    /// Forgets all tokens, so that the next request is refused.
    pub(crate) fn revoke(&self) {
        self.lock().access.clear();
    }
}

/// What a browser gets.
pub(crate) async fn visit(address: &str) -> reqwest::Response {
    agentgraph_llm::http_client_builder().build().unwrap().get(address).send().await.unwrap()
}

/// The address to which the authorization server sends a browser whose user agrees.
pub(crate) async fn agree(address: &str) -> String {
    let answer = visit(address).await;
    assert_eq!(answer.status(), 302);
    answer.headers()["location"].to_str().unwrap().to_owned()
}

fn fields(query: &str) -> HashMap<String, String> {
    Url::parse(&format!("http://x/?{query}")).unwrap().query_pairs().into_owned().collect()
}

async fn resource(State(state): State<Guarded>) -> Json<Value> {
    let inner = state.lock();
    Json(
        json!({"resource": inner.mcp, "authorization_servers": [inner.issuer], "scopes_supported": ["read"]}),
    )
}

async fn metadata(State(state): State<Guarded>) -> Json<Value> {
    let inner = state.lock();
    let issuer = &inner.issuer;
    let mut metadata = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in inner.metadata.as_object().unwrap() {
        metadata[name] = value.clone();
    }
    Json(metadata)
}

async fn register(State(state): State<Guarded>, Json(client): Json<Value>) -> Json<Value> {
    let mut inner = state.lock();
    let id = format!("registered-{}", inner.clients.len());
    inner.clients.insert(id.clone());
    Json(json!({"client_id": id, "redirect_uris": client["redirect_uris"]}))
}

async fn authorize(State(state): State<Guarded>, uri: Uri) -> Response {
    let asked = fields(uri.query().unwrap());
    let mut inner = state.lock();
    assert!(inner.clients.contains(&asked["client_id"]));
    assert_eq!((&*asked["response_type"], &*asked["code_challenge_method"]), ("code", "S256"));
    assert_eq!(asked["resource"], inner.mcp);
    let code = format!("code-{}", inner.codes.len());
    let back = Url::parse_with_params(&asked["redirect_uri"], [("code", &code), ("state", &asked["state"])]);
    inner.codes.insert(code, asked);
    (StatusCode::FOUND, [("location", back.unwrap().to_string())]).into_response()
}

async fn token(State(state): State<Guarded>, body: String) -> Response {
    let asked = fields(&body);
    let mut inner = state.lock();
    inner.token_requests.push(asked.clone());
    if let Some(elsewhere) = &inner.redirect {
        return (StatusCode::TEMPORARY_REDIRECT, [("location", elsewhere.clone())]).into_response();
    }
    assert_eq!(asked["resource"], inner.mcp);
    let scope = match &*asked["grant_type"] {
        "authorization_code" => inner.codes.remove(&asked["code"]).filter(|granted| {
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
            granted["code_challenge"] == challenge && granted["redirect_uri"] == asked["redirect_uri"]
        }),
        "client_credentials" => Some(asked.clone())
            .filter(|asked| (&*asked["client_id"], &*asked["client_secret"]) == ("known", "hunter2hunter2")),
        _ => inner
            .refresh
            .remove(&asked["refresh_token"])
            .map(|scope| HashMap::from([("scope".to_owned(), scope)])),
    };
    let Some(scope) = scope.and_then(|granted| granted.get("scope").cloned()) else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    };
    inner.count += 1;
    let (access, refresh) =
        (format!("access-token-{}", inner.count), format!("refresh-token-{}", inner.count));
    inner.access.insert(access.clone(), scope.clone());
    let mut answer = json!({"access_token": access, "token_type": "Bearer", "expires_in": inner.expires_in,
        "scope": scope, "id_token": "identity-token"});
    if asked["grant_type"] != "client_credentials" {
        answer["refresh_token"] = json!(refresh);
        inner.refresh.insert(refresh, scope);
    }
    inner.expires_in = 3600;
    Json(answer).into_response()
}

/// Lets requests with a token pass, and calls of `write` with that scope.
async fn guard(State(state): State<Guarded>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let bearer = head.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scope, resource, repeats) = {
        let inner = state.lock();
        let scope = bearer.strip_prefix("Bearer ").and_then(|token| inner.access.get(token).cloned());
        (scope, inner.mcp.replace("/mcp", "/resource"), inner.repeats_token)
    };
    let refuse = |status: StatusCode, why: &str| {
        let challenge = format!("Bearer {why}, resource_metadata=\"{resource}\"");
        (status, [("www-authenticate", challenge)]).into_response()
    };
    let Some(scope) = scope else { return refuse(StatusCode::UNAUTHORIZED, "scope=\"read\"") };
    if repeats && sent["method"] == "tools/call" {
        let error = json!({"code": -32000, "message": format!("broken beside {bearer}")});
        return Json(json!({"jsonrpc": "2.0", "id": sent["id"], "error": error})).into_response();
    }
    if sent["params"]["name"] == "write" && !scope.split(' ').any(|scope| scope == "write") {
        return refuse(StatusCode::FORBIDDEN, "error=\"insufficient_scope\", scope=\"write\"");
    }
    next.run(Request::from_parts(head, Body::from(body))).await
}
