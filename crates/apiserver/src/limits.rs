//! How many requests are handled at the same time, and who comes next when there are too many.
//!
//! Upstream's two limits hold: one for requests that only read, one for those that change something. A request that finds its
//! side full waits for its turn. Waiting users take turns, whatever one of them sends, so that nobody starves another; that is
//! API Priority and Fairness with one level and a queue a user. The objects of `flowcontrol.apiserver.k8s.io` are data that
//! nothing follows.

use crate::auth::{MASTERS, UserInfo};
use crate::request::{RequestInfo, Verb};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How many requests of one user may wait (upstream's `queueLengthLimit`).
const QUEUE: usize = 50;
/// How many requests may wait in all, in parts of those that are handled at the same time.
const WAITING: usize = 8;
/// How long a request waits (upstream: a quarter of the time that it has).
const PATIENCE: Duration = Duration::from_secs(15);

/// The limits of a server; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many requests that only read are handled at the same time.
    pub reading: usize,
    /// How many that change something.
    pub mutating: usize,
}

impl Default for Limits {
    /// Upstream's.
    fn default() -> Self {
        Limits { reading: 400, mutating: 200 }
    }
}

/// Who is let in.
#[derive(Debug)]
pub(crate) struct Turnstiles {
    reading: Option<Arc<Turnstile>>,
    mutating: Option<Arc<Turnstile>>,
}

impl Turnstiles {
    pub fn new(limits: Limits) -> Self {
        let side = |most: usize| (most > 0).then(|| Arc::new(Turnstile { most, ..Turnstile::default() }));
        Turnstiles { reading: side(limits.reading), mutating: side(limits.mutating) }
    }

    /// Lets a request in, perhaps after a while; it is in as long as what it gets lives. Nothing where there are too many.
    pub async fn enter(&self, info: &RequestInfo, user: &UserInfo) -> Option<Seat> {
        let side = if is_mutating(info) { &self.mutating } else { &self.reading };
        match side {
            Some(side) if !is_exempt(info, user) => side.enter(&user.name, PATIENCE).await,
            _ => Some(Seat(None)),
        }
    }

    /// By kind of request: how many wait, and how many were turned away so far.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, usize, u64)> {
        let sides = [("readOnly", &self.reading), ("mutating", &self.mutating)];
        sides.into_iter().map(|(name, side)| {
            let figures = side.as_ref().map(|s| (s.state.lock().waiting, s.refused.load(Ordering::Relaxed)));
            let (waiting, refused) = figures.unwrap_or_default();
            (name, waiting, refused)
        })
    }
}

/// Whether a request changes something, as far as its verb says so.
pub(crate) fn is_mutating(info: &RequestInfo) -> bool {
    info.is_resource && !matches!(info.verb, Verb::Get | Verb::List | Verb::Watch)
}

