//! Field selectors: `metadata.name=x,status.phase!=Running`.

use crate::kinds::{Resource, UnknownField};
use crate::status::Status;
use crate::storage::object::StoredObject;

/// Comparisons that must all hold. An empty list matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldTerm>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    read: FieldRead,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldRead {
    Name,
    Namespace,
    /// An index in [`StoredObject::fields`].
    Field(usize),
}

impl FieldSelector {
    /// Parses a `fieldSelector` parameter for this resource.
    pub(crate) fn parse(text: &str, resource: &Resource) -> Result<Self, Status> {
        let mut terms = Vec::new();
        for term in split(text) {
            let (path, equal, value) = comparison(term)
                .ok_or_else(|| Status::bad_request(format!("invalid selector: '{text}'; can't understand '{term}'")))?;
            terms.push(FieldTerm { read: lookup(path, resource)?, value: unescape(value)?, equal });
        }
        Ok(Self(terms))
    }

    /// Adds a requirement for one name, as the deprecated watch paths do.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.0.push(FieldTerm { read: FieldRead::Name, value: name.to_owned(), equal: true });
    }

    /// Returns whether the selector matches everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &StoredObject) -> bool {
        self.0.iter().all(|term| {
            let value = match term.read {
                FieldRead::Name => object.key.name(),
                FieldRead::Namespace => object.key.namespace().unwrap_or_default(),
                FieldRead::Field(place) => object.fields.get(place).map_or("", |value| value),
            };
            (value == term.value) == term.equal
        })
    }

    /// Returns the single name that the selector requires, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iter().find(|term| term.read == FieldRead::Name && term.equal).map(|term| term.value.as_str())
    }
}

/// Splits at unescaped commas, and skips empty terms.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |character| {
        let splits = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        splits
    })
    .filter(|term| !term.is_empty())
}

/// Splits a term at its first operator.
fn comparison(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find(['=', '!'])?;
    let (path, rest) = term.split_at(at);
    [("!=", false), ("==", true), ("=", true)]
        .into_iter()
        .find_map(|(operator, equal)| rest.strip_prefix(operator).map(|value| (path, equal, value)))
}

fn unescape(value: &str) -> Result<String, Status> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let shown = other.map_or(String::new(), String::from);
                    return Err(Status::bad_request(format!(
                        "invalid field selector: invalid escape sequence: \\{shown}"
                    )));
                }
            },
            '=' => return Err(Status::bad_request("invalid field selector: unescaped character in value: =")),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

fn lookup(path: &str, resource: &Resource) -> Result<FieldRead, Status> {
    let rules = &resource.rules;
    // Some cluster-scoped kinds with their own labels have no `metadata.namespace`. All others read it as empty.
    let explicit = rules.unknown_field == UnknownField::Label;
    match path {
        "metadata.name" => return Ok(FieldRead::Name),
        "metadata.namespace" if resource.namespaced || !explicit => return Ok(FieldRead::Namespace),
        _ => {}
    }
    if let Some(place) = rules.fields.iter().position(|field| field.label == path) {
        return Ok(FieldRead::Field(place));
    }
    Err(Status::bad_request(match rules.unknown_field {
        UnknownField::Label => format!("field label not supported: {path}"),
        UnknownField::ForKind => format!("field label \"{path}\" not supported for {}", resource.kind),
        UnknownField::Known => {
            format!("\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;
    use crate::storage::key::StoreKey;
    use crate::storage::object::{Draft, WriteKind};
    use serde_json::json;

    fn check(selector: &str, expected: bool) {
        let catalog = Catalog::built_in();
        let pods = catalog.named("pods").unwrap();
        let object = json!({"metadata": {"name": "x", "namespace": "web"}, "status": {"phase": "Running"}});
        let stored =
            Draft::encode(pods, StoreKey::new(Some("web"), "x"), &object, WriteKind::Added, 1).at(1, WriteKind::Added);
        assert_eq!(FieldSelector::parse(selector, pods).unwrap().matches(&stored), expected, "{selector}");
    }

    #[test]
    fn selectors_compare_exactly() {
        check("", true);
        check("metadata.name=x", true);
        check("metadata.name==x,metadata.namespace=web", true);
        check("metadata.namespace!=web", false);
        check("status.phase!=Running", false);
        check("spec.nodeName=", true);
        check("spec.nodeName!=n1", true);
        check("spec.hostNetwork=false", true);
        check("metadata.name=x,metadata.name=y", false);
        check("status.podIP=a\\,b", false);
    }

    #[test]
    fn unknown_fields_are_refused_with_the_message_of_their_kind() {
        let catalog = Catalog::built_in();
        let message = |resource: &str, text: &str| {
            FieldSelector::parse(text, catalog.named(resource).unwrap()).unwrap_err().message
        };
        assert_eq!(message("pods", "spec.foo=1"), "field label not supported: spec.foo");
        assert_eq!(message("jobs", "spec.foo=1"), "field label \"spec.foo\" not supported for Job");
        assert_eq!(
            message("configmaps", "data.k=v"),
            "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        );
        assert_eq!(message("nodes", "metadata.namespace=x"), "field label not supported: metadata.namespace");
        assert_eq!(message("pods", "foo"), "invalid selector: 'foo'; can't understand 'foo'");
        assert_eq!(FieldSelector::parse("status.phase=a=b", catalog.named("pods").unwrap()).unwrap_err().code, 400);
    }
}
