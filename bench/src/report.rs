//! Figures: requests a second, percentiles, processor time, memory.

use std::time::Duration;

/// Prints what came of a run: how many, how many a second, how long each took.
pub fn latencies(name: &str, mut took: Vec<Duration>, period: Duration, failed: usize) {
    took.sort_unstable();
    let at = |share: f64| {
        let place = ((took.len() as f64 * share) as usize).min(took.len().saturating_sub(1));
        took.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3
    };
    let rate = took.len() as f64 / period.as_secs_f64();
    println!(
        "{name}: {rate:.0}/s, p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms, {failed} failed",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

/// The resident memory of a process in bytes.
pub fn resident(process: u32) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).map_err(|e| e.to_string())?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).ok_or("no resident size")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).ok_or("no resident size")?;
    Ok(kilobytes * 1024)
}

/// The processor time that a process has used, as clock ticks of 10 ms count it.
pub fn processor_time(process: u32) -> Result<Duration, String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).map_err(|e| e.to_string())?;
    // After the name, which may hold anything: state, and ten more before user and system time.
    let (_, fields) = stat.rsplit_once(')').ok_or("no processor time")?;
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
