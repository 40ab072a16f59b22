//! The selection: which objects an informer requests.

use crate::object::{Object, Selector, SelectorError};
use crate::representation::ManagedFields;

/// Parameters that lists and watches set.
const OURS: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// Selects the objects of a resource: by namespaces, labels and fields. Requests with the same selection share an
/// informer.
///
/// A part that is not set comes from the factory's selection, and otherwise selects everything.
///
/// ```
/// use kube_informer::Selection;
///
/// let selection = Selection::new().namespace("web")?.labels("app in (shop, cart)")?.fields("metadata.name!=old")?;
/// assert!(Selection::new().labels("app in shop").is_err(), "an error here, not from the API server");
/// assert!(Selection::new().namespace("Not A Name").is_err());
/// # Ok::<(), kube_informer::SelectionError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Sorted; empty for all.
    pub(crate) namespaces: Option<Vec<String>>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) managed_fields: Option<ManagedFields>,
}

/// Why a selection is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The string is not a valid name of a namespace.
    #[error("{0:?} is not the name of a namespace: small letters, digits and `-`, at most 63 of them")]
    Namespace(String),
    /// The label selector is invalid.
    #[error(transparent)]
    Labels(#[from] SelectorError),
    /// The field selector is invalid.
    #[error("{0:?} is not a field selector: expected terms such as `spec.nodeName=worker-7`, with commas in between")]
    Fields(String),
    /// The query parameter is one that every list or watch sets.
    #[error("query parameter {0:?} is set by each request itself")]
    Query(String),
    /// A source follows one namespace or all. For several namespaces use a factory, or several sources.
    #[error("one source follows one namespace or all of them, not {0}")]
    ManyNamespaces(usize),
}

impl Selection {
    /// Makes a selection that sets nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one namespace; `""` means all namespaces.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Namespace`] if the name is not a valid name of a namespace.
    pub fn namespace(mut self, namespace: impl AsRef<str>) -> Result<Self, SelectionError> {
        let (namespace, namespaces) = (namespace.as_ref(), self.namespaces.get_or_insert_default());
        if namespace.is_empty() {
            namespaces.clear();
        } else if !is_namespace(namespace) {
            return Err(SelectionError::Namespace(namespace.to_owned()));
        } else if let Err(at) = namespaces.binary_search_by(|known| known.as_str().cmp(namespace)) {
            namespaces.insert(at, namespace.to_owned());
        }
        Ok(self)
    }

    /// Adds several namespaces. No namespace means all of them.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Namespace`] if one of the names is not a valid name of a namespace.
    pub fn namespaces<S: AsRef<str>>(self, namespaces: impl IntoIterator<Item = S>) -> Result<Self, SelectionError> {
        let all = Self { namespaces: Some(self.namespaces.unwrap_or_default()), ..self };
        namespaces.into_iter().try_fold(all, |selection, namespace| selection.namespace(namespace))
    }

    /// Selects objects by a label selector.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Labels`] if the selector is invalid.
    pub fn labels(mut self, selector: impl AsRef<str>) -> Result<Self, SelectionError> {
        let text = selector.as_ref();
        self.labels = text.parse::<Selector>().map(|_| Some(text.to_owned()))?;
        Ok(self)
    }

    /// Selects objects by a field selector.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Fields`] if the selector is invalid.
    pub fn fields(mut self, selector: impl AsRef<str>) -> Result<Self, SelectionError> {
        let text = selector.as_ref();
        if !is_field_selector(text) {
            return Err(SelectionError::Fields(text.to_owned()));
        }
        self.fields = Some(text.to_owned());
        Ok(self)
    }

    /// Sends one more query parameter with each request.
    ///
    /// # Errors
    ///
    /// [`SelectionError::Query`] if each request sets that parameter itself.
    pub fn query(mut self, name: impl Into<String>, value: impl Into<String>) -> Result<Self, SelectionError> {
        let name = name.into();
        if OURS.contains(&name.as_str()) {
            return Err(SelectionError::Query(name));
        }
        self.query.push((name, value.into()));
        Ok(self)
    }

    /// Sets whether managed fields are decoded. The default is no.
    #[must_use]
    pub fn managed_fields(mut self, managed_fields: ManagedFields) -> Self {
        self.managed_fields = Some(managed_fields);
        self
    }

    /// Returns this selection, with the parts of `other` that this one does not set.
    #[cfg(feature = "kube")]
    pub(crate) fn or(self, other: &Self) -> Self {
        Self {
            namespaces: self.namespaces.or_else(|| other.namespaces.clone()),
            labels: self.labels.or_else(|| other.labels.clone()),
            fields: self.fields.or_else(|| other.fields.clone()),
            query: if self.query.is_empty() { other.query.clone() } else { self.query },
            managed_fields: self.managed_fields.or(other.managed_fields),
        }
    }

