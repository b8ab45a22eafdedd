//! What a process used of the processor, and when it rests.

use bench::report;
use compat::server::Server;
use std::time::{Duration, Instant};

/// Ticks of the processor's time in a second, on Linux.
const TICKS: u64 = 100;
/// A process rests when it uses less than this share of its time.
const AT_REST: f64 = 0.03;
/// How long is waited for rest at the most.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Measures one process between two points.
pub struct Meter {
    process: u32,
    began: Instant,
    used: Duration,
    /// When and with which use of the processor the process came to rest.
    rested: Option<(Instant, Duration)>,
}

impl Meter {
    /// From now on.
    pub fn start(server: &Server) -> Result<Self, String> {
        let process = server.id();
        Ok(Meter { process, began: Instant::now(), used: used(process)?, rested: None })
    }

    /// Waits until the process has nothing to do for `quiet`.
    pub async fn settle(&mut self, quiet: Duration) -> Result<(), String> {
        let (start, mut since) = (Instant::now(), (Instant::now(), used(self.process)?));
        while since.0.elapsed() < quiet {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = used(self.process)?;
            let share = (now - since.1).as_secs_f64() / since.0.elapsed().as_secs_f64();
            if share > AT_REST {
                since = (Instant::now(), now);
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("it still works after {PATIENCE:?}"));
            }
        }
        self.rested = Some(since);
        Ok(())
    }

    /// Prints what was used since the start or the last time, and begins anew.
    pub fn tell(&mut self, what: &str, writes: u64) -> Result<(), String> {
        let (end, total) =
            self.rested.take().map_or_else(|| Ok((Instant::now(), used(self.process)?)), Ok::<_, String>)?;
        println!(
            "{what}: {:.1} s, {:.1} s of the processor, {writes} writes, {} MB resident",
            (end - self.began).as_secs_f64(),
            (total.saturating_sub(self.used)).as_secs_f64(),
            report::resident(self.process)? / 1_000_000
        );
        (self.began, self.used) = (Instant::now(), used(self.process)?);
        Ok(())
    }
}

/// The time of the processor that a process used so far.
fn used(process: u32) -> Result<Duration, String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).map_err(|e| e.to_string())?;
    // What follows the name in parentheses, which may itself have spaces: the state is the first field.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |field: usize| fields.get(field).and_then(|f| f.parse::<u64>().ok()).unwrap_or_default();
    Ok(Duration::from_millis((ticks(11) + ticks(12)) * 1000 / TICKS))
}
