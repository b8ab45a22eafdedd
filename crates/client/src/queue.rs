//! A work queue of keys.
//!
//! As client-go's: a key that waits is in it once; a key that is being worked on comes back only when that work is
//! done; a key whose work failed waits twice as long each time. Beyond that keys may be in lanes ([`Queue::fair`]), which
//! take turns, and of which each keeps only so many workers busy.

use crate::queue_metrics::{Measures, Times};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The first wait of a key whose work failed (client-go's default).
pub const FIRST_WAIT: Duration = Duration::from_millis(5);
/// The longest wait (client-go's default).
pub const LONGEST_WAIT: Duration = Duration::from_secs(1000);
/// A time that no clock comes to; whoever waits longer comes early, looks, and waits again.
const NEVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// A work queue; clones are the same queue. Time is tokio's, which tests can stop.
pub struct Queue<K = String> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    keys: Mutex<Keys<K>>,
    changed: Notify,
    first_wait: Duration,
    longest_wait: Duration,
    /// Without it all keys are in one lane that is as wide as may be.
    lane: Option<LaneOf<K>>,
}

/// Gives the lane of a key.
type LaneOf<K> = Box<dyn Fn(&K) -> Lane + Send + Sync>;

/// Whose a key is: of one lane only so many keys are worked on at a time, and no lane waits for another's keys.
#[derive(Clone, Debug)]
pub struct Lane {
    /// What tells lanes apart.
    pub name: Arc<str>,
    /// How many of its keys may be worked on at a time; always one at least.
    pub width: usize,
}

impl Default for Lane {
    fn default() -> Self {
        Lane { name: Arc::default(), width: usize::MAX }
    }
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Queue { shared: self.shared.clone() }
    }
}

