//! The key of an object.

use std::borrow::Borrow;
use std::sync::Arc;

/// The key of an object in its collection: `namespace/name`, or `name` in cluster scope.
///
/// It is one joined string because kube-apiserver orders by this string: `a-b/x` comes before `a/x`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StoreKey(Arc<str>);

impl StoreKey {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) => Self(format!("{namespace}/{name}").into()),
            None => Self(name.into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    pub(crate) fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }
}

/// Returns the first key after those of a namespace: `0` is the character after `/`.
pub(crate) fn namespace_end(namespace: &str) -> String {
    format!("{namespace}0")
}

impl Borrow<str> for StoreKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_joined_strings() {
        assert!(StoreKey::new(Some("a-b"), "x") < StoreKey::new(Some("a"), "x"));
        assert_eq!(StoreKey::new(Some("a"), "x").namespace(), Some("a"));
        assert_eq!(StoreKey::new(None, "x").name(), "x");
    }
}
