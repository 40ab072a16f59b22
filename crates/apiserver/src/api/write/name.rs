//! Checks the names of objects.

use kube_structural_schema::identifier::{is_dns_label, is_dns_subdomain};

use crate::kinds::Resource;
use crate::status::{Status, StatusCause};

/// Refuses a name that the kind does not allow.
pub(super) fn check_name(resource: &Resource, name: &str) -> Result<(), Status> {
    let refuse = |cause| Err(Status::invalid(&resource.group, &resource.kind, name, vec![cause]));
    if name.is_empty() {
        return refuse(StatusCause::required("metadata.name", "name or generateName is required"));
    }
    let wrong = match resource.id.as_str() {
        // These names may contain colons and capital letters, as in `system:node`.
        id if id.ends_with(".rbac.authorization.k8s.io") => path_segment(name),
        "namespaces" | "services" => label(name),
        _ => subdomain(name),
    };
    match wrong {
        Some(why) => refuse(StatusCause::invalid("metadata.name", format!("{name:?}: {why}"))),
        None => Ok(()),
    }
}

fn path_segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ => name.chars().find(|character| "/%".contains(*character)).map(|found| format!("may not contain '{found}'")),
    }
}

fn label(name: &str) -> Option<String> {
    let fine = name.len() <= 63 && is_dns_label(name);
    (!fine).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
            .into()
    })
}

/// Returns the error of a name that is not a DNS subdomain, which most kinds require.
pub(crate) fn subdomain(name: &str) -> Option<String> {
    let fine = name.len() <= 253 && is_dns_subdomain(name);
    (!fine).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Catalog;

    fn check(resource: &str, name: &str, expected: bool) {
        let catalog = Catalog::built_in();
        assert_eq!(check_name(catalog.named(resource).unwrap(), name).is_ok(), expected, "{resource} {name}");
    }

    #[test]
    fn names_are_checked_by_kind() {
        check("configmaps", "kube-root-ca.crt", true);
        check("configmaps", "Bad_Name", false);
        check("configmaps", "a..b", false);
        check("configmaps", "-a", false);
        check("configmaps", "", false);
        check("namespaces", "a.b", false);
        check("namespaces", "a-b", true);
        check("clusterroles", "system:Node", true);
        check("clusterroles", "a/b", false);
        check("roles", "..", false);
    }
}
