//! Who asked, and whether they might.

use super::family::{Counters, Histograms, NONE};
use prometheus::IntCounter;
use prometheus::proto::MetricFamily;

/// Upper bounds in seconds of the time that certificates are good for still (upstream's).
const LEFT_SECONDS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// The counters of authentication and authorisation.
pub(crate) struct Identity {
    attempts: Counters,
    users: Counters,
    decisions: Counters,
    /// Those that nearly every request counts.
    success: Option<IntCounter>,
    other: Option<IntCounter>,
    allowed: Option<IntCounter>,
    certificates: Histograms,
}

impl Default for Identity {
    fn default() -> Self {
        let attempts =
            Counters::new("authentication_attempts", "Requests by what came of their credentials.", NONE, &["result"]);
        let users = Counters::new(
            "authenticated_user_requests",
            "Requests by user; only names that many clusters have are told apart.",
            NONE,
            &["username"],
        );
        let decisions =
            Counters::new("authorization_attempts_total", "Requests by whether they were allowed.", NONE, &["result"]);
        let certificates = Histograms::new(
            "apiserver_client_certificate_expiration_seconds",
            "For how long the client certificates of requests are good still.",
            NONE,
            &[],
            &LEFT_SECONDS,
        );
        // The only series is there from the start.
        drop(certificates.one(&[]));
        let (success, other) = (attempts.one(&["success"]), users.one(&["other"]));
        let allowed = decisions.one(&["allowed"]);
        Identity { attempts, users, decisions, success, other, allowed, certificates }
    }
}

impl Identity {
    /// Counts a request whose credentials, if it has any, are good.
    pub fn authenticated(&self, user: &str) {
        count(self.success.as_ref());
        match user {
            "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => {
                self.users.count(&[user]);
            }
            // An address, most likely.
            user if user.contains('@') => self.users.count(&["email_id"]),
            _ => count(self.other.as_ref()),
        }
    }

    /// Counts a request whose credentials are wrong or missing.
    pub fn refused(&self, has_credentials: bool) {
        self.attempts.count(&[if has_credentials { "error" } else { "failure" }]);
    }

    /// Counts a request with a client certificate that is good for so many seconds still.
    pub fn certified(&self, left: i64) {
        self.certificates.observe(&[], left as f64);
    }

    /// Counts what an authorizer said. None here denies; one that does not allow has no opinion, as upstream's RBAC.
    pub fn authorized(&self, allowed: bool) {
        match allowed {
            true => count(self.allowed.as_ref()),
            false => self.decisions.count(&["no-opinion"]),
        }
    }

    /// Adds all that have a value.
    pub fn add_to(&self, families: &mut Vec<MetricFamily>) {
        self.attempts.add_to(families);
        self.users.add_to(families);
        self.decisions.add_to(families);
        self.certificates.add_to(families);
    }
}

fn count(counter: Option<&IntCounter>) {
    if let Some(counter) = counter {
        counter.inc();
    }
}
