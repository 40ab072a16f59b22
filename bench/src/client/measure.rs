//! What this process has used and holds, as the system counts it.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::Error;

/// Reads are timed as often, and the least time counts.
const ROUNDS: usize = 5;
/// A process that used no more than this of half a second is at rest.
const REST: Duration = Duration::from_millis(5);

/// The processor time of all threads so far, in the program and in the system for it.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// How many bytes are resident.
pub(super) fn resident() -> Result<f64, Error> {
    status("VmRSS:")
}

/// How many bytes were resident at most since the last [`reset_peak`].
pub(super) fn peak() -> Result<f64, Error> {
    status("VmHWM:")
}

pub(super) fn reset_peak() -> Result<(), Error> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn status(name: &str) -> Result<f64, Error> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line =
        text.lines().find_map(|line| line.strip_prefix(name)).ok_or("the system does not say how much is resident")?;
    let kilobytes: f64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}

/// Waits until the process is at rest.
pub(super) async fn quiet() {
    loop {
        let before = cpu();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if cpu() - before < REST {
            return;
        }
    }
}

/// The least time that something takes.
pub(super) fn least(mut round: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    (0..ROUNDS).map(timed).min().unwrap_or_default()
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

pub(super) fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// Prints one figure, as the program of client-go does too.
pub(super) fn print(figure: &str, value: f64, unit: &str) {
    println!("{}", serde_json::json!({"figure": figure, "value": value, "unit": unit}));
}
