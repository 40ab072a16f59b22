//! Checks members, elements and alternatives.

use serde_json::{Map, Value};

use super::cause::FieldError;
use super::correlate::Correlation;
use super::faults::{ValidationRun, name};
use super::golang;
use super::node::{Additional, SchemaNode};
use super::path::ValuePath;

impl ValidationRun<'_> {
    pub(crate) fn members(
        &mut self,
        node: &SchemaNode,
        members: &Map<String, Value>,
        path: &ValuePath<'_>,
        correlation: Option<Correlation<'_>>,
    ) {
        self.count_of_members(node, members.len(), path);
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
                let around = if matches!(path, ValuePath::Whole) { &ValuePath::Text("") } else { path };
                for (key, member) in members.iter().filter(|(key, _)| !node.properties.contains_key(*key)) {
                    self.member(inner, key, member, around, correlation);
                }
            }
            _ => {}
        }
        for (key, member) in members {
            if let Some(inner) = node.properties.get(key) {
                self.member(inner, key, member, path, correlation);
            }
        }
        for key in node.checks.required.iter().filter(|key| !members.contains_key(*key)) {
            let text = format!("{}.{key} in body is required", name(path));
            self.fault(&path.child(key), text, |path, _| FieldError::required(path, ""));
        }
    }

    fn member(
        &mut self,
        node: &SchemaNode,
        key: &str,
        member: &Value,
        path: &ValuePath<'_>,
        correlation: Option<Correlation<'_>>,
    ) {
        // Conversion between versions changes these fields, so a change cannot be detected.
        let is_own_type = matches!(path, ValuePath::Whole) && matches!(key, "kind" | "apiVersion");
        let inner = correlation.filter(|_| !is_own_type).and_then(|correlation| correlation.member(key));
        self.value(node, member, &path.child(key), inner);
    }

    fn count_of_members(&mut self, node: &SchemaNode, count: usize, path: &ValuePath<'_>) {
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
        node: &SchemaNode,
        items: &[Value],
        path: &ValuePath<'_>,
        correlation: Option<Correlation<'_>>,
    ) {
        if let Some(inner) = &node.items {
            let elements = correlation.map(Correlation::elements);
            for (index, item) in items.iter().enumerate() {
                let old = correlation.zip(elements.as_ref()).and_then(|(list, elements)| {
                    // The correlated list is this one, so its elements have the same indexes.
                    let item = list.new.get(index)?;
                    list.element(elements, item)
                });
                self.value(inner, item, &path.index(index), old);
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
    }

    /// Checks alternatives such as `allOf`. They do not use old values.
    pub(crate) fn nested(&mut self, node: &SchemaNode, value: &Value, path: &ValuePath<'_>) {
        let checks = &node.checks;
        let named = name(path);
        let mut fits = |nodes: &[SchemaNode]| nodes.iter().filter(|node| self.fits(node, value, path)).count();
        let (any, one) = (fits(&checks.any_of), fits(&checks.one_of));
        let not = checks.not.as_deref().is_some_and(|not| self.fits(not, value, path));
        if !checks.any_of.is_empty() && any == 0 {
            self.general_fault(format!("{named:?} must validate at least one schema (anyOf)"));
        }
        if !checks.one_of.is_empty() && one != 1 {
            self.general_fault(format!("{named:?} must validate one and only one schema (oneOf), and not {one}"));
        }
        let before = self.faults.len();
        checks.all_of.iter().for_each(|node| self.value(node, value, path, None));
        if self.faults.len() > before {
            self.general_fault(format!("{named:?} must validate all the schemas (allOf)"));
        }
        if not {
            self.general_fault(format!("{named:?} must not validate the schema (not)"));
        }
    }

    /// Returns whether a value is valid for an alternative. Its errors are not reported.
    fn fits(&mut self, node: &SchemaNode, value: &Value, path: &ValuePath<'_>) -> bool {
        let before = self.faults.len();
        self.value(node, value, path, None);
        let fits = self.faults.len() == before;
        self.faults.truncate(before);
        fits
    }
}
