//! The format of stored bytes: its number, its errors, and the shape of MessagePack values.

/// The format this release writes, and the newest it reads.
pub const FORMAT: u8 = 2;

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// A later release wrote it.
    #[error("it has format {0}, and this release reads up to {FORMAT}: update agentgraph")]
    Newer(u8),
    /// It is encrypted.
    #[error("{NEEDS_KEY}")]
    Sealed,
    /// It is damaged; the text says how.
    #[error("{0}")]
    Damaged(String),
}

/// The remedy for encrypted bytes that are read without a key.
pub const NEEDS_KEY: &str =
    "it is encrypted: wrap the store in an `EncryptedSaver` with the key it was encrypted with";

/// The error for bytes that break the format.
pub fn damaged(problem: impl Into<String>) -> FormatError {
    FormatError::Damaged(problem.into())
}

/// The length of the MessagePack value at the start of `bytes`, without building it. Not recursive: nested
/// values are counted, so hostile nesting costs no stack.
pub fn value_length(bytes: &[u8]) -> Result<usize, FormatError> {
    let mut at = 0;
    let mut pending: u64 = 1;
    while pending > 0 {
        let marker = *bytes.get(at).ok_or_else(|| damaged("a value is cut off"))?;
        let (head, body, inside) = shape(marker, &bytes[at..])?;
        at = at
            .checked_add(head + body)
            .filter(|end| *end <= bytes.len())
            .ok_or_else(|| damaged("a value is cut off"))?;
        pending = pending - 1 + inside;
    }
    Ok(at)
}

/// For one value: the length of its head, the length of its own body, and the number of values nested in
/// it.
pub fn shape(marker: u8, bytes: &[u8]) -> Result<(usize, usize, u64), FormatError> {
    let long = |width: usize| -> Result<u64, FormatError> {
        let digits = bytes.get(1..1 + width).ok_or_else(|| damaged("a value is cut off"))?;
        Ok(digits.iter().fold(0, |number, digit| (number << 8) | u64::from(*digit)))
    };
    let sized = |width: usize, extra: usize| Ok((1 + width + extra, long(width)? as usize, 0));
    let nested = |width: usize, each: u64| Ok((1 + width, 0, long(width)? * each));
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Ok((1, 0, 0)),
        0x80..=0x8f => Ok((1, 0, u64::from(marker & 0x0f) * 2)),
        0x90..=0x9f => Ok((1, 0, u64::from(marker & 0x0f))),
        0xa0..=0xbf => Ok((1, usize::from(marker & 0x1f), 0)),
        0xc4 | 0xd9 => sized(1, 0),
        0xc5 | 0xda => sized(2, 0),
        0xc6 | 0xdb => sized(4, 0),
        0xc7 => sized(1, 1),
        0xc8 => sized(2, 1),
        0xc9 => sized(4, 1),
        0xcc | 0xd0 => Ok((1, 1, 0)),
        0xcd | 0xd1 => Ok((1, 2, 0)),
        0xca | 0xce | 0xd2 => Ok((1, 4, 0)),
        0xcb | 0xcf | 0xd3 => Ok((1, 8, 0)),
        0xd4..=0xd8 => Ok((2, 1 << (marker - 0xd4), 0)),
        0xdc => nested(2, 1),
        0xdd => nested(4, 1),
        0xde => nested(2, 2),
        0xdf => nested(4, 2),
        0xc1 => Err(damaged("a value has a marker that MessagePack does not use")),
    }
}
