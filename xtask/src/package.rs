//! Packages what is published: everything that a registry asks for is there, packages are small, and what they promise is
//! compared with what was promised last, where there is something to compare with.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::{cargo, within};

/// How long it may take in all: nothing is built unless asked for, but a registry may be asked, and the machine busy.
const LIMIT: Duration = Duration::from_secs(600);
/// How long building every package by itself may take, with all dependencies and in a profile that nobody else uses.
const VERIFIED: Duration = Duration::from_secs(1800);
/// The largest package: who depends on us downloads it.
const LARGEST: u64 = 1024 * 1024;
/// As many as a registry takes.
const KEYWORDS: usize = 5;

/// What everything here may be used under.
const LICENCE: &str = include_str!("../../LICENSE");

/// How packages are checked.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Builds each package from what is in it, as publishing does: some minutes.
    #[arg(long)]
    verify: bool,
}

/// What `check` runs: packages are made, and nothing is built.
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
    // All at once: they stand on each other, and none of these versions is published yet.
    let mut command = cargo(["package", "--quiet", "--allow-dirty"]);
    command.args(names.iter().flat_map(|name| ["--package", name]));
    // Libraries leave this to programs; building them by themselves needs some.
    command.env("K8S_OPENAPI_ENABLED_VERSION", "1.37");
    match options.verify {
        true => within(VERIFIED, "package, verified", &mut command)?,
        false => within(LIMIT, "package", command.arg("--no-verify"))?,
    }
    sizes(&packages)?;
    semver(&names)
}

/// The packages of the workspace that may be published.
fn published() -> Result<Vec<Value>, String> {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("package: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("package: {error}"))?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    // `publish = false` is an empty list of registries.
    Ok(packages.into_iter().filter(|package| package["publish"].is_null()).collect())
}

/// What a package lacks.
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
    // A package stands alone: what is meant is the text, and not where it is.
    let folder = Path::new(package["manifest_path"].as_str().unwrap_or_default()).parent();
    let licence = folder.and_then(|folder| std::fs::read_to_string(folder.join("LICENSE")).ok());
    if licence.as_deref() != Some(LICENCE) {
        missing.push(format!("{name} has no LICENSE, or another one than the workspace"));
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

/// Says how large the packages are, and fails if one is too large.
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

/// Compares interfaces with those that were published last.
fn semver(names: &[&str]) -> Result<(), String> {
    if Command::new("cargo-semver-checks").arg("--version").output().is_err() {
        println!("semver: skipped, cargo-semver-checks is not installed (cargo install cargo-semver-checks)");
        return Ok(());
    }
    // Elsewhere, so that the registry is asked, and not this workspace.
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
