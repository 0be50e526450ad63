//! How long a call waits for what, how often it tries, and how much it takes.
//!
//! Owns the arithmetic of waits. Must never sleep, and takes its randomness from
//! the seed alone.

use reqwest::header::HeaderMap;
use std::time::{Duration, SystemTime};

use crate::limits;

/// Whether another attempt helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    /// After our own wait.
    Backoff,
    /// After the wait that the provider asked for.
    After(Duration),
}

impl Retry {
    /// How long the provider wants to be left alone, in milliseconds; zero if it does not say.
    /// `None` if no attempt helps.
    pub(crate) fn asked_ms(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::Backoff => Some(0),
            Self::After(wait) => Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// The limits of a client's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts of one call, the first one included; never more than
    /// [`limits::ATTEMPTS_MAX`].
    pub attempts_max: u32,
    /// Time from the sent request to the head of the answer.
    pub first_byte_ms: u64,
    /// Time without a byte after which a stream counts as dead.
    pub idle_ms: u64,
    /// Time of one attempt as a whole.
    pub attempt_ms: u64,
    /// Wait before the second attempt; doubles with each one after it.
    pub backoff_base_ms: u64,
    /// Longest wait that the provider did not ask for.
    pub backoff_cap_ms: u64,
    /// Longest `Retry-After` that is waited out; a longer one ends the call at once.
    pub retry_after_ms_max: u64,
    /// One event of a stream.
    pub event_bytes_max: usize,
    /// One streamed answer as a whole.
    pub response_bytes_max: usize,
    /// Where the randomness of waits comes from.
    pub seed: u64,
}

impl RetryPolicy {
    /// The limits of [`limits`], with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            attempts_max: limits::ATTEMPTS_MAX,
            first_byte_ms: limits::FIRST_BYTE_MS,
            idle_ms: limits::IDLE_MS,
            attempt_ms: limits::ATTEMPT_MS,
            backoff_base_ms: limits::BACKOFF_BASE_MS,
            backoff_cap_ms: limits::BACKOFF_CAP_MS,
            retry_after_ms_max: limits::RETRY_AFTER_MS_MAX,
            event_bytes_max: limits::EVENT_BYTES_MAX,
            response_bytes_max: limits::RESPONSE_BYTES_MAX,
            seed,
        }
    }

    /// How long to wait after an attempt, in milliseconds; `None` for no other
    /// attempt. Our own wait is between half and the whole of the doubled base; the
    /// provider's is honoured, with a little added to it; one above its limit ends the call.
    pub(crate) fn wait_ms(
        &self,
        attempt: u32,
        retry: Retry,
        rng: &mut fastrand::Rng,
    ) -> Option<u64> {
        if attempt >= self.attempts_max.min(limits::ATTEMPTS_MAX) {
            return None;
        }
        match retry {
            Retry::Never => None,
            Retry::Backoff => {
                let doubled =
                    self.backoff_base_ms.saturating_mul(1 << attempt.saturating_sub(1).min(32));
                let whole = doubled.min(self.backoff_cap_ms);
                Some(rng.u64(whole / 2..=whole))
            }
            Retry::After(_) => {
                let asked = retry.asked_ms()?;
                let jitter = rng.u64(0..=limits::RETRY_AFTER_JITTER_MS_MAX);
                // Asking earlier than the provider wants would not honour it; a person resumes.
                (asked <= self.retry_after_ms_max).then_some(asked + jitter)
            }
        }
    }
}

/// The wait that an answer asks for: `retry-after-ms`, or `Retry-After` in seconds
/// or as a date (RFC 9110, 10.2.3). A date is read against the answer's own `Date`,
/// so that clocks need not agree.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |name: &str| text(name).and_then(|text| text.parse::<f64>().ok());
    if let Some(wait_ms) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(wait_ms / 1_000.0).ok();
    }
    if let Some(wait_s) = number("retry-after") {
        return Duration::try_from_secs_f64(wait_s).ok();
    }
    let date = |name: &str| text(name).and_then(|text| httpdate::parse_http_date(text).ok());
    let until = date("retry-after")?;
    Some(until.duration_since(date("date").unwrap_or(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_waits_double_up_to_the_cap_and_end_after_six_attempts() {
        let policy = RetryPolicy::new(1);
        let mut rng = fastrand::Rng::with_seed(1);
        for (attempt, whole) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000)] {
            for _ in 0..100 {
                let wait = policy.wait_ms(attempt, Retry::Backoff, &mut rng).unwrap();
                assert!((whole / 2..=whole).contains(&wait), "{attempt}: {wait}");
            }
        }
        assert_eq!(policy.wait_ms(6, Retry::Backoff, &mut rng), None);
        assert_eq!(policy.wait_ms(1, Retry::Never, &mut rng), None);
        let more = RetryPolicy { attempts_max: 99, backoff_base_ms: u64::MAX, ..policy };
        assert!(more.wait_ms(5, Retry::Backoff, &mut rng).unwrap() <= limits::BACKOFF_CAP_MS);
        assert_eq!(more.wait_ms(6, Retry::Backoff, &mut rng), None);
    }

    #[test]
    fn a_providers_wait_is_honoured_up_to_its_limit() {
        let policy = RetryPolicy::new(1);
        let mut rng = fastrand::Rng::with_seed(1);
        let day = Retry::After(Duration::from_secs(86_400));
        assert_eq!(policy.wait_ms(1, day, &mut rng), None);
        for (seconds, least_ms) in [(0, 0), (7, 7_000), (120, limits::RETRY_AFTER_MS_MAX)] {
            let wait = Duration::from_secs(seconds);
            let wait = policy.wait_ms(1, Retry::After(wait), &mut rng).unwrap();
            assert!((least_ms..=least_ms + limits::RETRY_AFTER_JITTER_MS_MAX).contains(&wait));
        }
    }

    #[test]
    fn a_providers_wait_is_read_in_every_form() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:00 GMT").unwrap();
        let read = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().unwrap());
            }
            retry_after(&map, now).map(|wait| wait.as_millis())
        };
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("retry-after", " 3 ")]), Some(3_000));
        assert_eq!(read(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(read(&[("retry-after", "-1")]), None);
        assert_eq!(read(&[("retry-after", "soon")]), None);
        assert_eq!(read(&[("retry-after", "9"), ("retry-after-ms", "20")]), Some(20));
        let date = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(read(&[date]), Some(37_000));
        assert_eq!(read(&[date, ("date", "Sun, 06 Nov 1994 08:49:35 GMT")]), Some(2_000));
        assert_eq!(read(&[date, ("date", "Sun, 06 Nov 1994 09:49:35 GMT")]), Some(0));
    }
}
