//! Values with which an option runs nothing, as the lists write them.

use crate::harmless::HARMLESS;

/// Whether the option runs nothing with this value.
pub(crate) fn is_harmless(program: &str, option: &str, value: &str) -> bool {
    let known = HARMLESS.iter().filter(|(of, by, _)| (*of, *by) == (program, option));
    let mut known = known.flat_map(|(_, _, values)| *values).peekable();
    if known.peek().is_none() || value.contains(['\n', '\r']) {
        return false;
    }
    let lower = value.to_lowercase();
    // `-o "BatchMode yes"`, `-o=Dpkg::Use-Pty=0`
    let spaced = lower.replace(' ', "=");
    let behind = lower.strip_prefix('=').filter(|behind| behind.contains('=')).unwrap_or(&lower);
    let is_setting = |fits: &dyn Fn(&str) -> bool| [&lower, &spaced, behind].into_iter().any(fits);
    known.any(|known| match known.chars().next() {
        Some('&') => is_line(&known[1..], &lower),
        Some('%') => is_line_of_options(&known[1..], value),
        Some('!') => known[1..].split(' ').all(|absent| !has(&lower, absent)),
        _ => match known.split_once('*') {
            Some((beginning, "")) => is_setting(&|setting| setting.starts_with(beginning)),
            Some((beginning, absent)) => lower.starts_with(beginning) && !lower.contains(&absent[1..]),
            None => is_setting(&|setting| setting == *known),
        },
    })
}

/// Whether a value has something in it: `~word` as a word, `^text` at its beginning, any other text anywhere.
fn has(value: &str, wanted: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match (wanted.strip_prefix('~'), wanted.strip_prefix('^')) {
        (Some(word), _) => value.split(|c| !is_of_word(c)).any(|one| one == word),
        (None, Some(beginning)) => value.starts_with(beginning),
        (None, None) => value.contains(wanted),
    }
}

/// Whether a command line is the program before the colon with options behind it, of which those with `*` have a value, and
/// `-o` one that is harmless to the program.
fn is_line_of_options(known: &str, value: &str) -> bool {
    let Some((program, options)) = known.split_once(':') else { return false };
    let words: Vec<&str> = value.split(' ').collect();
    let is_known = |word: &str| {
        options.split(' ').any(|option| match option.strip_suffix('*') {
            Some(valued) => word.starts_with(valued),
            None => word == option,
        })
    };
    let takes_next =
        |word: &str| word.len() == 2 && options.split(' ').any(|option| option.strip_suffix('*') == Some(word));
    let fits = |pair: &[&str]| match (pair[0], pair[1]) {
        ("-o", setting) => is_harmless(program, "-o", setting),
        (_, "-o") => true,
        (_, option) if option.starts_with("-o") => is_harmless(program, "-o", &option[2..]),
        (_, option) if option.starts_with('-') => is_known(option),
        (before, word) => takes_next(before) && !word.is_empty(),
    };
    words[0] == program && !value.contains(['\'', '"', '\\', '\t']) && words.windows(2).all(fits)
}

/// Whether a command line begins with one of the words before the colon, and goes on with words behind it.
fn is_line(known: &str, value: &str) -> bool {
    let Some((programs, options)) = known.split_once(':') else { return false };
    let mut words = value.split(' ');
    let is_known = |word: &str, known: &str| known.split(' ').any(|one| one == word);
    words.next().is_some_and(|program| is_known(program, programs)) && words.all(|option| is_known(option, options))
}
