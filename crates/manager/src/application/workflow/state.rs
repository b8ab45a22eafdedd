//! What a run has come to, and what may run next.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use object::{Map, Value, map};

use super::super::declared::{filled, given};
use super::steps::{Mode, Plan, Step};

/// What a step has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It was not begun.
    #[default]
    Pending,
    /// It is under way, or waits.
    Running,
    /// It waits for somebody to resume it.
    Suspending,
    /// It is through.
    Succeeded,
    /// It failed; for good, unless the reason is [`Reason::Execute`].
    Failed,
    /// It was left out.
    Skipped,
}

/// Why a step is in its phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// None.
    #[default]
    None,
    /// It waits for something to become healthy.
    Wait,
    /// It failed, and is tried again.
    Execute,
    /// It failed too often.
    FailedAfterRetries,
    /// It took too long.
    Timeout,
    /// It was left out.
    Skip,
    /// It was suspended.
    Suspend,
    /// The run was ended.
    Terminate,
}

const PHASES: [(&str, Phase); 6] = [
    ("pending", Phase::Pending),
    ("running", Phase::Running),
    ("suspending", Phase::Suspending),
    ("succeeded", Phase::Succeeded),
    ("failed", Phase::Failed),
    ("skipped", Phase::Skipped),
];

const REASONS: [(&str, Reason); 8] = [
    ("", Reason::None),
    ("Wait", Reason::Wait),
    ("Execute", Reason::Execute),
    ("FailedAfterRetries", Reason::FailedAfterRetries),
    ("Timeout", Reason::Timeout),
    ("Skip", Reason::Skip),
    ("Suspend", Reason::Suspend),
    ("Terminate", Reason::Terminate),
];

fn by_name<T: Copy + Default>(table: &[(&str, T)], name: &str) -> T {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).unwrap_or_default()
}

fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// What a step has come to, with everything that is recorded of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepState {
    /// What it has come to.
    pub phase: Phase,
    /// Why.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// When it was begun.
    pub begun: Option<Timestamp>,
    /// When it was tried last.
    pub tried: Option<Timestamp>,
    /// How often it failed.
    pub failures: u32,
}

impl Phase {
    /// As statuses have it.
    pub fn name(self) -> &'static str {
        name_of(&PHASES, self)
    }
}

impl Reason {
    /// As statuses have it; empty for none.
    pub fn name(self) -> &'static str {
        name_of(&REASONS, self)
    }
}

impl StepState {
    /// Whether nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        match self.phase {
            Phase::Succeeded | Phase::Skipped => true,
            Phase::Failed => self.reason != Reason::Execute,
            Phase::Pending | Phase::Running | Phase::Suspending => false,
        }
    }

    fn read(state: &Value) -> Self {
        let text = |key| state.get(key).and_then(Value::as_str).unwrap_or_default();
        StepState {
            phase: by_name(&PHASES, text("phase")),
            reason: by_name(&REASONS, text("reason")),
            message: text("message").to_owned(),
            begun: text("firstExecuteTime").parse().ok(),
            tried: text("lastExecuteTime").parse().ok(),
            failures: state
                .get("failures")
                .and_then(Value::as_int)
                .and_then(|f| u32::try_from(f).ok())
                .unwrap_or_default(),
        }
    }

    fn to_value(&self, step: &Step) -> Map {
        let mut out = map! { "name" => step.name.as_str(), "type" => step.kind.as_str(), "phase" => self.phase.name() };
        for (key, text) in [("reason", self.reason.name()), ("message", &self.message)] {
            if !text.is_empty() {
                out.insert(key, text);
            }
        }
        for (key, time) in [("firstExecuteTime", self.begun), ("lastExecuteTime", self.tried)] {
            if let Some(time) = time {
                out.insert(key, seconds(time));
            }
        }
        if self.failures > 0 {
            out.insert("failures", i64::from(self.failures));
        }
        out
    }
}

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// What carrying out a step came to.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutcome {
    /// It is through; with what it gives.
    Succeeded(Value),
    /// It waits, for example for something to become healthy. That is no failure.
    Waiting(String),
    /// It failed, and may be tried again.
    Failed(String),
    /// It waits for somebody to resume it, or until this time has passed.
    Suspended(Option<Duration>),
}

/// What a run has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunPhase {
    /// There is more to do.
    #[default]
    Executing,
    /// It waits for somebody.
    Suspending,
    /// It was ended.
    Terminated,
    /// A step failed.
    Failed,
    /// All steps are through, or were left out.
    Succeeded,
}

