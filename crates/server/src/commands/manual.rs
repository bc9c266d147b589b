//! Prints documentation of the command line itself: completions, man pages, the reference of
//! options.

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use super::{CommandError, print_bytes};
use crate::cli::ManArguments;
use crate::config;

pub fn print_completions(mut command: Command, shell: Shell) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "zenobe", &mut script);
    print_bytes(&script)
}

pub fn print_man_pages(command: Command, arguments: &ManArguments) -> Result<(), CommandError> {
    if let Some(directory) = &arguments.output {
        let failed = |error| CommandError::ManPages { path: directory.clone(), error };
        std::fs::create_dir_all(directory).map_err(failed)?;
        return clap_mangen::generate_to(command, directory).map_err(failed);
    }
    let mut page = Vec::new();
    let found = find(command, &arguments.command)?;
    Man::new(found).render(&mut page).map_err(CommandError::Output)?;
    print_bytes(&page)
}

pub fn print_reference(command: &Command) -> Result<(), CommandError> {
    let serve = command.find_subcommand("serve").expect("it is a command");
    print_bytes(config::reference(serve).as_bytes())
}

/// The subcommand of `root` with these names.
fn find(mut root: Command, names: &[String]) -> Result<Command, CommandError> {
    // A built command knows its full name, which is its page's name: zenobe-trigger-add.
    root.build();
    let mut found = &root;
    for name in names {
        found = found.find_subcommand(name).ok_or_else(|| {
            let known = found.get_subcommands().filter(|command| !command.is_hide_set());
            let hint = config::did_you_mean(config::suggest(name, known.map(Command::get_name)));
            CommandError::Refused(format!("there is no command `{}`{hint}", names.join(" ")))
        })?;
    }
    Ok(found.clone())
}
