//! `interlock workflow diff`: a file beside the newest version on the server.

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::workflows::{VersionDetail, path};
use serde::Serialize;

use super::files;
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::paint::Tone;

/// Lines that are shown around what differs.
const CONTEXT: usize = 3;
/// The most lines on either side for which the shortest difference is looked for.
const LINES_MAX: usize = 4_000;

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The workflow file; `-` for stdin.
    #[arg(value_name = "FILE")]
    file: String,
}

#[derive(Serialize)]
struct Difference<'a> {
    workflow: &'a str,
    /// The newest version on the server; none if it is new.
    version: Option<u32>,
    differs: bool,
}

pub async fn run(client: &Client, printer: Printer, args: DiffArgs) -> anyhow::Result<()> {
    let checked = files::checked(&args.file, printer)?;
    let name = checked.definition.name.0.clone();
    let stored: Result<VersionDetail, _> = client.get(fill(path::WORKFLOW, &[("workflow", &name)])).send().await;
    let stored = match stored {
        Ok(stored) => Some(stored),
        Err(error) if error.status() == Some(404) => None,
        Err(error) => return Err(error.into()),
    };
    let old = stored.as_ref().map_or("", |stored| stored.source.as_str());
    let differs = old != checked.source.text;
    let version = stored.as_ref().map(|stored| stored.view.version);
    printer.show(&Difference { workflow: &name, version, differs }, |paint| {
        if !differs {
            return format!("{name} is version {} on the server\n", version.unwrap_or_default());
        }
        let (before, after) = (old.lines().collect::<Vec<_>>(), checked.source.text.lines().collect::<Vec<_>>());
        let title =
            version.map_or_else(|| "nothing on the server".to_owned(), |version| format!("{name} version {version}"));
        let mut text = format!("--- {title}\n+++ {}\n", args.file);
        for (sign, line) in shortened(&lines(&before, &after)) {
            let line = format!("{sign}{}", visible(line));
            let tone = match sign {
                '-' => Tone::Bad,
                '+' => Tone::Good,
                _ => Tone::Plain,
            };
            text.push_str(&paint.tone(tone, line));
            text.push('\n');
        }
        text
    })?;
    if differs { Err(ExitError::silently(Exit::Unsuccessful)) } else { Ok(()) }
}

/// Every line of both sides, with the sign of where it comes from.
fn lines<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<(char, &'a str)> {
    let same_start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[same_start..], &after[same_start..]);
    let same_end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - same_end], &new[..new.len() - same_end]);
    let mut all: Vec<_> = before[..same_start].iter().map(|line| (' ', *line)).collect();
    if old.len() > LINES_MAX || new.len() > LINES_MAX {
        all.extend(old.iter().map(|line| ('-', *line)));
        all.extend(new.iter().map(|line| ('+', *line)));
    } else {
        all.extend(middle(old, new));
    }
    all.extend(before[before.len() - same_end..].iter().map(|line| (' ', *line)));
    all
}

/// The longest common subsequence decides what stays.
fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let width = new.len() + 1;
    let mut longest = vec![0u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = if old[i] == new[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut all = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            all.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            all.push(('-', old[i]));
            i += 1;
        } else {
            all.push(('+', new[j]));
            j += 1;
        }
    }
    all
}

/// Only what differs, with some lines around it.
fn shortened<'a>(all: &[(char, &'a str)]) -> Vec<(char, &'a str)> {
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        all[from..(at + CONTEXT + 1).min(all.len())].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut shown = Vec::new();
    let mut gap = false;
    for (at, line) in all.iter().enumerate() {
        if near(at) {
            if gap {
                shown.push((' ', "…"));
            }
            gap = false;
            shown.push(*line);
        } else {
            gap = true;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_stays_and_what_differs_is_shown() {
        let text =
            |lines: &[(char, &str)]| lines.iter().map(|(sign, line)| format!("{sign}{line}")).collect::<Vec<_>>();
        let all = lines(&["a", "b", "c", "d"], &["a", "c", "x", "d"]);
        assert_eq!(text(&all), [" a", "-b", " c", "+x", " d"]);
        let long: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let before: Vec<&str> = long.iter().map(String::as_str).collect();
        let mut after = before.clone();
        after[10] = "ten";
        let shown = shortened(&lines(&before, &after));
        assert_eq!(text(&shown), [" …", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]);
    }
}
