//! Validates CRDs: which CRDs are accepted, and which fields an update may change.

use kube_structural_schema::identifier::{is_dns_label, is_dns_subdomain};
use kube_structural_schema::{PrinterColumns, SchemaDefinition, StructuralSchema};
use serde_json::Value;

use super::has_condition;
use super::selectable;
use crate::kinds::is_built_in;
use crate::status::StatusCause;

const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
    character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
    '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
    must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// The annotation that shows the approval of a CRD in a protected API group.
const APPROVED: &str = "api-approved.kubernetes.io";

/// After how many errors the rest of a list in a CRD is skipped.
const MOST_CAUSES: usize = 1_000;

/// Returns the errors in a CRD that has its defaults. `before` is the stored CRD, if there is one.
pub(super) fn check(object: &Value, before: Option<&Value>) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    if before.is_none() {
        check_name(object, &mut causes);
    }
    // An unchanged spec is not validated again: it can be long.
    if before.is_none_or(|before| before["spec"] != object["spec"]) {
        check_spec(&object["spec"], &mut causes);
        if let Some(before) = before {
            check_unchanged(object, before, &mut causes);
        }
        check_stored(object, &mut causes);
    }
    check_approval(object, before, &mut causes);
    causes
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn items<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

/// Returns whether the list of causes is full.
fn is_enough(causes: &[StatusCause]) -> bool {
    causes.len() >= MOST_CAUSES
}

fn check_name(object: &Value, causes: &mut Vec<StatusCause>) {
    let (spec, name) = (&object["spec"], text(&object["metadata"], "name"));
    let expected = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
    if name != expected {
        let why = format!("{name:?}: must be spec.names.plural+\".\"+spec.group");
        causes.push(StatusCause::invalid("metadata.name", why));
    } else if is_built_in(name) {
        // kube-apiserver accepts such a CRD, and continues to serve its own resource.
        causes.push(StatusCause::invalid("metadata.name", format!("{name:?}: is a resource that is built in")));
    }
}

fn check_spec(spec: &Value, causes: &mut Vec<StatusCause>) {
    match text(spec, "group") {
        "" => causes.push(StatusCause::required("spec.group", "")),
        group if !is_subdomain(group) => {
            causes.push(StatusCause::invalid("spec.group", format!("{group:?}: {SUBDOMAIN}")));
        }
        group if !group.contains('.') => {
            let why = format!("{group:?}: should be a domain with at least one dot");
            causes.push(StatusCause::invalid("spec.group", why));
        }
        _ => {}
    }
    check_one_of("spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"], causes);
    check_versions(items(spec, "versions"), causes);
    let names = &spec["names"];
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(names, member).is_empty() {
            causes.push(StatusCause::required(&format!("spec.names.{member}"), ""));
        }
    }
    check_names(names, causes);
    check_conversion(&spec["conversion"], causes);
}

