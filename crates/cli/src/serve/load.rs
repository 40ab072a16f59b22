//! `informer serve --load`: creates objects from files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kube_embedded_apiserver::{ApiServer, Resource};
use serde_json::Value;

use super::documents::{self, Document};
use crate::failure::Failure;

/// Extensions of files with objects.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// An object of a document.
struct Loaded {
    /// `web.yaml, document 2 (line 14): ConfigMap web/a`.
    place: String,
    object: Value,
    /// The uid in the file.
    uid: Option<String>,
}

/// Creates the objects of a file, or of all files of a directory in the order of their names, and returns their number.
///
/// CRDs and namespaces are created first, owners before the objects that they own.
pub(super) fn all(server: &ApiServer, path: &Path) -> Result<usize, Failure> {
    let mut objects = Vec::new();
    for file in files(path)? {
        for document in documents::of_file(&file)? {
            objects.extend(split(document)?);
        }
    }
    let count = objects.len();
    objects.sort_by_key(|loaded| order(&loaded.object));
    let mut failures = Vec::new();
    let mut uids = Uids::of(&objects);
    while !objects.is_empty() {
        // Objects that own each other in a circle are created in the order of the files.
        let ready = objects.iter().position(|loaded| uids.knows_owners(&loaded.object)).unwrap_or(0);
        let mut loaded = objects.remove(ready);
        uids.replace_owners(&mut loaded.object);
        match create(server, &loaded.object) {
            Ok(uid) => uids.created(loaded.uid.as_deref(), uid),
            Err(why) => {
                uids.lost(loaded.uid.as_deref());
                failures.push(format!("{}: {why}", loaded.place));
            }
        }
    }
    match failures.as_slice() {
        [] => Ok(count),
        [one] => Err(Failure::plain(format!("cannot load {one}"))),
        several => {
            let lines: Vec<String> = several.iter().map(|failure| format!("  {failure}")).collect();
            Err(Failure::plain(format!("cannot load {} of {count} objects\n{}", several.len(), lines.join("\n"))))
        }
    }
}

/// Returns the file, or the files of the directory by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |error| Failure::new(format!("cannot read {}", path.display()), error);
    if !fs::metadata(path).map_err(cannot)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()).map_err(cannot)?;
    let named = |file: &PathBuf| file.extension().is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known));
    let mut files: Vec<PathBuf> =
        entries.into_iter().map(|entry| entry.path()).filter(|file| named(file) && file.is_file()).collect();
    files.sort();
    if files.is_empty() {
        let failure = Failure::plain(format!("no files to load in {}", path.display()));
        return Err(failure.hint("files with objects end in .yaml, .yml or .json"));
    }
    Ok(files)
}

/// Returns the objects of a document: one object, or the items of a list.
fn split(document: Document) -> Result<Vec<Loaded>, Failure> {
    let place = document.place();
    let mut value = document.value;
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) && value["items"].is_array();
    let objects = match value.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) if is_list => std::mem::take(items),
        _ => vec![value],
    };
    objects.into_iter().map(|object| prepare(&place, object)).collect()
}

/// Checks that the value is an object, and removes the fields that the server sets.
fn prepare(place: &str, mut object: Value) -> Result<Loaded, Failure> {
    let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
    let Some((kind, _)) = kind.zip(object["apiVersion"].as_str()) else {
        return Err(Failure::plain(format!("{place} is not an object: it has no `kind` or no `apiVersion`")));
    };
    let name = match (object["metadata"]["namespace"].as_str(), name) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (_, name) => name.unwrap_or("without a name").to_owned(),
    };
    let place = format!("{place}: {kind} {name}");
    let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
    // The server sets these fields.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["resourceVersion", "uid", "selfLink", "managedFields"] {
            metadata.remove(member);
        }
    }
    Ok(Loaded { place, object, uid })
}

/// Returns the rank of an object in the order of creation.
fn order(object: &Value) -> u8 {
    match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    }
}

/// Creates an object, or replaces the object of the same name, and returns its uid.
fn create(server: &ApiServer, object: &Value) -> Result<String, String> {
    let resource = find(server, object)?;
    let namespace = resource.is_namespaced().then(|| object["metadata"]["namespace"].as_str().unwrap_or("default"));
    let created = match server.create(resource.id(), namespace, object.clone()) {
        Err(status) if status.reason == "AlreadyExists" => server.update(resource.id(), namespace, object.clone()),
        created => created,
    };
    let stored = created.map_err(|status| status.message)?;
    Ok(stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
}

fn find(server: &ApiServer, object: &Value) -> Result<std::sync::Arc<Resource>, String> {
    let (kind, api_version) = (object["kind"].as_str(), object["apiVersion"].as_str());
    let resources = server.resources();
    let is_it = |resource: &&std::sync::Arc<Resource>| {
        Some(resource.kind()) == kind && Some(resource.api_version().as_str()) == api_version
    };
    resources.iter().find(is_it).cloned().ok_or_else(|| {
        let (kind, api_version) = (kind.unwrap_or_default(), api_version.unwrap_or_default());
        let mut known: Vec<String> = resources
            .iter()
            .filter(|resource| resource.kind() == kind)
            .map(|resource| resource.api_version())
            .collect();
        known.sort();
        let known = match known.as_slice() {
            [] => "load its CustomResourceDefinition too".to_owned(),
            known => format!("the server knows it in {}", known.join(", ")),
        };
        format!("the server does not know {kind} of {api_version}; {known}")
    })
}

/// Translates uids in owner references from the file to those that the server gives.
struct Uids {
    /// Uids in the file of objects that are not created yet.
    awaited: BTreeSet<String>,
    /// The new uid for each uid in the file.
    new: BTreeMap<String, String>,
}

impl Uids {
    fn of(objects: &[Loaded]) -> Self {
        Self { awaited: objects.iter().filter_map(|loaded| loaded.uid.clone()).collect(), new: BTreeMap::new() }
    }

    fn knows_owners(&self, object: &Value) -> bool {
        let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        owners.iter().all(|owner| owner["uid"].as_str().is_none_or(|uid| !self.awaited.contains(uid)))
    }

    fn replace_owners(&self, object: &mut Value) {
        let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
        let Some(owners) = owners.and_then(Value::as_array_mut) else { return };
        // With an owner that does not exist, the garbage collector would delete the object at once.
        owners.retain_mut(|owner| {
            let new = owner["uid"].as_str().and_then(|uid| self.new.get(uid)).cloned();
            let found = new.is_some();
            if let Some(new) = new {
                owner["uid"] = new.into();
            }
            found
        });
    }

    fn created(&mut self, old: Option<&str>, new: String) {
        self.lost(old);
        if let Some(old) = old {
            self.new.insert(old.to_owned(), new);
        }
    }

    fn lost(&mut self, old: Option<&str>) {
        if let Some(old) = old {
            self.awaited.remove(old);
        }
    }
}
