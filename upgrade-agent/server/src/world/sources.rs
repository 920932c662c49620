//! The sources of times and ids, which tests can replace.

use std::time::SystemTime;

use uuid::Uuid;

/// The clock.
pub(crate) type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The source of ids.
pub(crate) type Ids = Box<dyn FnMut() -> Uuid + Send>;

/// Ids from a seed: the same seed gives the same ids in the same order.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_ids() {
        let mut one = seeded(7);
        let mut two = seeded(7);
        let mut other = seeded(8);
        let first = one();
        assert_eq!(first, two());
        assert_ne!(first, one());
        assert_ne!(first, other());
        assert_eq!(first.get_version_num(), 4);
    }
}
