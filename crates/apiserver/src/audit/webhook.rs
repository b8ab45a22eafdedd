//! Audit events for a program elsewhere: in batches that no request waits for, or one by one before the answer.

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How often a batch is sent before its events are lost (upstream's steps).
const ATTEMPTS: u32 = 5;
/// How much longer each wait before another attempt is (upstream's factor).
const FACTOR: f64 = 1.5;
/// How many batches are on their way at the same time.
const AT_ONCE: usize = 8;

/// Takes lists of events.
pub trait Receiver: Send + Sync + 'static {
    /// Sends an `EventList` in JSON.
    ///
    /// # Errors
    ///
    /// It did not arrive.
    fn send(&self, list: Bytes) -> Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send + '_>>;
}

/// Why a list did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// In words for those who run the server.
    pub why: String,
    /// Whether it may arrive another time.
    pub again: bool,
}

/// How events are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Whether each event is sent by itself, and requests wait for that.
    pub blocking: bool,
    /// How many events may wait; those that find no room are lost.
    pub buffer: usize,
    /// The most events of a batch.
    pub batch: usize,
    /// How long a batch waits for further events.
    pub wait: Duration,
    /// How many batches are sent a second; 0 for any number.
    pub rate: f64,
    /// How many may be sent at once after a quiet time.
    pub burst: u32,
    /// How long after a failure the next attempt begins; each further one waits longer.
    pub backoff: Duration,
}

impl Default for Settings {
    /// Upstream's.
    fn default() -> Self {
        Settings {
            blocking: false,
            buffer: 10_000,
            batch: 400,
            wait: Duration::from_secs(30),
            rate: 10.0,
            burst: 15,
            backoff: Duration::from_secs(10),
        }
    }
}

/// Sends events to a receiver.
pub struct Webhook {
    out: Arc<Out>,
    /// Where events wait for their batch; none where requests wait instead, or when it is over.
    queue: Mutex<Option<mpsc::Sender<Bytes>>>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

struct Out {
    receiver: Arc<dyn Receiver>,
    settings: Settings,
    lost: AtomicU64,
}

impl Webhook {
    /// Sends events from now on. Has to be called inside a tokio runtime.
    pub fn start(receiver: Arc<dyn Receiver>, settings: Settings) -> Self {
        let out = Arc::new(Out { receiver, settings, lost: AtomicU64::new(0) });
        if settings.blocking {
            return Webhook { out, queue: Mutex::default(), worker: Mutex::default() };
        }
        let (sender, events) = mpsc::channel(settings.buffer.max(1));
        let worker = tokio::spawn(batches(out.clone(), events));
        Webhook { out, queue: Mutex::new(Some(sender)), worker: Mutex::new(Some(worker)) }
    }

    /// Takes an event in JSON. In batches it is sent some time; otherwise it is sent when this ends.
    pub(super) async fn take(&self, event: Bytes) {
        if self.out.settings.blocking {
            return self.out.deliver(&[event]).await;
        }
        let fits = self.queue.lock().as_ref().is_some_and(|queue| queue.try_send(event).is_ok());
        if !fits {
            self.out.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many events did not arrive.
    pub(super) fn lost(&self) -> u64 {
        self.out.lost.load(Ordering::Relaxed)
    }

    /// Sends what waits, as far as that is possible within a time. Events that come later are lost.
    pub(super) async fn finish(&self, patience: Duration) {
        self.queue.lock().take();
        let worker = self.worker.lock().take();
        let Some(mut worker) = worker else { return };
        if timeout(patience, &mut worker).await.is_err() {
            worker.abort();
            tracing::warn!("audit events that waited for their webhook are lost");
        }
    }
}

/// Sends what comes in, in batches.
async fn batches(out: Arc<Out>, mut events: mpsc::Receiver<Bytes>) {
    let (settings, mut sending) = (out.settings, JoinSet::new());
    let mut throttle = Throttle::new(settings.rate, settings.burst);
    while let Some(first) = events.recv().await {
        let (mut batch, end) = (vec![first], Instant::now() + settings.wait);
        while batch.len() < settings.batch {
            tokio::select! {
                biased;
                event = events.recv() => match event {
                    Some(event) => batch.push(event),
                    None => break,
                },
                () = sleep_until(end) => break,
            }
        }
        throttle.turn().await;
        while sending.len() >= AT_ONCE {
            sending.join_next().await;
        }
        while sending.try_join_next().is_some() {}
        let out = out.clone();
        sending.spawn(async move { out.deliver(&batch).await });
    }
    sending.join_all().await;
}

impl Out {
    /// Sends events until they arrived, or have to be given up.
    async fn deliver(&self, events: &[Bytes]) {
        let (list, mut pause) = (list(events), self.settings.backoff);
        for attempt in 1.. {
            let Err(Unsent { why, again }) = self.receiver.send(list.clone()).await else { return };
            if !again || attempt == ATTEMPTS {
                self.lost.fetch_add(events.len() as u64, Ordering::Relaxed);
                tracing::error!(why, events = events.len(), "audit events cannot be sent, and are lost");
                return;
            }
            tracing::warn!(why, "audit events cannot be sent; they are sent again");
            sleep(pause).await;
            pause = pause.mul_f64(FACTOR);
        }
    }
}

/// The events as an `EventList`.
fn list(events: &[Bytes]) -> Bytes {
    let length: usize = events.iter().map(|event| event.len() + 1).sum();
    let head = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
    let mut out = BytesMut::with_capacity(head.len() + length + 2);
    out.extend_from_slice(head);
    for (i, event) in events.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b",");
        }
        out.extend_from_slice(event);
    }
    out.extend_from_slice(b"]}");
    out.freeze()
}

