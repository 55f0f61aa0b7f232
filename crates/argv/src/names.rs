//! By which names an argument is known, if it is a program.

use std::path::PathBuf;

use crate::programs::BUILDS;
use crate::starters::MULTI_CALL;

/// The names of each argument, if it is a program: as it is written, and as the files are called that this leads to, where they are
/// known. What a program of many names is called by is what it is.
pub(crate) fn names(argv: &[String], files: impl Fn(usize) -> Vec<PathBuf>) -> Vec<Vec<String>> {
    (0..argv.len()).map(|at| names_of(&argv[at], &files(at))).collect()
}

fn names_of(argument: &str, files: &[PathBuf]) -> Vec<String> {
    let files = files.iter().filter_map(|file| file.file_name()?.to_str());
    let files = files.filter(|file| !MULTI_CALL.contains(file));
    std::iter::once(last_part(argument)).chain(files).map(str::to_owned).collect()
}

/// Of `/usr/bin/rm` it is `rm`.
pub fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `python3.11`, `perl5.36-x86_64-linux-gnu`, `zsh-5.9`, `perf_6.1`, `bash-static`: what stands before the version or the build.
/// `git-rebase` is `git`, and each loader is `ld.so`.
pub(crate) fn is_called(name: &str, program: &str) -> bool {
    let Some(rest) = name.strip_prefix(program) else { return program == "ld.so" && is_loader(name) };
    let is_version = rest.trim_start_matches(['-', '_']).starts_with(|c: char| c.is_ascii_digit());
    let is_dashed = program == "git" && rest.starts_with('-');
    is_version || is_dashed || rest.trim_matches(['.', '-']).is_empty() || BUILDS.contains(&rest)
}

/// `ld-linux-x86-64.so.2`, `ld-2.31.so`, `ld64.so.1`.
fn is_loader(name: &str) -> bool {
    ["ld-", "ld32.", "ld64."].iter().any(|beginning| name.starts_with(beginning)) && name.contains(".so")
}
