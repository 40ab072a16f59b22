//! The guides agree with the code: files, links, metrics, and names of client-go and controller-runtime.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The files that emit metrics.
const SOURCES: [&str; 2] = ["crates/informer/src/health/metrics.rs", "crates/controller/src/metrics.rs"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the crate is in the repository")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns every page for users.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).expect("there are guides");
    pages.extend(
        docs.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    let crates = std::fs::read_dir(root().join("crates")).expect("there are crates");
    let readmes = crates.filter_map(|entry| Some(entry.ok()?.path().join("README.md")));
    pages.extend(readmes.filter(|path| path.exists()));
    pages.sort();
    pages
}

/// Returns the targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|part| part.split("](").skip(1).filter_map(|rest| rest.split(')').next()))
        .map(str::to_owned)
        .collect()
}

/// Returns the anchors of a page, which are made from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.split("```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_has_a_target() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("it was listed");
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let there = target.exists()
                && (anchor.is_empty()
                    || std::fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn docs_state_the_number_of_fault_kinds_in_the_simulation() {
    let simulation = read("crates/informer/tests/sim/faults.rs");
    let kinds = simulation.split("KINDS: [&str; ").nth(1).and_then(|rest| rest.split(']').next());
    let said = format!("{} kinds of fault", kinds.expect("the simulation names its faults"));
    for file in ["docs/proof.md", "CHANGELOG.md"] {
        assert!(read(file).contains(&said), "{file} does not say {said:?}");
    }
}

#[test]
fn the_summary_lists_every_guide() {
    let listed: BTreeSet<String> = links(&read("docs/SUMMARY.md")).into_iter().collect();
    let guides = pages().into_iter().filter(|page| page.parent() == Some(&root().join("docs")));
    let names = guides.filter_map(|page| Some(page.file_name()?.to_str()?.to_owned()));
    let there: BTreeSet<String> = names.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, there);
}

/// Returns the name of every metric in the code: in a macro of the facade, or in a constant that a macro uses.
fn emitted() -> BTreeSet<String> {
    let sources = SOURCES.map(read).concat();
    let begins = ["gauge!(\"", "counter!(\"", "histogram!(\"", ": &str = \""];
    let names = begins.iter().flat_map(|begin| sources.split(begin).skip(1));
    names.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// Returns the words that look like a name of our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = ["informer_", "workqueue_", "controller_runtime_", "kube_controller_", "leader_election_"];
    words.filter(|word| ours.iter().any(|prefix| word.starts_with(prefix))).map(str::to_owned).collect()
}

#[test]
fn the_guide_lists_exactly_the_emitted_metrics() {
    let guide = read("docs/production.md");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<String> = rows.filter(|name| !named(name).is_empty()).map(str::to_owned).collect();
    assert!(listed.len() > 20, "{listed:?}");
    assert_eq!(listed, emitted());
    let alerts: String = guide.split("```yaml").skip(1).filter_map(|block| block.split("```").next()).collect();
    let unknown: Vec<String> = named(&alerts).difference(&emitted()).cloned().collect();
    assert!(unknown.is_empty(), "alerts use metrics that do not exist: {unknown:?}");
}

/// Collects all strings with this key, at any depth.
fn texts<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| texts(value, key, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
            Some(text) if name == key => found.push(text),
            _ => texts(value, key, found),
        }),
        _ => {}
    }
}

#[test]
fn the_dashboard_uses_exactly_the_emitted_metrics_and_labels() {
    let dashboard: Value = serde_json::from_str(&read("docs/grafana.json")).expect("it is JSON");
    let mut queries = Vec::new();
    texts(&dashboard["panels"], "expr", &mut queries);
    texts(&dashboard["templating"], "query", &mut queries);
    assert!(queries.len() > 20, "{queries:?}");
    let (emitted, sources) = (emitted(), SOURCES.map(read).concat());
    let mut asked = BTreeSet::new();
    for query in &queries {
        for name in named(query) {
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
            let base = base.filter(|base| emitted.contains(*base)).unwrap_or(&name);
            assert!(emitted.contains(base), "the metric {name} does not exist: {query}");
            asked.insert(base.to_owned());
        }
        let by = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        let labels = by.flat_map(|labels| labels.split(',')).map(str::trim);
        for label in labels.filter(|label| !["le", "instance", "job"].contains(label)) {
            let quoted = format!("\"{label}\"");
            let known = sources.contains(&format!("Label::new({quoted}")) || sources.contains(&format!("{quoted} =>"));
            assert!(known, "no metric has the label {label}: {query}");
        }
    }
    let missing: Vec<&String> = emitted.difference(&asked).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

/// Checks that each name of a list is in a row of a guide.
fn check_rows(guide: &str, names: &str) {
    let guide = read(guide);
    let rows: String = guide.lines().filter(|line| line.starts_with("| ")).collect::<Vec<_>>().join("\n");
    let known: BTreeSet<&str> = rows.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let names = read(names);
    let names: Vec<&str> = names.lines().filter(|line| !line.starts_with('#')).collect();
    let missing: Vec<&&str> = names.iter().filter(|name| !known.contains(**name)).collect();
    assert!(names.len() > 300 && missing.is_empty(), "{missing:?}");
}

#[test]
fn every_name_of_client_go_has_a_row() {
    check_rows("docs/from-client-go.md", "crates/guides/tests/client-go-names.txt");
}

#[test]
fn every_name_of_controller_runtime_has_a_row() {
    check_rows("docs/from-controller-runtime.md", "crates/guides/tests/controller-runtime-names.txt");
}
