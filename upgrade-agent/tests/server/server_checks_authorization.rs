//! Administrators need the bearer token of an account. Applications need a token signed with the secret
//! while the setting requires it. Bad tokens are refused as recorded from UpGrade 6.5.0.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use recording::{Answered, Recording, http, recording, send};
use reqwest::Client;
use serde_json::{Value, json};
use upgrade_agent::client::{Dialect, ErrorKind, NewUser, UpgradeClient};
use upgrade_agent::server::{EmbeddedServer, ServerHandle};

const TOKEN: &str = "Bearer local-admin";
const OTHER: &str = "Bearer of-nobody";

struct Stage {
    server: ServerHandle,
    http: Client,
}

impl Stage {
    async fn new(dialect: Dialect) -> Self {
        let server = EmbeddedServer::builder()
            .dialect(dialect)
            .lasting_connections()
            .admin_token("local-admin".into(), "admin@example.com")
            .admin_token("of-nobody".into(), "nobody@example.com")
            .client_key("key", "secret".into())
            .clock(|| UNIX_EPOCH + Duration::from_secs(1_800_000_000))
            .start();
        Self { server: server.await.unwrap(), http: http() }
    }

    async fn call(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> Answered {
        let mut headers = HashMap::from([("User-Id".to_owned(), "t1".to_owned())]);
        headers.extend(token.map(|token| ("Authorization".to_owned(), token.to_owned())));
        send(&self.http, self.server.url(), method, path, &headers, body).await
    }

    async fn is(&self, name: &str) {
        let Recording { method, path, headers, request, status, response, .. } =
            recording(&format!("v65/{name}"));
        let answer = send(&self.http, self.server.url(), &method, &path, &headers, &request).await;
        assert_eq!((answer.status, &answer.body), (status, &response), "{name}");
    }

    async fn check_applications(&self) {
        let on = json!({ "toCheckAuth": true, "toFilterMetric": false });
        assert_eq!(self.call("POST", "/api/setting", Some(TOKEN), &on).await.status, 200);
    }
}

#[tokio::test]
async fn an_administrator_without_a_good_token_is_refused_as_recorded() {
    let stage = Stage::new(Dialect::V65).await;
    stage.is("auth_admin_no_token").await;
    stage.is("auth_admin_bad_token").await;
    for path in ["/api/experiments", "/api/segments", "/api/version", "/api/users/admin@example.com"] {
        let refused = stage.call("GET", path, None, &Value::Null).await;
        assert_eq!((refused.status, &refused.body["errorCode"]), (401, &json!(401)), "{path}");
        assert_eq!(stage.call("GET", path, Some(TOKEN), &Value::Null).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn health_and_calls_of_students_need_no_admin_token() {
    let stage = Stage::new(Dialect::V65).await;
    assert_eq!(stage.call("GET", "/api", None, &Value::Null).await.status, 200);
    assert_eq!(stage.call("POST", "/api/v6/init", None, &json!({})).await.status, 200);
    assert_eq!(stage.call("GET", "/api/nowhere", None, &Value::Null).await.status, 404);
}

#[tokio::test]
async fn an_account_is_found_by_an_escaped_email() {
    let stage = Stage::new(Dialect::V65).await;
    let path = "/api/users/admin%40example.com";
    let found = stage.call("GET", path, Some(TOKEN), &Value::Null).await;
    assert_eq!(found.body[0]["email"], "admin@example.com");
}

#[tokio::test]
async fn a_good_token_without_an_account_opens_only_the_login() {
    let stage = Stage::new(Dialect::V65).await;
    let names = "/api/experiments/names";
    let refused = stage.call("GET", names, Some(OTHER), &Value::Null).await;
    assert_eq!((refused.status, &refused.body["name"]), (401, &json!("AuthorizationRequiredError")));
    let account = json!({ "email": "nobody@example.com" });
    assert_eq!(stage.call("POST", "/api/login/user", Some(OTHER), &account).await.status, 200);
    assert_eq!(stage.call("GET", names, Some(OTHER), &Value::Null).await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_before_authorization() {
    let stage = Stage::new(Dialect::V65).await;
    let answer = stage.call("POST", "/api/experiments", None, &json!("{bad")).await;
    assert_eq!((answer.status, &answer.body["name"]), (400, &json!("SyntaxError")));
    let answer = stage.call("POST", "/api/experiments", None, &json!({})).await;
    assert_eq!(answer.status, 401, "a body of the wrong shape is refused after authorization");
}

#[tokio::test]
async fn an_application_needs_its_token_while_the_setting_requires_it() {
    let stage = Stage::new(Dialect::V65).await;
    stage.check_applications().await;
    stage.is("client_auth_no_token").await;
    stage.is("client_auth_malformed").await;
    // {"APIKey":"key"}, signed with "secret" and with "other"; {"APIKey":"other"}, with "secret".
    let head = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
    let tokens = [
        (
            format!("Bearer {head}.eyJBUElLZXkiOiJrZXkifQ.FxdYi-TUO2s7KASTHBTiKygD41UATvFw_uXQnIR3cK8"),
            200,
            "",
            "",
        ),
        (
            format!("Bearer {head}.eyJBUElLZXkiOiJrZXkifQ.5WYb0SiRwYI1k7Cz9CtFuxp3poMl_Y9rHOfijYvRlMs"),
            401,
            "invalid signature",
            "Invalid token",
        ),
        (
            format!("Bearer {head}.eyJBUElLZXkiOiJvdGhlciJ9.6LhIgO247S15TVbOLnOEgxHHs4N3L7Aa5iSohaeOOk8"),
            401,
            "Provided token is invalid",
            "Invalid token",
        ),
    ];
    for (token, status, message, kind) in tokens {
        let answer = stage.call("POST", "/api/v6/init", Some(&token), &json!({})).await;
        assert_eq!(answer.status, status, "{token}: {}", answer.body);
        if status == 401 {
            assert_eq!((&answer.body["message"], &answer.body["type"]), (&json!(message), &json!(kind)));
        }
    }
    let unknown = stage.call("POST", "/api/v6/assign", None, &json!({ "context": "assign-prog" })).await;
    assert_eq!(unknown.status, 401, "t1 has become known");
    let headers = HashMap::from([("User-Id".to_owned(), "ghost".to_owned())]);
    let url = stage.server.url();
    let ghost = send(&stage.http, url, "POST", "/api/v6/assign", &headers, &json!({})).await;
    assert_eq!(ghost.status, 404, "who is unknown hears that first");
    let off = json!({ "toCheckAuth": false, "toFilterMetric": false });
    assert_eq!(stage.call("POST", "/api/setting", Some(TOKEN), &off).await.status, 200);
    assert_eq!(stage.call("POST", "/api/v6/init", None, &json!({})).await.status, 200);
}

#[tokio::test]
async fn the_old_dialect_sends_its_errors_unchanged() {
    let stage = Stage::new(Dialect::V62).await;
    let refused = stage.call("GET", "/api/experiments/names", None, &Value::Null).await;
    let message = "Authorization is required for request on GET /api/experiments/names";
    let expected = json!({ "httpCode": 401, "name": "AuthorizationRequiredError", "message": message });
    assert_eq!((refused.status, refused.body), (401, expected));
    stage.check_applications().await;
    let refused = stage.call("POST", "/api/v6/init", None, &json!({})).await;
    let expected = json!({ "type": "Token is not present in request", "httpCode": 401 });
    assert_eq!((refused.status, refused.body), (401, expected));
}

#[tokio::test]
async fn the_client_authorizes_with_its_settings() {
    for dialect in [Dialect::V62, Dialect::V65] {
        let stage = Stage::new(dialect).await;
        stage.check_applications().await;
        let builder = || UpgradeClient::builder(stage.server.url());
        let nobody = builder().build().unwrap();
        assert_eq!(nobody.experiment_names().await.unwrap_err().kind(), ErrorKind::Auth);
        assert_eq!(nobody.init_user(&NewUser::new("ada")).await.unwrap_err().kind(), ErrorKind::Auth);
        let admin = builder().token("local-admin".into()).client_key("key", "secret".into()).build().unwrap();
        assert_eq!(admin.experiment_names().await.unwrap(), []);
        admin.init_user(&NewUser::new("ada")).await.unwrap();
    }
}