const RUN_PHASES: [(&str, RunPhase); 5] = [
    ("executing", RunPhase::Executing),
    ("suspending", RunPhase::Suspending),
    ("terminated", RunPhase::Terminated),
    ("failed", RunPhase::Failed),
    ("succeeded", RunPhase::Succeeded),
];

/// How often a failing step is tried.
const TRIES: u32 = 10;

/// A run of a workflow: `status.workflow` of an application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What it runs for: a publishVersion, or the name of a revision.
    pub key: String,
    /// What it has come to.
    pub phase: RunPhase,
    /// Whether it is suspended; taken back by whoever resumes it.
    pub suspended: bool,
    /// Whether it was ended.
    pub terminated: bool,
    /// The steps by name, those of groups too.
    pub steps: BTreeMap<String, StepState>,
    /// What steps gave, for others to take.
    pub outputs: Map,
    /// When it began.
    pub begun: Option<Timestamp>,
    /// When it was over.
    pub ended: Option<Timestamp>,
}

impl Run {
    /// A new run.
    pub fn new(key: &str, now: Timestamp) -> Self {
        Run { key: key.to_owned(), begun: Some(now), ..Run::default() }
    }

    /// Reads `status.workflow`.
    pub fn read(workflow: &Value) -> Self {
        let text = |key| workflow.get(key).and_then(Value::as_str).unwrap_or_default();
        let flag = |key| workflow.get(key).and_then(Value::as_bool).unwrap_or_default();
        let mut steps = BTreeMap::new();
        let mut add = |step: &Value| {
            if let Some(name) = step.str_at(&["name"]) {
                steps.insert(name.to_owned(), StepState::read(step));
            }
        };
        for step in workflow.get("steps").and_then(Value::as_array).unwrap_or_default() {
            add(step);
            step.get("subSteps").and_then(Value::as_array).unwrap_or_default().iter().for_each(&mut add);
        }
        Run {
            key: text("appRevision").to_owned(),
            phase: by_name(&RUN_PHASES, text("status")),
            suspended: flag("suspend"),
            terminated: flag("terminated"),
            steps,
            outputs: workflow.get("outputs").and_then(Value::as_object).cloned().unwrap_or_default(),
            begun: text("startTime").parse().ok(),
            ended: text("endTime").parse().ok(),
        }
    }

