//! JSON web tokens: header and claims in base64, signed with HS256 or RS256.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use ring::{error, hmac};
use serde_json::{Value, json};

pub(super) fn hs256(claims: &Value, secret: &[u8]) -> String {
    let text = unsigned(&json!({ "alg": "HS256", "typ": "JWT" }), claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
    signed(text, tag.as_ref())
}

pub(super) fn rs256(
    claims: &Value,
    key_id: Option<&str>,
    key: &RsaKeyPair,
) -> Result<String, error::Unspecified> {
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = key_id {
        header["kid"] = json!(id);
    }
    let text = unsigned(&header, claims);
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)?;
    Ok(signed(text, &signature))
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn signed(mut text: String, signature: &[u8]) -> String {
    text.push('.');
    text.push_str(&URL_SAFE_NO_PAD.encode(signature));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claims and the secret are those of the example on jwt.io.
    #[test]
    fn an_hs256_token_has_the_header_claims_and_a_valid_signature() {
        let claims = json!({ "sub": "1234567890", "name": "John Doe", "iat": 1_516_239_022 });
        let made = hs256(&claims, b"your-256-bit-secret");
        let (text, signature) = made.rsplit_once('.').unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"your-256-bit-secret");
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(hmac::verify(&key, text.as_bytes(), &signature).is_ok());
        let (header, body) = text.split_once('.').unwrap();
        assert_eq!(header, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9");
        let body: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).unwrap()).unwrap();
        assert_eq!(body, claims);
    }
}
