//! The summary at the end.

use std::collections::BTreeMap;

use super::event_log::EventLog;
use super::faults::{Injected, Kind};
use super::meter::{MetricsRecorder, Percentiles};
use super::program::Program;
use crate::say::say;
use crate::view::{State, align, bytes, count, lists, short, span};

/// Returns the lines of the summary.
pub(super) fn lines(
    world: &str,
    program: &Program,
    meter: &MetricsRecorder,
    event_log: &EventLog,
    faults: &[Injected],
) -> Vec<String> {
    let mut lines = vec![String::new(), format!("{}, watched for {}", world, span(event_log.elapsed()))];
    let (readings, queues) = program.readings();

    let rows = readings.iter().map(|reading| {
        let all = reading.lists.iter().map(|(reason, times)| (reason.as_str(), *times));
        vec![
            reading.name.clone(),
            count(reading.objects),
            count(reading.events),
            bytes(reading.wire_bytes),
            count(reading.watches),
            count(reading.failures),
            lists(all),
        ]
    });
    let titles = ["INFORMER", " OBJECTS", " EVENTS", " WIRE", " WATCHES", " FAILURES", "LISTS"];
    section(&mut lines, &titles, rows.collect());

    // Informers that watch need no remark.
    for reading in readings.iter().filter(|reading| reading.state != State::Watching) {
        let why =
            reading.why.as_deref().map(|why| format!(": {}", short(&why.replace('\n', " "), 100))).unwrap_or_default();
        lines.push(format!("  {} is {}{why}", reading.name, reading.state.word()));
    }

    let behind: BTreeMap<(&str, &str), u64> = readings
        .iter()
        .flat_map(|reading| reading.handlers.iter().map(|handler| ((&*reading.name, &*handler.name), handler.backlog)))
        .collect();
    let rows = meter.took("informer_handler_latency_seconds").into_iter().map(|(labels, took)| {
        let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
        let (informer, handler) = (label("name"), label("handler"));
        let waiting = behind.get(&(&*informer, &*handler)).copied().unwrap_or_default();
        let mut row = vec![handler, informer];
        row.extend(times(took));
        row.push(count(waiting));
        row
    });
    section(&mut lines, &["HANDLER", "OF", " CALLS", " P50", " P99", " STILL WAITING"], rows.collect());

    let reconciles = meter.took("controller_runtime_reconcile_time_seconds");
    let rows = queues.iter().map(|queue| {
        let took = reconciles.iter().find(|(labels, _)| labels.get("controller") == Some(&queue.name));
        let mut row = vec![queue.name.clone()];
        row.extend(took.map_or_else(|| [count(queue.worked), "-".into(), "-".into()], |(_, took)| times(*took)));
        row.extend([count(queue.failures), count(queue.waiting + queue.delayed + queue.parked)]);
        row
    });
    section(&mut lines, &["CONTROLLER", " RECONCILES", " P50", " P99", " FAILED", " STILL WAITING"], rows.collect());

    let rows = Kind::ALL.into_iter().filter_map(|kind| {
        let all: Vec<&Injected> = faults.iter().filter(|injected| injected.kind == kind).collect();
        let after = all.iter().map(|injected| injected.recovered.map_or_else(|| "not yet".to_owned(), span));
        let after = after.collect::<Vec<_>>().join(", ");
        (!all.is_empty()).then(|| vec![kind.name().to_owned(), count(all.len() as u64), after])
    });
    section(&mut lines, &["FAULT", " TIMES", "RECOVERED AFTER"], rows.collect());

    let rows = program.groups().into_iter().take(10).map(|group| {
        let some = program.some_pods(&group.name).join(", ");
        vec![group.name, count(group.objects), count(group.ready), some]
    });
    section(&mut lines, &["NODE", " PODS", " READY", "SOME OF THEM, THROUGH THE INDEX"], rows.collect());
    lines
}

fn times(took: Percentiles) -> [String; 3] {
    [count(took.times), span(took.half), span(took.most)]
}

/// Appends an empty line and a table; appends nothing if the table has no rows.
fn section(lines: &mut Vec<String>, titles: &[&str], rows: Vec<Vec<String>>) {
    if !rows.is_empty() {
        lines.push(String::new());
        lines.extend(align(titles, &rows).into_iter().map(|line| format!("  {line}")));
    }
}

pub(super) fn print(lines: &[String]) {
    lines.iter().for_each(|line| say(line));
}
