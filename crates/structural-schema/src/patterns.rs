//! The patterns of a schema, compiled in place.

use regex::Regex;
use std::collections::BTreeMap;

use super::cause::FieldError;
use super::node::SchemaNode;
use super::path::ValuePath;
use super::pattern::Translated;
use super::{golang, limits};

/// Compiles every pattern of a schema in place. Invalid patterns are left for the check of the schema.
///
/// # Errors
///
/// The patterns together are too large.
pub(crate) fn compile_all(root: &mut SchemaNode, path: &ValuePath<'_>) -> Result<(), Vec<FieldError>> {
    let mut compiler = Compiler { done: BTreeMap::new(), parts: 0, refused: None };
    compiler.compile_inside(root);
    let Some((pattern, why)) = compiler.refused else {
        return Ok(());
    };
    Err(vec![FieldError::invalid(path, &golang::quote(&pattern), &why)])
}

struct Compiler {
    done: BTreeMap<String, Option<Regex>>,
    parts: usize,
    refused: Option<(String, String)>,
}

impl Compiler {
    fn compile_inside(&mut self, node: &mut SchemaNode) {
        if !node.checks.pattern.is_empty() && self.refused.is_none() {
            node.checks.regex = self.compiled(&node.checks.pattern);
        }
        for inner in node.inner_mut() {
            self.compile_inside(inner);
        }
    }

    fn compiled(&mut self, pattern: &str) -> Option<Regex> {
        if let Some(done) = self.done.get(pattern) {
            return done.clone();
        }
        let translated = Translated::of(pattern);
        self.parts = self.parts.saturating_add(translated.parts);
        let compiled = if self.parts > limits::PATTERN_PARTS {
            let why = "the patterns of this schema are too large";
            self.refused.get_or_insert_with(|| (pattern.to_owned(), why.to_owned()));
            None
        } else {
            translated.build().ok()
        };
        self.done.insert(pattern.to_owned(), compiled.clone());
        compiled
    }
}
