//! Defaults of the volumes of pods and of persistent volumes.

use serde_json::json;

use crate::kinds::rules::image::pull_policy;
use crate::kinds::rules::json::{Object, child_mut, fill, fill_zero, text};

pub(super) fn volume(volume: &mut Object) {
    if volume.iter().all(|(key, value)| key == "name" || value.is_null()) {
        volume.insert("emptyDir".into(), json!({}));
    }
    if let Some(image) = child_mut(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill_zero(image, "pullPolicy", policy);
    }
}

pub(super) fn host_path(source: &mut Object) {
    fill(source, "type", "");
}

/// Sets the default mode 0644.
pub(super) fn files(source: &mut Object) {
    fill(source, "defaultMode", 0o644);
}

pub(super) fn service_account_token(projection: &mut Object) {
    fill(projection, "expirationSeconds", 3600);
}

pub(super) fn iscsi(source: &mut Object) {
    fill_zero(source, "iscsiInterface", "default");
}

pub(super) fn rbd(source: &mut Object) {
    fill_zero(source, "pool", "rbd");
    fill_zero(source, "user", "admin");
    fill_zero(source, "keyring", "/etc/ceph/keyring");
}

pub(super) fn azure_disk(source: &mut Object) {
    fill(source, "cachingMode", "ReadWrite");
    fill(source, "fsType", "ext4");
    fill(source, "readOnly", false);
    fill(source, "kind", "Shared");
}

pub(super) fn scale_io(source: &mut Object) {
    fill_zero(source, "storageMode", "ThinProvisioned");
    fill_zero(source, "fsType", "xfs");
}
