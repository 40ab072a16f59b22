//! Rules of certificate signing requests.

use serde_json::Value;

use super::Cause;
use crate::kinds::rules::equal::same;
use crate::kinds::rules::json::{Object, at, items, object_at, text};

/// The conditions that no update may remove.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Checks a new or changed request.
pub(super) fn check_object(request: &Value, causes: &mut Vec<Cause>) {
    let spec = object_at(request, "spec").cloned().unwrap_or_default();
    let body = text(&spec, "request");
    if body.is_empty() {
        causes.push(Cause::invalid("spec.request", spec.get("request"), "PEM block type must be CERTIFICATE REQUEST"));
    }
    let signer = text(&spec, "signerName");
    match signer.split_once('/') {
        Some((domain, name)) if domain.contains('.') && !name.is_empty() => {}
        _ if signer.is_empty() => causes.push(Cause::required("spec.signerName", "")),
        _ => {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            causes.push(Cause::invalid("spec.signerName", spec.get("signerName"), detail));
        }
    }
    if items_of(request, "Approved").next().is_some() && items_of(request, "Denied").next().is_some() {
        let detail = "Approved and Denied conditions are mutually exclusive";
        causes.push(Cause::invalid("status.conditions", None, detail));
    }
}

/// Checks an update of the request or of a subresource of it.
pub(super) fn check_update(old: &Value, new: &Value, subresource: Option<&str>, causes: &mut Vec<Cause>) {
    let changed = |verb: &str, kind: &str| {
        Cause::forbidden("status.conditions", &format!("updates may not {verb} a condition of type {kind:?}"))
    };
    for kind in LASTING {
        if items_of(new, kind).count() < items_of(old, kind).count() {
            causes.push(changed("remove", kind));
        } else if subresource != Some("approval") && kind != "Failed" {
            if items_of(new, kind).count() > items_of(old, kind).count() {
                causes.push(changed("add", kind));
            } else if items_of(new, kind).ne(items_of(old, kind)) {
                causes.push(changed("modify", kind));
            }
        }
    }
    let certificate = |request| at(request, "status.certificate");
    if !same(certificate(old), certificate(new)) {
        if subresource != Some("status") {
            causes.push(Cause::forbidden("status.certificate", "updates may not set certificate content"));
        } else if certificate(old).is_some_and(|old| old != "") {
            causes.push(Cause::forbidden("status.certificate", "updates may not modify existing certificate content"));
        }
    }
}

fn items_of<'a>(request: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Object> {
    let conditions = object_at(request, "status").into_iter().flat_map(|status| items(status, "conditions"));
    conditions.filter(move |condition| text(condition, "type") == kind)
}
