//! Texts that are never written: what the user names as a secret, and what looks like a key.

const MASK: &str = "[masked]";

/// Beginnings of keys and tokens of well-known services.
const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "AIza",
    "AQ.",
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "hf_",
    "gsk_",
    "xai-",
    "pk-lf-",
    "ya29.",
    "eyJ",
];

/// A shorter word is a word, whatever its beginning.
const SHORTEST_KEY: usize = 16;

/// A text without the secrets.
pub(crate) fn masked(text: &str, secrets: &[String]) -> String {
    let forms = secrets.iter().flat_map(|secret| written_forms(secret));
    forms.fold(text.to_owned(), |text, form| text.replace(&form, MASK))
}

/// A text as it is, and as it is written inside JSON inside JSON, such as arguments in a request.
fn written_forms(text: &str) -> [String; 3] {
    let escaped = |text: &str| serde_json::Value::from(text).to_string().trim_matches('"').to_owned();
    let once = escaped(text);
    [escaped(&once), once, text.to_owned()]
}

/// A text without the words that look like keys: they begin as the keys of a known service do, or follow
/// `Bearer`.
pub(crate) fn without_keys(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut follows_bearer = false;
    for word in text.split_inclusive(|letter: char| !is_of_key(letter)) {
        let end = word.find(|letter: char| !is_of_key(letter)).unwrap_or(word.len());
        let (word, separator) = word.split_at(end);
        let is_key = follows_bearer || KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        clean += if is_key && word.len() >= SHORTEST_KEY { MASK } else { word };
        clean += separator;
        follows_bearer = word.eq_ignore_ascii_case("bearer") || (follows_bearer && word.is_empty());
    }
    clean
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_known_services_are_masked_wherever_they_are() {
        for key in [
            "sk-ant-api03-abcdefghijklmnop",
            "AIzaSyA-1234567890_abcdefghijklmnop",
            "ghp_0123456789abcdefghij",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        ] {
            for (before, after) in
                [("", ""), ("key=", "&x=1"), ("{\"key\":\"", "\"}"), ("the key ", ", it says")]
            {
                let text = format!("{before}{key}{after}");
                assert_eq!(without_keys(&text), format!("{before}[masked]{after}"));
            }
        }
        let header = "Authorization: Bearer  abcdef-0123456789-abc\r\n";
        assert_eq!(without_keys(header), "Authorization: Bearer  [masked]\r\n");
    }

    #[test]
    fn words_that_are_no_keys_stay() {
        for text in [
            "",
            "sk-short",
            "task-0123456789abcdefghij",
            "Bearer of bad news, as he is",
            "🦀 risk-averse disk-0123456789abcdef",
        ] {
            assert_eq!(without_keys(text), text);
        }
    }
}
