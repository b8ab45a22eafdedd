//! When a step of a workflow runs: `if`.

use object::{Value, map};

use super::workflow::{Phase, Reason, Run};

/// What an expression may look at: `status.STEP.succeeded` and so on.
pub(super) fn variables(run: &Run) -> Value {
    let steps = run.steps.iter().map(|(name, state)| {
        let of = map! {
            "succeeded" => state.phase == Phase::Succeeded,
            "failed" => state.phase == Phase::Failed,
            "skipped" => state.phase == Phase::Skipped,
            "timeout" => state.reason == Reason::Timeout,
            "failedAfterRetries" => state.reason == Reason::FailedAfterRetries,
            "terminate" => state.reason == Reason::Terminate,
            "message" => state.message.as_str(),
        };
        (name.as_str(), Value::from(of))
    });
    let steps: object::Map = steps.collect();
    map! { "status" => steps, "inputs" => run.outputs.clone() }.into()
}

/// Whether an expression holds: comparisons of `status.STEP.FIELD` and `inputs.NAME` with literals, joined by `&&` and
/// `||`, negated by `!`, without parentheses; what both CUE and CEL read in the same way.
///
/// # Errors
///
/// If the expression is none of these.
pub(super) fn holds(expression: &str, run: &Run) -> Result<bool, String> {
    let variables = variables(run);
    let mut any = false;
    for alternative in expression.split("||") {
        let mut all = true;
        for term in alternative.split("&&") {
            all &= term_holds(term.trim(), &variables)?;
        }
        any |= all;
    }
    Ok(any)
}

fn term_holds(term: &str, variables: &Value) -> Result<bool, String> {
    for (operator, wanted) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = term.split_once(operator) {
            return Ok((operand(left, variables)? == operand(right, variables)?) == wanted);
        }
    }
    let (negated, term) = term.strip_prefix('!').map_or((false, term), |rest| (true, rest));
    match operand(term, variables)? {
        Value::Bool(value) => Ok(value != negated),
        _ => Err(format!("{} is not a boolean", term.trim())),
    }
}

fn operand(text: &str, variables: &Value) -> Result<Value, String> {
    let text = text.trim();
    match text {
        "true" => return Ok(true.into()),
        "false" => return Ok(false.into()),
        _ => {}
    }
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return Ok(inner.into());
        }
    }
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number.into());
    }
    // Names with a dash are written in brackets: status["step-1"].failed.
    let path: Vec<&str> =
        text.split(['.', '[']).map(|step| step.trim_end_matches(']').trim_matches(['"', '\''])).collect();
    match path.first() {
        Some(&"status") if path.len() == 3 && variables.at(&path[..2]).is_none() => Ok(false.into()),
        Some(&"status" | &"inputs") => variables.at(&path).cloned().ok_or_else(|| format!("there is no {text}")),
        _ => Err(format!("cannot read {text:?}; write status.STEP.FIELD or inputs.NAME")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workflow::StepState;
    use super::*;

    #[test]
    fn conditions_look_at_steps_and_inputs() {
        let mut run = Run::default();
        let failed = StepState { phase: Phase::Failed, reason: Reason::Timeout, ..StepState::default() };
        run.steps.insert("a-1".into(), failed);
        run.outputs.insert("x", 3_i64);
        for (expression, expected) in [
            (r#"status["a-1"].failed"#, Ok(true)),
            (r#"!status["a-1"].failed || inputs.x == 3"#, Ok(true)),
            (r#"status["a-1"].timeout == true && inputs.x != 3"#, Ok(false)),
            ("status.b.failed", Ok(false)),
            ("inputs.x", Err("inputs.x is not a boolean".to_owned())),
            ("nothing", Err("cannot read \"nothing\"; write status.STEP.FIELD or inputs.NAME".to_owned())),
        ] {
            assert_eq!(holds(expression, &run), expected, "{expression}");
        }
    }
}
