//! Checks members, elements and alternatives.

use serde_json::{Map, Value};

use super::cause::FieldError;
use super::correlate::Correlation;
use super::faults::{Matches, Run, name};
use super::golang;
use super::node::{Additional, Node};
use super::path::Path;

impl Run<'_> {
    pub(crate) fn members(
        &mut self,
        node: &Node,
        members: &Map<String, Value>,
        path: &Path<'_>,
        correlation: Option<Correlation<'_>>,
    ) -> Matches {
        self.count_of_members(node, members.len(), path);
        let mut matches = 0;
        match &node.additional {
            Additional::Allowed(false) => {
                for key in members.keys().filter(|key| !node.properties.contains_key(*key)) {
                    let text = format!("{}.{key} in body is a forbidden property", name(path));
                    let printed = golang::quote(key);
                    self.fault(path, text, |path, text| FieldError::invalid(path, &printed, text));
                }
            }
            Additional::Schema(inner) => {
                // Members of a map at the root are named with a leading dot.
                let around = if matches!(path, Path::Whole) { &Path::Text("") } else { path };
                for (key, member) in members.iter().filter(|(key, _)| !node.properties.contains_key(*key)) {
                    matches += self.member(inner, key, member, around, correlation);
                }
            }
            _ => {}
        }
        for (key, member) in members {
            if let Some(inner) = node.properties.get(key) {
                matches += self.member(inner, key, member, path, correlation);
            }
        }
        for key in node.checks.required.iter().filter(|key| !members.contains_key(*key)) {
            let text = format!("{}.{key} in body is required", name(path));
            self.fault(&path.child(key), text, |path, _| FieldError::required(path, ""));
        }
        matches
    }

    fn member(
        &mut self,
        node: &Node,
        key: &str,
        member: &Value,
        path: &Path<'_>,
        correlation: Option<Correlation<'_>>,
    ) -> Matches {
        // Conversion between versions changes these fields, so a change cannot be detected.
        let is_own_type = matches!(path, Path::Whole) && matches!(key, "kind" | "apiVersion");
        let inner = correlation.filter(|_| !is_own_type).and_then(|correlation| correlation.member(key));
        self.value(node, member, &path.child(key), inner)
    }

    fn count_of_members(&mut self, node: &Node, count: usize, path: &Path<'_>) {
        let size = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(least) = node.checks.min_properties.filter(|least| size < *least) {
            let text = format!("{} in body should have at least {least} properties", name(path));
            self.fault(path, text, |path, text| FieldError::invalid(path, &size.to_string(), text));
        }
        if let Some(most) = node.checks.max_properties.filter(|most| size > *most) {
            let text = format!("{} in body should have at most {most} properties", name(path));
            self.fault(path, text, |path, _| FieldError::too_many(path, count, most));
        }
    }

    pub(crate) fn items(
        &mut self,
        node: &Node,
        items: &[Value],
        path: &Path<'_>,
        correlation: Option<Correlation<'_>>,
    ) -> Matches {
        let mut matches = 1;
        if let Some(inner) = &node.items {
            let elements = correlation.map(Correlation::elements);
            for (index, item) in items.iter().enumerate() {
                let old = correlation.zip(elements.as_ref()).and_then(|(list, elements)| {
                    // The correlated list is this one, so its elements have the same indexes.
                    let item = list.new.get(index)?;
                    list.element(elements, item)
                });
                matches += self.value(inner, item, &path.index(index), old);
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.checks.min_items.filter(|least| size < *least) {
            let text = format!("{} in body should have at least {least} items", name(path));
            self.fault(path, text, |path, text| FieldError::invalid(path, &size.to_string(), text));
        }
        if let Some(most) = node.checks.max_items.filter(|most| size > *most) {
            let text = format!("{} in body should have at most {most} items", name(path));
            self.fault(path, text, |path, _| FieldError::too_many(path, items.len(), most));
        }
        matches
    }

    /// Checks alternatives such as `allOf`. They do not use old values.
    pub(crate) fn nested(&mut self, node: &Node, value: &Value, path: &Path<'_>) -> Matches {
        let checks = &node.checks;
        let mut matches = 1;
        if !checks.any_of.is_empty() {
            matches += self.any_of(&checks.any_of, value, path);
        }
        if !checks.one_of.is_empty() {
            matches += self.one_of(&checks.one_of, value, path);
        }
        if !checks.all_of.is_empty() {
            matches += self.all_of(&checks.all_of, value, path);
        }
        if let Some(not) = &checks.not
            && self.alternative(not, value, path).faults.is_empty()
        {
            self.general_fault(format!("{} must not validate the schema (not)", golang::quote(&name(path))));
        }
        matches
    }

    /// Checks a value against one alternative, without reporting errors yet.
    fn alternative(&mut self, node: &Node, value: &Value, path: &Path<'_>) -> Alternative {
        let kept = std::mem::take(&mut self.faults);
        let matches = self.value(node, value, path, None);
        Alternative { faults: std::mem::replace(&mut self.faults, kept), matches }
    }

    fn any_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Matches {
        let mut best: Option<Alternative> = None;
        for node in nodes {
            let alternative = self.alternative(node, value, path);
            if alternative.faults.is_empty() {
                return alternative.matches;
            }
            if best.as_ref().is_none_or(|best| alternative.matches > best.matches) {
                best = Some(alternative);
            }
        }
        let quoted = golang::quote(&name(path));
        self.general_fault(format!("{quoted} must validate at least one schema (anyOf)"));
        self.keep(best)
    }

    fn one_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Matches {
        let mut best: Option<Alternative> = None;
        let mut valid: Vec<Matches> = Vec::new();
        for node in nodes {
            let alternative = self.alternative(node, value, path);
            if alternative.faults.is_empty() {
                best = None;
                valid.push(alternative.matches);
            } else if valid.is_empty() && best.as_ref().is_none_or(|best| alternative.matches > best.matches) {
                best = Some(alternative);
            }
        }
        if let [only] = valid[..] {
            return only;
        }
        let found = match valid.len() {
            0 => "Found none valid".to_owned(),
            count => format!("Found {count} valid alternatives"),
        };
        let quoted = golang::quote(&name(path));
        self.general_fault(format!("{quoted} must validate one and only one schema (oneOf). {found}"));
        self.keep(best)
    }

    fn all_of(&mut self, nodes: &[Node], value: &Value, path: &Path<'_>) -> Matches {
        let mut matches = 0;
        let mut valid = 0;
        for node in nodes {
            let before = self.faults.len();
            matches += self.value(node, value, path, None);
            valid += usize::from(self.faults.len() == before);
        }
        if valid != nodes.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let quoted = golang::quote(&name(path));
            self.general_fault(format!("{quoted} must validate all the schemas (allOf){none}"));
        }
        matches
    }

    fn keep(&mut self, alternative: Option<Alternative>) -> Matches {
        let Some(mut alternative) = alternative else {
            return 0;
        };
        self.faults.append(&mut alternative.faults);
        alternative.matches
    }
}

struct Alternative {
    faults: Vec<super::faults::Violation>,
    matches: Matches,
}
