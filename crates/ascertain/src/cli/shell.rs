//! Completions and the manual page, from the same definitions as `--help`.

use super::{Cli, Ended};
use clap::{Args, CommandFactory};
use std::io::Write;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
bash:  ascertain completions bash > ~/.local/share/bash-completion/completions/ascertain
zsh:   ascertain completions zsh > \"${fpath[1]}/_ascertain\"
fish:  ascertain completions fish > ~/.config/fish/completions/ascertain.fish")]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

pub(super) fn completions(args: &Completions, out: &mut dyn Write) -> Result<u8, Ended> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ascertain", &mut script);
    out.write_all(&script)?;
    Ok(0)
}

pub(super) fn man(out: &mut dyn Write) -> Result<u8, Ended> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    for command in Cli::command().get_subcommands() {
        let title = format!("ascertain-{}", command.get_name());
        clap_mangen::Man::new(command.clone()).title(title).render(&mut page)?;
    }
    out.write_all(&page)?;
    Ok(0)
}
