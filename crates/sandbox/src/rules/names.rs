//! By which names an argument is known, if it is a program.

use std::path::{Path, PathBuf};

use super::programs::BUILDS;
use super::starters::MULTI_CALL;

/// Where programs are looked for that an argument names without a folder.
const FOLDERS: &[&str] = &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The names of the program at this place: as it is written, and as the files are called that this leads to. `resolved` is
/// the file of the first argument. What a program of many names is called by is what it is.
pub(super) fn names(argv: &[String], at: usize, resolved: &Path) -> Vec<String> {
    let files = if at == 0 { vec![resolved.to_owned()] } else { targets(&argv[at]) };
    let files = files.iter().filter_map(|file| file.file_name()?.to_str());
    let files = files.filter(|file| !MULTI_CALL.contains(file));
    std::iter::once(last_part(&argv[at])).chain(files).map(str::to_owned).collect()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `python3.11`, `perl5.36-x86_64-linux-gnu`, `zsh-5.9`, `bash-static`: what stands before the version or the build.
pub(super) fn is_called(name: &str, program: &str) -> bool {
    let Some(rest) = name.strip_prefix(program) else { return false };
    let is_version = rest.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    is_version || rest.trim_matches(['.', '-']).is_empty() || BUILDS.contains(&rest)
}

/// The files that an argument leads to if it is the name of a program.
fn targets(argument: &str) -> Vec<PathBuf> {
    if argument.starts_with('/') {
        return std::fs::canonicalize(argument).into_iter().collect();
    }
    if argument.is_empty() || argument.starts_with(['-', '+', '.']) || argument.contains('/') {
        return Vec::new();
    }
    FOLDERS.iter().filter_map(|folder| std::fs::canonicalize(Path::new(folder).join(argument)).ok()).collect()
}

/// The files that an argument may name as a program, also one that is not there.
pub(super) fn files(argument: &str) -> Vec<PathBuf> {
    let found = targets(argument);
    if found.is_empty() && argument.starts_with('/') { vec![PathBuf::from(argument)] } else { found }
}
