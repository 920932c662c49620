//! A limit for every window of a minute, wherever it begins. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

/// The span that limits are for.
pub(super) const SPAN: Duration = Duration::from_secs(60);

/// What was granted in the last minute, and what a provider said.
#[derive(Debug, Default)]
pub(super) struct Window {
    limit: Option<u64>,
    granted: VecDeque<Grant>,
    used: u64,
    heard: Option<Heard>,
}

#[derive(Debug)]
struct Grant {
    at: SystemTime,
    amount: u64,
}

/// A provider's own count, until it resets.
#[derive(Debug)]
struct Heard {
    remaining: u64,
    resets_at: SystemTime,
}

/// Whether an amount may be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    Now,
    /// Ask again at this time.
    At(SystemTime),
    /// The amount is above the limit itself.
    Never,
}

impl Window {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Window { limit, ..Window::default() }
    }

    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Whether `amount` may be used at `now`.
    pub(super) fn room(&mut self, now: SystemTime, amount: u64) -> Room {
        self.forget(now);
        match (self.room_by_setting(amount), self.room_by_provider(amount)) {
            (Room::Never, _) => Room::Never,
            (Room::At(setting), Room::At(provider)) => Room::At(setting.max(provider)),
            (Room::Now, room) => room,
            (room, _) => room,
        }
    }

    /// Notes that `amount` is used at `now`.
    pub(super) fn grant(&mut self, now: SystemTime, amount: u64) {
        if self.limit.is_some() {
            // A clock that was set back must not make a grant end before older ones.
            let at = self.granted.back().map_or(now, |last| last.at.max(now));
            self.granted.push_back(Grant { at, amount });
            self.used = self.used.saturating_add(amount);
        }
        if let Some(heard) = &mut self.heard {
            heard.remaining = heard.remaining.saturating_sub(amount);
        }
    }

    /// Notes that a use was larger than what was granted for it. What was used less is not given back: it
    /// was granted, and counts.
    pub(super) fn correct(&mut self, now: SystemTime, granted: u64, used: u64) {
        if let Some(more) = used.checked_sub(granted).filter(|more| *more > 0) {
            self.grant(now, more);
        }
    }

    /// Takes over what a provider says.
    pub(super) fn hear(&mut self, now: SystemTime, remaining: Option<u64>, resets_in: Option<Duration>) {
        if let (Some(remaining), Some(resets_in)) = (remaining, resets_in)
            && let Some(resets_at) = now.checked_add(resets_in)
        {
            self.heard = Some(Heard { remaining, resets_at });
        }
    }

    fn forget(&mut self, now: SystemTime) {
        while self.granted.front().is_some_and(|grant| is_past(grant.at, now)) {
            self.used -= self.granted.pop_front().map_or(0, |grant| grant.amount);
        }
        if self.heard.as_ref().is_some_and(|heard| heard.resets_at <= now) {
            self.heard = None;
        }
    }

    fn room_by_setting(&self, amount: u64) -> Room {
        let Some(limit) = self.limit else { return Room::Now };
        if amount > limit {
            return Room::Never;
        }
        let mut used = self.used;
        let mut ready = None;
        for grant in &self.granted {
            if used.saturating_add(amount) <= limit {
                break;
            }
            used -= grant.amount;
            ready = Some(grant.at + SPAN);
        }
        ready.map_or(Room::Now, Room::At)
    }

    fn room_by_provider(&self, amount: u64) -> Room {
        match &self.heard {
            Some(heard) if heard.remaining < amount => Room::At(heard.resets_at),
            _ => Room::Now,
        }
    }
}

fn is_past(at: SystemTime, now: SystemTime) -> bool {
    now.duration_since(at).is_ok_and(|age| age >= SPAN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Every window of a minute stays within the limit, and a use waits only if it would break it.
        #[test]
        fn no_window_is_above_the_limit(
            limit in 1_u64..30,
            asks in prop::collection::vec((0_u64..20_000, 1_u64..12), 0..60),
        ) {
            let mut window = Window::new(Some(limit));
            let mut uses: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (pause, amount) in asks {
                now += pause;
                let within = |uses: &[(u64, u64)], now: u64| -> u64 {
                    uses.iter().filter(|(time, _)| time + 60_000 > now).map(|(_, amount)| amount).sum()
                };
                loop {
                    match window.room(at(now), amount) {
                        Room::Now => break,
                        Room::Never => {
                            prop_assert!(amount > limit);
                            break;
                        }
                        Room::At(ready) => {
                            let ready = ready.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
                            prop_assert!(ready > now);
                            prop_assert!(within(&uses, ready - 1) + amount > limit, "it waits too long");
                            now = ready;
                        }
                    }
                }
                if amount <= limit {
                    window.grant(at(now), amount);
                    uses.push((now, amount));
                    prop_assert!(within(&uses, now) <= limit);
                }
            }
            // Any window [t, t + 60 s) that begins at a use.
            for (start, _) in &uses {
                let inside = uses.iter().filter(|(time, _)| (*start..start + 60_000).contains(time));
                prop_assert!(inside.map(|(_, amount)| amount).sum::<u64>() <= limit);
            }
        }
    }

    #[test]
    fn a_provider_that_says_none_is_left_is_asked_again_after_its_reset() {
        let mut window = Window::new(None);
        window.hear(at(0), Some(2), Some(Duration::from_secs(7)));
        assert_eq!(window.room(at(0), 2), Room::Now);
        window.grant(at(0), 2);
        assert_eq!(window.room(at(10), 1), Room::At(at(7000)));
        assert_eq!(window.room(at(7000), 1), Room::Now);
    }

    #[test]
    fn a_clock_set_back_opens_no_room() {
        let mut window = Window::new(Some(1));
        window.grant(at(100_000), 1);
        assert_eq!(window.room(at(10), 1), Room::At(at(160_000)));
        assert_eq!(window.room(at(0), 2), Room::Never);
    }
}
