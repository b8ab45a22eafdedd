//! The two rounds in which an object may be changed.
//!
//! Policies and webhooks see an object one after the other. Some ask to see it once more if it was changed after they
//! did: for them there is a second round, over the same steps in the same order.

use std::collections::HashSet;

/// What steps that change an object know of each other, for one request.
#[derive(Debug, Default)]
pub struct Rounds {
    second: bool,
    webhooks: Reinvocation,
    policies: Reinvocation,
}

/// Which of the webhooks, or of the policies, see the object once more.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    second: bool,
    /// Ran, and would run again.
    called: HashSet<String>,
    /// Run again.
    again: HashSet<String>,
    /// How often one of them changed the object.
    changes: usize,
    /// How often the others had changed it when these last ran.
    seen: usize,
}

impl Rounds {
    /// Whether this is the second round.
    pub fn is_second(&self) -> bool {
        self.second
    }

    /// Goes on to the second round, if there is a reason.
    pub(super) fn next(&mut self) -> bool {
        if self.second || self.webhooks.changes + self.policies.changes == 0 {
            return false;
        }
        self.second = true;
        true
    }

    /// Of the webhooks.
    pub(crate) fn of_webhooks(&mut self) -> &mut Reinvocation {
        self.webhooks.start(self.second, self.policies.changes)
    }

    /// Of the policies.
    pub(crate) fn of_policies(&mut self) -> &mut Reinvocation {
        self.policies.start(self.second, self.webhooks.changes)
    }
}

impl Reinvocation {
    /// They are about to run; the others changed the object so often.
    fn start(&mut self, second: bool, others: usize) -> &mut Self {
        self.second = second;
        if second && others > self.seen {
            self.again.extend(self.called.drain());
        }
        self.seen = others;
        self
    }

    /// Whether one of them runs in this round.
    pub fn runs(&self, key: &str) -> bool {
        !self.second || self.again.contains(key)
    }

    /// The one that runs changed the object: those before it have to see that.
    pub fn changed(&mut self) {
        self.again.extend(self.called.drain());
        self.changes += 1;
    }

    /// One of those that may run again ran.
    pub fn ran(&mut self, key: &str) {
        self.called.insert(key.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_follows_only_a_change() {
        let mut rounds = Rounds::default();
        rounds.of_policies().ran("a");
        rounds.of_webhooks().ran("b");
        assert!(!rounds.next());
    }

    #[test]
    fn whoever_ran_before_a_change_runs_again() {
        let mut rounds = Rounds::default();
        let policies = rounds.of_policies();
        policies.ran("a");
        policies.changed();
        policies.ran("b");
        rounds.of_webhooks().ran("w");
        assert!(rounds.next());
        let policies = rounds.of_policies();
        assert!(policies.runs("a") && !policies.runs("b") && !policies.runs("never"));
        assert!(!rounds.of_webhooks().runs("w"));
        assert!(!rounds.next());
    }

    #[test]
    fn what_others_changed_is_seen_by_all_that_ask_for_it() {
        let mut rounds = Rounds::default();
        rounds.of_policies().ran("a");
        let webhooks = rounds.of_webhooks();
        webhooks.changed();
        webhooks.ran("w");
        assert!(rounds.next());
        let policies = rounds.of_policies();
        assert!(policies.runs("a"));
        policies.changed();
        assert!(rounds.of_webhooks().runs("w"));
    }
}
