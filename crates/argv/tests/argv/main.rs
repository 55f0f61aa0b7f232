//! What is read out of a command.

mod attacks;
mod code;
mod facts;

/// A vector from a line; blanks inside an argument are written as tabs.
fn argv(line: &str) -> Vec<String> {
    line.split(' ').map(|word| word.replace('\t', " ")).collect()
}
