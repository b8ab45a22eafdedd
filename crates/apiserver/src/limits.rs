//! How many requests are handled at the same time, and who comes next when there are too many.
//!
//! Upstream's two limits hold: one for requests that only read, one for those that change something. A request that finds its
//! side full waits for its turn. Waiting users take turns, whatever one of them sends, so that nobody starves another; that is
//! API Priority and Fairness with one level and a queue a user. The objects of `flowcontrol.apiserver.k8s.io` are data that
//! nothing follows.

use crate::auth::{MASTERS, UserInfo};
use crate::metrics::{Histograms, NONE};
use crate::request::{RequestInfo, Verb};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
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
pub(crate) struct Turnstiles {
    reading: Option<Arc<Turnstile>>,
    mutating: Option<Arc<Turnstile>>,
    waits: Histograms,
}

/// What a side has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// How many requests it handles at the same time.
    pub most: usize,
    /// How many are handled.
    pub inside: usize,
    /// How many wait.
    pub waiting: usize,
    /// How many were let in so far.
    pub dispatched: u64,
    /// How many were turned away because too many waited.
    pub overfull: u64,
    /// How many were turned away because they waited for too long.
    pub late: u64,
}

impl Turnstiles {
    pub fn new(limits: Limits) -> Self {
        let side = |most: usize| (most > 0).then(|| Arc::new(Turnstile { most, ..Turnstile::default() }));
        let waits = Histograms::new(
            "apiserver_flowcontrol_request_wait_duration_seconds",
            "How long requests waited that had to wait.",
            NONE,
            &["execute", "flow_schema", "priority_level"],
            &WAITS,
        );
        // Those that ought to be the only ones are there from the start.
        [READING, MUTATING].into_iter().for_each(|name| drop(waits.one(&["true", USERS, name])));
        Turnstiles { reading: side(limits.reading), mutating: side(limits.mutating), waits }
    }

    /// Lets a request in, perhaps after a while; it is in as long as what it gets lives. Nothing where there are too many.
    pub async fn enter(&self, info: &RequestInfo, user: &UserInfo) -> Option<Seat> {
        let (name, side) = if is_mutating(info) { (MUTATING, &self.mutating) } else { (READING, &self.reading) };
        let Some(side) = side.as_ref().filter(|_| !is_exempt(info, user)) else { return Some(Seat(None)) };
        let turn = match side.ask(&user.name) {
            Asked::In(seat) => return Some(seat),
            Asked::Full => return None,
            Asked::Queued(turn) => turn,
        };
        // Boxed: few wait, and every request would have room for it.
        Box::pin(async move {
            let began = Instant::now();
            let seat = side.wait(turn, PATIENCE).await;
            let executes = if seat.is_some() { "true" } else { "false" };
            self.waits.observe(&[executes, USERS, name], began.elapsed().as_secs_f64());
            seat
        })
        .await
    }

    /// What each kind of request has come to.
    pub fn figures(&self) -> [(&'static str, Figures); 2] {
        let of = |side: &Option<Arc<Turnstile>>| side.as_ref().map(|side| side.figures()).unwrap_or_default();
        [(READING, of(&self.reading)), (MUTATING, of(&self.mutating))]
    }

    /// How long requests waited.
    pub fn waits(&self) -> &Histograms {
        &self.waits
    }
}

/// What upstream calls the two kinds of requests; here they are priority levels too.
const READING: &str = "readOnly";
const MUTATING: &str = "mutating";
/// The only flow schema: all users take turns.
pub(crate) const USERS: &str = "users";
/// Upper bounds in seconds of waiting (upstream's).
const WAITS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// Whether a request changes something, as far as its verb says so.
fn is_mutating(info: &RequestInfo) -> bool {
    info.is_resource && !matches!(info.verb, Verb::Get | Verb::List | Verb::Watch)
}

/// Which of the two kinds a request is of, as upstream calls it.
pub(crate) fn kind(info: &RequestInfo) -> &'static str {
    if is_mutating(info) { MUTATING } else { READING }
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
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    waiting: usize,
    dispatched: u64,
    overfull: u64,
    late: u64,
    /// Those who wait, by user, the longest first.
    queues: HashMap<String, VecDeque<oneshot::Sender<Seat>>>,
    /// Who has requests that wait, in the order of turns.
    turns: VecDeque<String>,
}

