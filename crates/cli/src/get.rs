//! `informer get`: prints the objects of a resource once the cache is synced.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::ending;
use crate::failure::Failure;
use crate::line::Line;
use crate::object::Wire;
use crate::output::{Output, Table, document, full_name, pretty_json, yaml};
use crate::progress;
use crate::say;
use crate::target::{TargetArguments, TargetInformer};

const EXAMPLES: &str = "\
Examples:
  informer get pods                                     pods of the current namespace
  informer get deploy web -o yaml                       one object as YAML
  informer get pods,svc -n web                          several kinds
  informer get pods -A --index spec.nodeName=worker-7   pods that an index finds
  informer get widgets.demo.example.com -o name         custom resources
  informer get secrets -l app=shop -o json | jq '.items[].metadata.name'";

/// Print the objects of a resource, or of several: pods,svc.
///
/// An informer lists the objects; the command ends as soon as its cache is synced. Tables have kubectl's columns; for
/// custom resources they have the columns of the CRD. They show no data of Secrets.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// The output format.
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value_t = Output::Table)]
    output: Output,
    /// How long to wait for the server, such as 5s or 2m [default: until Ctrl-C].
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { target, output, timeout } = arguments;
    let line = Line::new();
    let outcome = tokio::select! {
        biased;
        () = ending::after(None) => return Err(Failure::interrupted("interrupted before the server answered")),
        outcome = output_of(target, output, timeout, &line) => outcome,
    };
    line.clear();
    say::write(outcome?.as_bytes())
}

/// Starts an informer for each kind, waits until all are synced, and returns the formatted objects. `timeout` limits the
/// whole call.
async fn output_of(
    target: TargetArguments,
    output: Output,
    timeout: Option<Duration>,
    line: &Line,
) -> Result<String, Failure> {
    let start = Instant::now();
    // Rounded to milliseconds, because a message may show it.
    let remaining = || timeout.map(|limit| Duration::from_millis(millis(limit.saturating_sub(start.elapsed()))));
    let timed_out = |what: &str| {
        let limit = timeout.unwrap_or_default();
        Failure::new(format!("cannot get {what}"), format!("the server did not answer within {limit:?}"))
    };
    let mut targets = Vec::new();
    for target in target.each_kind() {
        let resource = target.resource.clone();
        targets.push(limited(remaining(), target.open("get"), || timed_out(&resource)).await?);
    }
    targets.iter().try_for_each(TargetInformer::start)?;
    for followed in &mut targets {
        synced(followed, remaining(), line).await?;
    }
    let titles: Vec<&str> = targets.iter().map(|followed| followed.title.as_str()).collect();
    let result = limited(remaining(), written(&targets, output), || timed_out(&titles.join(" and "))).await;
    for followed in targets {
        followed.factory.stop().await;
    }
    result
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the result of `work`, or a failure if it takes longer than `limit`.
async fn limited<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, Failure>>,
    late: impl Fn() -> Failure,
) -> Result<T, Failure> {
    match limit {
        Some(limit) => timeout(limit, work).await.unwrap_or_else(|_| Err(late())),
        None => work.await,
    }
}

async fn synced(followed: &mut TargetInformer, timeout: Option<Duration>, line: &Line) -> Result<(), Failure> {
    let informer = followed.informer.clone();
    let wait = async {
        match timeout {
            Some(limit) => informer.synced().within(limit).await,
            None => informer.synced().await,
        }
    };
    let waited = {
        let bar = progress::Bar::of(followed, line);
        // The bar may end before `wait` does, and must not decide the outcome.
        let drawn = async {
            bar.draw().await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            waited = wait => waited,
            refusal = followed.refused(line) => return Err(refusal),
            never = drawn => never,
        }
    };
    line.clear();
    waited.map_err(|error| followed.cannot(error))
}

async fn written(all: &[TargetInformer], output: Output) -> Result<String, Failure> {
    let found: Vec<(&TargetInformer, Vec<Arc<Wire>>)> =
        all.iter().map(|followed| (followed, followed.objects())).collect();
    for (followed, objects) in &found {
        if objects.is_empty() && followed.name.is_some() {
            return Err(not_found(followed));
        }
    }
    let [(first, _), others @ ..] = found.as_slice() else { return Ok(String::new()) };
    let cannot_write = |error: &dyn std::fmt::Display| first.cannot(error.to_string());
    let whole = || {
        let single = others.is_empty() && first.name.is_some() && !first.many_namespaces();
        document(&found.iter().flat_map(|(_, objects)| objects.iter().cloned()).collect::<Vec<_>>(), single)
    };
    Ok(match output {
        Output::Json => pretty_json(&whole()).map_err(|error| cannot_write(&error))?,
        Output::Yaml => yaml(&whole()).map_err(|error| cannot_write(&error))?,
        Output::Name => found.iter().fold(String::new(), |mut text, (followed, objects)| {
            for object in objects {
                let _ = writeln!(text, "{}", full_name(&followed.offered, object));
            }
            text
        }),
        Output::Table | Output::Wide => {
            let mut tables = Vec::new();
            for (followed, objects) in &found {
                if objects.is_empty() {
                    say::remark(format!("no {}", followed.title));
                } else {
                    tables.push(table(followed, objects, output == Output::Wide, !others.is_empty()).await);
                }
            }
            tables.join("\n")
        }
    })
}

/// Returns the objects of one kind as a table. If there are several kinds, names contain the kind.
async fn table(followed: &TargetInformer, objects: &[Arc<Wire>], wide: bool, with_kinds: bool) -> String {
    let mut table = Table::of(followed, wide).await;
    if with_kinds {
        table = table.with_kinds(&followed.offered);
    }
    let rows: Vec<Vec<String>> = objects.iter().map(|object| table.row(object)).collect();
    let mut text = table.head() + "\n";
    for row in &rows {
        text.push_str(&table.line(row));
        text.push('\n');
    }
    text
}

fn not_found(followed: &TargetInformer) -> Failure {
    let (resource, name) = (followed.resource(), followed.name.as_deref().unwrap_or_default());
    let rest = followed.title.strip_prefix(&resource.to_string()).unwrap_or_default();
    let what = format!("{resource} {name:?} not found{rest}");
    let failure = Failure::plain(what);
    match resource.namespaced {
        false => failure.hint(format!("`informer get {resource}` lists all of them")),
        true => failure.hint(format!("`informer get {resource} -A` lists those of all namespaces")),
    }
}
