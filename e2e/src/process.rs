//! Programs that end with the test that started them, however it ends.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Kills the program as soon as its own input ends: also if the test is killed and cannot clean up any more.
const KEEPER: &str = r#"trap '' INT TERM
log=$1; shift
"$@" </dev/null >>"$log" 2>&1 &
program=$!
echo $program
cat >/dev/null
kill -KILL $program 2>/dev/null
wait $program"#;

/// A program that runs until it is killed, or until this process ends.
#[derive(Debug)]
pub struct Process {
    keeper: Child,
    id: String,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it says goes to the end of a file.
    ///
    /// # Errors
    ///
    /// It cannot be started.
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
            // What it runs writes into its log; that it was killed is no news.
            .stderr(Stdio::null())
            .spawn()?;
        let output = keeper.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let id = BufReader::new(output).lines().next_line().await?.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { keeper, id, log: log.to_owned() })
    }

    /// Kills it without a chance to say goodbye, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub async fn kill(mut self) -> io::Result<()> {
        drop(self.keeper.stdin.take());
        self.keeper.wait().await.map(drop)
    }

    /// Freezes it: connections stay open, and nothing is answered.
    ///
    /// # Errors
    ///
    /// It is gone.
    pub async fn pause(&self) -> io::Result<()> {
        self.signal("STOP").await
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// It is gone.
    pub async fn resume(&self) -> io::Result<()> {
        self.signal("CONT").await
    }

    /// True unless it ended by itself.
    pub async fn is_alive(&self) -> bool {
        self.signal("0").await.is_ok()
    }

    /// The last lines of what it said.
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
