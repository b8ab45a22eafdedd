//! When a step of a workflow runs: `if`.

use std::sync::LazyLock;

use cel::env::Env;
use object::{Map, Value, map};

use super::expression::{Expression, environment};
use super::workflow::{Phase, Plan, Reason, Run};

/// What an expression may look at: `status.STEP.succeeded` and so on, what steps gave, and what templates see.
static NAMES: LazyLock<Env> = LazyLock::new(|| environment(&["status", "inputs", "context"]));

/// What is said of the steps of a plan, those that were not begun too.
fn steps(plan: &Plan, run: &Run) -> Value {
    let mut all = Map::new();
    for step in plan.all() {
        let state = run.state(&step.name);
        let of = map! {
            "phase" => state.phase.name(),
            "reason" => state.reason.name(),
            "message" => state.message.as_str(),
            "succeeded" => state.phase == Phase::Succeeded,
            "failed" => state.phase == Phase::Failed,
            "skipped" => state.phase == Phase::Skipped,
            "timeout" => state.reason == Reason::Timeout,
            "failedAfterRetries" => state.reason == Reason::FailedAfterRetries,
            "terminate" => state.reason == Reason::Terminate,
        };
        all.insert(step.name.as_str(), of);
    }
    all.into()
}

/// Whether an expression holds. It is CEL; comparisons, `&&`, `||`, `!` and parentheses are what CUE reads in the same way.
///
/// # Errors
///
/// If it cannot be read, or gives no boolean.
pub(super) fn holds(expression: &str, plan: &Plan, run: &Run, context: &Value) -> Result<bool, String> {
    let (status, inputs) = (steps(plan, run), Value::from(run.outputs.clone()));
    Expression::new(expression, &NAMES)?.holds(&[("status", &status), ("inputs", &inputs), ("context", context)])
}

#[cfg(test)]
mod tests {
    use super::super::workflow::{Step, StepState};
    use super::*;

    #[test]
    fn conditions_look_at_steps_and_inputs() {
        let mut run = Run::default();
        let step = |name: &str| Step { name: name.into(), ..Step::default() };
        let plan = Plan { steps: vec![step("a-1"), step("b")], ..Plan::default() };
        let failed = StepState { phase: Phase::Failed, reason: Reason::Timeout, ..StepState::default() };
        run.steps.insert("a-1".into(), failed);
        run.outputs.insert("x", 3_i64);
        let context = map! { "cluster" => "local" }.into();
        for (expression, expected) in [
            (r#"status["a-1"].failed"#, Ok(true)),
            (r#"!status["a-1"].failed || inputs.x == 3"#, Ok(true)),
            (r#"status["a-1"].timeout == true && inputs.x != 3"#, Ok(false)),
            (r#"!(status["a-1"].timeout && inputs.x > 3) && status.b.phase == "pending""#, Ok(true)),
            (r#"context.cluster in ["local", "eu"] && status["a-1"].reason == "Timeout""#, Ok(true)),
            ("status.b.failed", Ok(false)),
            ("status.c.failed", Err("no such key: c")),
            ("inputs.x", Err("gives no boolean but a value of type integer")),
            ("nothing", Err("1:1: undeclared reference to 'nothing' (in container '')")),
            ("status.b.", Err("1:10: Syntax error: no viable alternative at input '.'")),
        ] {
            let told = holds(expression, &plan, &run, &context);
            assert_eq!(told, expected.map_err(str::to_owned), "{expression}");
        }
    }
}
