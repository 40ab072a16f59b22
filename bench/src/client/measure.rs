//! Processor time and memory of this process, from the operating system.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::Error;

/// How often reads are timed; the shortest time counts.
const ROUNDS: usize = 5;
/// A process is idle if it uses less processor time than this in half a second.
const REST: Duration = Duration::from_millis(5);

/// Returns the processor time of all threads so far, in user and system mode.
pub(super) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the resident bytes.
pub(super) fn resident() -> Result<f64, Error> {
    status("VmRSS:")
}

/// Returns the highest number of resident bytes since the last [`reset_peak`].
pub(super) fn peak() -> Result<f64, Error> {
    status("VmHWM:")
}

pub(super) fn reset_peak() -> Result<(), Error> {
    Ok(std::fs::write("/proc/self/clear_refs", "5")?)
}

fn status(name: &str) -> Result<f64, Error> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or("/proc/self/status has no such line")?;
    let kilobytes: f64 = line.trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024.0)
}

/// Waits until the process is idle.
pub(super) async fn quiet() {
    loop {
        let before = cpu();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if cpu() - before < REST {
            return;
        }
    }
}

/// Returns the shortest time of several rounds.
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

/// Prints a figure, in the format of bench/go/informer.
pub(super) fn print(figure: &str, value: f64, unit: &str) {
    println!("{}", serde_json::json!({"figure": figure, "value": value, "unit": unit}));
}
