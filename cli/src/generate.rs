//! `tollgate completions` and `tollgate man`: from the description of the command line.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::Args;
use crate::exit::Failure;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tollgate", &mut text);
    std::io::Write::write_all(&mut std::io::stdout(), &text).map_err(|error| Failure::io("writing", &error))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(folder: &Path) -> Result<ExitCode, Failure> {
    clap_mangen::generate_to(Args::command(), folder)
        .map_err(|error| Failure::io(&format!("writing into {}", folder.display()), &error))?;
    Ok(ExitCode::SUCCESS)
}
