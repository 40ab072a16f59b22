//! Compares strategic merge patches with those of Kubernetes' own library, case by case.

use kube_field_manager::strategic_merge_patch;
use serde_json::Value;

use super::built_in;
use crate::kinds::schema::TypePlace;
use crate::truth::{Agreement, cases};

fn check(kind: &str, case: &Value) -> Result<(), String> {
    let resource = built_in(kind);
    let ours = strategic_merge_patch(&case["original"], &case["patch"], TypePlace::root(&resource));
    let theirs = case.get("result");
    if ours.as_ref().ok() == theirs {
        return Ok(());
    }
    Err(format!(
        "\n    original {}\n    patch    {}\n    ours     {ours:?}\n    theirs   {theirs:?}",
        case["original"], case["patch"]
    ))
}

#[test]
fn strategic_merge_patches_match_the_go_library() {
    let mut agreement = Agreement::of("strategic merge patches");
    for case in cases("fields/patches.jsonl") {
        let kind = case["kind"].as_str().unwrap();
        agreement.count(kind, check(kind, &case));
    }
    assert_eq!(agreement.conclude().len(), 4);
}