fn check_versions(versions: &[Value], causes: &mut Vec<StatusCause>) {
    for (index, version) in versions.iter().enumerate() {
        if is_enough(causes) {
            return;
        }
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            causes.push(StatusCause::required(&format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
    // A field that is equal in all versions is validated once. Messages name it as shared.
    let shared = |member: &str| versions.iter().all(|version| version[member] == versions[0][member]);
    let members = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];
    let [schema_shared, subresources_shared, columns_shared, fields_shared] = members.map(shared);
    let place = |shared: bool, index: usize| match (shared, index) {
        (true, 0) => Some("spec".to_owned()),
        (true, _) => None,
        (false, index) => Some(format!("spec.versions[{index}]")),
    };
    for (index, version) in versions.iter().enumerate() {
        if is_enough(causes) {
            return;
        }
        let name = text(version, "name");
        if let Some(why) = wrong_label(name) {
            causes.push(StatusCause::invalid(&format!("spec.versions[{index}].name"), format!("{name:?}: {why}")));
        }
        if let Some(place) = place(schema_shared, index) {
            let within = if place == "spec" { "validation" } else { "schema" };
            let status = !version["subresources"]["status"].is_null();
            check_schema(version, &format!("{place}.{within}.openAPIV3Schema"), status, causes);
        }
        if let Some(place) = place(subresources_shared, index) {
            check_scale(&version["subresources"]["scale"], &format!("{place}.subresources.scale"), causes);
        }
        if let Some(place) = place(columns_shared, index) {
            let columns = items(version, "additionalPrinterColumns");
            let wrong = PrinterColumns::check(columns, &format!("{place}.additionalPrinterColumns"));
            causes.extend(wrong.into_iter().map(StatusCause::from));
        }
        if let Some(place) = place(fields_shared, index) {
            let schema = (place != "spec" || schema_shared).then(|| &version["schema"]["openAPIV3Schema"]);
            selectable::check(items(version, "selectableFields"), schema, &format!("{place}.selectableFields"), causes);
        }
    }
    let mut names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        causes.push(StatusCause::invalid("spec.versions", "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(StatusCause::invalid("spec.versions", why));
    }
}

fn check_schema(version: &Value, path: &str, status_subresource: bool, causes: &mut Vec<StatusCause>) {
    let Some(schema) = version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null()) else { return };
    if let Err(wrong) = StructuralSchema::parse(SchemaDefinition { schema, path, status_subresource }) {
        causes.extend(wrong.into_iter().map(StatusCause::from));
    }
}

/// Checks that the replicas are in the spec and the status of an object, and nowhere else.
fn check_scale(scale: &Value, place: &str, causes: &mut Vec<StatusCause>) {
    if scale.is_null() {
        return;
    }
    for (member, within, under) in [
        ("specReplicasPath", &[".spec."][..], ".spec"),
        ("statusReplicasPath", &[".status."], ".status"),
        ("labelSelectorPath", &[".spec.", ".status."], "either .spec or .status"),
    ] {
        let field = format!("{place}.{member}");
        match text(scale, member) {
            "" if member == "labelSelectorPath" => {}
            "" => causes.push(StatusCause::required(&field, "")),
            path if !path.starts_with('.') => {
                let why = format!("{path:?}: must be a simple json path starting with .");
                causes.push(StatusCause::invalid(&field, why));
            }
            path if !within.iter().any(|within| path.starts_with(within)) => {
                causes.push(StatusCause::invalid(&field, format!("{path:?}: should be a json path under {under}")));
            }
            _ => {}
        }
    }
}

fn check_names(names: &Value, causes: &mut Vec<StatusCause>) {
    for member in ["plural", "singular", "kind", "listKind"] {
        let name = text(names, member);
        let mixed = matches!(member, "kind" | "listKind");
        let looked_at = if mixed { name.to_lowercase() } else { name.to_owned() };
        if let Some(why) = wrong_label(&looked_at).filter(|_| !name.is_empty()) {
            let hint = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            causes.push(StatusCause::invalid(&format!("spec.names.{member}"), format!("{name:?}: {hint}{why}")));
        }
    }
    let check_all = |member: &str, causes: &mut Vec<StatusCause>| {
        for (index, name) in items(names, member).iter().enumerate() {
            if is_enough(causes) {
                return;
            }
            let name = name.as_str().unwrap_or_default();
            if let Some(why) = wrong_label(name) {
                causes.push(StatusCause::invalid(&format!("spec.names.{member}[{index}]"), format!("{name:?}: {why}")));
            }
        }
    };
    check_all("shortNames", causes);
    let list_kind = text(names, "listKind");
    if !list_kind.is_empty() && list_kind == text(names, "kind") {
        let why = format!("{list_kind:?}: kind and listKind may not be the same");
        causes.push(StatusCause::invalid("spec.names.listKind", why));
    }
    check_all("categories", causes);
}

fn check_conversion(conversion: &Value, causes: &mut Vec<StatusCause>) {
    let strategy = text(conversion, "strategy");
    check_one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], causes);
    let (client, versions) =
        (&conversion["webhook"]["clientConfig"], items(&conversion["webhook"], "conversionReviewVersions"));
    let (client_field, versions_field) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    if strategy == "Webhook" {
        if client.is_null() {
            causes.push(StatusCause::required(client_field, "required when strategy is set to Webhook"));
        } else if client["url"].is_null() == client["service"].is_null() {
            causes.push(StatusCause::required(client_field, "exactly one of url or service is required"));
        }
        if versions.is_empty() {
            causes.push(StatusCause::required(versions_field, ""));
        }
        return;
    }
    let why = "should not be set when strategy is not set to Webhook";
    if !client.is_null() {
        causes.push(StatusCause::forbidden(client_field, why));
    }
    if !versions.is_empty() {
        causes.push(StatusCause::forbidden(versions_field, why));
    }
}

