//! How a pod is to behave.

use super::Simulated;
use kinds::read::Read;
use object::Value;
use std::time::Duration;

const START_AFTER: &str = "simulated.stanchion.dev/start-after";
const RUN_FOR: &str = "simulated.stanchion.dev/run-for";
const EXIT_CODE: &str = "simulated.stanchion.dev/exit-code";
const UNREADY: &str = "simulated.stanchion.dev/unready";
const WAITING: &str = "simulated.stanchion.dev/waiting";
const STOP_AFTER: &str = "simulated.stanchion.dev/stop-after";

/// How a pod is to behave, by its annotations:
///
/// | annotation | meaning | without it |
/// |---|---|---|
/// | `simulated.stanchion.dev/start-after: 5s` | how long it takes to run | the program's `--simulated-pod-start` |
/// | `simulated.stanchion.dev/run-for: 1m` | its containers end after this time | those of pods that are not restarted always end after `--simulated-pod-run` |
/// | `simulated.stanchion.dev/exit-code: "1"` | how they end | 0 |
/// | `simulated.stanchion.dev/unready: "true"` | it runs and never gets ready | it gets ready |
/// | `simulated.stanchion.dev/waiting: ImagePullBackOff` | it never runs, and this is why | it runs |
/// | `simulated.stanchion.dev/stop-after: 10s` | how long it takes to stop, at most its grace period | at once |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How long the pod takes to run.
    pub start_after: Duration,
    /// After what time its containers end.
    pub run_for: Option<Duration>,
    /// How they end.
    pub exit_code: i64,
    /// Whether it gets ready.
    pub ready: bool,
    /// Why it never runs.
    pub waiting: Option<String>,
    /// How long it takes to stop.
    pub stop_after: Duration,
    /// Whether its containers are started again: `Always`, `OnFailure` or `Never`.
    pub restarts: Restarts,
}

/// When the containers of a pod are started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// Whenever they end.
    Always,
    /// When they fail.
    OnFailure,
    /// Never.
    Never,
}

impl Script {
    /// The script of a pod.
    pub fn of(pod: &Value, settings: &Simulated) -> Script {
        let time = |annotation: &str| pod.annotation(annotation).and_then(|text| object::duration::go(text).ok());
        let restarts = match pod.sub("spec").text("restartPolicy") {
            "Never" => Restarts::Never,
            "OnFailure" => Restarts::OnFailure,
            _ => Restarts::Always,
        };
        let exit_code = pod.annotation(EXIT_CODE).and_then(|c| c.parse::<i64>().ok()).unwrap_or_default();
        // One that is to fail fails soon, even if it is restarted always.
        let ends = restarts != Restarts::Always || exit_code != 0;
        Script {
            start_after: time(START_AFTER).unwrap_or(settings.pod_start),
            run_for: time(RUN_FOR).or(ends.then_some(settings.pod_run)),
            exit_code,
            ready: pod.annotation(UNREADY) != Some("true"),
            waiting: pod.annotation(WAITING).map(str::to_owned),
            stop_after: time(STOP_AFTER).unwrap_or_default(),
            restarts,
        }
    }

    /// Whether containers that ended are started again.
    pub fn goes_on(&self) -> bool {
        match self.restarts {
            Restarts::Always => true,
            Restarts::OnFailure => self.exit_code != 0,
            Restarts::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::json;

    #[test]
    fn annotations_say_how_a_pod_behaves() {
        let script = |policy: &str, annotations: &str| {
            let text =
                format!(r#"{{"metadata":{{"annotations":{annotations}}},"spec":{{"restartPolicy":"{policy}"}}}}"#);
            Script::of(&json::parse(text.as_bytes()).unwrap(), &Simulated::default())
        };
        assert_eq!(script("Always", "{}").run_for, None);
        assert_eq!(script("Never", "{}").run_for, Some(Duration::from_secs(1)));
        let failing = script(
            "OnFailure",
            r#"{"simulated.stanchion.dev/exit-code":"3","simulated.stanchion.dev/run-for":"1m30s"}"#,
        );
        assert_eq!((failing.exit_code, failing.run_for, failing.goes_on()), (3, Some(Duration::from_secs(90)), true));
        assert_eq!(
            script("Always", r#"{"simulated.stanchion.dev/start-after":"nonsense"}"#).start_after,
            Duration::from_secs(1)
        );
    }
}
