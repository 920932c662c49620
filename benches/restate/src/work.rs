//! [`Work`]: what both sides do, with states of the same sizes.

use serde::{Deserialize, Serialize};

/// The bytes of the text in each state.
const TEXT: usize = 2048;

/// The work of a call.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    /// So many steps, one after the other. Each writes a new text.
    Steps(u64),
    /// So many branches side by side, each in an invocation of its own. Each reads the text, and adds an
    /// item.
    Branches { number: usize, remote: bool },
}

impl Work {
    /// The durable steps of a call.
    pub(crate) fn steps(self) -> u64 {
        match self {
            Work::Steps(steps) => steps,
            Work::Branches { number, .. } => number as u64,
        }
    }
}

/// Text that a step makes: other text in each.
pub(crate) fn text(step: u64) -> String {
    let mut text = format!("{step:08}:");
    // A cheap generator, since text that repeats would be compressed away.
    let mut random = step.wrapping_add(0x9e37_79b9_7f4a_7c15);
    while text.len() < TEXT {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(char::from(b'a' + (random >> 59) as u8 % 26));
    }
    text
}

/// What a branch adds: 100 bytes.
pub(crate) fn item(text: &str) -> String {
    text[..100].to_owned()
}
