//! Hostile bytes: each request is answered, and the server continues.

use std::collections::HashMap;

use crate::recording::{http, send};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use upgrade_simulator::{EmbeddedServer, ServerHandle};

const POSTS: [&str; 34] = [
    "/api/experiments",
    "/api/experiments/state",
    "/api/experiments/paginated",
    "/api/stats/enrollment",
    "/api/stats/enrollment/detail",
    "/api/v6/init",
    "/api/v6/assign",
    "/api/v6/mark",
    "/api/v6/log",
    "/api/experiments/batch",
    "/api/experiments/validation",
    "/api/experiments/import",
    "/api/experiments/lists/import",
    "/api/experiments/inclusionList",
    "/api/experiments/exclusionList",
    "/api/stats/enrollment/date",
    "/api/segments",
    "/api/segments/paginated",
    "/api/segments/list",
    "/api/segments/validation",
    "/api/segments/import",
    "/api/segments/import/validation",
    "/api/segments/list/import",
    "/api/segments/list/import/validation",
    "/api/previewusers",
    "/api/previewusers/paginated",
    "/api/previewusers/assign",
    "/api/setting",
    "/api/users",
    "/api/users/paginated",
    "/api/login/user",
    "/api/audit",
    "/api/error",
    "/api/batch-assign",
];

async fn start() -> ServerHandle {
    EmbeddedServer::builder().in_memory().start().await.unwrap()
}

fn as_user() -> HashMap<String, String> {
    HashMap::from([("User-Id".to_owned(), "ada".to_owned())])
}

async fn is_alive(server: &ServerHandle) -> bool {
    send(&http(), server.url(), "GET", "/api", &HashMap::new(), &Value::Null).await.status == 200
}

#[tokio::test]
async fn bodies_without_valid_json_are_refused() {
    let server = start().await;
    let deep = "[".repeat(100_000);
    let bodies =
        ["{bad", "{", "\"text\"", "7", "null", "{\"a\":1}}", "\u{0}", "nul", "[1,", &deep, "{ 'a' }"];
    for body in bodies {
        for path in POSTS {
            let body = Value::String(body.to_owned());
            let answer = send(&http(), server.url(), "POST", path, &as_user(), &body).await;
            assert_eq!((answer.status, &answer.body["name"]), (400, &json!("SyntaxError")), "{path}");
            assert_eq!(answer.body["request"], json!({}));
        }
    }
    assert!(is_alive(&server).await);
}

#[tokio::test]
async fn bytes_without_valid_text_are_refused() {
    let server = start().await;
    let response = http()
        .post(format!("{}/experiments", server.url()))
        .header("content-type", "application/json")
        .body(b"{\"name\":\"\xff\xfe\"}".to_vec())
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 400);
    assert!(is_alive(&server).await);
}

#[tokio::test]
async fn a_body_over_the_limit_is_read_to_its_end_and_refused() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    let length = 32 * 1024 * 1024;
    let head = format!(
        "POST /api/experiments HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // A client that reads the response only after sending everything still gets it.
    stream.write_all(&vec![b' '; length]).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("PayloadTooLargeError"), "{answer}");
    assert!(is_alive(&server).await);
}

#[tokio::test]
async fn a_body_that_breaks_off_changes_nothing() {
    let server = start().await;
    let body = r#"{"id":"ada"}"#;
    let head = format!(
        "POST /api/previewusers HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len() + 1
    );
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert_eq!(call(&server, "GET", "/api/previewusers/ada", &[]).await.0, 204);
}

