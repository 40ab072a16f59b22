//! Defaults of persistent volumes and persistent volume claims.

use crate::kinds::rules::json::{Object, fill, fill_zero, open};

pub(super) fn persistent_volume(volume: &mut Object) {
    fill_zero(open(volume, "status"), "phase", "Pending");
    let spec = open(volume, "spec");
    fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
}

pub(super) fn persistent_volume_claim(claim: &mut Object) {
    fill_zero(open(claim, "status"), "phase", "Pending");
}

pub(super) fn persistent_volume_claim_spec(spec: &mut Object) {
    fill(spec, "volumeMode", "Filesystem");
}
