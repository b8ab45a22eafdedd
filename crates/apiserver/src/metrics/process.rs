//! What the system tells of the process (Linux only), under the names that all Prometheus clients use.

use super::page::Page;
use std::fs;

/// How many parts of a second processor time is told in; to programs it is this on every Linux.
const TICKS: f64 = 100.0;

/// Writes what there is.
pub(super) fn write(page: &mut Page) {
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let field = |name: &str| -> Option<f64> {
            let line = status.lines().find(|l| l.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        if let Some(kilobytes) = field("VmRSS:") {
            page.sample("process_resident_memory_bytes", "gauge", "Resident memory.", kilobytes * 1024.0);
        }
        if let Some(kilobytes) = field("VmSize:") {
            page.sample("process_virtual_memory_bytes", "gauge", "Virtual memory.", kilobytes * 1024.0);
        }
        if let Some(threads) = field("Threads:") {
            page.sample("process_threads", "gauge", "Threads.", threads);
        }
    }
    if let Some(ticks) = fields().and_then(|f| Some(f.get(11)? + f.get(12)?)) {
        page.sample("process_cpu_seconds_total", "counter", "Processor time.", ticks / TICKS);
    }
    if let Some(started) = started() {
        page.sample("process_start_time_seconds", "gauge", "When the process began, since 1970.", started);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        page.sample("process_open_fds", "gauge", "Open files and sockets.", open.count());
    }
    if let Some(most) = most_files() {
        page.sample("process_max_fds", "gauge", "How many files and sockets may be open.", most);
    }
}

/// The fields of `/proc/self/stat` behind the program's name; those that are no numbers are 0.
fn fields() -> Option<Vec<f64>> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect())
}

fn started() -> Option<f64> {
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot + fields()?.get(19)? / TICKS)
}

fn most_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_began_a_while_ago() {
        let now = jiff::Timestamp::now().as_second() as f64;
        let started = super::started().unwrap();
        assert!(started <= now + 2.0 && started > now - 10_000.0, "{started} {now}");
        assert!(super::most_files().unwrap_or(1) > 0);
    }
}
