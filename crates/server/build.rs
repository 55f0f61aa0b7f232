//! Embeds the console: writes a table of the files that `make console` has built, which `pages/console.rs` includes. Where
//! nothing is built the table is empty, and the server says how to build it: the server itself needs no Node.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const BUILT: &str = "../../console/dist";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={BUILT}");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(BUILT);
    let mut paths = Vec::new();
    if root.join("index.html").is_file() {
        collect(&root, &mut paths)?;
    }
    paths.sort();
    let mut table = String::from("&[\n");
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension != "gz")) {
        let (name, plain) = (path.strip_prefix(&root).unwrap_or(path).to_string_lossy(), path.to_string_lossy());
        let compressed = format!("{plain}.gz");
        let gzip = if Path::new(&compressed).is_file() {
            format!("Some(include_bytes!({compressed:?}))")
        } else {
            "None".to_owned()
        };
        // Writing to a string cannot fail.
        let _ =
            writeln!(table, "    ConsoleFile {{ path: \"/{name}\", plain: include_bytes!({plain:?}), gzip: {gzip} }},");
    }
    table.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("console_files.rs"), table)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
