//! The custom resource: a `Foo` wants a deployment of a name, with so many replicas.
//!
//! Group, fields and labels are those of client-go's sample controller, so that either may look after the same objects.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a `Foo` wants.
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
    /// How the deployment is called.
    pub deployment_name: String,
    /// How many replicas it has.
    pub replicas: Option<i32>,
}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    /// How many replicas are available.
    pub available_replicas: i32,
}
