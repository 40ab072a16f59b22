//! Documents of YAML and JSON files, with their positions.

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Spanned;

use crate::failure::Failure;

/// A document of a file, or an element of a document that is a list.
pub(super) struct Document {
    pub(super) file: PathBuf,
    /// The number among the documents that are not empty, from 1.
    pub(super) number: usize,
    /// The first line, from 1.
    pub(super) line: u64,
    pub(super) value: Value,
}

impl Document {
    /// Returns the position for messages: `web.yaml, document 2 (line 14)`.
    pub(super) fn place(&self) -> String {
        format!("{}, document {} (line {})", self.file.display(), self.number, self.line)
    }
}

/// All documents of a file. JSON is YAML too.
pub(super) fn of_file(file: &Path) -> Result<Vec<Document>, Failure> {
    let text = read(file)?;
    Ok(numbered(file, parse(file, &text)?))
}

/// Returns all elements of the documents that are lists, each with its own line, and all other documents.
pub(super) fn elements_of_file(file: &Path) -> Result<Vec<Document>, Failure> {
    let text = read(file)?;
    let documents: Vec<Spanned<Value>> = parse(file, &text)?;
    if documents.iter().all(|document| document.value.is_array()) {
        let lists: Vec<Vec<Spanned<Value>>> = parse(file, &text)?;
        return Ok(numbered(file, lists.into_iter().flatten().collect()));
    }
    Ok(numbered(file, documents))
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| Failure::new(format!("cannot read {}", file.display()), error))
}

fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<Vec<T>, Failure> {
    // `no` and `on` are strings, as in manifests of Kubernetes.
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| Failure::new(format!("cannot read {}", file.display()), Syntax(error)))
}

fn numbered(file: &Path, values: Vec<Spanned<Value>>) -> Vec<Document> {
    let values = values.into_iter().filter(|value| !value.value.is_null()).enumerate();
    values
        .map(|(at, Spanned { value, referenced, .. })| Document {
            file: file.to_owned(),
            number: at + 1,
            line: referenced.line(),
            value,
        })
        .collect()
}

/// Why a file is not YAML, in one line with the position.
#[derive(Debug)]
struct Syntax(serde_saphyr::Error);

impl std::fmt::Display for Syntax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = self.0.without_snippet();
        let text = error.to_string();
        match error.location() {
            Some(at) if !text.contains("line ") => write!(f, "line {}, column {}: {text}", at.line(), at.column()),
            _ => f.write_str(&text),
        }
    }
}

impl std::error::Error for Syntax {}
