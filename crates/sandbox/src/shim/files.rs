//! Landlock: what the command may do with files, TCP ports, signals and abstract sockets.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::config::{FileRules, LandlockStatus};
use crate::spec::LandlockMode;

/// The newest interface whose rights on files are asked for: it has control over devices' ioctls.
const FILES: ABI = ABI::V5;

pub(super) fn restrict(mode: LandlockMode, files: &FileRules) -> io::Result<LandlockStatus> {
    let (required, net, scopes) = match mode {
        LandlockMode::Off => return Ok(LandlockStatus::NotEnforced),
        LandlockMode::HardWithScopes => (CompatLevel::HardRequirement, true, CompatLevel::HardRequirement),
        LandlockMode::Hard => (CompatLevel::HardRequirement, true, CompatLevel::BestEffort),
        LandlockMode::BestEffort => (CompatLevel::BestEffort, false, CompatLevel::BestEffort),
    };
    let restrict = || -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let mut ruleset = Ruleset::default().set_compatibility(required).handle_access(AccessFs::from_all(FILES))?;
        if net {
            ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
        }
        ruleset = ruleset.set_compatibility(scopes).scope(Scope::AbstractUnixSocket | Scope::Signal)?;
        let mut created = ruleset.set_compatibility(required).create()?.no_new_privs(false);
        for (paths, access) in grants(files) {
            for path in paths {
                created = add(created, path, access)?;
            }
        }
        Ok(created.restrict_self()?.ruleset)
    };
    match restrict().map_err(|error| io::Error::other(format!("landlock: {error}")))? {
        RulesetStatus::FullyEnforced => Ok(LandlockStatus::FullyEnforced),
        RulesetStatus::PartiallyEnforced => Ok(LandlockStatus::PartiallyEnforced),
        RulesetStatus::NotEnforced => Ok(LandlockStatus::NotEnforced),
    }
}

fn grants(files: &FileRules) -> [(&[std::path::PathBuf], BitFlags<AccessFs>); 5] {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // Device nodes are not made by commands, and their ioctls stay closed.
    let write = AccessFs::from_all(FILES)
        & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    [
        (&files.read, read),
        (&files.read_and_execute, read | AccessFs::Execute),
        (&files.use_devices, AccessFs::ReadFile | AccessFs::WriteFile),
        (&files.write, write),
        (&files.write_and_execute, write | AccessFs::Execute),
    ]
}

fn add(
    created: RulesetCreated,
    path: &std::path::Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let opened = PathFd::new(path)?;
    // Rights on folders do not fit files.
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(FILES) };
    Ok(created.add_rule(PathBeneath::new(opened, access))?)
}
