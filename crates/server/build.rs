//! Embeds, compressed, what the server serves as files: the console that `make console` has built (a table which
//! `pages/console.rs` includes; where nothing is built it is empty, and the server says how to build it: the server itself
//! needs no Node), and the description of the API.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};

const CONSOLE: &str = "../../console/dist";
const DESCRIPTION: &str = "../../docs/reference/openapi.json";

fn main() -> io::Result<()> {
    for path in [CONSOLE, DESCRIPTION, "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    compress(&here.join(DESCRIPTION), &out.join("openapi.json.gz"))?;

    let root = here.join(CONSOLE);
    let mut paths = Vec::new();
    if root.join("index.html").is_file() {
        collect(&root, &mut paths)?;
    }
    paths.sort();
    let mut table = format!("static FILES: [ConsoleFile; {}] = [\n", paths.len());
    for (index, path) in paths.iter().enumerate() {
        let compressed = format!("console-{index}.gz");
        compress(path, &out.join(&compressed))?;
        let name = path.strip_prefix(&root).unwrap_or(path).to_string_lossy();
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "    ConsoleFile {{ path: \"/{name}\", content: Embedded::new(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{compressed}\"))) }},"
        );
    }
    table.push_str("];\n");
    fs::write(out.join("console_files.rs"), table)
}

/// Without a name or a time, so that the same file gives the same bytes.
fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut gzip = GzBuilder::new().write(File::create(to)?, Compression::best());
    io::copy(&mut File::open(from)?, &mut gzip)?;
    gzip.finish().map(drop)
}

/// The files that a page can ask for.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension != "gz") {
            paths.push(path);
        }
    }
    Ok(())
}
