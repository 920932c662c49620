//! [`Names`]: the codes that stand for namespaces and keys in the inner store.

use ring::hmac;

use crate::encrypted::EncryptionKey;
use crate::store::namespace::Namespace;

/// Makes codes under one key.
#[derive(Clone)]
pub(super) struct Names(hmac::Key);

/// The bytes of a segment's code: 128 bits, so that a namespace of the greatest depth fits.
const SEGMENT: usize = 16;

impl Names {
    pub(super) fn of(key: &EncryptionKey) -> Self {
        Names(key.of_names())
    }

    /// Each segment as a code of its text and of all segments before it. So a code says nothing of a segment
    /// elsewhere, and namespaces that begin alike have codes that begin alike.
    pub(super) fn namespace(&self, namespace: &Namespace) -> Namespace {
        let mut codes = Namespace::root();
        for depth in 1..=namespace.segments().len() {
            let before = namespace.cut_to(depth).to_bytes();
            let code = self.code(b"segment", &[&before], SEGMENT);
            // A code is never empty, and 16 codes of 32 characters are within the limits.
            codes = codes.child(code).unwrap_or_default();
        }
        codes
    }

    pub(super) fn place(&self, namespace: &Namespace, key: &str) -> (Namespace, String) {
        let code = self.code(b"key", &[&namespace.to_bytes(), key.as_bytes()], 32);
        (self.namespace(namespace), code)
    }

    /// The first bytes of a code, as hexadecimal digits.
    fn code(&self, kind: &[u8], parts: &[&[u8]], bytes: usize) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        // Each part is preceded by its length, so that no two lists have the same bytes.
        for part in [kind].iter().chain(parts) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign().as_ref().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
    }
}
