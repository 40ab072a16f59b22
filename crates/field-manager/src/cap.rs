//! Limits the number of update entries: the oldest are merged into one for each version.

use std::collections::BTreeMap;

use super::manager::{Entry, Identity, Managed, Operation};
use super::moment::Moment;
use super::set::FieldSet;

/// The maximum number of update entries of an object.
const MOST_UPDATERS: usize = 10;

/// The manager of the merged entries.
const BUCKET: &str = "ancient-changes";

/// Merges the oldest update entries until their number is within the limit.
pub(super) fn cap(managed: &mut Managed) {
    let updaters = oldest_first(managed);
    let mut left = updaters.len();
    let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
    let mut folded = Folded::default();
    for identity in updaters {
        if left <= MOST_UPDATERS {
            break;
        }
        let Some(entry) = managed.entries.get(&identity) else { continue };
        let Some(first) = first_of_version.get(&entry.api_version) else {
            first_of_version.insert(entry.api_version.clone(), identity);
            continue;
        };
        folded.fold(managed, first, &identity);
        left -= 1;
    }
    folded.finish(managed);
}

fn oldest_first(managed: &Managed) -> Vec<Identity> {
    let updaters = managed.entries.iter().filter(|(_, entry)| entry.operation == Operation::Update);
    let mut updaters: Vec<_> =
        updaters.map(|(identity, entry)| (entry.time.unwrap_or(Moment::UNKNOWN), identity.clone())).collect();
    updaters.sort();
    updaters.into_iter().map(|(_, identity)| identity).collect()
}

/// The fields merged into each bucket. They are united once at the end, because uniting them one by one is slow.
#[derive(Default)]
struct Folded {
    fields: BTreeMap<Identity, Vec<FieldSet>>,
}

impl Folded {
    /// Merges an entry into the bucket of its version. The oldest entry of the version becomes the bucket.
    fn fold(&mut self, managed: &mut Managed, first: &Identity, identity: &Identity) {
        let Some(entry) = managed.entries.get_mut(identity) else { return };
        let fields = std::mem::take(&mut entry.fields);
        let bucket = Entry { manager: BUCKET.into(), subresource: String::new(), ..entry.clone() };
        let bucket_identity = bucket.identity();
        let oldest = if managed.entries.contains_key(&bucket_identity) { &bucket_identity } else { first };
        let known = managed.entries.remove(oldest).map(|oldest| oldest.fields);
        self.fields.entry(bucket_identity.clone()).or_default().extend(known.into_iter().chain([fields]));
        managed.entries.insert(bucket_identity, bucket);
        // A bucket that is itself merged is lost, as in kube-apiserver.
        managed.entries.remove(identity);
        self.fields.remove(identity);
    }

    fn finish(self, managed: &mut Managed) {
        for (identity, fields) in self.fields {
            if let Some(bucket) = managed.entries.get_mut(&identity) {
                bucket.fields =
                    FieldSet::union_all(fields.into_iter().chain([std::mem::take(&mut bucket.fields)]).collect());
            }
        }
    }
}
