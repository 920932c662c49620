//! Where the server takes times and ids from, so that a test can give both.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::calendar::Day;

/// Tells the time.
pub(crate) type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// Makes ids.
pub(crate) type Ids = Box<dyn FnMut() -> Uuid + Send>;

/// Ids that follow from a seed: the same seed gives the same ids in the same order.
pub(crate) fn seeded(seed: u64) -> Ids {
    let mut state = seed;
    Box::new(move || {
        let bytes = (u128::from(split_mix(&mut state)) << 64) | u128::from(split_mix(&mut state));
        uuid::Builder::from_random_bytes(bytes.to_be_bytes()).into_uuid()
    })
}

/// Steele, Lea and Flood's SplitMix64: one odd constant, two mixing rounds.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// A time as the wire has it: UTC, milliseconds, `Z`.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = Day::since_epoch(days).civil();
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let milli = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_wire_has_them() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_220_561_670, "2026-11-21T00:22:41.670Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ];
        for (millis, written) in cases {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_millis(millis)), written);
        }
    }

    #[test]
    fn a_seed_gives_the_same_ids_again() {
        let (mut one, mut two, mut other) = (seeded(7), seeded(7), seeded(8));
        let first = one();
        assert_eq!(first, two());
        assert_ne!(first, one());
        assert_ne!(first, other());
        assert_eq!(first.get_version_num(), 4);
    }
}
