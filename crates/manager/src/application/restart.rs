//! Running a workflow again: at once, at a time, or a while after each run.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use object::{Value, map};

use client::Error;

use super::controller::Controller;
use super::names;
use super::status::Status;
use super::workflow;

/// The field of the status with the time of the next run.
const SCHEDULED: &str = "workflowRestartScheduledAt";

/// What the annotation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// One more run, from this time on.
    At(Timestamp),
    /// A run so long after each that is over.
    After(SignedDuration),
}

/// When the workflow of an application is to run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Restart {
    asked: Option<Asked>,
    noted: Option<Timestamp>,
}

impl Restart {
    /// What an application says: its annotation, and the time that was noted in its status.
    pub fn of(application: &Value, now: Timestamp) -> Self {
        let noted = application.at(&["status", SCHEDULED]).and_then(Value::as_str);
        let noted: Option<Timestamp> = noted.and_then(|time| time.parse().ok());
        let asked = |text: &str| match text {
            // What is noted, and is now, may be this very run.
            "true" => {
                let second = || Timestamp::from_second(now.as_second()).unwrap_or(now);
                Some(Asked::At(noted.filter(|noted| *noted <= now).unwrap_or_else(second)))
            }
            text => {
                let time = text.parse().map(|time| Asked::At(whole(time))).ok();
                time.or_else(|| workflow::duration(text).map(Asked::After))
            }
        };
        Restart { asked: application.annotation(names::RESTART_WORKFLOW).and_then(asked), noted }
    }

    /// The time of a run that is asked for and not noted yet.
    fn unnoted(self) -> Option<Timestamp> {
        match self.asked {
            Some(Asked::At(time)) if self.noted != Some(time) => Some(time),
            _ => None,
        }
    }

    /// When it is; `None` if it is not, or not before a run is over.
    fn time(self) -> Option<Timestamp> {
        match self.asked {
            Some(Asked::At(time)) => Some(time),
            Some(Asked::After(_)) | None => self.noted,
        }
    }

    /// Whether it is now.
    pub fn is_due(self, now: Timestamp) -> bool {
        self.time().is_some_and(|time| time <= now)
    }

    /// Whether something is to be done about it: to run the workflow, or to note when.
    pub fn is_open(self, now: Timestamp) -> bool {
        self.is_due(now)
            || match self.asked {
                Some(Asked::At(_)) => true,
                Some(Asked::After(_)) => self.noted.is_none(),
                None => false,
            }
    }

    /// How long it is until then.
    pub fn wait(self, now: Timestamp) -> Option<Duration> {
        Some(Duration::try_from(self.time()?.duration_since(now)).unwrap_or_default())
    }

    /// The times in a status of a run that was over at `ended`, if it is.
    pub fn note(self, status: &mut Status, ended: Option<Timestamp>, now: Timestamp) {
        let time = match (self.time().filter(|time| *time > now), self.asked, ended) {
            (Some(time), _, _) => Some(time),
            (None, Some(Asked::After(interval)), Some(ended)) => ended.checked_add(interval).ok(),
            _ => None,
        };
        match time {
            Some(time) => drop(status.fields.insert(SCHEDULED, whole(time).to_string())),
            None => drop(status.fields.remove(SCHEDULED)),
        }
    }
}

/// A time as statuses hold it, in whole seconds; it is never too early.
fn whole(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(time)
}

impl Controller {
    /// When the workflow is to run again. One run that an annotation asks for is noted in the status first: `None` then,
    /// and once that is written all goes on at the next look, which takes the annotation off. What is noted stays until the
    /// run is written into the status, so that it is neither lost nor done twice, whatever fails in between.
    pub(super) async fn restart(
        &self,
        application: &Value,
        status: &mut Status,
        now: Timestamp,
    ) -> Result<Option<Restart>, Error> {
        let mut restart = Restart::of(application, now);
        if let Some(time) = restart.unnoted() {
            status.fields.insert(SCHEDULED, time.to_string());
            return Ok(None);
        }
        if let Some(Asked::At(_)) = restart.asked {
            let annotations = map! { names::RESTART_WORKFLOW => Value::Null };
            self.patch(application, map! { "metadata" => map! { "annotations" => annotations } }.into()).await?;
            restart.asked = None;
        }
        Ok(Some(restart))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_asked_for_at_once_at_a_time_or_after_each() {
        let now = Timestamp::from_second(1000).unwrap_or_default();
        let later = "1970-01-01T00:20:00Z";
        for (annotation, noted, ended, is_due, is_open, next) in [
            ("", "", 900, false, false, ""),
            ("true", "", 900, true, true, ""),
            ("1970-01-01T00:10:00Z", "", 900, true, true, ""),
            (later, "", 900, false, true, later),
            ("1970-01-01T00:19:59.5Z", "", 900, false, true, later),
            ("", later, 900, false, false, later),
            ("", "1970-01-01T00:10:00Z", 900, true, true, ""),
            // From the end of the run that is over.
            ("10m", "", 600, false, true, later),
            ("10m", later, 600, false, false, later),
            ("10m", "1970-01-01T00:16:40Z", 600, true, true, later),
            ("soon", "", 900, false, false, ""),
        ] {
            let mut application = Value::default();
            for (path, text) in [
                (&["metadata", "annotations", names::RESTART_WORKFLOW][..], annotation),
                (&["status", SCHEDULED][..], noted),
            ] {
                if !text.is_empty() {
                    application.set_at(path, text.into());
                }
            }
            let restart = Restart::of(&application, now);
            assert_eq!((restart.is_due(now), restart.is_open(now)), (is_due, is_open), "{annotation:?} {noted:?}");
            let mut status = Status::of(&application, now);
            restart.note(&mut status, Timestamp::from_second(ended).ok(), now);
            let told = status.fields.get(SCHEDULED).and_then(Value::as_str).unwrap_or_default();
            assert_eq!(told, next, "{annotation:?} {noted:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_noted_once() {
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        for (annotation, time) in
            [("true", at(1000)), ("1970-01-01T00:10:00Z", at(600)), ("1970-01-01T01:00:00.5Z", at(3601))]
        {
            let mut application = Value::default();
            application.set_at(&["metadata", "annotations", names::RESTART_WORKFLOW], annotation.into());
            let restart = Restart::of(&application, at(1000) + SignedDuration::from_millis(300));
            assert_eq!(restart.unnoted(), Some(time), "{annotation}");
            application.set_at(&["status", SCHEDULED], time.to_string().into());
            // Looked at again and again, later, and after the annotation is gone.
            for _ in 0..2 {
                let restart = Restart::of(&application, at(1005));
                assert_eq!((restart.unnoted(), restart.is_due(at(1005))), (None, time <= at(1005)), "{annotation}");
                application.remove_at(&["metadata", "annotations"]);
            }
        }
        // Another time takes the place of one that is noted.
        let mut application = Value::default();
        application.set_at(&["metadata", "annotations", names::RESTART_WORKFLOW], "true".into());
        application.set_at(&["status", SCHEDULED], at(5000).to_string().into());
        assert_eq!(Restart::of(&application, at(1000)).unnoted(), Some(at(1000)));
    }
}
