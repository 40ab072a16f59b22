//! The validation of CRDs, and the changes that are allowed later.

use super::cluster::{Answer, Case, case, config_map};
use super::writers::{DEFINITIONS, define, definition, gear, gears, make_gear, until};
use serde_json::{Map, Value, json};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(115, |cluster| async move {
            let refused = cluster.post(DEFINITIONS, &named("apps", "deployments", "Deployment")).await;
            check(&refused, "spec.group", "Invalid value: \"apps\": should be a domain with at least one dot");
            // Groups of Kubernetes itself are protected.
            let refused = cluster.post(DEFINITIONS, &named("coordination.k8s.io", "leases", "Lease")).await;
            let why = "Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                https://github.com/kubernetes/enhancements/pull/1111";
            check(&refused, "metadata.annotations[api-approved.kubernetes.io]", why);
            let mut odd = named("coordination.k8s.io", "leases", "Lease");
            odd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "by me"});
            let refused = cluster.post(DEFINITIONS, &odd).await;
            check(&refused, "metadata.annotations[api-approved.kubernetes.io]", "Invalid value: \"by me\": protected");
        }),
        case(116, |cluster| async move {
            let post = async |change: fn(&mut Value), field: &str, said: &str| {
                let mut wrong = definition(&cluster, &[("v1", true, true)]);
                change(&mut wrong);
                check(&cluster.post(DEFINITIONS, &wrong).await, field, said);
            };
            const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
                an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex \
                used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
            let odd_version = |wrong: &mut Value| wrong["spec"]["versions"][0]["name"] = json!("V 1/x");
            post(odd_version, "spec.versions[0].name", &format!("Invalid value: \"V 1/x\": {LABEL}")).await;
            let odd_kind = |wrong: &mut Value| wrong["spec"]["names"]["kind"] = json!("Bad Kind!");
            let said =
                format!("Invalid value: \"Bad Kind!\": may have mixed case, but should otherwise match: {LABEL}");
            post(odd_kind, "spec.names.kind", &said).await;
            let same_kinds = |wrong: &mut Value| wrong["spec"]["names"]["listKind"] = json!("Gear");
            post(same_kinds, "spec.names.listKind", "Invalid value: \"Gear\": kind and listKind may not be the same")
                .await;
            let short = |wrong: &mut Value| wrong["spec"]["names"]["shortNames"] = json!(["gr", "G r"]);
            post(short, "spec.names.shortNames[1]", &format!("Invalid value: \"G r\": {LABEL}")).await;
            let bare = |wrong: &mut Value| {
                wrong["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
            };
            post(bare, "spec.versions[0].schema.openAPIV3Schema", "Required value").await;
            let twice = |wrong: &mut Value| {
                let mut other = wrong["spec"]["versions"][0].clone();
                other["storage"] = json!(false);
                wrong["spec"]["versions"].as_array_mut().unwrap().push(other);
            };
            post(twice, "spec.versions", "must contain unique version names").await;
            let nowhere = |wrong: &mut Value| wrong["spec"]["scope"] = json!("");
            post(nowhere, "spec.scope", "Required value").await;
            let conversion = |wrong: &mut Value| wrong["spec"]["conversion"] = json!({"strategy": "Nonsense"});
            let said = "Unsupported value: \"Nonsense\": supported values: \"None\", \"Webhook\"";
            post(conversion, "spec.conversion.strategy", said).await;
            let conversion = |wrong: &mut Value| wrong["spec"]["conversion"] = json!({"strategy": "Webhook"});
            let said = "Required value: required when strategy is set to Webhook";
            post(conversion, "spec.conversion.webhookClientConfig", said).await;
        }),
        case(117, |cluster| async move {
            let post = async |scale: Value, member: &str, said: &str| {
                let mut wrong = definition(&cluster, &[("v1", true, true)]);
                wrong["spec"]["versions"][0]["subresources"] = json!({"scale": scale});
                let field = format!("spec.subresources.scale.{member}");
                check(&cluster.post(DEFINITIONS, &wrong).await, &field, said);
            };
            let named = json!({"specReplicasPath": ".metadata.name", "statusReplicasPath": ".status.replicas"});
            post(named, "specReplicasPath", "Invalid value: \".metadata.name\": should be a json path under .spec")
                .await;
            let bare = json!({"specReplicasPath": "spec", "statusReplicasPath": ".status.replicas"});
            post(bare, "specReplicasPath", "Invalid value: \"spec\": must be a simple json path starting with .").await;
            let outside = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".spec.replicas"});
            post(
                outside,
                "statusReplicasPath",
                "Invalid value: \".spec.replicas\": should be a json path under .status",
            )
            .await;
            let nothing = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ""});
            post(nothing, "statusReplicasPath", "Required value").await;
            let mut selected = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            selected["labelSelectorPath"] = json!(".metadata.labels");
            let said = "Invalid value: \".metadata.labels\": should be a json path under either .spec or .status";
            post(selected, "labelSelectorPath", said).await;
        }),
        case(133, |cluster| async move {
            let post = async |paths: &[&str], field: &str, said: &str| {
                let mut wrong = definition(&cluster, &[("v1", true, true)]);
                let texts: Vec<String> = (0..9).map(|number| format!("t{number}")).collect();
                let mut properties: Map<String, Value> =
                    texts.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
                properties.insert("list".into(), json!({"type": "array", "items": {"type": "string"}}));
                let spec = json!({"type": "object", "properties": properties});
                let version = &mut wrong["spec"]["versions"][0];
                version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": spec});
                version["selectableFields"] = paths.iter().map(|path| json!({"jsonPath": path})).collect();
                check(&cluster.post(DEFINITIONS, &wrong).await, field, said);
            };
            for (path, why) in [
                (".spec.nothing", "is an invalid path: does not refer to a valid field"),
                ("spec.t0", "is an invalid path: expected [ or . but got: spec"),
                (".spec['t0']", "is an invalid path: array notation is not allowed"),
                (".spec.", "is an invalid path: unexpected end of JSON path"),
                (
                    ".spec.list",
                    "must point to a field of type string, boolean or integer. Enum string fields and strings with",
                ),
            ] {
                let said = format!("Invalid value: {path:?}: {why}");
                post(&[path], "spec.selectableFields[0].jsonPath", &said).await;
            }
            post(&[""], "spec.selectableFields[0].jsonPath", "Required value").await;
            let twice = "Duplicate value: \".spec.t0\"";
            post(&[".spec.t0", ".spec.t0"], "spec.selectableFields[1].jsonPath", twice).await;
            let many: Vec<String> = (0..9).map(|number| format!(".spec.t{number}")).collect();
            let many: Vec<&str> = many.iter().map(String::as_str).collect();
            post(&many, "spec.selectableFields", "Too many: 9: must have at most 8 items").await;
        }),
        case(118, |cluster| async move {
            let (path, object) = define(&cluster, &[("v1", true, true), ("v2", true, false)]).await;
            let put = async |change: fn(&mut Value), field: &str, said: &str| {
                let mut wrong = object.clone();
                wrong["metadata"].as_object_mut().unwrap().remove("managedFields");
                wrong["metadata"]["resourceVersion"] = cluster.get(&path).await.at("/metadata/resourceVersion");
                change(&mut wrong);
                check(&cluster.put(&path, &wrong).await, field, said);
            };
            let scope = |wrong: &mut Value| wrong["spec"]["scope"] = json!("Cluster");
            put(scope, "spec.scope", "Invalid value: \"Cluster\": field is immutable").await;
            let kind = |wrong: &mut Value| wrong["spec"]["names"]["kind"] = json!("Other");
            put(kind, "spec.names.kind", "Invalid value: \"Other\": field is immutable").await;
            let plural = |wrong: &mut Value| wrong["spec"]["names"]["plural"] = json!("cogs");
            put(plural, "spec.names.plural", "Invalid value: \"cogs\": field is immutable").await;
            let dropped = |wrong: &mut Value| {
                let versions = wrong["spec"]["versions"].as_array_mut().unwrap();
                versions.remove(0);
                versions[0]["storage"] = json!(true);
            };
            let said = "Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must \
                remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 \
                from status.storedVersions";
            put(dropped, "status.storedVersions[0]", said).await;
            // `storedVersions` always keeps the storage version. A version whose objects are migrated may be removed
            // from it.
            let status = format!("{path}/status");
            let emptied = cluster.merge(&status, &json!({"status": {"storedVersions": []}})).await;
            assert_eq!((emptied.code, emptied.at("/status/storedVersions")), (200, json!(["v1"])), "{}", emptied.text);
            let mut moved = cluster.get(&path).await.json();
            moved["spec"]["versions"][0]["storage"] = json!(false);
            moved["spec"]["versions"][1]["storage"] = json!(true);
            assert_eq!(cluster.put(&path, &moved).await.at("/status/storedVersions"), json!(["v1", "v2"]));
            let migrated = cluster.merge(&status, &json!({"status": {"storedVersions": ["v2"]}})).await;
            assert_eq!(
                (migrated.code, migrated.at("/status/storedVersions")),
                (200, json!(["v2"])),
                "{}",
                migrated.text
            );
            let mut without = migrated.json();
            without["spec"]["versions"].as_array_mut().unwrap().remove(0);
            let without = cluster.put(&path, &without).await;
            assert_eq!((without.code, without.at("/status/storedVersions")), (200, json!(["v2"])), "{}", without.text);
        }),
        case(119, |cluster| async move {
            let (first, _) = define(&cluster, &[("v1", true, true)]).await;
            make_gear(&cluster, "v1").await;
            let mut second = definition(&cluster, &[("v1", true, true)]);
            let group = second["spec"]["group"].as_str().unwrap().to_owned();
            second["metadata"]["name"] = json!(format!("cogs.{group}"));
            second["spec"]["names"] =
                json!({"plural": "cogs", "kind": "Gear", "singular": "cog", "listKind": "CogList"});
            assert_eq!(cluster.post(DEFINITIONS, &second).await.code, 201);
            let path = format!("{DEFINITIONS}/cogs.{group}");
            let held = until(&cluster, &path, |answer| !condition(answer, "NamesAccepted").is_null()).await;
            let accepted = condition(&held, "NamesAccepted");
            assert_eq!(
                (&accepted["status"], &accepted["reason"]),
                (&json!("False"), &json!("KindConflict")),
                "{accepted}"
            );
            assert_eq!(accepted["message"], "\"Gear\" is already in use");
            let established = condition(&held, "Established");
            assert_eq!(
                (&established["status"], &established["reason"], &established["message"]),
                (&json!("False"), &json!("NotAccepted"), &json!("not all names are accepted"))
            );
            let names = held.at("/status/acceptedNames");
            assert_eq!((&names["plural"], &names["kind"]), (&json!("cogs"), &json!("")), "{names}");
            let cogs = gears(&cluster, "v1").replace("gears", "cogs");
            assert_eq!(cluster.get(&cogs).await.code, 404);
            // The names are accepted once they are free.
            cluster.delete(&first).await;
            until(&cluster, &path, |answer| condition(answer, "Established")["status"] == "True").await;
            assert_eq!(until(&cluster, &cogs, |answer| answer.code == 200).await.names(), Vec::<String>::new());
            assert_eq!(cluster.post(&cogs, &gear(&cluster, "v1")).await.code, 201);
        }),
        case(120, |cluster| async move {
            let mut owned = config_map("a");
            owned["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": ""}]);
            let refused = cluster.post(&cluster.config_maps(), &owned).await;
            check(&refused, "metadata.ownerReferences[0].uid", "Required value");
            owned["metadata"]["ownerReferences"][0] =
                json!({"apiVersion": "v1/2/3", "kind": "", "name": "", "uid": "u"});
            let refused = cluster.post(&cluster.config_maps(), &owned).await;
            check(&refused, "metadata.ownerReferences[0].kind", "Required value");
            check(&refused, "metadata.ownerReferences[0].name", "Required value");
            let said = "Invalid value: \"v1/2/3\": must be <group>/<version> or <version>";
            check(&refused, "metadata.ownerReferences[0].apiVersion", said);
        }),
    ]
}

/// Asserts that a response refuses this field with this message.
fn check(refused: &Answer, field: &str, said: &str) {
    refused.is(422, "Invalid");
    let causes = refused.at("/details/causes");
    let told = |cause: &Value| cause["field"] == field && cause["message"].as_str().unwrap_or_default().contains(said);
    assert!(causes.as_array().into_iter().flatten().any(told), "{field}: {said}: {}", refused.text);
}

fn condition(answer: &Answer, kind: &str) -> Value {
    let conditions = answer.at("/status/conditions");
    let found = conditions.as_array().into_iter().flatten().find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

fn named(group: &str, plural: &str, kind: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
}