#[tokio::test]
async fn requests_without_valid_http_end_only_their_connection() {
    let server = start().await;
    for bytes in
        [&b"\x16\x03\x01\x02\x00"[..], b"GET\r\n\r\n", b"\r\n\r\n\r\n", b"POST /api HTTP/9.9\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    assert!(is_alive(&server).await);
}

#[tokio::test]
async fn a_client_that_never_finishes_does_not_delay_the_shutdown() {
    let server = start().await;
    let addr = server.addr();
    let _silent = TcpStream::connect(addr).await.unwrap();
    let mut half = TcpStream::connect(addr).await.unwrap();
    half.write_all(b"POST /api/v6/init HTTP/1.1\r\ncontent-length: 9\r\n\r\n{").await.unwrap();
    assert!(is_alive(&server).await);
    // From here on, time advances automatically when nothing else can run.
    tokio::time::pause();
    server.shutdown().await;
    assert!(TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn unknown_paths_are_escaped_in_the_error_page() {
    let server = start().await;
    let path = "/api/%3Cscript%3E&x";
    let answer = send(&http(), server.url(), "DELETE", path, &HashMap::new(), &Value::Null).await;
    let page = answer.body.as_str().unwrap();
    assert_eq!((answer.status, answer.content_type.as_str()), (404, "text/html; charset=utf-8"));
    assert!(page.contains("<pre>Cannot DELETE /api/%3Cscript%3E&amp;x</pre>"), "{page}");
}

/// Makes a call with these headers; returns the status, content type and body.
async fn call(
    server: &ServerHandle,
    method: &str,
    path: &str,
    with: &[(&str, &str)],
) -> (u16, String, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = http().request(method, format!("http://{}{path}", server.addr()));
    for (name, value) in with {
        request = request.header(*name, *value);
    }
    let answer = request.body(if with.is_empty() { "" } else { "{}" }).send().await.unwrap();
    let kind = answer.headers().get("content-type").map_or("", |kind| kind.to_str().unwrap()).to_owned();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, kind, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn a_path_is_found_in_any_case_and_with_a_slash_at_its_end() {
    let server = start().await;
    let segments = call(&server, "GET", "/api/segments/global", &[]).await;
    for (asked, meant) in [
        ("/API", "/api"),
        ("/api/version/", "/api/version"),
        ("/api/experiments/", "/api/experiments"),
        ("/Api/Experiments/contextmetadata/?x=1", "/api/experiments/contextMetaData"),
        ("/api/segments/GLOBAL", "/api/segments/global"),
    ] {
        let asked = call(&server, "GET", asked, &[]).await;
        let meant = call(&server, "GET", meant, &[]).await;
        assert_eq!(asked.0, 200);
        assert_eq!(asked, meant);
    }
    assert!(segments.2.as_array().is_some_and(|all| !all.is_empty()));
    // An id keeps its case, even if it is a word of another path.
    let ada = json!({ "id": "Paginated" });
    assert_eq!(
        send(&http(), server.url(), "POST", "/api/previewusers", &HashMap::new(), &ada).await.status,
        200
    );
    assert_eq!(call(&server, "GET", "/api/PreviewUsers/Paginated/", &[]).await.2["id"], "Paginated");
    assert_eq!(call(&server, "GET", "/api/previewusers/paginated", &[]).await.0, 204);
    for nothing in ["/api//experiments", "/api/experiments//", "/api/experiments/single/", "/apis", "/"] {
        assert_eq!(call(&server, "GET", nothing, &[]).await.0, 404, "{nothing}");
    }
    let head = call(&server, "HEAD", "/api/experiments/names", &[]).await;
    assert_eq!((head.0, head.2), (200, json!("")));
}

#[tokio::test]
async fn an_id_with_an_invalid_escape_is_refused() {
    let server = start().await;
    for id in ["%zz", "%E4%B8", "100%"] {
        for method in ["GET", "PATCH"] {
            let path = format!("/api/experiments/single/{id}");
            let (status, _, body) = call(&server, method, &path, &[]).await;
            let told = (body["name"].clone(), body["message"].clone());
            assert_eq!(
                (status, told),
                (400, (json!("URIError"), json!(format!("Failed to decode param '{id}'"))))
            );
        }
    }
}

#[tokio::test]
async fn only_pages_of_this_machine_may_call() {
    let server = start().await;
    for page in ["http://localhost:4200", "https://localhost", "http://app.localhost:1"] {
        for (method, status) in [("GET", 200), ("OPTIONS", 204)] {
            let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
            let request = http().request(method, server.url()).header("origin", page);
            let answer = request.header("access-control-request-headers", "user-id").send().await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers()["access-control-allow-origin"], page);
            assert_eq!(answer.headers()["access-control-allow-credentials"], "true");
            let varies = if status == 204 { "Origin, Access-Control-Request-Headers" } else { "Origin" };
            assert_eq!(answer.headers()["vary"], varies);
        }
    }
    for page in ["http://evil.example", "http://localhost.evil.example", "http://notlocalhost", "null"] {
        for method in ["GET", "POST", "OPTIONS"] {
            let (status, _, body) = call(&server, method, "/api/experiments", &[("origin", page)]).await;
            let message = format!("Request from unauthorized origin: {page}");
            assert_eq!((status, &body["message"]), (500, &json!(message)));
        }
    }
    let (status, _, body) = call(&server, "OPTIONS", "/api/nothing", &[]).await;
    assert_eq!((status, body), (204, json!("")));
}

/// A site includes its subdomains; an address includes only itself. The given sites replace `localhost`.
#[tokio::test]
async fn only_pages_of_the_given_sites_may_call() {
    let sites = ["example.org", "127.0.0.1", "http://Intranet:80"];
    let server = EmbeddedServer::builder().cors_origins(sites).start().await.unwrap();
    let cases = [
        ("https://example.org", true),
        ("https://school.example.org:8443", true),
        ("http://127.0.0.1:5500", true),
        ("http://intranet", true),
        ("http://localhost:4200", false),
        ("http://10.0.0.1", false),
        ("https://example.org.evil.test", false),
        ("https://notexample.org", false),
        ("http://[::1]", false),
        ("null", false),
    ];
    for (page, may_call) in cases {
        let request = http().request(reqwest::Method::OPTIONS, server.url()).header("origin", page);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), if may_call { 204 } else { 500 }, "{page}");
        let allowed = answer.headers().get("access-control-allow-origin");
        assert_eq!(allowed.map(|allowed| allowed.to_str().unwrap()), may_call.then_some(page));
    }
}

#[tokio::test]
async fn bodies_are_read_by_their_headers() {
    let server = start().await;
    let kinds = [
        ("application/json", true),
        ("Application/JSON;charset=UTF-8", true),
        ("application/json ; charset=\"utf-8\"", true),
        ("application/jsonx", false),
        ("text/plain", false),
    ];
    for (kind, is_json) in kinds {
        let request =
            http().post(format!("{}/experiments/paginated", server.url())).header("content-type", kind);
        let answer = request.body(r#"{"skip":0,"take":1}"#).send().await.unwrap();
        assert_eq!(answer.status() == 200, is_json, "{kind}");
    }
    let json = ("content-type", "application/json; charset=latin1");
    let path = "/api/experiments/paginated";
    let (status, _, body) = call(&server, "POST", path, &[json]).await;
    assert_eq!((status, &body["message"]), (415, &json!("unsupported charset \"LATIN1\"")));
    let packed = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let (status, _, body) = call(&server, "POST", path, &packed).await;
    assert_eq!((status, &body["message"]), (415, &json!("unsupported content encoding \"gzip\"")));
}

#[tokio::test]
async fn odd_numbers_do_not_upset_draws() {
    let server = start().await;
    let mut body = crate::recording::recording("v65/create_simple").request;
    let id = "5b38c553-8c64-4e81-b91c-df3d22e48b7b";
    body["id"] = json!(id);
    body["conditions"][0]["assignmentWeight"] = json!(-1e300);
    body["conditions"][0]["order"] = json!(1e300);
    body["conditions"][1]["assignmentWeight"] = json!(1e308);
    body["enrollmentCompleteCondition"] = json!({ "userCount": -1, "groupCount": "many" });
    let post = |path: &'static str, body: Value| {
        let url = server.url().to_owned();
        async move { send(&http(), &url, "POST", path, &as_user(), &body).await }
    };
    assert_eq!(post("/api/experiments", body).await.status, 200);
    let start = json!({ "experimentId": id, "state": "enrolling" });
    assert_eq!(post("/api/experiments/state", start).await.status, 200);
    assert_eq!(post("/api/v6/init", json!({})).await.status, 200);
    let assigned = post("/api/v6/assign", json!({ "context": "assign-prog" })).await.body;
    assert_eq!(assigned[0]["assignedCondition"][0]["conditionCode"], "variant");
    let data = json!({ "site": "SelectSection", "target": "absolute_value_plot_equality" });
    assert_eq!(post("/api/v6/mark", json!({ "data": data })).await.status, 200);
}

/// Generates JSON of any shape, with words of the API in it.
fn anything() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "id",
        "name",
        "context",
        "state",
        "enrolling",
        "group",
        "classId",
        "assign-prog",
        "data",
        "site",
        "target",
        "conditions",
        "partitions",
        "experimentId",
        "value",
        "skip",
        "take",
        "assignedCondition",
        "conditionCode",
        "workingGroup",
        "list",
        "files",
        "fileName",
        "fileContent",
        "x.json",
        "{\"segment\":{}}",
        "type",
        "private",
        "public",
        "userIds",
        "groups",
        "subSegmentIds",
        "subSegments",
        "assignments",
        "experiment",
        "experimentCondition",
        "",
    ]);
    let word = words.prop_map(str::to_owned).boxed();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..7)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Generates a valid body with an arbitrary value in one field.
fn nearly_right() -> impl Strategy<Value = Value> {
    let right = crate::recording::recording("v65/create_with_payloads").request;
    let fields: Vec<String> = right.as_object().unwrap().keys().cloned().collect();
    (prop::sample::select(fields), anything()).prop_map(move |(field, value)| {
        let mut body = right.clone();
        body[field] = value;
        body
    })
}

#[test]
fn any_json_at_any_route_is_answered_and_every_refusal_echoes_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(start());
    let http = http();
    let bodies = prop_oneof![anything(), nearly_right()]
        .prop_filter("a string would be sent raw", |body| body.is_object() || body.is_array());
    let path = prop::sample::select(POSTS.to_vec());
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(900) };
    proptest!(config, |(path in path, body in bodies)| {
        let answer = runtime.block_on(send(&http, server.url(), "POST", path, &as_user(), &body));
        prop_assert_ne!(answer.status, 503);
        if !matches!(answer.status, 200 | 204) {
            prop_assert_eq!(&answer.body["request"], &body);
            prop_assert_eq!(answer.body["errorCode"].as_u64(), Some(u64::from(answer.status)));
        }
    });
    assert!(runtime.block_on(is_alive(&server)));
}
