//! Every pattern in the CRDs of twelve popular projects means the same as in Go.

use serde_json::Value;

use crate::pattern::compile;

/// The first line has the strings to match. Every other line has a pattern and, for each string, whether Go's `regexp`
/// matches it.
const PATTERNS: &str = include_str!("../../tests/patterns.jsonl");

#[test]
fn patterns_of_popular_crds_match_as_in_go() {
    let mut lines = PATTERNS.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let probes = lines.next().unwrap();
    let probes: Vec<&str> = probes["probes"].as_array().unwrap().iter().map(|probe| probe.as_str().unwrap()).collect();
    let mut count = 0;
    for line in lines {
        let (project, pattern) = (&line["project"], line["pattern"].as_str().unwrap());
        let compiled = compile(pattern).unwrap_or_else(|error| panic!("{project}: {error}"));
        let found: String = probes.iter().map(|probe| if compiled.is_match(probe) { '1' } else { '0' }).collect();
        assert_eq!(found, line["matches"].as_str().unwrap(), "{project}: {pattern}");
        count += 1;
    }
    assert_eq!(count, 113);
}

#[test]
fn minus_in_a_class_is_a_range_only_between_two_characters() {
    for (pattern, matches, misses) in [
        ("^[0-9a-zA-Z-.]+$", "a-b.9", "a/b"),
        ("^[a-]$", "-", "b"),
        ("^[-a]$", "-", "b"),
        ("^[a-c-e]+$", "b-e", "d"),
        (r"^[\d-x]+$", "1-x", "y"),
        (r"^[\x41-\x43]$", "B", "D"),
        ("^[]a]+$", "]a", "b"),
        ("^[[:alpha:]-]+$", "a-b", "1"),
        ("^[&&~~]+$", "&~", "a"),
        ("^[[]$", "[", "]"),
    ] {
        let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        assert!(compiled.is_match(matches) && !compiled.is_match(misses), "{pattern}");
    }
    for pattern in ["[z-a]", r"[\x43-\x41]", "[a", r"[\q]"] {
        assert!(compile(pattern).is_err(), "{pattern}");
    }
}