impl<K> std::fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Queue::with_waits(FIRST_WAIT, LONGEST_WAIT)
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// A queue whose keys wait this long after their first failure, and never longer than that.
    pub fn with_waits(first_wait: Duration, longest_wait: Duration) -> Self {
        Queue::of(first_wait, longest_wait, None)
    }

    /// A queue whose keys are in lanes. A key is asked for its lane each time that there is work for it.
    pub fn fair(lane: impl Fn(&K) -> Lane + Send + Sync + 'static) -> Self {
        Queue::of(FIRST_WAIT, LONGEST_WAIT, Some(Box::new(lane)))
    }

    fn of(first_wait: Duration, longest_wait: Duration, lane: Option<LaneOf<K>>) -> Self {
        let keys = Mutex::new(Keys::default());
        Queue { shared: Arc::new(Shared { keys, changed: Notify::new(), first_wait, longest_wait, lane }) }
    }

    /// The lane of a key. Not to be asked for while the keys are locked: it may look elsewhere.
    fn lane(&self, key: &K) -> Lane {
        self.shared.lane.as_ref().map_or_else(Lane::default, |lane| lane(key))
    }

    /// There is work for a key.
    pub fn add(&self, key: K) {
        let lane = self.lane(&key);
        self.shared.keys.lock().add(key, lane, Instant::now());
        self.shared.changed.notify_one();
    }

    /// There will be work for a key. Of several times the earliest counts.
    pub fn after(&self, key: K, wait: Duration) {
        if wait.is_zero() {
            return self.add(key);
        }
        let lane = self.lane(&key);
        {
            let mut keys = self.shared.keys.lock();
            keys.retries += 1;
            keys.add_at(key, lane, Instant::now() + wait.min(NEVER));
        }
        self.shared.changed.notify_one();
    }

    /// The work for a key failed: again after a while, the longer the more often.
    pub fn retry(&self, key: K) {
        let failures = self.shared.keys.lock().fail(&key);
        let factor = 1u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.after(key, self.shared.first_wait.saturating_mul(factor).min(self.shared.longest_wait));
    }

    /// How often the work for a key failed since it last succeeded.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.keys.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// The work for a key succeeded: its failures are forgotten.
    pub fn forget(&self, key: &K) {
        self.shared.keys.lock().failures.remove(key);
    }

    /// The next key to work on; nothing once the queue is closed. The worker calls [`Queue::done`] afterwards.
    pub async fn next(&self) -> Option<K> {
        loop {
            let changed = self.shared.changed.notified();
            let next_due = {
                let mut keys = self.shared.keys.lock();
                let key = if keys.closed { None } else { keys.take(Instant::now()) };
                // Others may wait, for the end or for what is left.
                if keys.closed || key.is_some() && (!keys.ready.turns.is_empty() || keys.next_due().is_some()) {
                    self.shared.changed.notify_one();
                }
                if keys.closed || key.is_some() {
                    return key;
                }
                keys.next_due()
            };
            match next_due {
                None => changed.await,
                Some(due) => {
                    // Either way it is looked at again.
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
            }
        }
    }

    /// The work on a key is over; if there is new work for it, it is in the queue again.
    pub fn done(&self, key: &K) {
        if self.shared.keys.lock().done(key, Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// Ends all workers.
    pub fn close(&self) {
        self.shared.keys.lock().closed = true;
        // Each worker that ends wakes the next.
        self.shared.changed.notify_one();
    }

    /// How many keys are ready.
    pub fn len(&self) -> usize {
        self.shared.keys.lock().ready.count
    }

    /// What was measured so far.
    pub fn measures(&self) -> Measures {
        let now = Instant::now();
        let keys = self.shared.keys.lock();
        let running = || keys.busy.values().map(|(since, _)| now.saturating_duration_since(*since));
        Measures {
            depth: keys.ready.count,
            adds: keys.adds,
            retries: keys.retries,
            waited: keys.waited,
            worked: keys.worked,
            unfinished: running().sum(),
            longest: running().max().unwrap_or_default(),
        }
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The keys of a queue, without the waiting.
struct Keys<K> {
    ready: Ready<K>,
    /// All that are to be worked on, even those that are being worked on now; since when, and in which lane.
    dirty: HashMap<K, (Instant, Lane)>,
    /// What is being worked on, since when, and in which lane.
    busy: HashMap<K, (Instant, Arc<str>)>,
    /// When keys come in, with a number that keeps equal times apart.
    waiting: BTreeMap<(Instant, u64), (K, Lane)>,
    due: HashMap<K, (Instant, u64)>,
    number: u64,
    failures: HashMap<K, u32>,
    closed: bool,
    adds: u64,
    retries: u64,
    waited: Times,
    worked: Times,
}

/// The keys that can be worked on, lane by lane.
struct Ready<K> {
    lanes: HashMap<Arc<str>, InLane<K>>,
    /// The lanes that have a key and may have another worker, in the order in which they get one.
    turns: VecDeque<Arc<str>>,
    /// How many keys there are.
    count: usize,
}

/// One lane; there is none without keys.
struct InLane<K> {
    /// In the order in which they are worked on.
    keys: VecDeque<K>,
    busy: usize,
    width: usize,
    /// Whether it is among the turns.
    takes_turns: bool,
}

impl<K> Default for Ready<K> {
    fn default() -> Self {
        Ready { lanes: HashMap::new(), turns: VecDeque::new(), count: 0 }
    }
}

impl<K> Ready<K> {
    fn push(&mut self, key: K, lane: Lane) {
        let Lane { name, width } = lane;
        let new = || InLane { keys: VecDeque::new(), busy: 0, width, takes_turns: false };
        let lane = self.lanes.entry(name.clone()).or_insert_with(new);
        lane.width = width.max(1);
        lane.keys.push_back(key);
        self.count += 1;
        self.settle(name);
    }

    fn pop(&mut self) -> Option<(K, Arc<str>)> {
        let name = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&name)?;
        lane.takes_turns = false;
        let key = lane.keys.pop_front()?;
        lane.busy += 1;
        self.count -= 1;
        self.settle(name.clone());
        Some((key, name))
    }

    /// The work on a key of a lane is over.
    fn free(&mut self, name: Arc<str>) {
        if let Some(lane) = self.lanes.get_mut(&name) {
            lane.busy = lane.busy.saturating_sub(1);
            self.settle(name);
        }
    }

    /// Gives a lane that changed its turn, if it is to have one; forgets one that is empty.
    fn settle(&mut self, name: Arc<str>) {
        let Some(lane) = self.lanes.get_mut(&name) else { return };
        if lane.keys.is_empty() && lane.busy == 0 {
            self.lanes.remove(&name);
        } else if !lane.takes_turns && !lane.keys.is_empty() && lane.busy < lane.width {
            lane.takes_turns = true;
            self.turns.push_back(name);
        }
    }
}

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Keys {
            ready: Ready::default(),
            dirty: HashMap::new(),
            busy: HashMap::new(),
            waiting: BTreeMap::new(),
            due: HashMap::new(),
            number: 0,
            failures: HashMap::new(),
            closed: false,
            adds: 0,
            retries: 0,
            waited: Times::default(),
            worked: Times::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Keys<K> {
    fn add(&mut self, key: K, lane: Lane, now: Instant) {
        if self.dirty.contains_key(&key) {
            return;
        }
        self.adds += 1;
        self.dirty.insert(key.clone(), (now, lane.clone()));
        if !self.busy.contains_key(&key) {
            self.ready.push(key, lane);
        }
    }

    fn add_at(&mut self, key: K, lane: Lane, at: Instant) {
        if let Some(held) = self.due.get(&key).copied() {
            if held.0 <= at {
                return;
            }
            self.waiting.remove(&held);
        }
        self.number += 1;
        self.waiting.insert((at, self.number), (key.clone(), lane));
        self.due.insert(key, (at, self.number));
    }

    fn take(&mut self, now: Instant) -> Option<K> {
        while let Some(first) = self.waiting.first_entry().filter(|e| e.key().0 <= now) {
            let (key, lane) = first.remove();
            self.due.remove(&key);
            self.add(key, lane, now);
        }
        let (key, lane) = self.ready.pop()?;
        if let Some((since, _)) = self.dirty.remove(&key) {
            self.waited.observe(now.saturating_duration_since(since));
        }
        self.busy.insert(key.clone(), (now, lane));
        Some(key)
    }

    /// Whether a key is ready that was not before.
    fn done(&mut self, key: &K, now: Instant) -> bool {
        if let Some((since, lane)) = self.busy.remove(key) {
            self.worked.observe(now.saturating_duration_since(since));
            self.ready.free(lane);
        }
        if let Some((_, lane)) = self.dirty.get(key) {
            self.ready.push(key.clone(), lane.clone());
        }
        !self.ready.turns.is_empty()
    }

    fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Counts a failure; gives how many there were before.
    fn fail(&mut self, key: &K) -> u32 {
        let failures = self.failures.entry(key.clone()).or_default();
        *failures += 1;
        *failures - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_there_once_and_comes_back_after_its_work() {
        let queue: Queue<&str> = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        assert_eq!(queue.next().await, Some("b"));
        assert!(queue.is_empty());
        queue.done(&"a");
        assert_eq!(queue.next().await, Some("a"));
        queue.close();
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_full_of_keys_keeps_no_other_waiting() {
        let lane = |key: &String| Lane { name: key.split('/').next().unwrap_or_default().into(), width: 2 };
        let queue = Queue::fair(lane);
        (0..100).for_each(|i| queue.add(format!("a/{i}")));
        queue.add("b/0".to_owned());
        queue.after("c/0".to_owned(), Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(queue.next().await.unwrap());
        }
        assert_eq!(taken, ["a/0", "b/0", "c/0", "a/1"]);
        // The lane has as many workers as it may have, however many are free.
        assert!(tokio::time::timeout(Duration::from_secs(60), queue.next()).await.is_err());
        assert_eq!(queue.len(), 98);
        queue.add("a/0".to_owned());
        queue.done(&"a/0".to_owned());
        assert_eq!(queue.next().await.as_deref(), Some("a/2"));
        queue.add("b/1".to_owned());
        queue.done(&"a/1".to_owned());
        assert_eq!(queue.next().await.as_deref(), Some("b/1"));
        assert_eq!(queue.next().await.as_deref(), Some("a/3"));
    }

    #[tokio::test(start_paused = true)]
    async fn all_keys_of_all_lanes_are_worked_on_once() {
        let lane = |key: &u32| Lane { name: (key % 7).to_string().into(), width: (key % 3) as usize };
        let queue = Queue::fair(lane);
        let workers: Vec<_> = (0..5)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut done = Vec::new();
                    while let Some(key) = queue.next().await {
                        tokio::time::sleep(Duration::from_millis(u64::from(key % 5))).await;
                        done.push(key);
                        queue.done(&key);
                    }
                    done
                })
            })
            .collect();
        (0..500).for_each(|key| queue.add(key));
        while !queue.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.close();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..500).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn waits_and_work_are_measured() {
        let queue: Queue<&str> = Queue::default();
        queue.add("a");
        queue.add("a");
        queue.after("b", Duration::from_secs(60));
        tokio::time::advance(Duration::from_secs(2)).await;
        let key = queue.next().await.unwrap();
        tokio::time::advance(Duration::from_secs(3)).await;
        let running = queue.measures();
        assert_eq!((running.unfinished.as_secs(), running.longest.as_secs(), running.depth), (3, 3, 0));
        queue.done(&key);
        let measures = queue.measures();
        assert_eq!((measures.adds, measures.retries, measures.unfinished.as_secs()), (1, 1, 0));
        assert_eq!((measures.waited.sum.as_secs(), measures.worked.sum.as_secs()), (2, 3));
        assert_eq!((measures.waited.count(), measures.worked.count()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn of_several_times_the_earliest_counts() {
        let queue: Queue<&str> = Queue::default();
        let start = Instant::now();
        queue.after("a", Duration::from_secs(5));
        queue.after("a", Duration::from_secs(2));
        queue.after("a", Duration::from_secs(9));
        queue.after("b", Duration::MAX);
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(start.elapsed().as_secs(), 2);
        queue.done(&"a");
        assert!(tokio::time::timeout(Duration::from_secs(60), queue.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_worker_keeps_no_time_from_others() {
        let queue: Queue<&str> = Queue::default();
        let worker = || {
            let queue = queue.clone();
            tokio::spawn(async move { (queue.next().await, Instant::now()) })
        };
        let (first, second) = (worker(), worker());
        tokio::task::yield_now().await;
        let start = Instant::now();
        queue.after("later", Duration::from_secs(1));
        tokio::task::yield_now().await;
        queue.add("now");
        let mut taken = [first.await.unwrap(), second.await.unwrap()];
        taken.sort_by_key(|(_, at)| *at);
        assert_eq!(taken.map(|(key, at)| (key, (at - start).as_secs())), [(Some("now"), 0), (Some("later"), 1)]);
        queue.close();
        assert_eq!((worker().await.unwrap().0, worker().await.unwrap().0), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time() {
        let queue: Queue<&str> = Queue::default();
        for expected in [5, 10, 20, 40] {
            let start = Instant::now();
            queue.retry("a");
            assert_eq!(queue.next().await, Some("a"));
            queue.done(&"a");
            assert_eq!(start.elapsed().as_millis(), expected);
        }
        assert_eq!(queue.failures(&"a"), 4);
        queue.forget(&"a");
        assert_eq!(queue.failures(&"a"), 0);
    }
}
