//! `cargo xtask package`: creates the packages to publish, and checks their metadata, their size, and their public API
//! if an earlier version is published.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{cargo, within};

/// The time limit without building; cargo may ask the registry.
const LIMIT: Duration = Duration::from_secs(600);
/// The time limit for building every package alone, with all dependencies.
const VERIFIED: Duration = Duration::from_secs(1800);
/// The largest package in bytes.
const LARGEST: u64 = 1024 * 1024;
/// The most keywords that crates.io accepts.
const KEYWORDS: usize = 5;

/// The licence of all packages.
const LICENCE: &str = include_str!("../../LICENSE");

/// Options of the checks.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build each package from its content, like publishing does; takes minutes.
    #[arg(long)]
    verify: bool,
}

/// Checks packages without building them, as part of `check --full`.
pub(crate) fn quick() -> Result<(), String> {
    run(&Options { verify: false })
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let packages = published()?;
    let problems: Vec<String> = packages.iter().flat_map(missing).collect();
    if !problems.is_empty() {
        return Err(format!("package: {}", problems.join("; ")));
    }
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    // All at once: they depend on each other, and these versions are not published yet.
    let mut command = cargo(["package", "--quiet", "--allow-dirty"]);
    command.args(names.iter().flat_map(|name| ["--package", name]));
    // Libraries leave the Kubernetes version to programs, but a build alone needs one.
    command.env("K8S_OPENAPI_ENABLED_VERSION", "1.37");
    match options.verify {
        true => within(VERIFIED, "package, verified", &mut command)?,
        false => within(LIMIT, "package", command.arg("--no-verify"))?,
    }
    sizes(&packages)?;
    semver(&names)
}

/// Returns the packages of the workspace that may be published.
fn published() -> Result<Vec<Value>, String> {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("package: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("package: {error}"))?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    // `publish = false` is an empty list of registries.
    Ok(packages.into_iter().filter(|package| package["publish"].is_null()).collect())
}

/// Returns the problems of a package's metadata.
fn missing(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let given = |field: &str| package[field].as_str().is_some_and(|text| !text.is_empty());
    let listed = |field: &str| package[field].as_array().map_or(0, Vec::len);
    let mut missing: Vec<String> = ["description", "license", "readme", "rust_version"]
        .into_iter()
        .filter(|field| !given(field))
        .map(|field| format!("{name} has no {field}"))
        .collect();
    if !(1..=KEYWORDS).contains(&listed("keywords")) {
        missing.push(format!("{name} has no keywords, or more than {KEYWORDS}"));
    }
    // Each package needs a copy of the licence text.
    let folder = Path::new(package["manifest_path"].as_str().unwrap_or_default()).parent();
    let licence = folder.and_then(|folder| std::fs::read_to_string(folder.join("LICENSE")).ok());
    if licence.as_deref() != Some(LICENCE) {
        missing.push(format!("{name} has no LICENSE, or a different one from the workspace"));
    }
    if listed("categories") == 0 {
        missing.push(format!("{name} has no categories"));
    }
    let library = package["targets"].as_array().is_some_and(|all| all.iter().any(|target| target["kind"][0] == "lib"));
    if library && package["metadata"]["docs"]["rs"].is_null() {
        missing.push(format!("{name} does not say how its documentation is built"));
    }
    missing
}

/// Prints the sizes of packages, and fails if one is too large.
fn sizes(packages: &[Value]) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    for package in packages {
        let file = format!(
            "{}-{}.crate",
            package["name"].as_str().unwrap_or_default(),
            package["version"].as_str().unwrap_or_default()
        );
        let size = std::fs::metadata(Path::new(&target).join("package").join(&file));
        let size = size.map_err(|error| format!("package: {file}: {error}"))?.len();
        println!("package: {file}, {} KiB", size.div_ceil(1024));
        if size > LARGEST {
            return Err(format!("package: {file} is larger than {} KiB", LARGEST / 1024));
        }
    }
    Ok(())
}

/// Compares the public API with the last published version.
fn semver(names: &[&str]) -> Result<(), String> {
    if Command::new("cargo-semver-checks").arg("--version").output().is_err() {
        println!("semver: skipped, cargo-semver-checks is not installed (cargo install cargo-semver-checks)");
        return Ok(());
    }
    // In another folder, so that cargo asks the registry and does not find this workspace.
    let is_published = |name: &&&str| {
        let asked = cargo(["info", "--quiet", name]).current_dir(std::env::temp_dir()).output();
        asked.is_ok_and(|output| output.status.success())
    };
    let known: Vec<&&str> = names.iter().filter(is_published).collect();
    if known.is_empty() {
        println!("semver: skipped, nothing has been published to compare with");
        return Ok(());
    }
    let mut command = cargo(["semver-checks"]);
    command.args(known.iter().flat_map(|name| ["--package", name]));
    within(VERIFIED, "semver", &mut command)
}
