//! What queues measure, and the page of it: client-go's names, in the Prometheus text form.

use crate::queue::Queue;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// How many bounds client-go's histograms of queues have: from ten nanoseconds, each ten times the one before.
const BOUNDS: usize = 10;

/// Times, counted by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many are no longer than 10 ns, 100 ns and so on to 10 s, each in the first that holds it; the last is for longer
    /// ones.
    counts: [u64; BOUNDS + 1],
    /// All together.
    pub sum: Duration,
}

impl Times {
    /// Counts one.
    pub(crate) fn observe(&mut self, time: Duration) {
        let nanos = time.as_nanos();
        let mut bound = 10;
        let mut at = 0;
        while at < BOUNDS && nanos > bound {
            bound *= 10;
            at += 1;
        }
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum += time;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// What a queue measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measures {
    /// Keys that are ready.
    pub depth: usize,
    /// Keys that came in; one that is in already does not count.
    pub adds: u64,
    /// How often a key was to come back later, as client-go counts it: after a failure, or because somebody said when.
    pub retries: u64,
    /// For how long keys were ready.
    pub waited: Times,
    /// For how long they were worked on.
    pub worked: Times,
    /// For how long what is being worked on now is, all together.
    pub unfinished: Duration,
    /// The longest of these.
    pub longest: Duration,
}

type Source = Arc<dyn Fn() -> Measures + Send + Sync>;

/// The queues of a program by the names of those who work on them. Clones know the same queues.
#[derive(Clone, Default)]
pub struct Queues(Arc<Mutex<BTreeMap<&'static str, Source>>>);

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl Queues {
    /// Measures a queue from now on; it takes the place of an older one of this name.
    pub fn add<K: Clone + Eq + Hash + Send + Sync + 'static>(&self, name: &'static str, queue: &Queue<K>) {
        let queue = queue.clone();
        self.0.lock().insert(name, Arc::new(move || queue.measures()));
    }

    /// Adds everything to a text; nothing if there is no queue.
    pub fn write(&self, out: &mut String) {
        let all: Vec<(&str, Measures)> = self.0.lock().iter().map(|(name, source)| (*name, source())).collect();
        if all.is_empty() {
            return;
        }
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        type Number<'a> = &'a dyn Fn(&Measures) -> String;
        type Histogram = (&'static str, &'static str, fn(&Measures) -> Times);
        let simple: [(&str, &str, &str, Number<'_>); 5] = [
            ("workqueue_adds_total", "counter", "Keys that came into a queue.", &|m| m.adds.to_string()),
            ("workqueue_depth", "gauge", "Keys that are ready to be worked on.", &|m| m.depth.to_string()),
            ("workqueue_retries_total", "counter", "How often a key was to come back later.", &|m| {
                m.retries.to_string()
            }),
            (
                "workqueue_unfinished_work_seconds",
                "gauge",
                "Time for which what is being worked on now is, all together.",
                &|m| seconds(m.unfinished),
            ),
            (
                "workqueue_longest_running_processor_seconds",
                "gauge",
                "Time for which what is being worked on the longest is.",
                &|m| seconds(m.longest),
            ),
        ];
        for (name, kind, help, number) in simple {
            _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (queue, measures) in &all {
                _ = writeln!(out, "{name}{{name=\"{queue}\"}} {}", number(measures));
            }
        }
        let times: [Histogram; 2] = [
            ("workqueue_queue_duration_seconds", "Time for which keys were ready before they were worked on.", |m| {
                m.waited
            }),
            ("workqueue_work_duration_seconds", "Time for which keys were worked on.", |m| m.worked),
        ];
        for (name, help, times) in times {
            _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
            for (queue, measures) in &all {
                let times = times(measures);
                let mut count = 0;
                for (at, more) in times.counts.iter().enumerate() {
                    count += more;
                    let bound = BOUND_NAMES.get(at).copied().unwrap_or("+Inf");
                    _ = writeln!(out, "{name}_bucket{{name=\"{queue}\",le=\"{bound}\"}} {count}");
                }
                _ = writeln!(out, "{name}_sum{{name=\"{queue}\"}} {}", seconds(times.sum));
                _ = writeln!(out, "{name}_count{{name=\"{queue}\"}} {count}");
            }
        }
    }
}

/// The bounds as Go's client writes them, in seconds.
const BOUND_NAMES: [&str; BOUNDS] = ["1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_where_they_belong() {
        let mut times = Times::default();
        for nanos in [0, 10, 11, 1_000_000, 10_000_000_000, 10_000_000_001] {
            times.observe(Duration::from_nanos(nanos));
        }
        assert_eq!(times.counts, [2, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1]);
        assert_eq!(times.count(), 6);
    }

    #[test]
    fn the_page_has_the_names_of_client_go() {
        let (queues, queue) = (Queues::default(), Queue::<String>::default());
        let mut out = String::new();
        queues.write(&mut out);
        assert_eq!(out, "");
        queue.add("k".to_owned());
        queues.add("q", &queue);
        queues.write(&mut out);
        for line in [
            "# TYPE workqueue_adds_total counter\nworkqueue_adds_total{name=\"q\"} 1\n",
            "workqueue_depth{name=\"q\"} 1\n",
            "workqueue_retries_total{name=\"q\"} 0\n",
            "workqueue_queue_duration_seconds_bucket{name=\"q\",le=\"1e-08\"} 0\n",
            "workqueue_work_duration_seconds_bucket{name=\"q\",le=\"+Inf\"} 0\n",
            "workqueue_work_duration_seconds_sum{name=\"q\"} 0\n",
            "workqueue_longest_running_processor_seconds{name=\"q\"} 0\n",
        ] {
            assert!(out.contains(line), "{line} is not in\n{out}");
        }
    }
}
