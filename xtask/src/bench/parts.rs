//! Measures the parts alone: cache and handlers, representations, connections, the embedded server, and the work queue
//! next to client-go's.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{cargo, run};

/// The folder of our client-go programs.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/go");

/// A line of a program: a name, a value and a unit.
#[derive(Debug, PartialEq)]
struct Figure {
    name: String,
    value: f64,
    unit: String,
}

/// Prints all figures.
pub(super) fn run_all() -> Result<(), String> {
    run("figures", &mut cargo(["bench", "-p", "kube-informer", "--bench", "figures"]))?;
    let locks = ["bench", "-p", "kube-informer", "--features", "__measured_locks", "--bench", "locks"];
    run("locks", &mut cargo(locks))?;
    run("representations", &mut cargo(["bench", "-p", "kube-informer", "--bench", "representations"]))?;
    run("connections", &mut cargo(["bench", "-p", "kube-informer", "--bench", "connections"]))?;
    run("server figures", &mut cargo(["run", "--release", "-p", "kube-embedded-apiserver", "--example", "figures"]))?;
    controller()?;
    println!("`cargo xtask instructions` counts instructions, which do not depend on the machine");
    Ok(())
}

/// Prints the figures of queues and controllers, and of client-go's queue if Go is installed.
fn controller() -> Result<(), String> {
    let mut bench = cargo(["bench", "-p", "kube-controller", "--bench", "figures"]);
    let ours = figures("controller figures", &mut bench)?;
    if Command::new("go").arg("version").output().is_err() {
        println!("client-go figures: skipped, go is not installed (https://go.dev/doc/install)");
        return Ok(());
    }
    let program = client_go()?;
    let theirs = figures("client-go figures", &mut Command::new(program))?;
    side_by_side(&ours, &theirs);
    Ok(())
}

/// Builds our client-go program next to this one, and returns its path.
fn client_go() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("client-go build: {error}"))?;
    let program = this.with_file_name(format!("client-go-queue{}", std::env::consts::EXE_SUFFIX));
    run("client-go build", Command::new("go").args(["build", "-C", MODULE, "-o"]).arg(&program).arg("./queue"))?;
    Ok(program)
}

/// Runs a program, prints its output, and returns the figures in it.
fn figures(step: &str, command: &mut Command) -> Result<Vec<Figure>, String> {
    let failed = |error: std::io::Error| format!("{step}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut figures = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|printed| BufReader::new(printed).lines()) {
        let line = line.map_err(failed)?;
        println!("{line}");
        figures.extend(figure(&line));
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(figures) } else { Err(step.to_owned()) }
}

fn figure(line: &str) -> Option<Figure> {
    let (line, unit) = line.trim().rsplit_once(' ')?;
    let (name, value) = line.trim_end().rsplit_once(' ')?;
    let value = value.parse().ok()?;
    Some(Figure { name: name.trim_end().to_owned(), value, unit: unit.to_owned() })
}

/// Prints our figures next to client-go's, with the ratio. The names of ours end with the type of the key.
fn side_by_side(ours: &[Figure], theirs: &[Figure]) {
    println!("{:<30} {:>10} {:>18} {:>18}", "", "client-go", "ObjectKey", "String");
    for Figure { name, value, unit } in theirs {
        let beside = ["ObjectKey", "String"].map(|key| {
            let ours = ours.iter().find(|figure| figure.name == format!("{name}, {key}"));
            ours.map_or("unknown".to_owned(), |ours| format!("{:.0} ({:.2}x)", ours.value, ours.value / value))
        });
        println!("{name:<30} {value:>10.0} {:>18} {:>18}  {unit}", beside[0], beside[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_name_a_value_and_a_unit() {
        let expected = Figure { name: "get, workers: 1".to_owned(), value: 412.0, unit: "ns".to_owned() };
        assert_eq!(figure("get, workers: 1        412 ns"), Some(expected));
        assert_eq!(figure("get                unknown ns"), None);
        assert_eq!(figure(""), None);
    }
}
