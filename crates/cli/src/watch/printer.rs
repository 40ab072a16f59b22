//! Writes events.

use std::io::{self, Write as _};
use std::sync::Arc;

use kube_informer::Event;
use serde_json::json;

use crate::discover::ServedResource;
use crate::object::Wire;
use crate::output::{Output, Paint, Table, changes, full_name, yaml};
use crate::path::Lookup;
use crate::target::TargetInformer;

/// The verb, the state before an update, and the last state.
type PrintedEvent<'e> = (Verb, Option<&'e Arc<Wire>>, &'e Arc<Wire>);

/// Writes events to stdout.
pub(super) struct Printer {
    output: Output,
    offered: ServedResource,
    /// Only objects that match are printed.
    index: Option<Lookup>,
    /// `Some` only for tables.
    table: Option<Table>,
    headed: bool,
    diff: bool,
    paint: Paint,
}

/// The type of a printed event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Added,
    Modified,
    Deleted,
}

impl Verb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Printer {
    pub(super) async fn new(followed: &TargetInformer, output: Output, diff: bool) -> Self {
        let table = match output {
            Output::Table | Output::Wide => Some(Table::of(followed, output == Output::Wide).await),
            _ => None,
        };
        Self {
            output,
            offered: followed.offered.clone(),
            index: followed.index.as_ref().map(|(lookup, _)| lookup.clone()),
            table,
            headed: false,
            diff,
            paint: Paint::of_stdout(),
        }
    }

    /// Writes an event and flushes it.
    pub(super) fn print(&mut self, event: &Event<Wire>) -> io::Result<()> {
        let Some((verb, old, object)) = self.matching_change(event) else { return Ok(()) };
        let mut text = match self.output {
            Output::Json => {
                // Formatted by hand, so that the type comes first.
                format!(r#"{{"type":"{}","object":{}}}"#, verb.as_str(), serde_json::to_string(&object.0)?) + "\n"
            }
            Output::Yaml => {
                let event = json!({"type": verb.as_str(), "object": object.0});
                format!("---\n{}", yaml(&event).map_err(io::Error::other)?)
            }
            Output::Name => format!("{} {}\n", self.painted(verb, ""), full_name(&self.offered, object)),
            Output::Table | Output::Wide => self.line(verb, object),
        };
        if let Some(old) = old.filter(|_| self.diff) {
            for change in changes(&self.offered.resource, &old.0, &object.0, self.paint) {
                text.push_str(&format!("  {change}\n"));
            }
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Returns how the event changes the set of matching objects. An update may add an object to the set, or remove one.
    fn matching_change<'e>(&self, event: &'e Event<Wire>) -> Option<PrintedEvent<'e>> {
        let matches = |object: &Wire| self.index.as_ref().is_none_or(|lookup| lookup.matches(&object.0));
        match event {
            Event::Added { object, .. } => matches(object).then_some((Verb::Added, None, object)),
            Event::Updated { old, new } => match (matches(old), matches(new)) {
                (true, true) => Some((Verb::Modified, Some(old), new)),
                (false, true) => Some((Verb::Added, None, new)),
                (true, false) => Some((Verb::Deleted, None, new)),
                (false, false) => None,
            },
            Event::Deleted(gone) => matches(gone.object()).then_some((Verb::Deleted, None, gone.object())),
            Event::Resynced(_) => None,
        }
    }

    fn line(&mut self, verb: Verb, object: &Wire) -> String {
        let Some(table) = &mut self.table else { return String::new() };
        let row = table.row(object);
        let (head, line) = (table.head(), table.line(&row));
        let head = if self.headed { String::new() } else { format!("{:<8}   {head}\n", "EVENT") };
        self.headed = true;
        let pad = " ".repeat("MODIFIED".len() - verb.as_str().len());
        format!("{head}{}   {line}\n", self.painted(verb, &pad))
    }

    fn painted(&self, verb: Verb, pad: &str) -> String {
        let word = verb.as_str();
        let painted = match verb {
            Verb::Added => self.paint.green(word),
            Verb::Modified => self.paint.yellow(word),
            Verb::Deleted => self.paint.red(word),
        };
        painted + pad
    }
}
