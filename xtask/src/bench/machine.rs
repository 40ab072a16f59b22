//! Describes the machine and the versions that figures were measured with.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::SystemTime;

const MANIFEST: &str = env!("CARGO_MANIFEST_DIR");

/// Returns everything besides the code that affects a figure. Unknown values are left out.
pub(crate) fn describe() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let cpu = read("/proc/cpuinfo").and_then(|text| after(&text, "model name", ":"));
    let cores = std::thread::available_parallelism().ok().map(|cores| cores.to_string());
    let client_go =
        read(&format!("{MANIFEST}/../bench/go/go.mod")).and_then(|text| after(&text, "k8s.io/client-go", "v"));
    let kube = read(&format!("{MANIFEST}/../Cargo.lock")).and_then(|text| locked(&text, "kube"));
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let parts = [
        ("cpu", cpu),
        ("cores", cores),
        ("kernel", read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned())),
        ("rustc", output_of("rustc", "--version")),
        ("go", output_of("go", "version")),
        ("client-go", client_go),
        ("kube", kube),
        ("date", date.split('T').next().map(str::to_owned)),
    ];
    parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn output_of(program: &str, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the rest of the line with this start, after a mark.
fn after(text: &str, begins: &str, mark: &str) -> Option<String> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches("require "));
    let rest = lines.into_iter().find_map(|line| line.strip_prefix(begins))?;
    let (_, value) = rest.split_once(mark)?;
    Some(value.split("//").next().unwrap_or(value).trim().to_owned())
}

/// Returns the version of a package in a lock file.
fn locked(text: &str, package: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("name = \"{package}\"\n"))?;
    Some(rest.lines().next()?.trim_start_matches("version = ").trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_go_mod_and_cargo_lock() {
        let module = "module bench\n\nrequire (\n\tk8s.io/api v0.37.1\n\tk8s.io/client-go v0.37.1 // pinned\n)\n";
        assert_eq!(after(module, "k8s.io/client-go", "v").as_deref(), Some("0.37.1"));
        assert_eq!(after("require k8s.io/client-go v0.37.1", "k8s.io/client-go", "v").as_deref(), Some("0.37.1"));
        let lock = "[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n";
        assert_eq!(locked(lock, "kube").as_deref(), Some("5.0.0"));
        assert_eq!(locked(lock, "hyper"), None);
    }
}
