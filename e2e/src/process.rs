//! Child processes that end with the test, even if the test is killed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Kills the program as soon as stdin ends, so that it ends also if the test is killed.
const KEEPER: &str = r#"trap '' INT TERM
log=$1; shift
"$@" </dev/null >>"$log" 2>&1 &
program=$!
echo $program
cat >/dev/null
kill -KILL $program 2>/dev/null
wait $program"#;

/// A program that runs until it is killed, or until the test process ends.
#[derive(Debug)]
pub struct Process {
    keeper: Child,
    id: String,
    log: PathBuf,
}

impl Process {
    /// Starts a program, and appends its output to a log.
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub async fn start<S: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        log: &Path,
    ) -> io::Result<Self> {
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(log)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The program's output goes to its log; the shell's own message about the killed program is dropped.
            .stderr(Stdio::null())
            .spawn()?;
        let output = keeper.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let id = BufReader::new(output).lines().next_line().await?.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { keeper, id, log: log.to_owned() })
    }

    /// Kills the program with SIGKILL, and waits for its end.
    ///
    /// # Errors
    ///
    /// The process cannot be waited for.
    pub async fn kill(mut self) -> io::Result<()> {
        drop(self.keeper.stdin.take());
        self.keeper.wait().await.map(drop)
    }

    /// Stops the program with SIGSTOP: connections stay open, and requests are not answered.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub async fn pause(&self) -> io::Result<()> {
        self.signal("STOP").await
    }

    /// Continues the program.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub async fn resume(&self) -> io::Result<()> {
        self.signal("CONT").await
    }

    /// Returns false if the program has ended.
    pub async fn is_alive(&self) -> bool {
        self.signal("0").await.is_ok()
    }

    /// Returns the last lines of the log.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    async fn signal(&self, signal: &str) -> io::Result<()> {
        let mut kill = Command::new("sh");
        kill.args(["-c", r#"kill -"$1" "$2" 2>/dev/null"#, "sh", signal, &self.id]);
        match kill.status().await?.success() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::NotFound, format!("process {} is gone", self.id))),
        }
    }
}
