//! `informer serve --faults`: what is to go wrong, from a file.

use std::path::Path;

use kube_embedded_apiserver::{Fault, Faults};

use super::documents::{self, Document};
use crate::failure::Failure;

/// Adds the faults of a file: a list of them, or one in each document, written as the admin address takes them. Gives their
/// number.
pub(super) fn add(faults: &Faults, file: &Path) -> Result<usize, Failure> {
    let read = documents::elements_of_file(file)?.iter().map(fault).collect::<Result<Vec<_>, _>>()?;
    // Only once all of them can be read.
    let count = read.len();
    read.into_iter().for_each(|fault| {
        faults.add(fault);
    });
    Ok(count)
}

fn fault(rule: &Document) -> Result<Fault, Failure> {
    let what = format!("cannot make a fault of number {} in {} (line {})", rule.number, rule.file.display(), rule.line);
    if !rule.value.is_object() {
        return Err(Failure::plain(format!("{what}: it is no object")).hint(FORM));
    }
    Fault::try_from(&rule.value).map_err(|error| Failure::new(what, error).hint(FORM))
}

const FORM: &str = "a fault is written as its action, its values and its conditions: \
    {action: status, code: 503, verb: list, resource: pods, nth: 2}";
