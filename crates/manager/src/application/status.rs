//! What the status of an Application says.

use jiff::Timestamp;
use object::{Map, Value, map};

/// The phase of an application: `status.status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppPhase {
    /// Its trackers, finalizers or policies are at fault.
    Starting,
    /// It is being read.
    Rendering,
    /// Its workflow runs.
    RunningWorkflow,
    /// Its workflow is suspended.
    Suspending,
    /// Its workflow was ended.
    Terminated,
    /// Its workflow failed.
    Failed,
    /// All is well.
    Running,
    /// Something is not healthy.
    Unhealthy,
    /// It is being deleted.
    Deleting,
}

impl AppPhase {
    /// As statuses have it.
    pub fn name(self) -> &'static str {
        match self {
            AppPhase::Starting => "starting",
            AppPhase::Rendering => "rendering",
            AppPhase::RunningWorkflow => "runningWorkflow",
            AppPhase::Suspending => "workflowSuspending",
            AppPhase::Terminated => "workflowTerminated",
            AppPhase::Failed => "workflowFailed",
            AppPhase::Running => "running",
            AppPhase::Unhealthy => "unhealthy",
            AppPhase::Deleting => "deleting",
        }
    }
}

/// A status under construction.
#[derive(Clone, Debug)]
pub struct Status {
    /// What is said so far.
    pub fields: Map,
    now: Timestamp,
}

impl Status {
    /// Goes on from what the application's status says.
    pub fn of(application: &Value, now: Timestamp) -> Self {
        let fields = application.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        Status { fields, now }
    }

    /// Sets a condition; one that says the same already keeps its time.
    pub fn condition(&mut self, kind: &str, is_true: bool, reason: &str, message: &str) {
        let mut condition = map! {
            "type" => kind,
            "status" => if is_true { "True" } else { "False" },
            "reason" => reason,
        };
        if !message.is_empty() {
            condition.insert("message", message);
        }
        let conditions = self.fields.get_or_insert("conditions", || Value::Array(Vec::new()));
        let Some(conditions) = conditions.as_array_mut() else { return };
        let known = conditions.iter_mut().find(|known| known.str_at(&["type"]) == Some(kind));
        let same = known.as_ref().is_some_and(|known| {
            let Some(known) = known.as_object() else { return false };
            let mut known = known.clone();
            known.remove("lastTransitionTime");
            known == condition
        });
        if same {
            return;
        }
        let time = Timestamp::from_second(self.now.as_second()).unwrap_or(self.now);
        condition.insert("lastTransitionTime", time.to_string());
        match known {
            Some(known) => *known = condition.into(),
            None => conditions.push(condition.into()),
        }
    }

    /// A run begins: what was said of the one before counts no longer.
    pub fn begin(&mut self) {
        for field in ["services", "appliedResources"] {
            self.fields.remove(field);
        }
        self.drop_conditions(&["Workflow", "Ready"]);
    }

    /// Takes conditions away.
    pub fn drop_conditions(&mut self, kinds: &[&str]) {
        if let Some(conditions) = self.fields.get_mut("conditions").and_then(Value::as_array_mut) {
            conditions.retain(|condition| condition.str_at(&["type"]).is_none_or(|kind| !kinds.contains(&kind)));
        }
    }

    /// A stage is done.
    pub fn done(&mut self, stage: &str) {
        self.condition(stage, true, "Available", "");
    }

    /// A stage failed, and with it everything.
    pub fn failed(&mut self, stage: &str, message: &str) {
        self.condition(stage, false, "ReconcileError", message);
        self.condition("Ready", false, "ReconcileError", message);
    }

    /// Sets the phase.
    pub fn phase(&mut self, phase: AppPhase) {
        self.fields.insert("status", phase.name());
    }

    /// The merge patch that makes the application's status this one; `None` if it is.
    pub fn patch(mut self, application: &Value) -> Option<Value> {
        if let Some(generation) = application.at(&["metadata", "generation"]).and_then(Value::as_int) {
            self.fields.insert("observedGeneration", generation);
        }
        let empty = Map::new();
        let before = application.get("status").and_then(Value::as_object).unwrap_or(&empty);
        let patch = patch::merge::diff(before, &self.fields);
        (!patch.is_empty()).then(|| map! { "status" => patch }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn a_status_that_says_the_same_is_not_written() {
        let mut application = json::parse(br#"{"metadata":{"generation":2}}"#).unwrap_or_default();
        let at = |second| Timestamp::from_second(second).unwrap_or_default();
        let mut first = Status::of(&application, at(1));
        first.failed("Parsed", "no");
        first.phase(AppPhase::Rendering);
        let patch = first.patch(&application).unwrap_or_default();
        application = patch::merge::apply(application, patch);
        assert_eq!(application.at(&["status", "observedGeneration"]), Some(&Value::Int(2)));
        let mut second = Status::of(&application, at(100));
        second.failed("Parsed", "no");
        second.phase(AppPhase::Rendering);
        assert_eq!(second.clone().patch(&application), None);
        second.done("Parsed");
        assert!(second.patch(&application).is_some());
    }
}
