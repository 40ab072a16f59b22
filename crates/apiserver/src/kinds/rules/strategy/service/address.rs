//! The cluster IPs of services. The cluster has one address family.

use serde_json::{Value, json};

use super::{Pool, Refusal, addresses, has_address};
use crate::kinds::rules::immutable::Cause;
use crate::kinds::rules::json::{Object, fill, length, text};

const FAMILY: &str = "IPv4";
const OTHER_FAMILY: &str = "IPv6";

fn is_headless(spec: &Object) -> bool {
    text(spec, "clusterIP") == "None"
}

/// Keeps the addresses that an update does not mention.
pub(super) fn keep(old: &Object, spec: &mut Object) {
    if !has_address(old) || !has_address(spec) {
        return;
    }
    if text(spec, "clusterIP").is_empty()
        && let Some(address) = old.get("clusterIP")
    {
        spec.insert("clusterIP".into(), address.clone());
    }
    if length(spec, "clusterIPs") == 0
        && let Some(addresses) = old.get("clusterIPs")
    {
        spec.insert("clusterIPs".into(), addresses.clone());
    }
}

/// Changes `clusterIPs` after a change of `clusterIP` alone.
pub(super) fn settle(old: &Object, spec: &mut Object) {
    let (before, after) = (text(old, "clusterIP"), text(spec, "clusterIP").to_owned());
    if before == after {
        if length(spec, "clusterIPs") == 0 && length(old, "clusterIPs") > 0 {
            spec.insert("clusterIPs".into(), old.get("clusterIPs").cloned().unwrap_or_default());
        }
    } else if addresses(old) == addresses(spec) && !(before.is_empty() && after.is_empty()) {
        if after.is_empty() {
            spec.remove("clusterIPs");
        } else {
            spec.insert("clusterIPs".into(), json!([after]));
        }
    }
}

fn family_of(address: &str) -> &'static str {
    if address.contains(':') { OTHER_FAMILY } else { FAMILY }
}

fn families_of(spec: &Object) -> Vec<String> {
    let list = spec.get("ipFamilies").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Sets the IP families of a service, and refuses families that the cluster does not have.
pub(super) fn families(spec: &mut Object, old: Option<&Object>) -> Result<(), Refusal> {
    if !has_address(spec) {
        return Ok(());
    }
    let is_open = is_headless(spec) && length(spec, "selector") == 0;
    let kept = old.and_then(|old| old.get("ipFamilyPolicy")).cloned();
    fill(
        spec,
        "ipFamilyPolicy",
        kept.unwrap_or_else(|| json!(if is_open { "RequireDualStack" } else { "SingleStack" })),
    );
    let policy = text(spec, "ipFamilyPolicy").to_owned();
    if policy == "SingleStack"
        && let Some(old) = old
    {
        drop_second(old, spec);
    }
    let mut causes = check_single(spec, &policy);
    let mut families = families_of(spec);
    for (index, address) in addresses(spec).iter().enumerate().filter(|(_, address)| *address != "None") {
        let family = family_of(address);
        if index >= families.len() && family == FAMILY {
            families.push(family.to_owned());
        } else if index >= families.len() {
            let field = format!("spec.clusterIPs[{index}]");
            causes.push(Cause::invalid(
                field,
                spec.get("clusterIPs"),
                &format!("{family} is not configured on this cluster"),
            ));
        }
    }
    if !is_open {
        causes.append(&mut check_configured(spec, &families, &policy, causes.is_empty()));
    }
    if !causes.is_empty() {
        return Err(Refusal::Invalid(causes));
    }
    if families.is_empty() {
        families.push(FAMILY.to_owned());
    }
    if is_open && families.len() < 2 && policy != "SingleStack" {
        families.push(if families[0] == FAMILY { OTHER_FAMILY } else { FAMILY }.to_owned());
    }
    spec.insert("ipFamilies".into(), json!(families));
    Ok(())
}

/// Drops the second address of a service that returns to one family.
fn drop_second(old: &Object, spec: &mut Object) {
    for key in ["clusterIPs", "ipFamilies"] {
        if old.get(key) == spec.get(key)
            && let Some(list) = spec.get_mut(key).and_then(Value::as_array_mut)
        {
            list.truncate(1);
        }
    }
}

fn check_single(spec: &Object, policy: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if policy == "SingleStack" && length(spec, key) == 2 {
            let detail = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            causes.push(Cause::invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), &detail));
        }
    }
    causes
}

fn check_configured(spec: &Object, families: &[String], policy: &str, is_sound: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if is_sound && policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        causes.push(Cause::invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| is_sound && *family != FAMILY) {
        let field = format!("spec.ipFamilies[{index}]");
        causes.push(Cause::invalid(field, Some(&json!(family)), "not configured on this cluster"));
    }
    causes
}

/// Allocates the requested address, or any.
pub(super) fn allocate(spec: &mut Object, pool: &mut dyn Pool) -> Result<(), Refusal> {
    let wanted = addresses(spec);
    if !has_address(spec) || wanted.first().is_some_and(|address| address == "None") {
        return Ok(());
    }
    let address = match wanted.first().filter(|address| !address.is_empty()) {
        Some(address) => {
            pool.take_address(address).map_err(|reason| {
                let detail = format!("failed to allocate IP {address}: {reason}");
                Refusal::Invalid(vec![Cause::invalid("spec.clusterIPs", spec.get("clusterIPs"), &detail)])
            })?;
            address.clone()
        }
        None => pool.next_address().ok_or_else(|| Refusal::Exhausted("failed to allocate a serviceIP".to_owned()))?,
    };
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
    Ok(())
}
