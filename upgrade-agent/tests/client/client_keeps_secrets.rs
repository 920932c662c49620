//! The client authorizes as configured: with a token, as a Google service account, or with a client key.
//! Secrets are sent only to their servers, and never displayed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::recording;
use crate::scripted;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use scripted::{Says, Scripted};
use secrecy::SecretString;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;
use upgrade_agent::client::{ErrorKind, NewUser, UpgradeClient, UpgradeClientBuilder};
use upgrade_agent::server::EmbeddedServer;

const PKCS8: &str = include_str!("../fixtures/test_key_pkcs8.pem");
const PKCS1: &str = include_str!("../fixtures/test_key_pkcs1.pem");
const SECRET: &str = "hunter2-and-more";
const START: u64 = 1_800_000_000;

fn healthy() -> Says {
    Says::Json(200, json!({ "name": "UpGrade", "version": "6.5.0", "description": "" }))
}

fn names() -> Says {
    Says::Json(200, json!([]))
}

fn token(text: &str, seconds: u64) -> Says {
    Says::Json(200, json!({ "access_token": text, "expires_in": seconds, "token_type": "Bearer" }))
}

/// A key file in its own folder, removed on drop.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(content: &Value) -> Self {
        Self::text(&content.to_string())
    }

    fn text(content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("account-{}.json", uuid::Uuid::new_v4()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn account(token_uri: &str, key: &str) -> Value {
    json!({
        "type": "service_account",
        "client_email": "agent@project.iam.gserviceaccount.com",
        "private_key_id": "key-7",
        "private_key": key,
        "token_uri": token_uri,
    })
}

struct World {
    upgrade: Scripted,
    tokens: Scripted,
    now: Arc<AtomicU64>,
    client: UpgradeClient,
}

impl World {
    async fn new(upgrade: Vec<Says>, tokens: Vec<Says>) -> Self {
        Self::with_key(upgrade, tokens, PKCS8).await
    }

    async fn with_key(upgrade: Vec<Says>, tokens: Vec<Says>, key: &str) -> Self {
        let upgrade = Scripted::new(std::iter::once(healthy()).chain(upgrade).collect()).await;
        let tokens = Scripted::new(tokens).await;
        let file = KeyFile::new(&account(&format!("{}/token", tokens.url()), key));
        let now = Arc::new(AtomicU64::new(START));
        let clock = Arc::clone(&now);
        let client = UpgradeClient::builder(upgrade.url())
            .service_account_file(&file.0)
            .retry_pause(Duration::ZERO)
            .clock(move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::Relaxed)))
            .build()
            .unwrap();
        Self { upgrade, tokens, now, client }
    }

    /// Returns the authorization of each admin call, in order.
    fn carried(&self) -> Vec<String> {
        self.upgrade.heard().iter().skip(1).map(|heard| authorization(&heard.head)).collect()
    }
}

fn authorization(head: &str) -> String {
    let line = head.lines().find_map(|line| line.strip_prefix("authorization: "));
    line.unwrap_or("none").to_owned()
}

