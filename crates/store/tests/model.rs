//! Any sequence of operations gives what a simple model gives: a list of all states there ever were.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use store::{
    Embedded, Event, Expect, ListOptions, Options, Range, ReadError, Store, Watch, WatchError, Write, WriteError,
};

#[derive(Debug, Clone)]
enum Step {
    Put { key: usize, expect: u8, value: u8 },
    Delete { key: usize, expect: u8 },
    List { range: usize, after: usize, limit: usize, back: u64 },
    Watch { range: usize, back: u64 },
    Compact { back: u64 },
    Reopen,
}

const KEYS: [&str; 6] = ["a", "a/", "a/b", "a/b/c", "a/c", "b/a"];
const RANGES: [&str; 6] = ["", "a", "a/", "a/b", "b/", "c"];

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS.len();
    let range = 0..=RANGES.len();
    prop_oneof![
        6 => (key.clone(), 0..3u8, any::<u8>()).prop_map(|(key, expect, value)| Step::Put { key, expect, value }),
        3 => (key.clone(), 0..3u8).prop_map(|(key, expect)| Step::Delete { key, expect }),
        4 => (range.clone(), 0..=KEYS.len(), 0..4usize, 0..12u64)
            .prop_map(|(range, after, limit, back)| Step::List { range, after, limit, back }),
        2 => (range, 0..12u64).prop_map(|(range, back)| Step::Watch { range, back }),
        1 => (0..8u64).prop_map(|back| Step::Compact { back }),
        1 => Just(Step::Reopen),
    ]
}

fn range_of(index: usize) -> Range {
    RANGES.get(index).map_or_else(|| Range::key("a/b"), |prefix| Range::prefix(*prefix))
}

/// Value, create revision, mod revision, version.
type State = BTreeMap<String, (Vec<u8>, u64, u64, u64)>;

struct Model {
    /// The state at revision 1, 2, ….
    states: Vec<State>,
    compacted: u64,
}

impl Model {
    fn now(&self) -> u64 {
        self.states.len() as u64
    }

    fn at(&self, revision: u64) -> &State {
        &self.states[revision as usize - 1]
    }

    fn write(&mut self, key: &str, expect: Expect, value: Option<Vec<u8>>) -> Option<u64> {
        let mut state = self.at(self.now()).clone();
        let current = state.get(key).cloned();
        let holds = match expect {
            Expect::Absent => current.is_none(),
            Expect::Revision(revision) => current.as_ref().is_some_and(|current| current.2 == revision),
            Expect::Any => true,
        };
        if !holds || (value.is_none() && current.is_none()) {
            return None;
        }
        let revision = self.now() + 1;
        match value {
            Some(value) => {
                let (create, version) = current.map_or((revision, 1), |current| (current.1, current.3 + 1));
                state.insert(key.to_owned(), (value, create, revision, version));
            }
            None => drop(state.remove(key)),
        }
        self.states.push(state);
        Some(revision)
    }

    fn events(&self, range: &Range, after: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for revision in after + 1..=self.now() {
            let (before, now) = (self.at(revision - 1), self.at(revision));
            let changed = before.keys().chain(now.keys()).find(|key| before.get(*key) != now.get(*key)).unwrap();
            if range.contains(changed) {
                let value = |state: &State| state.get(changed).map(|state| state.0.clone().into());
                let (value, previous) = (value(now), value(before));
                events.push(Event { revision, key: changed.as_str().into(), value, previous });
            }
        }
        events
    }
}

fn drain(watch: &mut Watch) -> Result<Vec<Event>, WatchError> {
    let mut events = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(batch) = watch.poll_next(&mut context) {
        events.extend(batch?.events.iter().map(|event| (**event).clone()));
    }
    Ok(events)
}