/// Checks that the fields that determine paths and objects are unchanged.
fn check_unchanged(object: &Value, before: &Value, causes: &mut Vec<StatusCause>) {
    let served: &[&str] = if has_condition(before, "Established") { &["/scope", "/names/kind"] } else { &[] };
    for pointer in served.iter().chain(&["/group", "/names/plural"]) {
        let (now, then) = (object["spec"].pointer(pointer), before["spec"].pointer(pointer));
        if now != then {
            let now = now.and_then(Value::as_str).unwrap_or_default();
            let field = format!("spec{}", pointer.replace('/', "."));
            causes.push(StatusCause::invalid(&field, format!("{now:?}: field is immutable")));
        }
    }
}

/// Checks that the CRD has every version in `status.storedVersions`.
fn check_stored(object: &Value, causes: &mut Vec<StatusCause>) {
    let versions = items(&object["spec"], "versions");
    for (index, stored) in items(&object["status"], "storedVersions").iter().enumerate() {
        if versions.iter().any(|version| version["name"] == *stored) {
            continue;
        }
        let name = stored.as_str().unwrap_or_default();
        let why = format!(
            "{name:?}: missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        causes.push(StatusCause::invalid(&format!("status.storedVersions[{index}]"), why));
    }
}

fn check_approval(object: &Value, before: Option<&Value>, causes: &mut Vec<StatusCause>) {
    let group = text(&object["spec"], "group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let approval = |object: &Value| object["metadata"]["annotations"][APPROVED].as_str().unwrap_or_default().to_owned();
    let given = approval(object);
    if !protected || before.is_some_and(|before| approval(before) == given) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_address = given.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
    if given.is_empty() {
        let why = format!("protected groups must have approval annotation {APPROVED:?}, {see}");
        causes.push(StatusCause::required(&field, &why));
    } else if !is_address && !given.starts_with("unapproved") {
        let why = format!(
            "{given:?}: protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting \
             with \"unapproved\", {see}"
        );
        causes.push(StatusCause::invalid(&field, why));
    }
}

fn check_one_of(field: &str, value: &str, known: &[&str], causes: &mut Vec<StatusCause>) {
    if value.is_empty() {
        causes.push(StatusCause::required(field, ""));
    } else if !known.contains(&value) {
        let known: Vec<String> = known.iter().map(|known| format!("{known:?}")).collect();
        causes.push(StatusCause::unsupported(field, format!("{value:?}: supported values: {}", known.join(", "))));
    }
}

fn wrong_label(name: &str) -> Option<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push("must be no more than 63 characters");
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !is_dns_label(name) {
        wrong.push(LABEL);
    }
    (!wrong.is_empty()).then(|| wrong.join(","))
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && is_dns_subdomain(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the errors of a CRD with these versions and short names.
    fn checked(versions: Vec<Value>, short_names: Vec<Value>) -> usize {
        let names =
            json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "shortNames": short_names});
        let spec = json!({"group": "example.com", "scope": "Cluster", "names": names, "versions": versions,
            "conversion": {"strategy": "None"}});
        check(&json!({"metadata": {"name": "as.example.com"}, "spec": spec}), None).len()
    }

    #[test]
    fn many_versions_and_names_are_checked_once_with_bounded_errors() {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let sound = |index: usize| json!({"name": format!("v{index}"), "storage": index == 0, "schema": schema});
        assert_eq!(checked((0..100_000).map(sound).collect(), Vec::new()), 0);
        assert!(checked(vec![json!({}); 100_000], Vec::new()) < 1_100);
        assert!(checked(vec![sound(0)], vec![json!("-"); 100_000]) < 1_100);
    }
}