fn part(jwt: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(jwt.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_service_account_signs_for_the_token_of_admin_calls() {
    for key in [PKCS8, PKCS1] {
        let world = World::with_key(vec![names(), names()], vec![token("t1", 3600)], key).await;
        world.client.experiment_names().await.unwrap();
        world.client.experiment_names().await.unwrap();
        assert_eq!(world.carried(), ["bearer t1", "bearer t1"]);
        assert_eq!(authorization(&world.upgrade.heard()[0].head), "none", "health needs no token");

        let asked = world.tokens.heard();
        assert_eq!(asked.len(), 1, "both calls use one token");
        assert_eq!(asked[0].line, "POST /api/token");
        assert!(asked[0].head.contains("content-type: application/x-www-form-urlencoded\r\n"));
        let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
        let jwt = asked[0].text.strip_prefix(grant).unwrap();
        assert_eq!(part(jwt, 0), json!({ "alg": "RS256", "typ": "JWT", "kid": "key-7" }));
        let claims = json!({
            "iss": "agent@project.iam.gserviceaccount.com",
            "scope": "https://www.googleapis.com/auth/cloud-platform",
            "aud": format!("{}/token", world.tokens.url()),
            "iat": START,
            "exp": START + 3600,
        });
        assert_eq!(part(jwt, 1), claims);
        let (text, signature) = jwt.rsplit_once('.').unwrap();
        let der = PrivatePkcs8KeyDer::from_pem_slice(PKCS8.as_bytes()).unwrap();
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
        public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let answers = vec![names(), names(), names()];
    let world = World::new(answers, vec![token("t1", 3600), token("t2", 3600)]).await;
    for (seconds, carried) in [(0, "bearer t1"), (3299, "bearer t1"), (3301, "bearer t2")] {
        world.now.store(START + seconds, Ordering::Relaxed);
        world.client.experiment_names().await.unwrap();
        assert_eq!(world.carried().last().unwrap(), carried, "after {seconds}");
    }
}

#[tokio::test]
async fn concurrent_calls_share_one_fetch_whether_it_succeeds_or_fails() {
    let world = World::new((0..8).map(|_| names()).collect(), vec![token("t1", 3600)]).await;
    world.client.connect().await.unwrap();
    let calls = (0..8).map(|_| world.client.experiment_names());
    for answer in futures_util::future::join_all(calls).await {
        answer.unwrap();
    }
    assert_eq!(world.tokens.lines().len(), 1);

    let world = World::new(
        vec![names()],
        vec![Says::Json(400, json!({ "error": "invalid_grant" })), token("t1", 60)],
    )
    .await;
    world.client.connect().await.unwrap();
    let calls = (0..8).map(|_| world.client.experiment_names());
    for answer in futures_util::future::join_all(calls).await {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::Auth);
    }
    assert_eq!(world.tokens.lines().len(), 1, "calls that waited for a failed fetch do not start another");
    world.client.experiment_names().await.unwrap();
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_even_for_a_write() {
    let refused = || Says::Json(401, json!({ "message": "Authorization is required" }));
    let id = "d6a003ca-be46-417b-9c13-8dac554f511c";
    let answers = vec![refused(), Says::Json(200, json!([{ "id": id }]))];
    let world = World::new(answers, vec![token("t1", 3600), token("t2", 3600)]).await;
    world.client.delete(id).await.unwrap();
    assert_eq!(world.carried(), ["bearer t1", "bearer t2"]);

    let answers = vec![refused(), refused(), refused()];
    let world = World::new(answers, vec![token("t1", 3600), token("t2", 3600)]).await;
    let failure = world.client.experiment_names().await.unwrap_err();
    assert_eq!((failure.kind(), failure.status()), (ErrorKind::Auth, Some(401)));
    assert_eq!(world.carried(), ["bearer t1", "bearer t2"]);
}

#[tokio::test]
async fn a_message_of_the_token_server_is_shown_without_the_assertion() {
    let denied = json!({ "error": "invalid_grant", "error_description": "Account not found" });
    let world = World::new(vec![], vec![Says::Json(400, denied)]).await;
    let failure = world.client.experiment_names().await.unwrap_err();
    assert_eq!((failure.kind(), failure.message()), (ErrorKind::Auth, "invalid_grant: Account not found"));
    assert!(!failure.may_have_acted());
    assert_eq!(world.upgrade.lines().len(), 1, "no call was made without a token");

    let strange = [
        (Says::Json(200, json!({})), ErrorKind::Protocol),
        (Says::Json(200, json!({ "access_token": "a\nb" })), ErrorKind::Protocol),
        (Says::Text(200, "text/html", "<html>".into()), ErrorKind::Protocol),
        (Says::Json(500, json!({})), ErrorKind::Server),
        (Says::Head(302, "location: http://127.0.0.1:9/\n".into(), Value::Null), ErrorKind::Auth),
    ];
    for (answer, kind) in strange {
        let world = World::new(vec![], vec![answer]).await;
        assert_eq!(world.client.experiment_names().await.unwrap_err().kind(), kind);
    }
}

#[test]
fn invalid_key_files_are_refused_without_repeating_them() {
    let url = "https://oauth2.googleapis.com/token";
    let refused = [
        KeyFile::text(SECRET),
        KeyFile::text(&format!("\"{SECRET}\"")),
        KeyFile::new(&json!({ "private_key": SECRET })),
        KeyFile::new(&account(url, SECRET)),
        KeyFile::new(&account(url, &PKCS8.replace("MII", SECRET))),
        KeyFile::new(&account("http://tokens.example.org/", PKCS8)),
        KeyFile::new(&account("file:///etc/passwd", PKCS8)),
        KeyFile::new(&account(&format!("https://ada:{SECRET}@example.org/"), PKCS8)),
        KeyFile::new(&json!({ "type": "authorized_user", "refresh_token": SECRET })),
        KeyFile::text(&" ".repeat(100_000)),
    ];
    let body = PKCS8.lines().nth(5).unwrap();
    let build = |path: &PathBuf| UpgradeClient::builder("http://localhost/api").service_account_file(path);
    for file in &refused {
        let failure = build(&file.0).build().unwrap_err();
        assert_eq!(failure.code(), "E_UPGRADE_CONFIG");
        let text = format!("{failure} {failure:?}");
        assert!(text.contains(file.0.to_str().unwrap()), "{text}");
        assert!(!text.contains(SECRET) && !text.contains(body), "{text}");
    }
    assert!(build(&PathBuf::from("/nowhere/key.json")).build().is_err());
    let good = KeyFile::new(&account(url, PKCS8));
    assert!(build(&good.0).build().is_ok());
    let both = build(&good.0).token(SecretString::from(SECRET));
    assert_eq!(both.build().unwrap_err().code(), "E_UPGRADE_CONFIG");
}

fn keyed(url: &str) -> UpgradeClientBuilder {
    UpgradeClient::builder(url)
        .token(SecretString::from("admin-token"))
        .client_key("the-key", SecretString::from(SECRET))
        .retries(0)
}

#[tokio::test]
async fn calls_for_students_carry_the_signed_key_and_not_the_admin_token() {
    let answers = vec![healthy(), Says::Json(200, json!({ "id": "ada" })), names()];
    let server = Scripted::new(answers).await;
    let client = keyed(server.url()).build().unwrap();
    client.init_user(&NewUser::new("ada")).await.unwrap();
    client.experiment_names().await.unwrap();
    let heard = server.heard();
    assert_eq!(authorization(&heard[2].head), "bearer admin-token");
    // The recorded heads are in lower case, so the token is computed again.
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let text = format!("{header}.{}", URL_SAFE_NO_PAD.encode(r#"{"APIKey":"the-key"}"#));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, text.as_bytes()));
    assert_eq!(authorization(&heard[1].head), format!("bearer {text}.{signature}").to_lowercase());
    for (key, secret) in [("", SECRET), ("the-key", ""), ("  ", SECRET)] {
        let builder = UpgradeClient::builder(server.url()).client_key(key, SecretString::from(secret));
        assert_eq!(builder.build().unwrap_err().code(), "E_UPGRADE_CONFIG");
    }
}

#[test]
fn secrets_leave_this_machine_unencrypted_only_if_that_is_allowed() {
    for url in ["http://upgrade.example.org/api", "http://10.0.0.1/api", "http://localhost.example.org/api"] {
        let of = || UpgradeClient::builder(url);
        let token = SecretString::from("admin-token");
        for secret in [of().token(token), of().client_key("the-key", SecretString::from(SECRET))] {
            let refused = secret.clone().build().unwrap_err();
            assert_eq!(refused.code(), "E_UPGRADE_CONFIG", "{url}");
            assert!(refused.to_string().contains("https"), "{refused}");
            assert!(secret.allow_plain_http().build().is_ok(), "{url}");
        }
        let missing = of().service_account_file("/nonexistent").build().unwrap_err();
        assert!(missing.to_string().contains("https"), "{missing}");
        assert!(of().build().is_ok(), "without a secret, {url} is allowed");
    }
    for url in ["http://127.0.0.1:3030/api", "http://localhost/api", "https://upgrade.example.org/api"] {
        assert!(keyed(url).build().is_ok(), "{url}");
    }
}

/// A writer that collects traces.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Vec<u8>>>);

impl Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Traced {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_text_of_this_crate_or_its_http_client_contains_a_secret() {
    // With only one subscriber, an event that another test's thread reaches first would be disabled for all
    // threads.
    let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let traced = Traced::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(traced.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let echo = |message: &str| {
        Says::Json(401, json!({ "message": message, "request": { "authorization": "Bearer admin-token" } }))
    };
    let server = Scripted::new(vec![
        healthy(),
        echo("Bearer admin-token is not valid"),
        Says::Json(400, json!({ "message": "admin-token", "errors": [] })),
        Says::Text(403, "text/html", "<pre>admin-token</pre>".into()),
    ])
    .await;
    let builder = keyed(server.url());
    let mut texts = vec![format!("{builder:?}")];
    let client = builder.build().unwrap();
    texts.push(format!("{client:?}"));
    for _ in 0..3 {
        let failure = client.experiment_names().await.unwrap_err();
        assert!(failure.message().contains("[secret]"), "{failure}");
        texts.extend([failure.to_string(), format!("{failure:?}")]);
    }

    let file_key = PKCS8.lines().nth(5).unwrap();
    let answers = vec![Says::Json(401, json!({ "message": "token-of-google" })), echo("token-of-google")];
    let world =
        World::new(answers, vec![token("token-of-google", 3600), token("token-of-google", 3600)]).await;
    texts.push(format!("{:?}", world.client));
    texts.push(world.client.experiment_names().await.unwrap_err().to_string());

    texts.push(String::from_utf8(traced.0.lock().unwrap().clone()).unwrap());
    assert!(texts.last().unwrap().contains("connect"), "the traces are not empty: {texts:?}");
    for text in texts {
        for secret in ["admin-token", SECRET, "token-of-google", "the-key", file_key] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[tokio::test]
async fn a_server_that_requires_authorization_accepts_only_valid_credentials() {
    let server = EmbeddedServer::builder()
        .in_memory()
        .admin_token(SecretString::from("token-of-google"), "admin@example.com")
        .client_key("the-key", SecretString::from(SECRET))
        .start()
        .await
        .unwrap();
    let tokens = Scripted::new(vec![token("old", 3600), token("token-of-google", 3600)]).await;
    let file = KeyFile::new(&account(tokens.url(), PKCS8));
    let builder = || UpgradeClient::builder(server.url()).service_account_file(&file.0);
    let client = builder().client_key("the-key", SecretString::from(SECRET)).build().unwrap();
    assert_eq!(client.connect().await.unwrap().version, "6.5.0");
    assert!(tokens.lines().is_empty());
    assert_eq!(client.experiment_names().await.unwrap(), [], "a refused token was replaced");
    assert_eq!(tokens.lines().len(), 2);

    let setting = json!({ "toCheckAuth": true, "toFilterMetric": false });
    let header = HashMap::from([("Authorization".to_owned(), "Bearer token-of-google".to_owned())]);
    let set =
        recording::send(&recording::http(), server.url(), "POST", "/api/setting", &header, &setting).await;
    assert_eq!(set.status, 200, "{}", set.body);
    client.init_user(&NewUser::new("ada")).await.unwrap();
    for (key, secret, why) in [
        ("the-key", "another secret", "invalid signature"),
        ("another-key", SECRET, "Provided token is invalid"),
    ] {
        let stranger = UpgradeClient::builder(server.url()).client_key(key, SecretString::from(secret));
        let failure = stranger.build().unwrap().init_user(&NewUser::new("ada")).await.unwrap_err();
        assert_eq!((failure.kind(), failure.status()), (ErrorKind::Auth, Some(401)));
        assert!(failure.message().contains(why), "{failure}");
    }
    let nobody = UpgradeClient::builder(server.url()).build().unwrap();
    let failures = [
        nobody.init_user(&NewUser::new("ada")).await.unwrap_err(),
        nobody.experiment_names().await.unwrap_err(),
    ];
    assert_eq!(failures.map(|failure| failure.kind()), [ErrorKind::Auth, ErrorKind::Auth]);
}
