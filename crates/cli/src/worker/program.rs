//! The programs of tasks: checked to be there and executable before the first step is taken.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::output::exit::{Exit, ExitError};

/// Refuses what could not be started when the first step comes.
pub fn check(task: &str, program: &str) -> anyhow::Result<()> {
    match found(program, std::env::var_os("PATH").as_deref().unwrap_or_default()) {
        Ok(()) => Ok(()),
        Err(what) => Err(ExitError::saying(Exit::Usage, format!("the task `{task}` cannot run: {what}"))),
    }
}

fn found(program: &str, search: &std::ffi::OsStr) -> Result<(), String> {
    if program.contains('/') {
        return usable(Path::new(program));
    }
    let candidates: Vec<PathBuf> = std::env::split_paths(search).map(|folder| folder.join(program)).collect();
    if candidates.iter().any(|path| usable(path).is_ok()) {
        return Ok(());
    }
    let beside = if Path::new(program).exists() {
        format!("; write ./{program} for the one in this folder")
    } else {
        String::new()
    };
    Err(format!("there is no program `{program}` on the PATH{beside}"))
}

fn usable(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(format!("there is no program {shown}")),
        Err(error) => Err(format!("{shown} cannot be looked at: {error}")),
        Ok(found) if found.is_dir() => Err(format!("{shown} is a folder")),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => {
            Err(format!("{shown} may not be executed; run: chmod +x {shown}"))
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_there_and_may_be_executed() {
        let folder = std::env::temp_dir().join(format!("interlock-program-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let program = folder.join("resize");
        let path = program.display().to_string();
        let search = folder.clone().into_os_string();
        assert!(found(&path, &search).unwrap_err().contains("there is no program"));
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(found(&path, &search).unwrap_err().ends_with(&format!("chmod +x {path}")));
        assert!(found("resize", &search).unwrap_err().contains("on the PATH"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!((found(&path, &search), found("resize", &search)), (Ok(()), Ok(())));
        assert!(found(&folder.display().to_string(), &search).unwrap_err().ends_with("is a folder"));
        fs::remove_dir_all(folder).unwrap();
    }
}
