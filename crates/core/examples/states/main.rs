//! Prints the reference of all states: `cargo run -p interlock-core --example states > docs/reference/states.md`.

mod page;

fn main() {
    print!("{}", page::page());
}
