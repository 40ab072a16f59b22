//! Collections of an API server.

/// The collection of an API server that holds objects of one kind.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::Kind;
///
/// let resource = Deployment::resource_type();
/// assert_eq!(resource.to_string(), "deployments.apps");
/// assert_eq!(resource.api_version(), "apps/v1");
/// assert!(resource.namespaced);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Pod`.
    pub kind: String,
    /// The name in paths, such as `pods`.
    pub plural: String,
    /// False for objects in cluster scope. kube's `ApiResource` does not say; true is assumed of it.
    pub namespaced: bool,
}

impl ResourceType {
    /// Group and version as objects name them: `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    /// True for the collection whose contents are never shown.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.plural == "secrets"
    }

    /// True if the group is one that people define, whose definition may be missing.
    #[cfg(feature = "kube")]
    pub(crate) fn is_custom(&self) -> bool {
        self.group.contains('.') && !self.group.ends_with(".k8s.io")
    }

    /// The path of the collection, in one namespace or in all.
    #[cfg(feature = "kube")]
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let Self { group, version, plural, .. } = self;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// `pods`, or `deployments.apps` outside the core group.
impl std::fmt::Display for ResourceType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}
