//! Who gets the token.

use super::*;

#[test]
fn the_token_is_for_its_own_hosts_over_https_alone() {
    let has_token = |address: &str| {
        EvaluationClient::new(address).unwrap().token("hf_not-a-real-token".into()).token.is_some()
    };
    for address in [PUBLIC, "https://huggingface.co", "https://a.b.hf.space/x"] {
        assert!(has_token(address), "{address}");
    }
    for address in
        ["http://a.hf.space", "https://evil-hf.space", "https://hf.space.evil.example", "http://127.0.0.1:1"]
    {
        assert!(!has_token(address), "{address}");
    }
}