    /// Returns why this selection leaves an object out. `None` if the object matches, or if only the API server can
    /// tell: field selectors other than `metadata.name` and `metadata.namespace` are not evaluated here.
    pub(crate) fn excludes(&self, object: &dyn Object) -> Option<String> {
        let key = object.id().key;
        let namespaces = self.namespaces.as_deref().unwrap_or_default();
        if let Some(namespace) = key.namespace()
            && !namespaces.is_empty()
            && !namespaces.iter().any(|selected| selected == namespace)
        {
            return Some(format!("namespace {namespace} is not one of {}", namespaces.join(", ")));
        }
        if let Some(labels) = &self.labels
            && labels.parse::<Selector>().is_ok_and(|selector| !selector.matches(object))
        {
            return Some(format!("its labels do not match {labels:?}"));
        }
        let fields = self.fields.as_deref().unwrap_or_default();
        let excluded = |term: &&str| {
            let Some((field, value)) = term.split_once('=') else { return false };
            let (field, equal) = match field.strip_suffix('!') {
                Some(field) => (field.trim(), false),
                None => (field.trim(), true),
            };
            let actual = match field {
                "metadata.name" => key.name(),
                "metadata.namespace" => key.namespace().unwrap_or_default(),
                _ => return false,
            };
            (actual == value.trim_start_matches('=').trim()) != equal
        };
        let excluded = terms(fields).into_iter().find(excluded);
        excluded.map(|term| format!("its fields do not match {term:?}"))
    }

    /// Returns the single namespace of the selection; `None` for all.
    #[cfg(feature = "kube")]
    pub(crate) fn one_namespace(&self) -> Result<Option<&str>, SelectionError> {
        match self.namespaces.as_deref() {
            None | Some([]) => Ok(None),
            Some([one]) => Ok(Some(one)),
            Some(many) => Err(SelectionError::ManyNamespaces(many.len())),
        }
    }
}

/// Returns true for a valid name of a namespace.
pub(crate) fn is_namespace(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Returns true for terms with `=`, `==` or `!=`, each after a field name and before any value.
fn is_field_selector(text: &str) -> bool {
    let is_term = |term: &str| {
        let field = term.split_once('=').map(|(field, _)| field.strip_suffix('!').unwrap_or(field).trim());
        field.is_some_and(|field| !field.is_empty() && !field.contains(char::is_whitespace))
    };
    text.trim().is_empty() || terms(text).into_iter().all(|term| term.is_empty() || is_term(term))
}

/// Splits a field selector into its terms.
fn terms(text: &str) -> Vec<&str> {
    // A character after a backslash is part of the value.
    let mut escaped = false;
    let ends_term = |character: char| {
        let ends = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    };
    text.split(ends_term).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::representation::Identity;

    #[test]
    fn excludes_recognises_objects_that_the_selection_leaves_out() {
        let excluded = |selection: Result<Selection, SelectionError>, key: &str| {
            let object = Identity { key: key.parse().unwrap(), uid: String::new(), version: String::new() };
            selection.unwrap().excludes(&object).is_some()
        };
        assert!(excluded(Selection::new().namespace("web"), "shop/a"));
        assert!(!excluded(Selection::new().namespace("web"), "web/a"));
        assert!(!excluded(Selection::new().namespace("web"), "a"), "in cluster scope there are no namespaces");
        assert!(excluded(Selection::new().labels("app=x"), "web/a"));
        assert!(!excluded(Selection::new().labels("app!=x"), "web/a"));
        assert!(excluded(Selection::new().fields("metadata.name=b"), "web/a"));
        assert!(excluded(Selection::new().fields("spec.nodeName=x,metadata.name!=a"), "web/a"));
        assert!(!excluded(Selection::new().fields("metadata.name==a,metadata.namespace=web"), "web/a"));
        assert!(!excluded(Selection::new().fields("spec.nodeName=x"), "web/a"), "only the API server can tell");
    }

    #[test]
    fn the_empty_namespace_means_all_of_them() {
        let all = Selection::new().namespace("").unwrap();
        assert_eq!(all.namespaces, Some(vec![]));
        assert_eq!(
            Selection::new().namespaces(["b", "a", "b"]).unwrap().namespaces,
            Some(vec!["a".into(), "b".into()])
        );
        assert_eq!(Selection::new().namespaces([""; 0]).unwrap().namespaces, Some(vec![]));
    }

    #[test]
    fn invalid_names_of_namespaces_are_refused() {
        for name in ["Web", "a/b", "-a", "a-", "a b", "..", &"x".repeat(64)] {
            assert_eq!(Selection::new().namespace(name), Err(SelectionError::Namespace(name.to_owned())));
        }
    }

    #[test]
    fn invalid_selectors_are_refused_when_they_are_set() {
        assert!(matches!(Selection::new().labels("app in web"), Err(SelectionError::Labels(_))));
        for text in ["a", "=b", "a=b,c", "a b=c"] {
            assert!(matches!(Selection::new().fields(text), Err(SelectionError::Fields(_))), "{text}");
        }
        for text in ["", "a=b", "a==b,c!=", "metadata.name=a\\,b", "a=b=c"] {
            assert!(Selection::new().fields(text).is_ok(), "{text}");
        }
        assert_eq!(Selection::new().query("watch", "1"), Err(SelectionError::Query("watch".to_owned())));
    }
}
