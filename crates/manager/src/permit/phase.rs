//! The phases of a permit, and the only ways between them.

use std::fmt;

/// Where a permit is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nobody looked at it yet.
    New,
    /// It is being prepared.
    Created,
    /// It waits for review.
    Requested,
    /// The system holds it back; it may be reviewed.
    Pending,
    /// A reviewer said no.
    Denied,
    /// It may become active.
    Approved,
    /// Its objects are there.
    Active,
    /// A stage failed.
    Failed,
    /// The stage that failed is tried again.
    Retrying,
    /// It is over.
    Expired,
}

/// Who moves a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The controller.
    Controller,
    /// Anybody else who may write the status.
    User,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Phase; 10] = [
        Phase::New,
        Phase::Created,
        Phase::Requested,
        Phase::Pending,
        Phase::Denied,
        Phase::Approved,
        Phase::Active,
        Phase::Failed,
        Phase::Retrying,
        Phase::Expired,
    ];

    /// The name in a status.
    pub fn name(self) -> &'static str {
        match self {
            Phase::New => "",
            Phase::Created => "Created",
            Phase::Requested => "Requested",
            Phase::Pending => "Pending",
            Phase::Denied => "Denied",
            Phase::Approved => "Approved",
            Phase::Active => "Active",
            Phase::Failed => "Failed",
            Phase::Retrying => "Retrying",
            Phase::Expired => "Expired",
        }
    }

    /// The phase of a name.
    pub fn of(name: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|p| p.name() == name)
    }

    /// Whether `actor` may move a permit from this phase to another. What is not listed is not possible.
    pub fn may_become(self, next: Phase, actor: Actor) -> bool {
        use Phase::*;
        let by_controller = matches!(
            (self, next),
            (New, Created)
                | (Created, Requested | Failed)
                | (Requested, Approved | Failed)
                | (Approved, Active | Failed)
                | (Retrying, Requested | Approved | Failed)
        );
        // An activation that a user asks for is a wish; the controller carries it out.
        let by_user =
            matches!((self, next), (Requested | Pending, Approved | Denied) | (Approved, Active) | (Failed, Retrying));
        let ends = next == Expired && !matches!(self, New | Expired);
        ends || match actor {
            Actor::Controller => by_controller,
            Actor::User => by_user,
        }
    }

    /// Whether an ordinary user may delete a permit in this phase: it never had, or has no longer, anything to clean up.
    pub fn may_be_deleted(self) -> bool {
        matches!(self, Phase::Created | Phase::Requested | Phase::Pending | Phase::Expired)
    }

    /// What the condition `Ready` says in this phase: its status and message.
    pub fn ready(self) -> (Option<bool>, &'static str) {
        match self {
            Phase::New | Phase::Created => (None, "request is being prepared"),
            Phase::Requested | Phase::Pending => (Some(true), "request is ready for review"),
            Phase::Denied => (Some(true), "request was denied"),
            Phase::Approved => (Some(true), "request is ready for activation"),
            Phase::Active => (Some(true), "managed resources are ready"),
            Phase::Failed => (Some(false), "request failed; retry or expire it"),
            Phase::Retrying => (None, "retry is in progress"),
            Phase::Expired => (Some(true), "managed resources are pruned"),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_strict() {
        use Phase::*;
        let controller = [
            (New, Created),
            (Created, Requested),
            (Created, Failed),
            (Requested, Approved),
            (Requested, Failed),
            (Approved, Active),
            (Approved, Failed),
            (Retrying, Requested),
            (Retrying, Approved),
            (Retrying, Failed),
        ];
        let user = [
            (Requested, Approved),
            (Requested, Denied),
            (Pending, Approved),
            (Pending, Denied),
            (Approved, Active),
            (Failed, Retrying),
        ];
        for from in Phase::ALL {
            for to in Phase::ALL {
                let ends = to == Expired && from != Expired && from != New;
                assert_eq!(
                    from.may_become(to, Actor::Controller),
                    ends || controller.contains(&(from, to)),
                    "{from:?} {to:?}"
                );
                assert_eq!(from.may_become(to, Actor::User), ends || user.contains(&(from, to)), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn names_go_both_ways() {
        assert!(Phase::ALL.into_iter().all(|p| Phase::of(p.name()) == Some(p)));
        assert_eq!(Phase::of("Nope"), None);
    }
}
