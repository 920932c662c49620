//! What takes the place of a match.

use sha2::{Digest, Sha256};

use super::PiiKind;
use super::kind::Mask;
use crate::error::{Code, Error, Result};

/// What is done with a match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PiiStrategy {
    /// The call fails with `E_LLM_PII`, and the match goes no further.
    Block,
    /// `[REDACTED_EMAIL]`
    #[default]
    Redact,
    /// Enough stays to recognise it: `****-****-****-1111`, `ada@*******.org`.
    Mask,
    /// `<email_hash:1a2b3c4d5e6f7081>`: equal data has an equal hash. The salt keeps others from guessing the
    /// data by hashing candidates; keep it secret.
    Hash {
        /// A secret text.
        salt: String,
    },
}

impl PiiStrategy {
    pub(super) fn replacement(&self, kind: &PiiKind, found: &str) -> Result<String> {
        match self {
            PiiStrategy::Block => Err(blocked(kind)),
            PiiStrategy::Redact => Ok(format!("[REDACTED_{}]", kind.name().to_uppercase())),
            PiiStrategy::Mask => Ok(kind.mask.apply(found)),
            PiiStrategy::Hash { salt } => {
                let digest = Sha256::new_with_prefix(salt).chain_update([0]).chain_update(found).finalize();
                let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
                Ok(format!("<{}_hash:{digits}>", kind.name()))
            }
        }
    }
}

fn blocked(kind: &PiiKind) -> Error {
    let message = format!(
        "the text contains personal data of the kind `{}`: remove it, or choose a strategy that replaces it",
        kind.name()
    );
    Error::new(Code::PiiFound, message)
}

impl Mask {
    fn apply(self, found: &str) -> String {
        match self {
            Mask::LastAlphanumerics(count) => starred_but_last(found, count),
            Mask::Whole => "*".repeat(found.chars().count().min(16)),
            Mask::Email => match found
                .rsplit_once('@')
                .and_then(|(user, host)| host.rsplit_once('.').map(|(host, top)| (user, host, top)))
            {
                Some((user, host, top)) => format!("{user}@{}.{top}", "*".repeat(host.chars().count())),
                None => "*".repeat(found.chars().count()),
            },
        }
    }
}

/// Stars for letters and digits but the last ones. At least half of them become stars.
fn starred_but_last(found: &str, count: usize) -> String {
    let total = found.chars().filter(|char| char.is_alphanumeric()).count();
    let hidden = total - count.min(total / 2);
    let mut seen = 0;
    found
        .chars()
        .map(|char| match char.is_alphanumeric() {
            true if seen < hidden => {
                seen += 1;
                '*'
            }
            _ => char,
        })
        .collect()
}
