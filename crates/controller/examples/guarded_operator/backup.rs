//! The custom resource: a `Backup` asks for a plan with a schedule.

use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// When to make a backup, and how many to keep.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "guarded.example.com", version = "v1", kind = "Backup", namespaced)]
pub struct BackupSpec {
    pub schedule: String,
    pub keep: u32,
}

/// Returns the CRD. An older version of it accepted any spec, as many do: the operator must live with such objects.
pub fn crd() -> CustomResourceDefinition {
    let mut crd = Backup::crd();
    let anything = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    for version in &mut crd.spec.versions {
        version.schema = serde_json::from_value(anything.clone()).ok();
        version.subresources = serde_json::from_value(json!({"status": {}})).ok();
    }
    crd
}