    /// `status.workflow`.
    pub fn to_value(&self, plan: &Plan) -> Value {
        let none = StepState::default();
        let state = |step: &Step| self.steps.get(&step.name).unwrap_or(&none).to_value(step);
        let steps: Vec<Map> = plan
            .steps
            .iter()
            .filter(|step| self.steps.contains_key(&step.name))
            .map(|step| {
                let mut out = state(step);
                if !step.sub_steps.is_empty() {
                    out.insert("subSteps", step.sub_steps.iter().map(state).collect::<Vec<Map>>());
                }
                out
            })
            .collect();
        let mut out = map! {
            "appRevision" => self.key.as_str(),
            "mode" => format!("{}-{}", plan.mode.name(), plan.sub_mode.name()),
            "status" => name_of(&RUN_PHASES, self.phase),
            "suspend" => self.suspended,
            "terminated" => self.terminated,
            "finished" => self.is_over(),
            "steps" => steps,
        };
        if !self.outputs.is_empty() {
            out.insert("outputs", self.outputs.clone());
        }
        for (key, time) in [("startTime", self.begun), ("endTime", self.ended)] {
            if let Some(time) = time {
                out.insert(key, seconds(time));
            }
        }
        out.into()
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, RunPhase::Terminated | RunPhase::Failed | RunPhase::Succeeded)
    }

    /// What a step has come to.
    pub fn state(&self, name: &str) -> StepState {
        self.steps.get(name).cloned().unwrap_or_default()
    }

    /// The steps that may be carried out now, in order; steps that are to be left out are marked so on the way. `when`
    /// says what an expression of `if` comes to.
    pub fn next<'a>(
        &mut self,
        plan: &'a Plan,
        now: Timestamp,
        when: &dyn Fn(&str, &Run) -> Result<bool, String>,
    ) -> Vec<&'a Step> {
        if self.suspended || self.terminated {
            return Vec::new();
        }
        let mut ready = Vec::new();
        // Each round may leave steps out, which lets others begin.
        loop {
            let before = self.steps.clone();
            ready.clear();
            self.ready(&plan.steps, plan.mode, plan.sub_mode, now, when, &mut ready);
            if self.steps == before {
                return ready;
            }
        }
    }

    fn ready<'a>(
        &mut self,
        steps: &'a [Step],
        mode: Mode,
        sub_mode: Mode,
        now: Timestamp,
        when: &dyn Fn(&str, &Run) -> Result<bool, String>,
        ready: &mut Vec<&'a Step>,
    ) {
        for (index, step) in steps.iter().enumerate() {
            let state = self.state(&step.name);
            if state.is_over() {
                continue;
            }
            let is_over = |name: &str| self.steps.get(name).is_some_and(StepState::is_over);
            let waits = match mode {
                Mode::StepByStep => index.checked_sub(1).is_some_and(|before| !is_over(&steps[before].name)),
                Mode::Dag => step.depends_on.iter().any(|name| !is_over(name)),
            };
            let misses_input = step.inputs.iter().any(|(from, _)| {
                let giver = steps.iter().find(|step| step.outputs.iter().any(|(name, _)| name == from));
                giver.is_some_and(|giver| !is_over(&giver.name))
            });
            if waits || misses_input {
                if mode == Mode::StepByStep {
                    return;
                }
                continue;
            }
            if state.phase == Phase::Pending && !self.is_wanted(step, steps, when) {
                continue;
            }
            if self.is_overdue(step, now) {
                self.fail(step, Reason::Timeout, "the step took too long", now);
                continue;
            }
            if state.phase == Phase::Failed && state.tried.is_some_and(|tried| now < tried + retry_wait(state.failures))
            {
                continue;
            }
            if step.sub_steps.is_empty() {
                ready.push(step);
                continue;
            }
            if state.phase == Phase::Pending {
                let begun =
                    StepState { phase: Phase::Running, begun: Some(now), tried: Some(now), ..StepState::default() };
                self.steps.insert(step.name.clone(), begun);
            }
            self.ready(&step.sub_steps, sub_mode, sub_mode, now, when, ready);
            self.close_group(step);
        }
    }

    /// Whether a step is to run at all; what is not wanted is marked.
    fn is_wanted(&mut self, step: &Step, steps: &[Step], when: &dyn Fn(&str, &Run) -> Result<bool, String>) -> bool {
        let has_failed = self.steps.values().any(|state| state.phase == Phase::Failed && state.is_over());
        let skips_with = step
            .depends_on
            .iter()
            .any(|name| steps.iter().any(|other| other.name == *name) && self.state(name).phase == Phase::Failed);
        let wanted = match step.when.as_str() {
            "" => Ok(!has_failed && !skips_with),
            "always" => Ok(true),
            expression => when(expression, self),
        };
        let (phase, reason, message) = match wanted {
            Ok(true) => return true,
            Ok(false) => (Phase::Skipped, Reason::Skip, String::new()),
            Err(error) => (Phase::Failed, Reason::FailedAfterRetries, format!("if: {error}")),
        };
        self.steps.insert(step.name.clone(), StepState { phase, reason, message, ..StepState::default() });
        false
    }

    fn is_overdue(&self, step: &Step, now: Timestamp) -> bool {
        let (Some(begun), Some(timeout)) = (self.state(&step.name).begun, duration(&step.timeout)) else {
            return false;
        };
        now.duration_since(begun) >= timeout
    }

    fn fail(&mut self, step: &Step, reason: Reason, message: &str, now: Timestamp) {
        let state = self.steps.entry(step.name.clone()).or_default();
        (state.phase, state.reason, state.tried) = (Phase::Failed, reason, Some(now));
        message.clone_into(&mut state.message);
    }

    /// A group is what its steps are.
    fn close_group(&mut self, group: &Step) {
        let states: Vec<StepState> = group.sub_steps.iter().map(|step| self.state(&step.name)).collect();
        if states.iter().all(StepState::is_over) {
            let failed = states.iter().any(|state| state.phase == Phase::Failed);
            let skipped = states.iter().all(|state| state.phase == Phase::Skipped);
            let state = self.steps.entry(group.name.clone()).or_default();
            state.phase = match (failed, skipped) {
                (true, _) => Phase::Failed,
                (_, true) => Phase::Skipped,
                _ => Phase::Succeeded,
            };
            state.reason = if failed { Reason::FailedAfterRetries } else { Reason::None };
        }
    }

    /// Notes what carrying out a step came to.
    pub fn note(&mut self, step: &Step, outcome: StepOutcome, now: Timestamp) {
        let state = self.steps.entry(step.name.clone()).or_default();
        state.begun = state.begun.or(Some(now));
        state.tried = Some(now);
        (state.reason, state.message) = (Reason::None, String::new());
        match outcome {
            StepOutcome::Succeeded(output) => {
                state.phase = Phase::Succeeded;
                for (name, value) in given(&step.outputs, &output) {
                    self.outputs.insert(name, value);
                }
            }
            StepOutcome::Waiting(message) => {
                (state.phase, state.reason, state.message) = (Phase::Running, Reason::Wait, message);
            }
            StepOutcome::Failed(message) => {
                state.failures += 1;
                state.phase = Phase::Failed;
                state.message = message;
                state.reason = if state.failures >= TRIES { Reason::FailedAfterRetries } else { Reason::Execute };
            }
            StepOutcome::Suspended(_) => {
                (state.phase, state.reason) = (Phase::Suspending, Reason::Suspend);
                self.suspended = true;
            }
        }
    }

    /// `properties`, with what a step takes from others put in.
    pub fn filled(&self, step: &Step, properties: Value) -> Value {
        filled(&step.inputs, &self.outputs, properties)
    }

    /// Somebody resumed a suspended run: the steps that only wait for that are through, others are carried out.
    pub fn resume(&mut self, plan: &Plan) {
        self.suspended = false;
        for step in plan.all() {
            if let Some(state) = self.steps.get_mut(&step.name).filter(|state| state.phase == Phase::Suspending) {
                state.phase = if step.kind == "suspend" { Phase::Succeeded } else { Phase::Running };
                state.reason = Reason::None;
            }
        }
    }

    /// Settles what the run has come to.
    pub fn settle(&mut self, plan: &Plan, now: Timestamp) {
        if self.terminated {
            for state in self.steps.values_mut().filter(|state| !state.is_over()) {
                (state.phase, state.reason, state.tried) = (Phase::Failed, Reason::Terminate, Some(now));
            }
        }
        let is_over = plan.steps.iter().all(|step| self.state(&step.name).is_over());
        let has_failed = self.steps.values().any(|state| state.phase == Phase::Failed && state.is_over());
        self.phase = match (self.terminated, self.suspended) {
            (true, _) => RunPhase::Terminated,
            (_, true) => RunPhase::Suspending,
            _ if !is_over => RunPhase::Executing,
            _ if has_failed => RunPhase::Failed,
            _ => RunPhase::Succeeded,
        };
        if self.is_over() {
            self.ended = self.ended.or(Some(now));
        }
    }
}