/// Requests that last as long as they like, the administrator's, and probes.
fn is_exempt(info: &RequestInfo, user: &UserInfo) -> bool {
    let lasting = matches!(info.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward");
    let probe = || ["/healthz", "/livez", "/readyz"].iter().any(|page| info.path.starts_with(page));
    info.verb == Verb::Watch && info.is_resource || lasting || user.in_group(MASTERS) || !info.is_resource && probe()
}

#[derive(Debug, Default)]
struct Turnstile {
    most: usize,
    state: Mutex<State>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    waiting: usize,
    /// Those who wait, by user, the longest first.
    queues: HashMap<String, VecDeque<oneshot::Sender<Seat>>>,
    /// Who has requests that wait, in the order of turns.
    turns: VecDeque<String>,
}

/// A place among the requests that are handled; the next one gets it when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Option<Arc<Turnstile>>);

impl Turnstile {
    async fn enter(self: &Arc<Self>, user: &str, patience: Duration) -> Option<Seat> {
        let turn = {
            let mut state = self.state.lock();
            if state.inside < self.most {
                state.inside += 1;
                return Some(Seat(Some(self.clone())));
            }
            let full = state.waiting >= self.most * WAITING;
            if full { None } else { state.wait(user) }
        };
        // Who gives up drops the receiver; a seat that is on its way then goes to the next one.
        let seat = match turn {
            // Boxed: few wait, and every request would have room for it.
            Some(turn) => Box::pin(tokio::time::timeout(patience, turn)).await.ok().and_then(Result::ok),
            None => None,
        };
        if seat.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        seat
    }

    fn leave(self: Arc<Self>) {
        let mut state = self.state.lock();
        let mut seat = Seat(Some(self.clone()));
        while let Some(next) = state.next() {
            match next.send(seat) {
                Ok(()) => return,
                Err(back) => seat = back,
            }
        }
        state.inside -= 1;
        seat.0 = None;
    }
}

impl State {
    /// Puts a request behind the others of its user; nothing where those are too many.
    fn wait(&mut self, user: &str) -> Option<oneshot::Receiver<Seat>> {
        let queue = self.queues.entry(user.to_owned()).or_default();
        // Those that gave up wait no more.
        let before = queue.len();
        queue.retain(|waiting| !waiting.is_closed());
        self.waiting -= before - queue.len();
        if queue.len() >= QUEUE {
            return None;
        }
        if before == 0 {
            self.turns.push_back(user.to_owned());
        }
        let (sender, receiver) = oneshot::channel();
        queue.push_back(sender);
        self.waiting += 1;
        Some(receiver)
    }

    /// The request whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Seat>> {
        let user = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&user)?;
        let next = queue.pop_front();
        self.waiting -= usize::from(next.is_some());
        if queue.is_empty() {
            self.queues.remove(&user);
        } else {
            self.turns.push_back(user);
        }
        next
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(turnstile) = self.0.take() {
            turnstile.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turnstile(most: usize) -> Arc<Turnstile> {
        Arc::new(Turnstile { most, ..Turnstile::default() })
    }

    /// Comes in and says so.
    fn come(
        turnstile: &Arc<Turnstile>,
        user: &'static str,
        order: &Arc<Mutex<Vec<&'static str>>>,
    ) -> tokio::task::JoinHandle<()> {
        let (turnstile, order) = (turnstile.clone(), order.clone());
        tokio::spawn(async move {
            let seat = turnstile.enter(user, PATIENCE).await;
            order.lock().push(user);
            drop(seat);
        })
    }

    #[tokio::test]
    async fn users_take_turns_whatever_one_of_them_sends() {
        let (turnstile, order) = (turnstile(1), Arc::default());
        let first = turnstile.enter("first", PATIENCE).await;
        let mut all = Vec::new();
        for user in ["greedy", "greedy", "greedy", "greedy", "modest", "other"] {
            all.push(come(&turnstile, user, &order));
            tokio::task::yield_now().await;
        }
        drop(first);
        for one in all {
            one.await.unwrap();
        }
        assert_eq!(*order.lock(), ["greedy", "modest", "other", "greedy", "greedy", "greedy"]);
        let state = turnstile.state.lock();
        assert_eq!((state.inside, state.waiting, state.queues.len(), state.turns.len()), (0, 0, 0, 0));
    }

    #[tokio::test]
    async fn queues_are_bounded_and_others_get_in_still() {
        let (turnstile, order) = (turnstile(20), Arc::default());
        let mut seats = Vec::new();
        for _ in 0..20 {
            seats.push(turnstile.enter("greedy", PATIENCE).await.unwrap());
        }
        let mut waiting: Vec<_> = (0..QUEUE).map(|_| come(&turnstile, "greedy", &order)).collect();
        tokio::task::yield_now().await;
        assert!(turnstile.enter("greedy", PATIENCE).await.is_none());
        waiting.push(come(&turnstile, "modest", &order));
        tokio::task::yield_now().await;
        assert_eq!(turnstile.refused.load(Ordering::Relaxed), 1);
        seats.clear();
        for one in waiting {
            one.await.unwrap();
        }
        assert!(order.lock().iter().position(|user| *user == "modest") < Some(3));
    }

    #[tokio::test]
    async fn who_gives_up_takes_no_place() {
        let turnstile = turnstile(1);
        let seat = turnstile.enter("a", PATIENCE).await;
        assert!(turnstile.enter("b", Duration::from_millis(1)).await.is_none());
        assert!(turnstile.enter("b", Duration::from_millis(1)).await.is_none());
        drop(seat);
        assert_eq!(turnstile.state.lock().inside, 0);
        assert!(turnstile.enter("c", PATIENCE).await.is_some());
        let state = turnstile.state.lock();
        assert_eq!((state.inside, state.waiting), (0, 0));
    }

    #[test]
    fn what_lasts_and_who_may_do_everything_is_exempt() {
        let info = |method: &str, path: &str, query: &str| {
            let method = http::Method::from_bytes(method.as_bytes()).unwrap();
            RequestInfo::new(&method, path, &crate::request::Query::parse(Some(query)))
        };
        let user = UserInfo::anonymous();
        for (request, exempt, mutating) in [
            (info("GET", "/api/v1/pods", "watch=1"), true, false),
            (info("GET", "/api/v1/pods", ""), false, false),
            (info("POST", "/api/v1/namespaces/a/pods/b/exec", ""), true, true),
            (info("PATCH", "/api/v1/namespaces/a/pods/b", ""), false, true),
            (info("GET", "/readyz", ""), true, false),
            (info("GET", "/openapi/v2", ""), false, false),
        ] {
            assert_eq!((is_exempt(&request, &user), is_mutating(&request)), (exempt, mutating), "{}", request.path);
            assert!(is_exempt(&request, &UserInfo::server()));
        }
    }
}