/// Lets so many through in a second, and some at once after a quiet time.
struct Throttle {
    rate: f64,
    most: f64,
    left: f64,
    since: Instant,
}

impl Throttle {
    fn new(rate: f64, burst: u32) -> Self {
        let most = f64::from(burst.max(1));
        Throttle { rate, most, left: most, since: Instant::now() }
    }

    async fn turn(&mut self) {
        if self.rate <= 0.0 {
            return;
        }
        let now = Instant::now();
        self.left = (self.left + (now - self.since).as_secs_f64() * self.rate).min(self.most) - 1.0;
        self.since = now;
        if self.left < 0.0 {
            sleep(Duration::from_secs_f64(-self.left / self.rate)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Value, json};

    /// Remembers what arrives; the first lists do not.
    #[derive(Default)]
    struct Inbox {
        lists: Mutex<Vec<Bytes>>,
        refuse: AtomicU64,
        again: bool,
        stuck: bool,
    }

    impl Receiver for Inbox {
        fn send(&self, list: Bytes) -> Pin<Box<dyn Future<Output = Result<(), Unsent>> + Send + '_>> {
            Box::pin(async move {
                if self.stuck {
                    std::future::pending::<()>().await;
                }
                let refuse = self.refuse.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
                if refuse {
                    return Err(Unsent { why: "no".into(), again: self.again });
                }
                self.lists.lock().push(list);
                Ok(())
            })
        }
    }

    fn sizes(inbox: &Inbox) -> Vec<usize> {
        let count = |list: &Bytes| json::parse(list).unwrap().get("items").and_then(Value::as_array).unwrap().len();
        inbox.lists.lock().iter().map(count).collect()
    }

    const EVENT: Bytes = Bytes::from_static(br#"{"kind":"Event"}"#);

    #[tokio::test(start_paused = true)]
    async fn events_go_in_batches_when_those_are_full_or_have_waited() {
        let inbox = Arc::new(Inbox::default());
        let webhook = Webhook::start(inbox.clone(), Settings { batch: 3, ..Settings::default() });
        for _ in 0..4 {
            webhook.take(EVENT).await;
        }
        sleep(Duration::from_secs(29)).await;
        assert_eq!(sizes(&inbox), [3]);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(sizes(&inbox), [3, 1]);
        webhook.take(EVENT).await;
        webhook.finish(Duration::from_secs(1)).await;
        assert_eq!((sizes(&inbox), webhook.lost()), (vec![3, 1, 1], 0));
        webhook.take(EVENT).await;
        assert_eq!(webhook.lost(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_finds_no_room_is_lost_and_counted_while_nobody_waits() {
        let inbox = Arc::new(Inbox { stuck: true, ..Inbox::default() });
        let webhook = Webhook::start(inbox, Settings { batch: 1, buffer: 5, ..Settings::default() });
        for _ in 0..100 {
            webhook.take(EVENT).await;
        }
        assert_eq!(webhook.lost(), 95);
        webhook.finish(Duration::from_secs(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_arrive_later_is_sent_again() {
        for (refuse, again, arrives, lost, seconds) in
            [(2, true, 1, 0, 25), (4, true, 1, 0, 81), (5, true, 0, 1, 81), (1, false, 0, 1, 0)]
        {
            let inbox = Arc::new(Inbox { refuse: AtomicU64::new(refuse), again, ..Inbox::default() });
            let settings = Settings { blocking: true, ..Settings::default() };
            let (webhook, began) = (Webhook::start(inbox.clone(), settings), Instant::now());
            webhook.take(EVENT).await;
            let figures = (sizes(&inbox).len(), webhook.lost(), began.elapsed().as_secs());
            assert_eq!(figures, (arrives, lost, seconds), "{refuse} {again}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batches_are_no_more_than_so_many_a_second() {
        let (mut throttle, began) = (Throttle::new(2.0, 3), Instant::now());
        for _ in 0..7 {
            throttle.turn().await;
        }
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}
