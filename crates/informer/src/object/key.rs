//! Keys of objects: namespace and name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::Object;

/// An owned key: `namespace/name`, or `name` in cluster scope.
///
/// Cloning is cheap. The difference from client-go: a key is a type, so it cannot be confused with other strings. An
/// object without a name has no key.
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

/// A borrowed [`ObjectKey`]. A lookup with it allocates nothing.
///
/// It is made from `(namespace, name)`, from `"namespace/name"`, from a bare name in cluster scope, or from a key.
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

/// Why a string is not a key, or why an object has no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The string has more than one slash.
    #[error("{0:?} is not a key: expected `namespace/name` or `name`")]
    TooManySlashes(String),
    /// The name is empty, or the namespace before the slash is empty.
    #[error("{0:?} is not a key: its name or namespace is empty")]
    Empty(String),
    /// The object has no `metadata.name`.
    #[error("object has no metadata.name")]
    NoName,
}

impl ObjectKey {
    /// Makes a key from its parts. An empty namespace means cluster scope.
    ///
    /// ```
    /// use kube_informer::ObjectKey;
    ///
    /// assert_eq!(ObjectKey::new("web", "a").as_str(), "web/a");
    /// assert_eq!(ObjectKey::new("", "node-1").namespace(), None);
    /// ```
    pub fn new(namespace: &str, name: &str) -> Self {
        KeyRef::new(namespace, name).into()
    }

    /// Returns the key of an object.
    ///
    /// # Errors
    ///
    /// [`KeyError::NoName`] if the object has no name.
    pub fn of<T: Object>(object: &T) -> Result<Self, KeyError> {
        let key = object.id().key;
        if key.name.is_empty() { Err(KeyError::NoName) } else { Ok(key.into()) }
    }

    /// Returns the namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// Returns the key as a string: `namespace/name` or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'a> KeyRef<'a> {
    /// Makes a key from its parts. An empty namespace means cluster scope.
    pub fn new(namespace: &'a str, name: &'a str) -> Self {
        Self { namespace, name }
    }

    /// Returns the namespace; `None` in cluster scope.
    pub fn namespace(&self) -> Option<&'a str> {
        Some(self.namespace).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the name.
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
        // This runs with every lookup, and `memchr` is the fastest way to find a byte.
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
        // This runs with every lookup: comparing in place is cheaper than splitting the string.
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
    fn keys_are_parsed_and_displayed() {
        check("name", Ok((None, "name")));
        check("space/name", Ok((Some("space"), "name")));
        check("a/b/c", Err(KeyError::TooManySlashes("a/b/c".into())));
        // client-go (K-2) parses the empty string as an empty key. Here a key without a name cannot be made.
        check("", Err(KeyError::Empty(String::new())));
        check("/name", Err(KeyError::Empty("/name".into())));
        check("space/", Err(KeyError::Empty("space/".into())));
    }

    #[test]
    fn an_empty_namespace_adds_no_leading_slash() {
        assert_eq!(ObjectKey::from(KeyRef::new("", "node")).as_str(), "node");
    }

    #[test]
    fn a_key_equals_only_its_own_parts() {
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
