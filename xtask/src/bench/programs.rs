//! The programs of clients and server.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde::Deserialize;

use super::{Client, SCRATCH, Scenario, name};
use crate::{cargo, executable, run};

/// The folder of the Go programs.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/go");

/// The program of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    Ours,
    ClientGo,
}

/// A line of a program.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Line {
    pub(super) figure: String,
    pub(super) value: f64,
    pub(super) unit: String,
}

/// The built programs.
pub(super) struct Programs {
    ours: PathBuf,
    go: Option<GoPrograms>,
}

struct GoPrograms {
    informer: PathBuf,
    encode: PathBuf,
}

impl Programs {
    /// Builds the programs. The Go programs need Go, and are not built in the profile `dev`.
    pub(super) fn build(profile: &str) -> Result<Self, String> {
        std::fs::create_dir_all(SCRATCH).map_err(|error| format!("{SCRATCH}: {error}"))?;
        // For measuring, built alone with the features of a normal program; for `quick`, as `cargo test` has built it.
        let package = if profile == "dev" { "--workspace" } else { "--package=kube-informer-bench" };
        let mut build = cargo(["build", package, "--bin", "kube-informer-bench", "--profile", profile]);
        let ours = executable("bench build", &mut build, &["bin"])?.into();
        let go = if profile == "dev" {
            None
        } else if Command::new("go").arg("version").output().is_ok() {
            Some(GoPrograms { informer: go_build("informer")?, encode: go_build("encode")? })
        } else {
            println!("client-go: skipped, go is not installed (https://go.dev/doc/install)");
            None
        };
        Ok(Self { ours, go })
    }

    pub(super) fn has(&self, program: Program) -> bool {
        program == Program::Ours || self.go.is_some()
    }

    /// Measures a client in its own process.
    pub(super) fn measure(
        &self,
        client: Client,
        scenario: Scenario,
        server: &Server,
        objects: usize,
        arguments: &[String],
    ) -> Result<Vec<Line>, String> {
        let (program, called) = client.program();
        let path = match (program, &self.go) {
            (Program::ClientGo, Some(go)) => &go.informer,
            (Program::ClientGo, None) => return Err("go is not installed".to_owned()),
            (Program::Ours, _) => &self.ours,
        };
        let mut command = Command::new(path);
        command.arg(called).arg(format!("--server=http://{}", server.address));
        if program == Program::Ours {
            // The Go program supports pods only.
            command.arg(format!("--kind={}", server.kind));
        }
        command.arg(format!("--objects={objects}")).arg(format!("--scenario={}", name(scenario))).args(arguments);
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(output.status.to_string());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{line:?}: {error}"))).collect()
    }

    /// Writes the pods of a server as protobuf messages, which needs Go.
    fn protobuf(&self, objects: usize, seed: u64) -> Result<Option<PathBuf>, String> {
        let Some(GoPrograms { encode, .. }) = &self.go else { return Ok(None) };
        let path = Path::new(SCRATCH).join("pods.pb");
        let failed = |error: std::io::Error| format!("pods as protobuf: {error}");
        let mut pods = Command::new(&self.ours);
        pods.arg("pods").arg(format!("--objects={objects}")).arg(format!("--seed={seed}"));
        let mut pods = pods.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let printed = pods.stdout.take().ok_or("pods as protobuf: no pods")?;
        let encoded = Command::new(encode).arg(&path).stdin(printed).status().map_err(failed)?;
        if pods.wait().map_err(failed)?.success() && encoded.success() {
            Ok(Some(path))
        } else {
            Err("pods as protobuf".to_owned())
        }
    }
}

fn go_build(program: &str) -> Result<PathBuf, String> {
    let path = Path::new(SCRATCH).join(format!("client-go-{program}{}", std::env::consts::EXE_SUFFIX));
    let mut build = Command::new("go");
    build.args(["build", "-C", MODULE, "-o"]).arg(&path).arg(format!("./{program}"));
    run(&format!("client-go {program} build"), &mut build)?;
    Ok(path)
}

/// The server, which ends when its stdin ends.
pub(super) struct Server {
    address: String,
    kind: String,
    child: Child,
    input: ChildStdin,
}

impl Server {
    /// Starts the server, and waits until it has generated all objects.
    pub(super) fn start(programs: &Programs, kind: &str, objects: usize, seed: u64) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("bench server: {error}");
        let mut command = Command::new(&programs.ours);
        command.arg("serve").arg(format!("--objects={objects}")).arg(format!("--seed={seed}"));
        command.arg(format!("--kind={kind}"));
        let protobuf = programs.protobuf(objects, seed)?;
        if let Some(path) = &protobuf {
            command.arg("--protobuf").arg(path);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut line = String::new();
        BufReader::new(output.ok_or("bench server: no output")?).read_line(&mut line).map_err(failed)?;
        if let Some(path) = &protobuf {
            // The server has read the file, which is large.
            std::fs::remove_file(path).map_err(failed)?;
        }
        let address = line.trim().strip_prefix("listening on ").ok_or("bench server: it did not start")?.to_owned();
        Ok(Self { address, kind: kind.to_owned(), child, input: input.ok_or("bench server: no input")? })
    }

    pub(super) fn stop(self) -> Result<(), String> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait().map_err(|error| format!("bench server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("bench server: {status}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs_can_be_parsed() {
        let expected = Line { figure: "get".to_owned(), value: 41.5, unit: "ns".to_owned() };
        for line in [r#"{"figure":"get","value":41.5,"unit":"ns"}"#, r#"{"figure":"get","unit":"ns","value":41.5}"#] {
            assert_eq!(serde_json::from_str::<Line>(line).unwrap(), expected);
        }
    }
}
