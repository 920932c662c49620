//! The tokens of applications: JSON web tokens, signed with the secret that server and application share,
//! with the key of the application.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

/// The reason for which a token is rejected, in the words of the original's library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Not a token, or not one of this kind.
    Malformed(&'static str),
    /// Signed with another secret.
    Forged,
    /// Expired.
    Expired,
    /// Not valid yet.
    Early,
    /// Valid, but for another key.
    Foreign,
}

/// Checks a token. Times are in seconds since 1970.
pub(crate) fn check(token: &str, key: &str, secret: &[u8], now: u64) -> Result<(), TokenFault> {
    let mut claims = verified(token, secret)?;
    check_times(&claims, now)?;
    if let Some(claims) = claims.as_object_mut() {
        claims.remove("iat");
        claims.remove("exp");
    }
    if claims == json!({ "APIKey": key }) { Ok(()) } else { Err(TokenFault::Foreign) }
}

fn verified(token: &str, secret: &[u8]) -> Result<Value, TokenFault> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(TokenFault::Malformed("jwt malformed"));
    };
    let parsed =
        |part: &str| -> Option<Value> { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok() };
    let invalid = TokenFault::Malformed("invalid token");
    let (Some(head), Some(body)) = (parsed(header), parsed(claims)) else { return Err(invalid) };
    if signature.is_empty() {
        return Err(TokenFault::Malformed("jwt signature is required"));
    }
    let algorithm = match head["alg"].as_str() {
        Some("HS256") => hmac::HMAC_SHA256,
        Some("HS384") => hmac::HMAC_SHA384,
        Some("HS512") => hmac::HMAC_SHA512,
        _ => return Err(TokenFault::Malformed("invalid algorithm")),
    };
    let signed = token.len() - signature.len() - 1;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenFault::Forged)?;
    let key = hmac::Key::new(algorithm, secret);
    hmac::verify(&key, &token.as_bytes()[..signed], &signature).map_err(|_| TokenFault::Forged)?;
    Ok(body)
}

fn check_times(claims: &Value, now: u64) -> Result<(), TokenFault> {
    let time = |name: &str, wrong| match claims.get(name) {
        None => Ok(None),
        Some(time) => time.as_f64().map(Some).ok_or(TokenFault::Malformed(wrong)),
    };
    let now = now as f64;
    if time("nbf", "invalid nbf value")?.is_some_and(|from| from > now) {
        return Err(TokenFault::Early);
    }
    if time("exp", "invalid exp value")?.is_some_and(|end| now >= end) {
        return Err(TokenFault::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(head: &Value, claims: &Value, secret: &[u8]) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(head), part(claims));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    #[test]
    fn tokens_get_the_verdict_of_the_originals_library() {
        let head = json!({ "alg": "HS256", "typ": "JWT" });
        let token = |claims: Value| signed(&head, &claims, b"secret");
        let none = signed(&json!({ "alg": "none" }), &json!({ "APIKey": "key" }), b"secret");
        let good = token(json!({ "APIKey": "key" }));
        let (unsigned, _) = good.rsplit_once('.').unwrap();
        let cases = [
            (good.clone(), Ok(())),
            (token(json!({ "APIKey": "key", "iat": 5, "exp": 101 })), Ok(())),
            (token(json!({ "APIKey": "key", "exp": 100 })), Err(TokenFault::Expired)),
            (token(json!({ "APIKey": "key", "nbf": 101 })), Err(TokenFault::Early)),
            (
                token(json!({ "APIKey": "key", "exp": "soon" })),
                Err(TokenFault::Malformed("invalid exp value")),
            ),
            (token(json!({ "APIKey": "other" })), Err(TokenFault::Foreign)),
            (token(json!({ "APIKey": "key", "more": 1 })), Err(TokenFault::Foreign)),
            (signed(&head, &json!({ "APIKey": "key" }), b"other"), Err(TokenFault::Forged)),
            ("xyz".to_owned(), Err(TokenFault::Malformed("jwt malformed"))),
            ("x.y.z".to_owned(), Err(TokenFault::Malformed("invalid token"))),
            (format!("{unsigned}."), Err(TokenFault::Malformed("jwt signature is required"))),
            (none, Err(TokenFault::Malformed("invalid algorithm"))),
        ];
        for (token, judged) in cases {
            assert_eq!(check(&token, "key", b"secret", 100), judged, "{token}");
        }
    }
}