/// How long to wait before what waits is looked at again, or what failed is tried again: `0.05 · 2^n` seconds, at least
/// one, at most `longest`.
pub fn backoff(tries: u32, longest: u64) -> Duration {
    // From the thirtieth on it is the longest anyway.
    let seconds = (0.05 * f64::from(1_u32 << tries.min(30))).clamp(1.0, 1e9);
    Duration::from_secs_f64(seconds.floor()).min(Duration::from_secs(longest))
}

fn retry_wait(failures: u32) -> SignedDuration {
    SignedDuration::try_from(backoff(failures, 300)).unwrap_or(SignedDuration::ZERO)
}

/// A duration as Go writes it.
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    text.parse().ok().filter(|duration: &SignedDuration| duration.is_positive())
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use object::json;

    fn of(steps: &str, mode: &str) -> Plan {
        let text =
            format!(r#"{{"spec":{{"components":[],"workflow":{{"mode":{{"steps":"{mode}"}},"steps":{steps}}}}}}}"#);
        plan(&json::parse(text.as_bytes()).unwrap_or_default(), None).unwrap_or_default()
    }

    /// Runs a workflow to its end, or until nothing more can be done; which steps were carried out in which round.
    fn run(plan: &Plan, outcome: &dyn Fn(&str) -> StepOutcome) -> (Vec<String>, Run) {
        let mut now = Timestamp::UNIX_EPOCH;
        let mut run = Run::new("v1", now);
        let mut rounds = Vec::new();
        for _ in 0..30 {
            let ready = run.next(plan, now, &|expression, run| {
                Ok(expression == "failed" && run.steps.values().any(|state| state.phase == Phase::Failed))
            });
            let names: Vec<&str> = ready.iter().map(|step| step.name.as_str()).collect();
            if !names.is_empty() {
                rounds.push(names.join("+"));
            }
            for step in ready {
                run.note(step, outcome(&step.name), now);
            }
            run.settle(plan, now);
            if run.is_over() || run.suspended {
                break;
            }
            now += SignedDuration::from_secs(300);
            // What is stored is all there is.
            run = Run::read(&run.to_value(plan));
        }
        (rounds, run)
    }

    fn good(_: &str) -> StepOutcome {
        StepOutcome::Succeeded(Value::Null)
    }

    #[test]
    fn steps_follow_each_other_as_the_mode_says() {
        let steps = r#"[{"name":"a","type":"t"},{"name":"b","type":"t"},{"name":"c","type":"t","dependsOn":["b"]}]"#;
        for (mode, expected) in [("StepByStep", vec!["a", "b", "c"]), ("DAG", vec!["a+b", "c"])] {
            let (rounds, run) = run(&of(steps, mode), &good);
            assert_eq!((rounds, run.phase), (expected.into_iter().map(str::to_owned).collect(), RunPhase::Succeeded));
        }
    }

    #[test]
    fn after_a_failure_only_what_wants_to_runs() {
        let steps = r#"[{"name":"a","type":"t"},{"name":"b","type":"t"},{"name":"c","type":"t","if":"always"},{"name":"d","type":"t","if":"failed"},{"name":"e","type":"t","if":"other"}]"#;
        let (rounds, run) = run(&of(steps, "StepByStep"), &|name| {
            if name == "a" { StepOutcome::Failed("no".into()) } else { good(name) }
        });
        assert_eq!(rounds.iter().filter(|round| *round == "a").count(), 10);
        assert_eq!(rounds[10..], ["c", "d"]);
        assert_eq!((run.phase, run.state("a").reason), (RunPhase::Failed, Reason::FailedAfterRetries));
        assert_eq!((run.state("b").phase, run.state("e").phase), (Phase::Skipped, Phase::Skipped));
    }

    #[test]
    fn a_step_that_waits_too_long_fails() {
        let steps = r#"[{"name":"a","type":"t","timeout":"10m"}]"#;
        let (rounds, run) = run(&of(steps, "DAG"), &|_| StepOutcome::Waiting("not healthy".into()));
        assert_eq!((rounds.len(), run.phase, run.state("a").reason), (2, RunPhase::Failed, Reason::Timeout));
    }

    #[test]
    fn a_suspended_run_goes_on_when_it_is_resumed() {
        let plan = of(r#"[{"name":"a","type":"suspend"},{"name":"b","type":"t"}]"#, "StepByStep");
        let (_, mut run) = run(&plan, &|_| StepOutcome::Suspended(None));
        assert_eq!((run.phase, run.state("a").phase), (RunPhase::Suspending, Phase::Suspending));
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(run.next(&plan, now, &|_, _| Ok(true)).len(), 0);
        run.resume(&plan);
        assert_eq!(run.next(&plan, now, &|_, _| Ok(true)).len(), 1);
    }

    #[test]
    fn what_one_step_gives_another_takes() {
        let plan = of(
            r#"[{"name":"b","type":"t","inputs":[{"from":"x","parameterKey":"p.q"}]},{"name":"a","type":"t","outputs":[{"name":"x","valueFrom":"output.status.ip"}]}]"#,
            "DAG",
        );
        let output = json::parse(br#"{"output":{"status":{"ip":"1.2.3.4"}}}"#).unwrap_or_default();
        let (rounds, run) = run(&plan, &|_| StepOutcome::Succeeded(output.clone()));
        assert_eq!(rounds, ["a", "b"]);
        assert_eq!(json::to_string(&run.filled(&plan.steps[0], Value::Null)), r#"{"p":{"q":"1.2.3.4"}}"#);
    }

    #[test]
    fn a_group_is_what_its_steps_are() {
        let plan = of(
            r#"[{"name":"g","type":"step-group","subSteps":[{"name":"a","type":"t"},{"name":"b","type":"t"}]},{"name":"c","type":"t"}]"#,
            "StepByStep",
        );
        let (rounds, run) = run(&plan, &good);
        assert_eq!((rounds, run.state("g").phase), (vec!["a+b".to_owned(), "c".to_owned()], Phase::Succeeded));
    }

    #[test]
    fn waits_grow_as_the_originals_do() {
        let waits: Vec<u64> = [0, 4, 5, 6, 8, 12, 13, 60].iter().map(|n| backoff(*n, 300).as_secs()).collect();
        assert_eq!(waits, [1, 1, 1, 3, 12, 204, 300, 300]);
        assert_eq!(backoff(20, 60).as_secs(), 60);
    }
}
