//! Resources of an API server.

/// The groups with a dot in their name that kube-apiserver serves by itself. All other groups of the domain `k8s.io`
/// come with a CRD, such as `gateway.networking.k8s.io`, or with an aggregated API server, such as `metrics.k8s.io`.
#[cfg(feature = "kube")]
const BUILT_IN_GROUPS: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// A resource of an API server: the collection of all objects of one kind.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::StaticResource;
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
    /// False for objects in cluster scope. kube's `ApiResource` has no scope; it is converted with `true`.
    pub namespaced: bool,
}

impl ResourceType {
    /// Returns group and version as objects have them: `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    /// Returns true for Secrets, whose contents are never shown.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.plural == "secrets"
    }

    /// Returns true if kube-apiserver does not serve the group by itself: the CRD or the aggregated API server may be
    /// missing.
    #[cfg(feature = "kube")]
    pub(crate) fn is_custom(&self) -> bool {
        self.group.contains('.') && !BUILT_IN_GROUPS.contains(&self.group.as_str())
    }

    /// Returns the path of the resource, in one namespace or in all.
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

#[cfg(all(test, feature = "kube"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_the_k8s_io_domain_is_custom_unless_kube_apiserver_serves_it() {
        let is_custom = |group: &str| {
            let (group, version, kind, plural) = (group.to_owned(), "v1".to_owned(), "A".to_owned(), "as".to_owned());
            ResourceType { group, version, kind, plural, namespaced: true }.is_custom()
        };
        for built_in in ["", "apps", "networking.k8s.io", "rbac.authorization.k8s.io", "flowcontrol.apiserver.k8s.io"] {
            assert!(!is_custom(built_in), "{built_in}");
        }
        for custom in ["example.com", "gateway.networking.k8s.io", "cluster.x-k8s.io", "snapshot.storage.k8s.io"] {
            assert!(is_custom(custom), "{custom}");
        }
    }
}
