//! JSON Web Tokens: signed with a key that the issuer publishes, for this server, and not expired.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentgraph_server::{Jwt, Server};
use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use reqwest::Method;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use crate::common::{Served, all_graphs};

/// A key with its public half as the issuer shows it.
fn key(id: &str) -> (EncodingKey, Value) {
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let key = EncodingKey::from_ec_der(pair.as_ref());
    let mut shown = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
    shown.common.key_id = Some(id.to_owned());
    (key, serde_json::to_value(shown).unwrap())
}

/// An issuer whose key set is counted when it is read.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    async fn new(keys: Vec<Value>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (keys, asked) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (shown, count) = (Arc::clone(&keys), Arc::clone(&asked));
        let set = async move || {
            count.fetch_add(1, Ordering::SeqCst);
            Json(json!({ "keys": *shown.lock().unwrap() }))
        };
        let routes = Router::new().route("/.well-known/jwks.json", get(set));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Issuer { url, keys, asked }
    }

    async fn server(&self) -> Served {
        Served::of(all_graphs(Server::new().in_memory().jwt(Jwt::new(&self.url, "graphs")))).await
    }

    fn claims(&self) -> Value {
        json!({ "iss": self.url, "aud": "graphs", "exp": get_current_timestamp() + 600, "sub": "ada@example.org" })
    }
}

fn token(key: &EncodingKey, id: Option<&str>, claims: &Value) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = id.map(str::to_owned);
    encode(&header, claims, key).unwrap()
}

async fn status(server: &Served, token: &str) -> u16 {
    server.with_key(token).send(Method::GET, "/info", None).await.0.as_u16()
}

#[tokio::test]
async fn the_subject_of_a_valid_token_is_the_caller() {
    let (key, shown) = key("one");
    let odd = json!({ "kty": "new", "kid": "odd" });
    let issuer = Issuer::new(vec![odd, shown]).await;
    let server = issuer.server().await;
    let ada = server.with_key(&token(&key, Some("one"), &issuer.claims()));
    let made = ada.post("/threads", &json!({})).await;
    assert_eq!(made["metadata"]["owner"], "ada@example.org");
    let mut claims = issuer.claims();
    claims["sub"] = "grace".into();
    // The only key is meant if the token names none.
    let grace = server.with_key(&token(&key, None, &claims));
    assert_eq!(grace.post("/threads/count", &json!({})).await, 0);
    let item = json!({ "namespace": ["notes"], "key": "k", "value": {} });
    assert_eq!(ada.send(Method::PUT, "/store/items", Some(&item)).await.0, 204);
    assert_eq!(ada.get("/store/items?namespace=notes&key=k").await["key"], "k");
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    let server = Jwt::new(&issuer.url, "graphs").caller_claim("org");
    let server = Served::of(all_graphs(Server::new().in_memory().jwt(server))).await;
    assert_eq!(status(&server, &token(&key, Some("one"), &claims)).await, 401, "it has no such claim");
}

#[tokio::test]
async fn tokens_that_anything_is_wrong_with_are_refused() {
    let (own, shown) = key("one");
    let issuer = Issuer::new(vec![shown.clone()]).await;
    let server = issuer.server().await;
    assert_eq!(status(&server, &token(&own, Some("one"), &issuer.claims())).await, 200);
    let other = key("one").0;
    assert_eq!(status(&server, &token(&other, Some("one"), &issuer.claims())).await, 401, "another's key");
    let with = |claim: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[claim] = value;
        (format!("{claim}: {}", claims[claim]), token(&own, Some("one"), &claims))
    };
    let now = get_current_timestamp();
    let wrong = [
        with("exp", json!(now - 600)),
        with("exp", Value::Null),
        with("nbf", json!(now + 600)),
        with("iss", json!("https://other.example")),
        with("aud", json!("others")),
        with("aud", Value::Null),
        with("sub", json!("")),
        with("sub", Value::Null),
        with("sub", json!(5)),
    ];
    for (about, token) in wrong {
        assert_eq!(status(&server, &token).await, 401, "{about}");
    }
    let signed = token(&own, Some("one"), &issuer.claims());
    let (head_and_claims, signature) = signed.rsplit_once('.').unwrap();
    let (_, claims) = head_and_claims.split_once('.').unwrap();
    let of_none = "eyJhbGciOiJub25lIiwia2lkIjoib25lIn0";
    let mut of_secret = Header::new(Algorithm::HS256);
    of_secret.kid = Some("one".to_owned());
    // The public key as a secret, which everyone knows.
    let public = EncodingKey::from_secret(shown["x"].as_str().unwrap().as_bytes());
    let forged = [
        String::new(),
        "a.b.c".to_owned(),
        head_and_claims.to_owned(),
        format!("{head_and_claims}."),
        format!("{of_none}.{claims}."),
        format!("{of_none}.{claims}.{signature}"),
        encode(&of_secret, &issuer.claims(), &public).unwrap(),
    ];
    for token in forged {
        assert_eq!(status(&server, &token).await, 401, "{token}");
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn new_keys_are_fetched_and_the_issuer_is_left_alone_meanwhile() {
    let ((old, shown_old), (new, shown_new)) = (key("old"), key("new"));
    let issuer = Issuer::new(vec![shown_old]).await;
    let server = issuer.server().await;
    let (with_old, with_new) =
        (token(&old, Some("old"), &issuer.claims()), token(&new, Some("new"), &issuer.claims()));
    assert_eq!(status(&server, &with_old).await, 200);
    for _ in 0..3 {
        assert_eq!(status(&server, &with_new).await, 401, "the key is not published");
    }
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 1);
    issuer.keys.lock().unwrap().push(shown_new);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(status(&server, &with_new).await, 200);
    assert_eq!(status(&server, &with_old).await, 200);
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_is_no_reason_to_let_in() {
    let server =
        Server::new().in_memory().jwt(Jwt::new("http://127.0.0.1:9", "graphs")).bearer_keys(["root"]);
    let server = Served::of(all_graphs(server)).await;
    let token = token(&key("one").0, Some("one"), &json!({ "sub": "ada" }));
    for _ in 0..2 {
        assert_eq!(status(&server, &token).await, 503);
    }
    assert_eq!(status(&server, "root").await, 200);
}
