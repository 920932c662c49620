//! The names of a server's tools, as models may see them.

use sha2::{Digest, Sha256};

/// The longest name that every provider accepts, in bytes.
const LONGEST: usize = 64;

/// The name of a tool for models: the prefix and the server's name. Characters that providers refuse become
/// `_`; a name that is too long is cut and ends with a hash of the whole.
pub(super) fn for_models(prefix: Option<&str>, name: &str) -> String {
    let full = match prefix {
        Some(prefix) => format!("{prefix}_{name}"),
        None => name.to_owned(),
    };
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let sent: String = full.chars().map(|letter| if allowed(letter) { letter } else { '_' }).collect();
    if sent.len() <= LONGEST {
        return sent;
    }
    let hash = Sha256::digest(full.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{hash}", &sent[..LONGEST - 1 - hash.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_that_can_be_sent_stays() {
        assert_eq!(for_models(None, "get-sum_2"), "get-sum_2");
        assert_eq!(for_models(Some("files"), "read.file"), "files_read_file");
    }

    #[test]
    fn long_names_stay_different() {
        let (one, other) = ("a".repeat(100), "a".repeat(101));
        assert_ne!(for_models(None, &one), for_models(None, &other));
    }

    proptest! {
        #[test]
        fn every_name_can_be_sent(name in ".{1,128}") {
            let name = for_models(Some("server"), &name);
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            prop_assert!(!name.is_empty() && name.len() <= LONGEST && name.bytes().all(allowed));
        }
    }
}
