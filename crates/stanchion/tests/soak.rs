//! Half a minute of what `cargo run -p bench --bin soak` does for ten: clients of mixed verbs, watches, managers of shared objects,
//! webhooks that fail, definitions and namespaces that come and go.

use bench::soak::{Options, soak};
use std::time::Duration;

#[test]
fn the_server_stands_a_short_soak() {
    let options = Options {
        program: env!("CARGO_BIN_EXE_stanchion").into(),
        flags: Vec::new(),
        period: Duration::from_secs(25),
        clients: 20,
        rate: 100,
        watches: 120,
        managers: 8,
        comings: 2,
        seed: 1,
        verbose: false,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let verdict = runtime.expect("a runtime").block_on(soak(&options)).expect("the soak starts");
    assert_eq!(verdict.faults, 0, "{verdict}");
}
