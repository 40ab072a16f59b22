//! The custom resource: a `Foo` asks for a deployment with a name and a number of replicas.
//!
//! Group, fields and labels are those of client-go's sample controller, so either controller can reconcile the same
//! objects.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired deployment of a `Foo`.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    plural = "foos",
    namespaced,
    status = "FooStatus",
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only; an example")
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the deployment.
    pub deployment_name: String,
    /// The number of replicas of the deployment.
    pub replicas: Option<i32>,
}

/// The observed state of a `Foo`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available replicas.
    pub available_replicas: i32,
}
