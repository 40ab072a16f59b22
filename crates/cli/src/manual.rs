//! `informer completions` and `informer man`: shell completions and manual pages.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::say;

/// Print a script that completes arguments in a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  informer completions bash > ~/.local/share/bash-completion/completions/informer
  informer completions zsh > \"${fpath[1]}/_informer\"
  informer completions fish > ~/.config/fish/completions/informer.fish")]
pub(crate) struct Completions {
    /// The shell to complete arguments in.
    #[arg(value_enum)]
    shell: Shell,
}

/// Print the manual page, or write one for each command.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  informer man | man -l -
  informer man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write the pages of all commands into this directory instead.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(arguments: Completions) -> Result<(), Failure> {
    // Rendered into memory first: the reader may close the pipe early.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::Arguments::command(), "informer", &mut script);
    say::write(&script)
}

pub(crate) fn man(arguments: Man) -> Result<(), Failure> {
    let command = crate::Arguments::command();
    let Some(directory) = arguments.out else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command).render(&mut page);
        rendered.map_err(|error| Failure::new("cannot write the manual page", error))?;
        return say::write(&page);
    };
    let written = fs::create_dir_all(&directory).and_then(|()| clap_mangen::generate_to(command, &directory));
    written.map_err(|error| Failure::new(format!("cannot write manual pages into {}", directory.display()), error))
}