async fn run(steps: Vec<Step>, on_disk: bool) {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        if on_disk {
            Embedded::open(dir.path(), Options::default()).unwrap()
        } else {
            Embedded::in_memory(Options::default())
        }
    };
    let mut store = open();
    let mut model = Model { states: vec![State::new()], compacted: 1 };
    let mut watches: Vec<(Watch, Range, u64)> = Vec::new();
    for step in steps {
        match step {
            Step::Put { key, expect, value } => write(&store, &mut model, key, expect, Some(vec![value])).await,
            Step::Delete { key, expect } => write(&store, &mut model, key, expect, None).await,
            Step::List { range, after, limit, back } => {
                let range = range_of(range);
                let at = (back > 0).then(|| (model.now() + 2).saturating_sub(back));
                let after = KEYS.get(after).copied();
                let options = ListOptions { after: after.map(Into::into), limit, at };
                compare(&model, &range, &options, store.list(&range, options.clone()).await);
            }
            Step::Watch { range, back } => {
                let range = range_of(range);
                let after = model.now().saturating_sub(back);
                match store.watch(&range, after).await {
                    Ok(watch) => {
                        assert!(after >= model.compacted);
                        watches.push((watch, range, after));
                    }
                    Err(WatchError::Compacted { requested, oldest }) => {
                        assert!(after < model.compacted && requested == after && oldest == model.compacted);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Compact { back } => {
                // Watches read everything first: those behind would end.
                for (watch, range, after) in &mut watches {
                    check_watch(&model, watch, range, after);
                }
                let to = model.now().saturating_sub(back);
                store.compact(to).await;
                model.compacted = model.compacted.max(to);
                assert_eq!(store.compacted(), model.compacted);
            }
            Step::Reopen if on_disk => {
                drop(std::mem::take(&mut watches));
                store.close().await;
                drop(store);
                store = open();
                // What is compacted may come back: it is in the log until a snapshot is worth writing.
                assert!(store.compacted() <= model.compacted);
                store.compact(model.compacted).await;
            }
            Step::Reopen => {}
        }
        assert_eq!(store.revision(), model.now());
        assert_eq!(store.stats().keys, model.at(model.now()).len() as u64);
    }
    for (watch, range, after) in &mut watches {
        check_watch(&model, watch, range, after);
    }
}

fn check_watch(model: &Model, watch: &mut Watch, range: &Range, after: &mut u64) {
    assert_eq!(drain(watch).unwrap(), model.events(range, *after));
    *after = model.now();
    assert_eq!(watch.delivered(), model.now());
}

async fn write(store: &Embedded, model: &mut Model, key: usize, expect: u8, value: Option<Vec<u8>>) {
    let key = KEYS[key];
    let current = model.at(model.now()).get(key).map_or(1, |current| current.2);
    let expect = [Expect::Any, Expect::Absent, Expect::Revision(current)][usize::from(expect)];
    let request = match &value {
        Some(value) => Write::put(key, expect, value.clone()),
        None => Write::delete(key, expect),
    };
    let expected = model.write(key, expect, value);
    match store.write(request).await {
        Ok(revision) => assert_eq!(Some(revision), expected),
        Err(WriteError::Conflict { current }) => {
            assert_eq!(expected, None);
            let known = model.at(model.now()).get(key).map(|current| current.2);
            assert_eq!(current.map(|current| current.mod_revision), known);
        }
        Err(error) => panic!("{error}"),
    }
}

fn compare(model: &Model, range: &Range, options: &ListOptions, page: Result<store::Page, ReadError>) {
    let at = options.at.unwrap_or(model.now());
    let page = match page {
        Ok(page) => page,
        Err(ReadError::Compacted { requested, oldest }) => {
            assert!(at < model.compacted && requested == at && oldest == model.compacted);
            return;
        }
        Err(ReadError::Future { requested, current }) => {
            assert!(at > model.now() && requested == at && current == model.now());
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let after = options.after.as_deref();
    let mut all =
        model.at(at).iter().filter(|(key, _)| range.contains(key) && after.is_none_or(|after| key.as_str() > after));
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    for entry in &page.entries {
        let (key, (value, create, modified, version)) = all.next().unwrap();
        assert_eq!((&*entry.key, &entry.value[..]), (key.as_str(), &value[..]));
        assert_eq!((entry.create_revision, entry.mod_revision, entry.version), (*create, *modified, *version));
    }
    assert!(page.entries.len() <= limit);
    let remaining = all.count() as u64;
    assert_eq!((page.remaining, page.revision), (remaining, at));
    assert!(remaining == 0 || page.entries.len() == limit);
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_it_does_as_the_model(steps in prop::collection::vec(step(), 0..80)) {
        block_on(run(steps, false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_disk_it_does_as_the_model(steps in prop::collection::vec(step(), 0..80)) {
        block_on(run(steps, true));
    }
}
