//! `cargo xtask browser`: checks the live page in a real browser, for an example program and for the demo.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time limit; all checks take well under a minute.
const LIMIT: Duration = Duration::from_secs(5 * 60);
/// The time limit for npm, in case the registry does not answer.
const INSTALLED: Duration = Duration::from_secs(3 * 60);
/// Names of Chromium.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Options besides checking.
#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Also write docs/live-page.png.
    #[arg(long)]
    screenshot: bool,
    /// Write screenshots into this folder: light and dark theme, desktop and phone, and a fault.
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
}

/// Checks the page, if a browser is installed.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let Some(chromium) = CHROMIUM.iter().find_map(|name| found(name)) else {
        println!("browser: skipped, chromium is not installed (it is in your system's packages)");
        return Ok(());
    };
    if found("node").is_none() || found("npm").is_none() {
        println!("browser: skipped, node or npm is not installed (they are in your system's packages)");
        return Ok(());
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace is not found")?;
    let folder = root.join("target/browser");
    let failed = |error: std::io::Error| format!("browser: {error}");
    std::fs::create_dir_all(&folder).map_err(failed)?;
    // npm installs into target/; the script is copied there, because node resolves packages relative to it.
    for file in ["package.json", "package-lock.json", "page.mjs"] {
        let source = root.join("crates/inspect/tests/browser").join(file);
        std::fs::copy(source, folder.join(file)).map_err(failed)?;
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder);
    let install = install.stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(why) = crate::within(INSTALLED, "browser, npm ci", install) {
        println!(
            "browser: skipped, playwright-core could not be installed: {why} (npm ci in target/browser says more)"
        );
        return Ok(());
    }
    // Both builds cover the default members, so that they reuse what `cargo test` has built.
    let build = || crate::cargo(["build", "--bin", "informer", "--example", "inspected"]);
    let program = crate::executable("browser build", &mut build(), &["example"])?;
    let demo = crate::executable("browser build", &mut build(), &["bin"])?;
    let mut test = Command::new("node");
    test.arg(folder.join("page.mjs")).args(["--program", &program, "--demo", &demo]).arg("--chromium").arg(chromium);
    if options.screenshot {
        test.arg("--screenshot").arg(root.join("docs/live-page.png"));
    }
    if let Some(pictures) = &options.pictures {
        std::fs::create_dir_all(pictures).map_err(failed)?;
        test.arg("--pictures").arg(pictures);
    }
    crate::within(LIMIT, "browser", &mut test)
}

/// Returns the path of a program, if it is installed.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
