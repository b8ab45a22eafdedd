//! When a cluster is asked, and when it is left alone.

use std::time::Duration;

/// The first wait before an unreachable cluster is asked again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(15);

/// Whether a cluster is asked. Closed, every request goes; open, none does but a probe now and then, so that work that
/// concerns several clusters does not wait for the one that is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circuit {
    /// Why it is open; what was said first, so that what is told of it stays the same.
    why: Option<String>,
    probes: u32,
}

impl Circuit {
    /// Why no request goes; nothing while they do.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// A request was not answered. Whether that opened the circuit.
    pub fn failed(&mut self, why: &str) -> bool {
        if self.why.is_some() {
            self.probes = self.probes.saturating_add(1);
            return false;
        }
        *self = Circuit { why: Some(why.to_owned()), probes: 0 };
        true
    }

    /// A request was answered, whatever the answer. Whether that closed the circuit.
    pub fn answered(&mut self) -> bool {
        std::mem::take(self).why.is_some()
    }

    /// How long to wait before the next probe. `spread`, from 0 to 1, is how much of half of it is left out, so that
    /// not all clusters behind one broken line are asked at once.
    pub fn wait(&self, spread: f64) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.probes.min(16)).min(LONGEST);
        whole - whole.mul_f64(spread.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_opens_and_any_answer_closes() {
        let mut circuit = Circuit::default();
        assert!(!circuit.answered());
        assert!(circuit.failed("refused"));
        assert!(!circuit.failed("timed out"));
        assert_eq!(circuit.why(), Some("refused"));
        assert!(circuit.answered());
        assert_eq!(circuit, Circuit::default());
    }

    #[test]
    fn probes_come_ever_later() {
        let mut circuit = Circuit::default();
        let mut waits = Vec::new();
        for _ in 0..10 {
            circuit.failed("refused");
            waits.push(circuit.wait(0.0).as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000]);
        assert_eq!(circuit.wait(1.0).as_millis(), 7500);
    }
}