/// What a request is told that wants to come in.
enum Asked {
    /// It is in.
    In(Seat),
    /// It gets a seat when it is its turn.
    Queued(oneshot::Receiver<Seat>),
    /// There are too many.
    Full,
}

/// A place among the requests that are handled; the next one gets it when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Option<Arc<Turnstile>>);

impl Turnstile {
    fn ask(self: &Arc<Self>, user: &str) -> Asked {
        let mut state = self.state.lock();
        if state.inside < self.most {
            state.inside += 1;
            state.dispatched += 1;
            return Asked::In(Seat(Some(self.clone())));
        }
        let full = state.waiting >= self.most * WAITING;
        let turn = if full { None } else { state.wait(user) };
        state.overfull += u64::from(turn.is_none());
        turn.map_or(Asked::Full, Asked::Queued)
    }

    /// Waits for a turn. Who gives up drops the receiver; a seat that is on its way then goes to the next one.
    async fn wait(&self, turn: oneshot::Receiver<Seat>, patience: Duration) -> Option<Seat> {
        let seat = tokio::time::timeout(patience, turn).await.ok().and_then(Result::ok);
        let mut state = self.state.lock();
        state.dispatched += u64::from(seat.is_some());
        state.late += u64::from(seat.is_none());
        seat
    }

    fn figures(&self) -> Figures {
        let (most, state) = (self.most, self.state.lock());
        let State { inside, waiting, dispatched, overfull, late, .. } = *state;
        Figures { most, inside, waiting, dispatched, overfull, late }
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

    async fn enter(turnstile: &Arc<Turnstile>, user: &str, patience: Duration) -> Option<Seat> {
        match turnstile.ask(user) {
            Asked::In(seat) => Some(seat),
            Asked::Queued(turn) => turnstile.wait(turn, patience).await,
            Asked::Full => None,
        }
    }

    /// Comes in and says so.
    fn come(
        turnstile: &Arc<Turnstile>,
        user: &'static str,
        order: &Arc<Mutex<Vec<&'static str>>>,
    ) -> tokio::task::JoinHandle<()> {
        let (turnstile, order) = (turnstile.clone(), order.clone());
        tokio::spawn(async move {
            let seat = enter(&turnstile, user, PATIENCE).await;
            order.lock().push(user);
            drop(seat);
        })
    }

    #[tokio::test]
    async fn users_take_turns_whatever_one_of_them_sends() {
        let (turnstile, order) = (turnstile(1), Arc::default());
        let first = enter(&turnstile, "first", PATIENCE).await;
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
            seats.push(enter(&turnstile, "greedy", PATIENCE).await.unwrap());
        }
        let mut waiting: Vec<_> = (0..QUEUE).map(|_| come(&turnstile, "greedy", &order)).collect();
        tokio::task::yield_now().await;
        assert!(enter(&turnstile, "greedy", PATIENCE).await.is_none());
        waiting.push(come(&turnstile, "modest", &order));
        tokio::task::yield_now().await;
        assert_eq!((turnstile.figures().overfull, turnstile.figures().dispatched), (1, 20));
        seats.clear();
        for one in waiting {
            one.await.unwrap();
        }
        assert!(order.lock().iter().position(|user| *user == "modest") < Some(3));
    }

    #[tokio::test]
    async fn who_gives_up_takes_no_place() {
        let turnstile = turnstile(1);
        let seat = enter(&turnstile, "a", PATIENCE).await;
        assert!(enter(&turnstile, "b", Duration::from_millis(1)).await.is_none());
        assert!(enter(&turnstile, "b", Duration::from_millis(1)).await.is_none());
        drop(seat);
        assert_eq!((turnstile.figures().inside, turnstile.figures().late), (0, 2));
        assert!(enter(&turnstile, "c", PATIENCE).await.is_some());
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
