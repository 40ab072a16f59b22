//! Namespace and name: how objects are found.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Object;

/// `namespace/name`, or `name` in cluster scope, as an owned value.
///
/// Cloning is cheap. What differs from client-go: it is a type, not a string, so it cannot be mixed up with other
/// strings, and an object without a name has none.
///
/// ```
/// use kube_informer::ObjectKey;
///
/// let key: ObjectKey = "web/frontend".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("web"), "frontend"));
/// assert_eq!(key.to_string(), "web/frontend");
/// assert!("a/b/c".parse::<ObjectKey>().is_err());
/// # Ok::<(), kube_informer::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Arc<str>);

/// [`ObjectKey`], borrowed: enough to ask, with nothing allocated.
///
/// Made from `(namespace, name)`, from `"namespace/name"`, from a bare name in cluster scope, or from a key.
///
/// ```
/// use kube_informer::{KeyRef, ObjectKey};
///
/// let key = KeyRef::from("web/a");
/// assert_eq!(key, KeyRef::from(("web", "a")));
/// assert_eq!((key.namespace(), key.name()), (Some("web"), "a"));
/// assert_eq!(KeyRef::new("", "node-1"), KeyRef::from("node-1"), "cluster scope");
/// assert_eq!(ObjectKey::from(key).as_str(), "web/a");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyRef<'a> {
    namespace: &'a str,
    name: &'a str,
}

/// Why a text is no key, or an object has none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A key has at most one slash.
    #[error("{0:?} is not a key: expected `namespace/name` or `name`")]
    TooManySlashes(String),
    /// A key has a name, and a namespace if there is a slash.
    #[error("{0:?} is not a key: its name or namespace is empty")]
    Empty(String),
    /// The object's metadata holds no name.
    #[error("object has no metadata.name")]
    NoName,
}

impl ObjectKey {
    /// The key of an object.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoName`] if the object has no name.
    pub fn of<T: Object>(object: &T) -> Result<Self, KeyError> {
        let key = object.id().key;
        if key.name.is_empty() { Err(KeyError::NoName) } else { Ok(key.into()) }
    }

    /// The namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The key as text: `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> KeyRef<'a> {
    /// A key from its parts; an empty namespace means cluster scope.
    pub fn new(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace, name }
    }

    /// The namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&'a str> {
        Some(self.namespace).filter(|namespace| !namespace.is_empty())
    }

    /// The name.
    pub fn name(&self) -> &'a str {
        self.name
    }
}

impl<'a> From<(&'a str, &'a str)> for KeyRef<'a> {
    fn from((namespace, name): (&'a str, &'a str)) -> Self {
        Self { namespace, name }
    }
}

impl<'a> From<&'a str> for KeyRef<'a> {
    fn from(text: &'a str) -> Self {
        // Asked for with every lookup: the quickest way to find a byte.
        match memchr::memchr(b'/', text.as_bytes()) {
            Some(slash) => Self { namespace: &text[..slash], name: &text[slash + 1..] },
            None => Self { namespace: "", name: text },
        }
    }
}

impl<'a> From<&'a String> for KeyRef<'a> {
    fn from(text: &'a String) -> Self {
        Self::from(text.as_str())
    }
}

impl<'a> From<&'a ObjectKey> for KeyRef<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        Self::from(&*key.0)
    }
}

impl From<KeyRef<'_>> for ObjectKey {
    fn from(key: KeyRef<'_>) -> Self {
        if key.namespace.is_empty() { Self(key.name.into()) } else { Self(key.to_string().into()) }
    }
}

impl FromStr for ObjectKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (namespace, name) = match text.split_once('/') {
            None => (None, text),
            Some((_, rest)) if rest.contains('/') => return Err(KeyError::TooManySlashes(text.to_owned())),
            Some((namespace, name)) => (Some(namespace), name),
        };
        if name.is_empty() || namespace == Some("") {
            return Err(KeyError::Empty(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for KeyRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            "" => f.write_str(self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<KeyRef<'_>> for ObjectKey {
    fn eq(&self, other: &KeyRef<'_>) -> bool {
        // With each read of the cache: the text is compared where it stands, and not taken apart.
        let KeyRef { namespace, name } = other;
        match self.as_str().strip_suffix(name) {
            Some("") => namespace.is_empty(),
            Some(rest) => rest.strip_suffix('/') == Some(namespace) && !namespace.is_empty(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(Option<&str>, &str), KeyError>) {
        let parsed = text.parse::<ObjectKey>();
        let parts = parsed.as_ref().map(|key| (key.namespace(), key.name()));
        assert_eq!(parts, expected.as_ref().map(|parts| *parts), "{text:?}");
        if let Ok(key) = &parsed {
            assert_eq!(key.to_string(), text);
            assert_eq!(ObjectKey::from(KeyRef::from(key)), *key);
        }
    }

    #[test]
    fn keys_are_read_and_written_as_text() {
        check("name", Ok((None, "name")));
        check("space/name", Ok((Some("space"), "name")));
        check("a/b/c", Err(KeyError::TooManySlashes("a/b/c".into())));
        // K-2 reads the empty text as an empty key; here a key that names nothing cannot be made.
        check("", Err(KeyError::Empty(String::new())));
        check("/name", Err(KeyError::Empty("/name".into())));
        check("space/", Err(KeyError::Empty("space/".into())));
    }

    #[test]
    fn an_empty_namespace_leaves_no_leading_slash() {
        assert_eq!(ObjectKey::from(KeyRef::new("", "node")).as_str(), "node");
    }

    #[test]
    fn a_key_equals_its_parts_and_nothing_else() {
        let equal =
            |key: &str, namespace: &str, name: &str| key.parse::<ObjectKey>().unwrap() == KeyRef::new(namespace, name);
        assert!(equal("web/a", "web", "a") && equal("node", "", "node"));
        for (key, namespace, name) in
            [("web/a", "", "a"), ("web/a", "we", "a"), ("web/a", "web", ""), ("node", "n", "ode"), ("a/ab", "a", "b")]
        {
            assert_eq!(
                equal(key, namespace, name),
                KeyRef::from(key) == KeyRef::new(namespace, name),
                "{key} {namespace} {name}"
            );
        }
    }
}
