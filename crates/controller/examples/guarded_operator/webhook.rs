//! A validating webhook: at most two backups may run at the same time. It answers from the cache, on every replica.
//!
//! In a cluster it needs a certificate, and a `ValidatingWebhookConfiguration` that names its service.

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use kube_informer::{CancellationToken, Index};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::backup::Backup;

const AT_MOST: usize = 2;

/// Answers reviews until the program stops it.
pub async fn serve(
    listener: TcpListener,
    by_schedule: Index<Backup>,
    stop: CancellationToken,
) -> Result<(), std::io::Error> {
    let router = Router::new().route("/validate", post(validate)).with_state(by_schedule);
    axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
}

async fn validate(State(by_schedule): State<Index<Backup>>, Json(review): Json<Value>) -> Json<Value> {
    let request = &review["request"];
    let schedule = request["object"]["spec"]["schedule"].as_str().unwrap_or_default();
    let others = by_schedule.get(schedule);
    let others = others.iter().filter(|backup| backup.metadata.name.as_deref() != request["name"].as_str()).count();
    let message = format!("{others} other backups run at {schedule:?}; at most {AT_MOST} may");
    Json(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": others < AT_MOST, "status": {"message": message}},
    }))
}
