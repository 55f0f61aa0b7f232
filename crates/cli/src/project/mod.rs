//! `interlock init`: a small project that runs at once, to begin with.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use interlock_core::text::visible::visible;
use serde::Serialize;

use crate::output::OutputArgs;
use crate::output::exit::{Exit, ExitError};

const NAME_CHARS_MAX: usize = 64;
/// What git leaves out of the project: `interlock up` keeps its data in the folder where it is started.
const IGNORE_FILE: &str = ".gitignore";

#[derive(Args)]
pub struct NewProjectArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The project's name, and that of its folder; `hello` by default. `.` is this folder, named after itself.
    #[arg(default_value = "hello")]
    name: PathBuf,
    /// The language of its task.
    #[arg(long, value_enum, default_value_t = Language::Shell)]
    language: Language,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    #[value(aliases = ["sh", "bash"])]
    Shell,
    #[value(alias = "py")]
    Python,
    #[value(aliases = ["js", "javascript"])]
    Node,
}

/// One file of the project.
struct ProjectFile {
    path: PathBuf,
    text: String,
    executable: bool,
}

#[derive(Serialize)]
struct MadeProject {
    folder: String,
    files: Vec<String>,
}

pub fn run(args: NewProjectArgs) -> anyhow::Result<()> {
    let name = name_of(&args.name)?;
    let mut files = files(&name, args.language);
    // A folder's own list is kept; the data folder has one, too.
    files.retain(|file| file.path != Path::new(IGNORE_FILE) || !args.name.join(IGNORE_FILE).exists());
    // All or nothing: what is there is looked at before anything is written.
    for file in &files {
        let path = args.name.join(&file.path);
        if path.exists() {
            let what = format!("{} is there already; name another folder", path.display());
            return Err(ExitError::saying(Exit::Refused, what));
        }
    }
    for file in &files {
        write(&args.name, file)?;
    }
    let made = MadeProject {
        folder: args.name.display().to_string(),
        files: files.iter().map(|file| file.path.display().to_string()).collect(),
    };
    let task = task(args.language).0;
    args.output.printer().show(&made, |_| {
        format!(
            "Made {} in {}.\nTry it:\n  cd {}\n  interlock workflow test workflow.test.yaml\n  interlock up --no-demo          # in \
             another terminal\n  interlock workflow apply workflow.yaml\n  interlock worker --task greet=./tasks/{task} &\n  \
             interlock run start {name} -i name=Ada --wait\n",
            made.files.join(", "),
            made.folder,
            made.folder
        )
    })
}

/// The last part of the path, if a workflow can be called so.
fn name_of(path: &Path) -> anyhow::Result<String> {
    let full = std::path::absolute(path)?;
    let name = full.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let plain =
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= NAME_CHARS_MAX && name.chars().all(fits);
    if plain {
        return Ok(name);
    }
    let what = format!(
        "`{}` cannot be the name of a workflow: write small letters, digits, `-` and `_`, as in `interlock init send-letters`",
        visible(&name)
    );
    Err(ExitError::saying(Exit::Usage, what))
}

fn task(language: Language) -> (&'static str, &'static str) {
    match language {
        Language::Shell => ("greet", include_str!("files/greet.sh")),
        Language::Python => ("greet.py", include_str!("files/greet.py")),
        Language::Node => ("greet.mjs", include_str!("files/greet.mjs")),
    }
}

fn files(name: &str, language: Language) -> Vec<ProjectFile> {
    let (task, text) = task(language);
    let plain = |path: &str, text: &str| ProjectFile {
        path: path.into(),
        text: text.replace("PROJECT", name).replace("TASK", task),
        executable: false,
    };
    vec![
        plain(IGNORE_FILE, "interlock-data/\n"),
        plain("README.md", include_str!("files/README.md")),
        plain("workflow.yaml", include_str!("files/workflow.yaml")),
        plain("workflow.test.yaml", include_str!("files/workflow.test.yaml")),
        ProjectFile { path: Path::new("tasks").join(task), text: text.to_owned(), executable: true },
    ]
}

fn write(folder: &Path, file: &ProjectFile) -> anyhow::Result<()> {
    let path = folder.join(&file.path);
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
    let mut out = open.with_context(|| format!("cannot write {}", path.display()))?;
    out.write_all(file.text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_valid_in_every_language() {
        for language in [Language::Shell, Language::Python, Language::Node] {
            let files = files("send-letters", language);
            for file in &files {
                assert!(!file.text.contains("PROJECT") && !file.text.contains("TASK"), "{}", file.path.display());
            }
            let ignored = files.iter().find(|file| file.path == Path::new(IGNORE_FILE)).unwrap();
            assert_eq!(ignored.text, "interlock-data/\n");
            let workflow = files.iter().find(|file| file.path == Path::new("workflow.yaml")).unwrap();
            let checked = interlock_workflow::parse("workflow.yaml", &workflow.text);
            assert!(checked.is_ok(), "{:?}", checked.err().map(|found| found.list));
        }
    }

    #[test]
    fn a_language_is_known_by_its_other_names() {
        for (name, language) in [
            ("sh", Language::Shell),
            ("bash", Language::Shell),
            ("py", Language::Python),
            ("javascript", Language::Node),
        ] {
            assert_eq!(Language::from_str(name, false), Ok(language));
        }
    }

    #[test]
    fn a_project_is_named_like_a_workflow() {
        assert_eq!(name_of(Path::new("work/send-letters")).unwrap(), "send-letters");
        for name in ["Send", "a b", "9lives", ".."] {
            assert!(name_of(Path::new(name)).is_err(), "{name}");
        }
    }
}
