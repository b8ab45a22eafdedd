//! Which start of a CronJob is due, and when to look again.

use super::schedule::Schedule;
use jiff::{SignedDuration, Timestamp};

/// What is added to the time of the next start, against clocks that differ a little.
const SLACK: SignedDuration = SignedDuration::from_millis(100);

/// More missed starts than this are told to the user.
const MANY: i64 = 100;

/// What the next start depends on.
#[derive(Clone, Debug)]
pub struct Times<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// When the CronJob was created.
    pub created: Timestamp,
    /// `status.lastScheduleTime`.
    pub last: Option<Timestamp>,
    /// `spec.startingDeadlineSeconds`.
    pub deadline: Option<i64>,
    /// The present time.
    pub now: Timestamp,
}

/// The latest start that should have been.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    earliest: Timestamp,
    /// Its time, if there is one.
    pub time: Option<Timestamp>,
    missed: i64,
}

impl Recent {
    /// Whether more than a hundred starts were missed.
    pub fn many_missed(&self) -> bool {
        self.missed > MANY
    }
}

impl Times<'_> {
    /// The latest start before now that is not yet done. An error says that the schedule never comes twice.
    pub fn recent(&self, with_deadline: bool) -> Result<Recent, &'static str> {
        let mut earliest = self.last.unwrap_or(self.created);
        if let Some(deadline) = self.deadline.filter(|_| with_deadline) {
            let limit = self.now.saturating_sub(SignedDuration::from_secs(deadline));
            earliest = earliest.max(limit.unwrap_or(Timestamp::MIN));
        }
        let never = "time difference between two schedules is less than 1 second";
        let first = self.schedule.next(earliest).ok_or(never)?;
        if self.now < first {
            return Ok(Recent { earliest, time: None, missed: 0 });
        }
        let second = self.schedule.next(first).ok_or(never)?;
        if self.now < second {
            return Ok(Recent { earliest, time: Some(first), missed: 0 });
        }
        let between = second.as_second() - first.as_second();
        if between < 1 {
            return Err(never);
        }
        let missed = self.now.duration_since(first).as_secs() / between + 1;
        // One period further back than the estimate, for schedules whose periods differ.
        let from = first.as_second().saturating_add((missed - 2).saturating_mul(between));
        let mut time = None;
        let mut at = Timestamp::from_second(from).ok().and_then(|from| self.schedule.next(from));
        while let Some(start) = at.filter(|start| *start <= self.now) {
            time = Some(start);
            at = self.schedule.next(start);
        }
        Ok(Recent { earliest, time, missed })
    }

    /// How long to wait for the next start.
    pub fn until_next(&self) -> Option<SignedDuration> {
        let from = match self.recent(false) {
            Ok(Recent { time: Some(time), .. }) => time,
            Ok(Recent { earliest, missed: 0, .. }) => earliest,
            Ok(_) | Err(_) => self.now,
        };
        let next = self.schedule.next(from)?;
        Some(next.duration_since(self.now) + SLACK)
    }

    /// Whether a start at this time is later than the deadline allows.
    pub fn too_late(&self, start: Timestamp) -> bool {
        let limit = self.deadline.map(|d| start.saturating_add(SignedDuration::from_secs(d)));
        limit.is_some_and(|limit| limit.is_ok_and(|limit| limit < self.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_latest_missed_start_is_due() {
        let created = "2026-01-01T10:00:30Z";
        for (schedule, last, deadline, now, due, wait, many) in [
            ("* * * * *", None, None, "2026-01-01T10:00:40Z", None, 20, false),
            ("* * * * *", None, None, "2026-01-01T10:01:00Z", Some("2026-01-01T10:01:00Z"), 60, false),
            ("* * * * *", Some("2026-01-01T10:01:00Z"), None, "2026-01-01T10:01:05Z", None, 55, false),
            ("0 * * * *", None, None, "2026-01-01T13:30:00Z", Some("2026-01-01T13:00:00Z"), 1800, false),
            ("0 * * * *", None, Some(60), "2026-01-01T13:30:00Z", None, 1800, false),
            ("* * * * *", None, None, "2026-01-02T10:00:40Z", Some("2026-01-02T10:00:00Z"), 20, true),
            ("@every 1h", None, None, "2026-01-01T12:00:40Z", Some("2026-01-01T12:00:30Z"), 3590, false),
            ("30 6-16/4 * * 1-5", None, None, "2026-01-05T07:00:00Z", Some("2026-01-05T06:30:00Z"), 12600, false),
        ] {
            let schedule = Schedule::parse(schedule, &TimeZone::UTC).unwrap();
            let times = Times { schedule: &schedule, created: at(created), last: last.map(at), deadline, now: at(now) };
            let recent = times.recent(true).unwrap();
            assert_eq!(recent.time, due.map(at), "{schedule:?} {now}");
            assert_eq!(recent.many_missed(), many);
            assert_eq!(times.until_next(), Some(SignedDuration::from_secs(wait) + SLACK), "{schedule:?} {now}");
        }
    }

    #[test]
    fn a_schedule_that_never_comes_is_an_error() {
        let schedule = Schedule::parse("0 0 31 2 *", &TimeZone::UTC).unwrap();
        let now = at("2026-01-01T00:00:00Z");
        let times = Times { schedule: &schedule, created: now, last: None, deadline: None, now };
        assert!(times.recent(true).is_err());
        assert_eq!(times.until_next(), None);
    }

    #[test]
    fn extreme_deadlines_do_not_overflow() {
        let schedule = Schedule::parse("* * * * *", &TimeZone::UTC).unwrap();
        let now = at("2026-01-01T00:00:00Z");
        for deadline in [i64::MAX, i64::MIN] {
            let times = Times { schedule: &schedule, created: now, last: None, deadline: Some(deadline), now };
            assert!(!times.too_late(now) || deadline < 0);
            let _ = times.recent(true);
        }
    }
}
