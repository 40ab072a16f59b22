//! `informer serve --faults`: reads faults from a file.

use std::path::Path;

use kube_embedded_apiserver::{Fault, Faults};

use super::documents::{self, Document};
use crate::failure::Failure;

/// Adds the faults of a file, and returns their number. A file has a list of faults, or one fault in each document, in
/// the format of the admin address.
pub(super) fn add(faults: &Faults, file: &Path) -> Result<usize, Failure> {
    let read = documents::elements_of_file(file)?.iter().map(fault).collect::<Result<Vec<_>, _>>()?;
    // Faults are added only if all of them can be read.
    let count = read.len();
    read.into_iter().for_each(|fault| {
        faults.add(fault);
    });
    Ok(count)
}

fn fault(rule: &Document) -> Result<Fault, Failure> {
    let what = format!("cannot read fault {} in {} (line {})", rule.number, rule.file.display(), rule.line);
    if !rule.value.is_object() {
        return Err(Failure::plain(format!("{what}: it is not an object")).hint(FORM));
    }
    Fault::try_from(&rule.value).map_err(|error| Failure::new(what, error).hint(FORM))
}

const FORM: &str = "write a fault as an action with its values and conditions: \
    {action: status, code: 503, verb: list, resource: pods, nth: 2}";
